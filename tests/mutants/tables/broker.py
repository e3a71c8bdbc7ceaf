"""Mutants of a node around its parts."""

from tests.mutants.mutant import Breaks, Mutant, table

BROKER = table(
    Mutant(
        "the server's own limit of partitions does not count",
        "broker/handlers/describe_topic_partitions.py",
        "limit = max(1, min(most, request.response_partition_limit))",
        "limit = max(1, request.response_partition_limit)",
        Breaks.ANSWERS,
        ("kip/test_kip_966_api.py::test_the_servers_limit_counts_too",),
        ("Sends no more partitions than the caller and the server allow",),
    ),
    Mutant(
        "a snapshot bears the leader's epoch",
        "broker/committed.py",
        "        epoch = self.log.epoch_of_record(self.end - 1)\n",
        "        epoch = self.log.last_epoch\n",
        Breaks.DURABILITY,
        ("unit/broker/test_committed.py::test_a_snapshot_bears_the_epoch_of_its_last_record_and_not_that_of_the_log",),
    ),
    Mutant(
        "a heartbeat names metadata that is not applied",
        "broker/lifecycle.py",
        "            current_metadata_offset=self.metadata_end - 1,",
        "            current_metadata_offset=self.metadata_end,",
        Breaks.AGREEMENT,
        ("unit/broker/test_lifecycle.py::test_catching_up_with_its_own_registration_asks_at_once_and_only_once",),
    ),
    Mutant(
        "producer ids are handed out twice",
        "broker/producer_ids.py",
        "        ids, self.block = self.block[:count], self.block[count:]",
        "        ids, self.block = self.block[:count], self.block[max(0, count - 1):]",
        Breaks.DURABILITY,
        ("unit/broker/test_producer_ids.py::test_the_first_producer_waits_for_a_block_and_the_next_ones_use_it_up",),
    ),
    Mutant(
        "a failed directory is not told to the controller",
        "broker/lifecycle.py",
        "            offline_log_dirs=self.offline,\n",
        "",
        Breaks.AGREEMENT,
        ("unit/broker/test_lifecycle.py::test_a_lost_directory_is_told_at_once_though_a_heartbeat_is_out",),
    ),
    Mutant(
        "a broker that leaves does not wait for the controller",
        "broker/lifecycle.py",
        (
            "                if answer.should_shut_down:\n"
            "                    self.role = Left(clean=True)\n"
            "                else:"
        ),
        "                if True:\n                    self.role = Left(clean=True)\n                else:",
        Breaks.AGREEMENT,
        ("unit/broker/test_lifecycle.py::test_leaving_waits_for_the_controllers_consent",),
    ),
)
