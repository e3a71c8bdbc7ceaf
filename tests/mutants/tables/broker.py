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
    Mutant(
        "records above the high watermark are counted wherever it lags",
        "broker/gauges.py",
        "        return self.log_end_offset - self.high_watermark if self.is_under_min_isr else 0",
        "        return self.log_end_offset - self.high_watermark",
        Breaks.ANSWERS,
        ("unit/broker/test_gauges.py::test_records_on_their_way_to_healthy_followers_are_not_held_back",),
        ("Records above it while the ISR is too small are counted in a gauge",),
    ),
    Mutant(
        "records that cannot be read are not counted",
        "broker/gauges.py",
        "        return self.log_end_offset - self.high_watermark if self.is_under_min_isr else 0",
        "        return 0",
        Breaks.ANSWERS,
        ("unit/broker/test_gauges.py::test_t24_records_that_cannot_be_read_are_told_while_too_few_are_in_sync",),
        ("Records above it while the ISR is too small are counted in a gauge",),
    ),
    Mutant(
        "electable leaders are those of the ISR",
        "broker/gauges.py",
        "    electable = 0 if state is None else len(state.isr) + len(state.elr)",
        "    electable = 0 if state is None else len(state.isr)",
        Breaks.ANSWERS,
        ("unit/broker/test_gauges.py::test_who_may_lead_without_loss_is_counted_by_all_replicas",),
        ("Electable leaders: a metric counts ISR and ELR",),
    ),
    Mutant(
        "a marker that any directory has is believed",
        "broker/parts.py",
        "clean_start=previous_epoch is not None,",
        "clean_start=True,",
        Breaks.DURABILITY,
        ("kip/traps/test_registration.py::test_t27_only_a_start_after_a_clean_stop_trusts_its_logs",),
        ("A stop is clean if the marker's epoch is that of the registration",),
    ),
)
