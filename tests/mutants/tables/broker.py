"""Mutants of a node around its parts."""

from tests.mutants.mutant import Breaks, Mutant, table

BROKER = table(
    Mutant(
        "the server's own limit of partitions does not count",
        "broker/handlers/describe_topic_partitions.py",
        "limit = max(1, min(most, request.response_partition_limit))",
        "limit = max(1, request.response_partition_limit)",
        Breaks.ANSWERS,
        ("kip/kip_966/test_kip_966_api.py::test_the_servers_limit_counts_too",),
        ("Sends no more partitions than the caller and the server allow",),
    ),
    Mutant(
        "who asks for the brokers alone waits as who asks for leaders",
        "broker/handlers/metadata.py",
        "    return request.topics is not None and not request.topics and version > 0\n",
        "    return False\n",
        Breaks.ANSWERS,
        (
            "unit/broker/handlers/test_handlers.py::"
            "test_a_metadata_request_without_topics_is_answered_at_once_and_one_about_leaders_a_moment_later",
        ),
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
        "broker/coordinators/producer_ids.py",
        "        ids, self.block = self.block[:count], self.block[count:]",
        "        ids, self.block = self.block[:count], self.block[max(0, count - 1):]",
        Breaks.DURABILITY,
        (
            "unit/broker/coordinators/test_producer_ids.py::test_the_first_producer_waits_for_a_block_and_the_next_ones_use_it_up",
        ),
        holds=("98.1",),
    ),
    Mutant(
        "an id that is owed to one is kept for the next one",
        "broker/coordinators/producer_ids.py",
        "                waiting, self.waiting = self.waiting, []\n",
        "                waiting, self.waiting = self.waiting[1:], self.waiting[:1]\n",
        Breaks.ANSWERS,
        (
            "unit/broker/coordinators/test_producer_ids.py::"
            "test_the_transaction_coordinator_gets_its_ids_by_a_call_and_shares_them_with_all_others",
        ),
    ),
    Mutant(
        "a transactional id has its coordinator among the groups",
        "broker/handlers/find_coordinator.py",
        "TRANSACTION: TRANSACTION_TOPIC}",
        "TRANSACTION: OFFSETS_TOPIC}",
        Breaks.ANSWERS,
        (
            "unit/broker/handlers/test_handlers.py::"
            "test_the_leader_of_its_partition_of_the_transaction_topic_coordinates_a_transactional_id",
        ),
        holds=("98.2",),
    ),
    Mutant(
        "the transaction topic may have an unclean leader",
        "broker/parts.py",
        '            "unclean.leader.election.enable": "false",\n',
        "",
        Breaks.DURABILITY,
        ("unit/broker/test_parts.py::test_internal_topics_are_made_as_the_configuration_says",),
        holds=("98.40",),
    ),
    Mutant(
        "decisions of transactions are committed by one replica",
        "broker/parts.py",
        '            "min.insync.replicas": str(config.integer(f"{keys}.min.isr")),\n',
        "",
        Breaks.DURABILITY,
        ("unit/broker/test_parts.py::test_internal_topics_are_made_as_the_configuration_says",),
        holds=("98.40",),
    ),
    Mutant(
        "clients write into internal topics",
        "replica/serving/producing.py",
        "        if hosted.name.topic in INTERNAL_TOPICS and parked.client_id != ADMIN_CLIENT:\n",
        "        if False:\n",
        Breaks.DURABILITY,
        ("unit/replica/serving/test_requests.py::test_clients_do_not_write_the_coordinators_records",),
    ),
    Mutant(
        "a new cluster begins with the first transactions",
        "metadata/features.py",
        "TXN_FEATURE: (2, 24)",
        "TXN_FEATURE: (0, 24)",
        Breaks.ANSWERS,
        (
            "unit/controller/configs/test_features.py::test_a_new_cluster_has_the_newest_transactions_and_may_go_back_to_any_older_ones",
        ),
        holds=("890.25",),
    ),
    Mutant(
        "a failed directory is not told to the controller",
        "broker/lifecycle.py",
        "            offline_log_dirs=self.offline,\n",
        "",
        Breaks.AGREEMENT,
        ("unit/broker/test_lifecycle.py::test_a_lost_directory_is_reported_at_once_though_a_heartbeat_is_out",),
    ),
    Mutant(
        "a broker that leaves does not wait for the controller",
        "broker/lifecycle.py",
        (
            "                if answer.should_shut_down:\n"
            "                    self.role = ShutDown(clean=True)\n"
            "                else:"
        ),
        "                if True:\n                    self.role = ShutDown(clean=True)\n                else:",
        Breaks.AGREEMENT,
        ("unit/broker/test_lifecycle.py::test_leaving_waits_for_the_controllers_consent",),
    ),
    Mutant(
        "records above the high watermark are counted wherever it lags",
        "broker/metrics/gauges.py",
        "        return self.log_end_offset - self.high_watermark if self.is_under_min_isr else 0",
        "        return self.log_end_offset - self.high_watermark",
        Breaks.ANSWERS,
        ("unit/broker/metrics/test_gauges.py::test_records_on_their_way_to_healthy_followers_are_not_held_back",),
        ("Records above it while the ISR is too small are counted in a gauge",),
    ),
    Mutant(
        "records that cannot be read are not counted",
        "broker/metrics/gauges.py",
        "        return self.log_end_offset - self.high_watermark if self.is_under_min_isr else 0",
        "        return 0",
        Breaks.ANSWERS,
        (
            "unit/broker/metrics/test_gauges.py::test_t24_records_that_cannot_be_read_are_reported_while_too_few_are_in_sync",
        ),
        ("Records above it while the ISR is too small are counted in a gauge",),
    ),
    Mutant(
        "electable leaders are those of the ISR",
        "broker/metrics/gauges.py",
        "    electable = 0 if state is None else len(state.isr) + len(state.elr)",
        "    electable = 0 if state is None else len(state.isr)",
        Breaks.ANSWERS,
        ("unit/broker/metrics/test_gauges.py::test_all_replicas_count_the_replicas_that_may_lead_without_loss",),
        ("Electable leaders: a metric counts ISR and ELR",),
    ),
    Mutant(
        "the limit of log infos is one higher",
        "broker/handlers/get_replica_log_info.py",
        "        elif served >= PARTITIONS_MAX:",
        "        elif served > PARTITIONS_MAX:",
        Breaks.ANSWERS,
        (
            "unit/broker/handlers/test_get_replica_log_info.py::"
            "test_2000_partitions_are_answered_and_each_one_more_is_to_be_asked_for_again",
        ),
        ("Answers 2,000 partitions of a request",),
    ),
    Mutant(
        "an error names no partition",
        "broker/handlers/get_replica_log_info.py",
        (
            "    return PartitionLogInfo(partition=at.partition, error_code=error, error_message="
            "why or message_of(error))"
        ),
        "    return PartitionLogInfo(partition=0, error_code=error, error_message=why or message_of(error))",
        Breaks.ANSWERS,
        (
            "unit/broker/handlers/test_get_replica_log_info.py::"
            "test_what_it_does_not_know_or_have_is_refused_with_the_partitions_index",
        ),
        ("Has the KIP's fields, and each error names its partition",),
    ),
    Mutant(
        "LastKnownELR is not described",
        "broker/handlers/describe_topic_partitions.py",
        "                last_known_elr=p.last_known_elr,\n",
        "",
        Breaks.ANSWERS,
        ("kip/kip_966/test_kip_966_api.py::test_it_reports_isr_elr_and_last_known_elr",),
        ("Returns ISR, ELR and LastKnownELR of the named topics, or of all",),
    ),
    Mutant(
        "pages end with the topic at the limit",
        "broker/handlers/describe_topic_partitions.py",
        "            first = 0  # the cursor's topic is gone; the next one is wanted whole\n",
        "",
        Breaks.ANSWERS,
        ("unit/broker/handlers/test_handlers.py::test_a_cursor_whose_topic_was_deleted_hides_nothing_of_the_next_one",),
        ("Requests after one another need not agree",),
    ),
    Mutant(
        "under min ISR is counted by the configured number",
        "broker/metrics/gauges.py",
        "found += len(partition.isr) < effective_min_isr(",
        "found += len(partition.isr) < configured + 0 * effective_min_isr(",
        Breaks.ANSWERS,
        ("unit/broker/metrics/test_gauges.py::test_partitions_under_min_isr_are_counted_with_what_counts_of_min_isr",),
        ("global_under_min_isr_partition_count",),
    ),
)
