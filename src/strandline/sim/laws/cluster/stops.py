"""What a broker says of its last stop when it registers, held against what that stop was.

- after a stop in order, nobody having touched its files, a broker names that stop, and no replica that has lost records
- a stop is named only where every log directory that stopped then is there, with its marker, and none that is unknown
- where a directory was offline at the stop and is back, each replica that lay in it, and still is in ISR or ELR, may
  have lost records, and the broker reports that
- a broker begins anew by itself for a directory that was full only where no other failure was met
"""

from typing import NamedTuple

from strandline.base.ids import TopicIdPartition, Uuid
from strandline.log.evidence.clean_shutdown import FILE
from strandline.metadata.image import directory_of
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest

UNCLEAN = -1


class Stop(NamedTuple):
    """One in order."""

    life: int
    touches: int  # of the machine's files, until then
    broker_epoch: int
    live: dict[Uuid, str]  # directories that stopped, and their paths
    dead: int  # directories that were offline, also those that could not say which they are
    offline: frozenset[Uuid]
    absent: dict[TopicIdPartition, Uuid]  # what lay in these, as the committed metadata says
    held: dict[TopicIdPartition, None]  # of which it knew already that they had lost records
    is_marked: bool = True  # the start found the markers of all of them


class Stops:
    def __init__(self, world: Subject) -> None:
        self.world = world
        self.last: dict[str, Stop] = {}

    def stopped(self, machine: Machine) -> None:
        broker = None if machine.node is None else machine.node.broker
        self.last.pop(machine.name, None)
        if broker is None or broker.lifecycle.last_epoch < 0:
            return
        replicas, directories = broker.replicas, broker.directories
        offline = frozenset(directories.offline_ids)
        absent = {
            at: directory
            for at, directory in self.lying(machine).items()
            if directory in offline and replicas.host.partitions.find(at) is None
        }
        self.last[machine.name] = Stop(
            machine.life,
            machine.touches,
            broker.lifecycle.last_epoch,
            {log_dir.directory_id: log_dir.path for log_dir in directories.live},
            len(directories.offline),
            offline,
            absent,
            dict.fromkeys(replicas.host.withdrawals.held),
        )

    def starts(self, machine: Machine) -> None:
        last = self.last.get(machine.name)
        if last is not None and last.life == machine.life - 1:
            is_marked = all(machine.disk.peek(f"{path}/{FILE}") is not None for path in last.live.values())
            self.last[machine.name] = last._replace(is_marked=is_marked)

    def lying(self, machine: Machine) -> dict[TopicIdPartition, Uuid]:
        """Where the committed metadata has this machine's replicas that are in ISR or ELR."""
        node = machine.node_id
        found = {}
        for topic in self.world.committed.image.topics.values():
            for index, partition in topic.partitions.items():
                if node in (*partition.isr, *partition.elr):
                    found[TopicIdPartition(topic.topic_id, index)] = directory_of(partition, node)
        return found

    def sends(self, machine: Machine, request: BrokerRegistrationRequest) -> None:
        last = self.last.get(machine.name)
        if last is None or last.life != machine.life - 1:
            return
        del self.last[machine.name]
        assert machine.node is not None
        assert machine.node.broker is not None
        found = frozenset(machine.node.broker.lifecycle.identity.log_dirs)  # some may have failed since the start
        is_untouched = found == last.live.keys() and machine.touches == last.touches
        who = f"{machine.name} registers after its stop in order in broker epoch {last.broker_epoch}"
        if request.previous_broker_epoch == UNCLEAN:
            assert not is_untouched or last.dead, f"{who} as after one that was not"
            return
        missing = last.live.keys() - found
        assert not missing, f"{who}, and {len(missing)} of the directories of then are not there"
        assert found <= last.live.keys() | last.offline, f"{who}, and it has a directory of which that knew nothing"
        assert last.is_marked, f"{who}, and not all of its directories had the marker of it"
        rows = [(topic.topic_id, row.partition_index) for topic in request.lost_replicas for row in topic.partitions]
        reported = {TopicIdPartition(*row): None for row in rows}
        lost = [at for at in reported if at not in last.held]
        assert not (is_untouched and lost) or machine.is_rotten, (
            f"{who}, nobody has touched its files, and it has lost records of {len(lost)} replicas"
        )
        lies = self.lying(machine)
        kept = [
            at for at, where in last.absent.items() if where in found and lies.get(at) == where and at not in reported
        ]
        assert not kept, (
            f"{who}, {len(kept)} replicas lay in a directory that was offline then and is back, and it does not tell"
            f" that they may have lost records"
        )

    def comes_back(self, machine: Machine) -> None:
        assert machine.node is not None
        assert machine.node.broker is not None
        broken = [root for root in machine.node.broker.directories.offline if root in machine.disk.broken]
        assert not broken, f"{machine.name} begins anew by itself since there is room, and {broken[0]} has failed"
