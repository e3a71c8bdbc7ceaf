"""Mutants of what KIP-98 and KIP-360 require of brokers (docs/transaction-protocol.md)."""

from tests.mutants.mutant import Breaks, Mutant, table

KIP_TRANSACTIONS = table(
    Mutant(
        "the next producer has the epoch of the one before",
        "txn/transaction.py",
        "State.EMPTY, now, epoch=self.epoch + 1, last_epoch=last",
        "State.EMPTY, now, epoch=self.epoch, last_epoch=last",
        Breaks.AGREEMENT,
        (
            "unit/txn/test_initializing.py::test_each_further_producer_gets_the_same_id_and_the_next_epoch",
            "unit/txn/test_initializing.py::test_a_producer_that_names_its_id_and_epoch_gets_the_next_epoch",
        ),
        (
            "98.3",
            "360.1",
        ),
    ),
    Mutant(
        "a new producer leaves the open transaction open",
        "txn/initializing.py",
        "        effects = self.ending.abort(shard, entry, now)\n",
        "        effects: list[Effect] = []\n",
        Breaks.AGREEMENT,
        (
            "unit/txn/test_initializing.py::test_a_new_producer_aborts_the_open_transaction_and_gets_an_epoch_above_that_of_the_abort",
        ),
        ("98.5",),
    ),
    Mutant(
        "a new producer does not wait for a decision",
        "txn/initializing.py",
        "        if entry.is_busy or (entry.current is not None and entry.current.state in DECIDED):\n",
        "        if entry.is_busy:\n",
        Breaks.AGREEMENT,
        (
            "unit/txn/test_initializing.py::test_while_a_transaction_is_being_completed_a_new_producer_is_asked_to_come_again",
            "unit/txn/test_initializing.py::test_who_waits_is_served_when_the_transaction_is_complete",
        ),
        ("98.6",),
    ),
    Mutant(
        "offsets are expected where the transactional id says",
        "txn/adding.py",
        "partition_for(request.group_id, len(topic.partitions))",
        "partition_for(request.transactional_id, len(topic.partitions))",
        Breaks.DURABILITY,
        ("unit/txn/test_adding.py::test_a_groups_offsets_are_kept_where_its_own_id_says",),
        ("98.13",),
    ),
    Mutant(
        "an end is answered before it is committed",
        "txn/ending.py",
        ("        return self.decide(shard, entry, following, done, now)\n\n    def abort("),
        (
            "        answered = done(ErrorCode.NONE, now)\n"
            "        return answered + self.decide(shard, entry, following, lambda error, now: [], now)\n"
            "\n"
            "    def abort("
        ),
        Breaks.DURABILITY,
        ("unit/txn/test_ending.py::test_an_end_is_answered_when_it_is_committed_and_markers_follow",),
        ("98.16",),
    ),
    Mutant(
        "the opposite of a decision is waited for",
        "txn/ending.py",
        "        is_same = request.committed == current.commits\n",
        "        is_same = True\n",
        Breaks.ANSWERS,
        (
            "unit/txn/test_ending.py::test_an_end_that_is_sent_again_while_markers_are_written_waits_and_its_opposite_is_refused",
        ),
        ("98.17",),
    ),
    Mutant(
        "a new coordinator forgets who was about to abort",
        "txn/shard.py",
        "        if entry.is_decided:\n",
        "        if entry.current is not None and entry.current.state is DECIDED[0]:\n",
        Breaks.AGREEMENT,
        (
            "kip/transactions/test_failover.py::test_a_coordinator_that_fails_at_any_moment_leaves_one_decision_and_a_producer_that_goes_on",
            "unit/txn/test_markers.py::test_a_new_coordinator_goes_on_with_what_was_decided",
        ),
        ("98.22",),
    ),
    Mutant(
        "a producer may send control batches",
        "wire/batch.py",
        "    if header.is_control or header.has_delete_horizon:",
        "    if header.has_delete_horizon:",
        Breaks.AGREEMENT,
        ("unit/wire/test_batch.py::test_a_producer_may_not_send",),
        ("98.27",),
    ),
    Mutant(
        "a batch outside a transaction goes between those of one",
        "log/log.py",
        ("        if not header.is_transactional:\n            return INSIDE_TRANSACTION\n"),
        "",
        Breaks.AGREEMENT,
        ("unit/log/producers/test_transactions.py::test_a_batch_outside_its_producers_open_transaction_is_refused",),
        ("98.28",),
    ),
    Mutant(
        "who reads what is committed reads up to the high watermark",
        "replica/serving/reading.py",
        "else stable_end if committed else high_watermark",
        "else high_watermark",
        Breaks.DURABILITY,
        (
            "unit/replica/serving/test_transactions.py::test_a_read_committed_consumer_reads_up_to_the_last_stable_offset",
            "unit/replica/serving/test_transactions.py::test_a_consumer_that_waits_gets_a_transaction_when_its_marker_is_committed",
        ),
        (
            "98.29",
            "98.34",
        ),
    ),
    Mutant(
        "a restart takes a marker for committed that is not",
        "log/files/stored_log.py",
        (
            "        log.producer_state.wait_for_markers(high_watermark, log.log_start_offset, "
            "log.log_end_offset, now)\n"
        ),
        "",
        Breaks.DURABILITY,
        (
            "unit/log/producers/test_cut_markers.py::test_a_marker_that_is_not_committed_is_waited_for_after_a_restart_too",
        ),
        ("98.42",),
    ),
    Mutant(
        "a broker opens its logs as if all were committed",
        "replica/hosting/found_log.py",
        "            high_watermark=self.high_watermark,\n",
        "",
        Breaks.DURABILITY,
        (
            "kip/transactions/test_partition_bugs.py::test_a_broker_that_restarts_waits_still_for_a_marker_that_is_not_committed",
        ),
        ("98.43",),
    ),
    Mutant(
        "a log that has moved is opened as if all were committed",
        "replica/storage/moving/futures.py",
        "            high_watermark=hosted.high_watermark,\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_future.py::test_a_log_that_has_moved_waits_still_for_a_marker_that_is_not_committed",
        ),
        ("98.44",),
    ),
    Mutant(
        "a cut takes a marker for committed that is not",
        "log/producers/producer_state.py",
        ("        self.producers.transactions.ended = [one for one in before.ended if one.last_offset < unread]\n"),
        "",
        Breaks.DURABILITY,
        (
            "unit/log/producers/test_cut_markers.py::test_a_cut_behind_a_marker_that_is_not_committed_leaves_it_waited_for",
        ),
        ("98.45",),
    ),
    Mutant(
        "nobody is told what was aborted",
        "replica/serving/reading.py",
        ("rows = {(one.first_offset, one.producer_id) for one in found if one.first_offset < last.next_offset}"),
        "rows = set()",
        Breaks.DURABILITY,
        (
            "unit/replica/serving/test_transactions.py::test_the_answer_names_the_aborted_transactions_of_what_it_has",
            "kip/transactions/test_partition_bugs.py::test_kafka_5376_a_consumer_that_waited_learns_which_transaction_was_aborted",
        ),
        (
            "98.31",
            "KAFKA-5376",
        ),
    ),
    Mutant(
        "who reads everything is told what was aborted",
        "replica/serving/reading.py",
        "self.decided(interest, row, role, read, now) if committed else row))",
        "self.decided(interest, row, role, read, now)))",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_transactions.py::test_the_answer_names_the_aborted_transactions_of_what_it_has",),
        ("98.32",),
    ),
    Mutant(
        "the end for who reads what is committed is the high watermark",
        "replica/serving/offsets.py",
        "    return role.last_stable_offset if isolation_level == READ_COMMITTED else role.high_watermark\n",
        "    return role.high_watermark\n",
        Breaks.ANSWERS,
        (
            "unit/replica/serving/test_transactions.py::test_a_read_committed_consumer_reads_up_to_the_last_stable_offset",
        ),
        ("98.33",),
    ),
    Mutant(
        "a snapshot does not say which transactions are open",
        "log/producers/producers.py",
        ("        if first_offset >= 0:\n            self.transactions.begin(producer_id, first_offset)\n"),
        "        if first_offset >= 0:\n",
        Breaks.DURABILITY,
        ("unit/log/producers/test_transactions.py::test_a_restart_knows_open_transactions_and_coordinators",),
        ("98.35",),
    ),
    Mutant(
        "open transactions are compacted",
        "replica/storage/cleaning.py",
        "plan = cleanable(log, min(role.high_watermark, role.last_stable_offset), now)",
        "plan = cleanable(log, role.high_watermark, now)",
        Breaks.DURABILITY,
        ("unit/replica/storage/test_cleaning.py::test_nothing_is_compacted_from_the_first_open_transaction_on",),
        ("98.37",),
    ),
    Mutant(
        "every version hears that it is fenced",
        "txn/client_errors.py",
        "    is_new = error is ErrorCode.PRODUCER_FENCED and version < fenced_since\n",
        "    is_new = False\n",
        Breaks.ANSWERS,
        ("unit/txn/test_adding.py::test_versions_that_do_not_know_that_they_are_fenced_are_told_of_their_epoch",),
        ("98.41",),
    ),
    Mutant(
        "whoever names an epoch goes on",
        "txn/initializing.py",
        "    return None if is_again or is_before_end(current, named) else ErrorCode.PRODUCER_FENCED\n",
        "    return None\n",
        Breaks.AGREEMENT,
        ("unit/txn/test_initializing.py::test_a_producer_that_was_followed_by_another_is_fenced",),
        ("360.3",),
    ),
    Mutant(
        "an id is named without an epoch",
        "txn/initializing.py",
        "        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):\n",
        "        if False:\n",
        Breaks.ANSWERS,
        ("unit/txn/test_initializing.py::test_requests_that_make_no_sense_are_refused",),
        ("360.4",),
    ),
    Mutant(
        "epochs are never exhausted",
        "txn/initializing.py",
        ("        if not current.is_exhausted:\n            following = current.initialized"),
        ("        if True:\n            following = current.initialized"),
        Breaks.AGREEMENT,
        ("unit/txn/test_initializing.py::test_when_epochs_are_exhausted_a_producer_gets_another_id_and_epoch_0",),
        (
            "360.5",
            "KAFKA-5283",
        ),
    ),
    Mutant(
        "a producer of a forgotten id is fenced",
        "txn/initializing.py",
        ("        if entry is None:\n            return self.create(received, shard, fresh_id, now)\n"),
        (
            "        if entry is None and request.producer_epoch != NO_EPOCH:\n"
            "            return [refusal(received, ErrorCode.PRODUCER_FENCED)]\n"
            "        if entry is None:\n"
            "            return self.create(received, shard, fresh_id, now)\n"
        ),
        Breaks.ANSWERS,
        (
            "unit/txn/test_initializing.py::test_an_id_that_was_forgotten_gets_another_producer_id_whatever_its_producer_names",
        ),
        ("360.7",),
    ),
    Mutant(
        "a new epoch begins with any sequence",
        "log/producers/producers.py",
        "            return None if batch.base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER\n",
        "            return None\n",
        Breaks.DURABILITY,
        ("unit/log/producers/test_producers.py::test_a_new_epoch_begins_at_zero_and_fences_the_old_one",),
        ("360.11",),
    ),
)
