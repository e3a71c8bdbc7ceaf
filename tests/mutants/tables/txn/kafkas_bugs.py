"""Mutants that bring back bugs that Kafka has had with transactions (docs/transaction-protocol.md)."""

from tests.mutants.mutant import Breaks, Mutant, table

KAFKAS_BUGS = table(
    Mutant(
        "an empty transactional id is an id",
        "txn/initializing.py",
        ("        if not request.transactional_id:\n            return"),
        ("        if request.transactional_id is None:\n            return"),
        Breaks.ANSWERS,
        ("unit/txn/test_initializing.py::test_requests_that_make_no_sense_are_refused",),
        ("KAFKA-5171",),
        (
            ("txn/shards.py", "        if not transactional_id:\n", "        if False:\n"),
            ("txn/initializing.py", "        assert request.transactional_id\n        found", "        found"),
            (
                "txn/initializing.py",
                "        assert request.transactional_id\n        assert request.transactional_id not",
                "        assert request.transactional_id not",
            ),
        ),
    ),
    Mutant(
        "a write that failed leaves the id busy",
        "txn/shards.py",
        (
            "            entry.pending = None\n"
            "            if error is ErrorCode.NONE:\n"
            "                entry.current = following\n"
        ),
        (
            "            if error is ErrorCode.NONE:\n"
            "                entry.pending = None\n"
            "                entry.current = following\n"
        ),
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_5351_what_could_not_be_written_holds_up_nothing_that_comes_later",
        ),
        ("KAFKA-5351",),
    ),
    Mutant(
        "what was changed last may seem older than what was changed before",
        "txn/transaction.py",
        "updated_at=max(now, self.updated_at), **changes)",
        "updated_at=now, **changes)",
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_5415_and_8803_a_clock_that_goes_back_stops_no_transaction_and_no_timeout",
        ),
        ("KAFKA-5415",),
    ),
    Mutant(
        "an empty control batch is read as a marker",
        "log/producers/producers.py",
        ("            if marker is None:\n                return None\n"),
        "            assert marker is not None\n",
        Breaks.AGREEMENT,
        (
            "unit/log/producers/test_transactions.py::test_the_last_marker_of_a_producer_stays_empty_so_that_its_epoch_is_known",
        ),
        ("KAFKA-7467",),
    ),
    Mutant(
        "a tombstone that failed leaves the id busy",
        "txn/shards.py",
        (
            "                entry.is_dying = False\n"
            "                if error is ErrorCode.NONE:\n"
            "                    del"
        ),
        (
            "                if error is ErrorCode.NONE:\n"
            "                    entry.is_dying = False\n"
            "                    del"
        ),
        Breaks.ANSWERS,
        ("unit/txn/test_expiring.py::test_a_tombstone_that_is_not_written_leaves_the_id",),
        ("KAFKA-7519",),
    ),
    Mutant(
        "a follower's last stable offset is its high watermark",
        "replica/hosting/follower.py",
        "        return self.log.last_stable_offset(self.high_watermark)\n",
        "        return self.high_watermark\n",
        Breaks.DURABILITY,
        (
            "kip/transactions/test_partition_bugs.py::test_the_last_stable_offset_of_a_follower_waits_for_the_transactions_end_too",
        ),
        ("KIP-392",),
    ),
    Mutant(
        "batches without a sequence stay empty",
        "log/cleaning/compaction.py",
        (
            "        return (header.producer_id, header.last_offset) in self.remembered or "
            "header.next_offset in self.ends\n"
        ),
        (
            "        is_last = (header.producer_id, header.last_offset) in self.remembered or "
            "header.base_sequence < 0\n"
            "        return is_last or header.next_offset in self.ends\n"
        ),
        Breaks.ANSWERS,
        (
            "kip/transactions/test_partition_bugs.py::test_kafka_8335_no_empty_batches_stay_of_offsets_that_transactions_have_committed",
        ),
        ("KAFKA-8335",),
    ),
    Mutant(
        "a snapshot does not say who ended the last transaction",
        "log/producers/producers.py",
        "        producer.coordinator_epoch = max(producer.coordinator_epoch, coordinator_epoch)\n",
        "",
        Breaks.AGREEMENT,
        ("unit/log/producers/test_transactions.py::test_a_restart_knows_open_transactions_and_coordinators",),
        ("KAFKA-9144",),
    ),
    Mutant(
        "a producer is idle with a transaction open",
        "log/producers/producers.py",
        ("            if not self.transactions.is_open(producer_id):\n                del self.known[producer_id]\n"),
        "            del self.known[producer_id]\n",
        Breaks.AGREEMENT,
        ("unit/log/producers/test_transactions.py::test_a_producer_with_an_open_transaction_is_never_idle",),
        ("KAFKA-9144, idle",),
    ),
    Mutant(
        "a producer of an epoch that there is not yet ends a transaction",
        "txn/ending.py",
        "    if request.producer_epoch != current.client[1]:\n",
        "    if request.producer_epoch < current.client[1]:\n",
        Breaks.AGREEMENT,
        ("unit/txn/test_ending.py::test_only_the_present_producer_ends_a_transaction",),
        ("KAFKA-9600",),
    ),
    Mutant(
        "what too few replicas have counts",
        "txn/shards.py",
        ("            if error is ErrorCode.NONE:\n                entry.current = following\n"),
        (
            "            if error in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS):\n"
            "                entry.current = following\n"
        ),
        Breaks.DURABILITY,
        ("unit/txn/test_expiring.py::test_an_abort_by_time_that_is_not_written_is_tried_again_with_the_same_epoch",),
        ("KAFKA-9666",),
    ),
    Mutant(
        "a failed disk counts as a marker",
        "txn/markers.py",
        "WRITTEN = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)\n",
        "WRITTEN = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR)\n",
        Breaks.DURABILITY,
        ("unit/txn/test_markers.py::test_a_marker_that_is_refused_is_sent_again",),
        ("KAFKA-9749",),
    ),
    Mutant(
        "a marker of an earlier coordinator completes a transaction",
        "txn/markers.py",
        "        return self.decisions.get(decision.entry) is decision\n",
        "        return True\n",
        Breaks.AGREEMENT,
        ("unit/txn/test_markers.py::test_an_answer_to_the_coordinator_that_this_broker_was_before_completes_nothing",),
        ("KAFKA-9777",),
    ),
    Mutant(
        "a producer hears that it is fenced",
        "replica/serving/producing.py",
        ("    if error is ErrorCode.PRODUCER_FENCED:\n        return ErrorCode.INVALID_PRODUCER_EPOCH\n"),
        "",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_transactions.py::test_what_a_coordinator_refuses_is_not_appended",),
        ("KAFKA-10687",),
    ),
    Mutant(
        "a marker without a transaction has one",
        "log/producers/transactions.py",
        "        first = self.open.pop(producer_id, None)\n",
        "        first = self.open.pop(producer_id, offset - 1)\n",
        Breaks.ANSWERS,
        ("unit/log/producers/test_transactions.py::test_a_marker_that_is_written_again_is_appended_and_ends_nothing",),
        ("KAFKA-10702",),
    ),
    Mutant(
        "a cut below a marker leaves its transaction ended",
        "log/producers/producer_state.py",
        "            if any(producer.coordinator_epoch >= 0 for producer in found.known.values()):\n",
        "            if False:\n",
        Breaks.DURABILITY,
        (
            "unit/log/producers/test_cut_markers.py::test_a_marker_that_is_cut_after_a_restart_opens_its_transaction_again",
        ),
        ("KAFKA-12153",),
    ),
    Mutant(
        "a cut leaves aborted transactions in their index",
        "log/producers/producer_state.py",
        "        self.cut_aborted(unread, is_all=not self.snapshots)\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/log/producers/test_transactions.py::test_a_truncation_takes_the_aborted_transactions_whose_markers_it_takes",
        ),
        ("KAFKA-12153, .txnindex",),
    ),
    Mutant(
        "all tombstones are one batch",
        "txn/expiring.py",
        (
            "for begin in range(0, len(idle), TOMBSTONES_MAX):\n"
            "            effects += self.shards.forget(shard, idle[begin : begin + TOMBSTONES_MAX], now)"
        ),
        (
            "for begin in range(0, min(len(idle), 1)):\n"
            "            effects += self.shards.forget(shard, idle[begin:], now)"
        ),
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_13099_tombstones_of_very_many_ids_come_in_batches_of_a_bounded_size",
        ),
        ("KAFKA-13099",),
    ),
    Mutant(
        "without a controller producers time out",
        "broker/coordinators/producer_ids.py",
        "                    effects += done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, now)\n",
        "                    effects += done(ErrorCode.REQUEST_TIMED_OUT, now)\n",
        Breaks.ANSWERS,
        (
            "unit/broker/coordinators/test_producer_ids.py::test_without_a_controller_waiting_clients_get_a_retriable_error",
        ),
        ("KAFKA-14417",),
    ),
    Mutant(
        "nothing is verified while a write is under way",
        "txn/adding.py",
        (
            "        if current.state in DECIDED:\n"
            "            return dict.fromkeys(wanted, ErrorCode.CONCURRENT_TRANSACTIONS)\n"
        ),
        (
            "        if current.state in DECIDED or found[1].is_busy:\n"
            "            return dict.fromkeys(wanted, ErrorCode.CONCURRENT_TRANSACTIONS)\n"
        ),
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_14904_a_partition_that_is_there_is_verified_while_another_one_is_being_added",
        ),
        ("KAFKA-14904",),
    ),
    Mutant(
        "a coordinator that cannot be reached is a fault of the client",
        "group/serving/transactional.py",
        "    ErrorCode.NETWORK_EXCEPTION,\n",
        "",
        Breaks.ANSWERS,
        ("unit/group/offsets/test_transactional.py::test_what_a_refused_write_is_called_for_a_producer",),
        ("KAFKA-14920",),
    ),
    Mutant(
        "a commit that was refused is pending",
        "group/serving/transactional.py",
        "            if base_offset >= 0:  # also",
        "            if base_offset >= -1:  # also",
        Breaks.AGREEMENT,
        ("unit/group/offsets/test_transactional.py::test_a_commit_that_is_refused_leaves_nothing_behind",),
        ("KAFKA-15784",),
    ),
    Mutant(
        "the coordinator is asked for a batch that the log refuses",
        "replica/serving/transactions/verifying.py",
        (
            "        if known is not None and header.producer_epoch < known.epoch:\n"
            "            return False  # the log refuses it\n"
        ),
        "",
        Breaks.ANSWERS,
        (
            "kip/transactions/test_partition_bugs.py::test_kafka_18042_and_19690_a_batch_of_an_older_epoch_is_refused_as_such_and_its_coordinator_is_not_asked",
        ),
        (
            "KAFKA-18042",
            "KAFKA-19690",
        ),
    ),
    Mutant(
        "an abort of the next transaction fences its producer",
        "txn/ending.py",
        (
            "    if current.state in DECIDED and named == current.goes_on:\n"
            "        return ErrorCode.CONCURRENT_TRANSACTIONS  # its next transaction, which is empty "
            "yet (KAFKA-18464)\n"
        ),
        "",
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_18464_an_abort_of_the_next_transaction_while_markers_are_written_fences_nobody",
            "kip/transactions/test_coordinator_bugs.py::test_kafka_18660_neither_does_one_of_a_producer_that_goes_on_by_another_id",
        ),
        (
            "KAFKA-18464",
            "KAFKA-18660",
        ),
    ),
    Mutant(
        "the last epoch is not left for a marker",
        "txn/transaction.py",
        "EPOCH_LAST = (1 << 15) - 2  #",
        "EPOCH_LAST = (1 << 15) - 1  #",
        Breaks.AGREEMENT,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_19367_an_abort_by_the_next_producer_never_takes_more_epochs_than_there_are",
        ),
        ("KAFKA-19367",),
    ),
    Mutant(
        "a marker that is written again is refused",
        "log/producers/producers.py",
        "epoch == producer.epoch and is_open and epoch < EPOCH_MAX",
        "epoch == producer.epoch and epoch < EPOCH_MAX",
        Breaks.ANSWERS,
        (
            "unit/log/producers/test_transactions.py::test_a_marker_that_is_written_again_is_appended_and_ends_nothing",
            "unit/replica/serving/test_transactions.py::test_a_marker_that_is_written_again_is_fine_while_nothing_is_open",
        ),
        ("KAFKA-19999",),
    ),
    Mutant(
        "a transaction of the last epoch cannot be ended",
        "log/producers/producers.py",
        "epoch == producer.epoch and is_open and epoch < EPOCH_MAX",
        "epoch == producer.epoch and is_open",
        Breaks.ANSWERS,
        ("unit/log/producers/test_transactions.py::test_a_transaction_begun_with_the_last_epoch_can_be_ended",),
        ("KAFKA-20090",),
    ),
    Mutant(
        "the producer id before is not written down",
        "txn/transaction.py",
        "        previous_producer_id=transaction.previous_producer_id,\n",
        "        previous_producer_id=NO_PRODUCER_ID,\n",
        Breaks.ANSWERS,
        (
            "kip/transactions/test_coordinator_bugs.py::test_kafka_20310_the_next_coordinator_knows_the_producer_id_before_and_the_one_that_follows",
        ),
        ("KAFKA-20310",),
    ),
)
