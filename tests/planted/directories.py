"""Planted bugs around log directories that fail while their broker lives on."""

from tests.planted.planted import Planted, table

DIRECTORIES: dict[str, Planted] = table(
    Planted(
        name="lost-directory-keeps-its-leaders",
        module="strandline.controller.brokers.brokers",
        old="    return (*basis.departure(broker.node_id, False, lost, withdrawn), record)\n",
        new="    return (record,)\n",
        trap="KIP-858",
        harm="partitions stay with a leader that cannot serve them, for as long as its broker lives",
        plan="lost-directory-keeps-its-leaders.json",
        seeds=(1, 1),
    ),
    Planted(
        name="elected-in-a-lost-directory",
        module="strandline.controller.basis",
        old="            return broker.is_online(directory)\n",
        new="            return True\n",
        trap="T8, KIP-858",
        harm="a replica leads whose log is on a disk that is not there",
        plan="elected-in-a-lost-directory.json",
        seeds=(4, 4),
    ),
    Planted(
        name="lost-directory-untold",
        module="strandline.broker.lifecycle",
        old="            offline_log_dirs=self.offline,\n",
        new="",
        trap="KIP-858",
        harm="the controller goes on taking the replicas of a failed directory for live ones",
        plan="lost-directory-untold.json",
        seeds=(1, 1),
    ),
    Planted(
        name="empty-log-in-place-of-an-offline-one",
        module="strandline.replica.hosting.directories",
        old="        if directory in self.offline_ids:\n            return True\n"
        "        return bool(self.offline) and not is_new\n",
        new="        return False\n",
        trap="KIP-858",
        harm="the last in-sync replica comes back empty, leads, and all that was committed is lost",
        plan="empty-log-in-place-of-an-offline-one.json",
        seeds=(20, 20),
    ),
    Planted(
        name="failed-flush-taken-for-done",
        module="strandline.replica.storage.flushing",
        old="            self.in_flight.pop(token.at, None)\n        self.host.fail(token.directory, event.error)",
        new="            self.flushed(token)\n        else:\n            self.host.fail(token.directory, event.error)",
        trap="fsyncgate",
        harm="a recovery point vouches for records that the disk never got",
        plan="failed-flush-taken-for-done.json",
        seeds=(4, 4),
    ),
    Planted(
        name="future-log-not-cut",
        module="strandline.replica.storage.moving.future",
        old="            align(self.log, current)\n",
        new="",
        trap="KIP-101, KIP-113",
        harm="a replica that moves keeps records that its leader never had",
        plan="future-log-not-cut.json",
        seeds=(10, 10),
    ),
)
