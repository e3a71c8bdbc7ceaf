"""Mutants of what the transaction coordinator answers."""

from tests.mutants.mutant import Breaks, Mutant, table

REQUESTS = table(
    Mutant(
        "a producer id and epoch are given out before they are committed",
        "txn/initializing.py",
        "        return self.shards.write(shard, entry, following, now, done)\n",
        (
            "        return [*done(ErrorCode.NONE, now), *self.shards.write(shard, entry, following, "
            "now, lambda error, now: [])]\n"
        ),
        Breaks.AGREEMENT,
        ("unit/txn/test_initializing.py::test_a_new_id_gets_a_producer_id_and_epoch_0_when_that_is_committed",),
        holds=("98.4",),
    ),
    Mutant(
        "an InitProducerId that is late aborts its own producer's transaction",
        "txn/initializing.py",
        "is_again = current.state is State.EMPTY and named",
        "is_again = named",
        Breaks.ANSWERS,
        ("unit/txn/test_initializing.py::test_a_late_bump_does_not_abort_the_transaction_of_its_own_producer",),
        holds=("360.9",),
    ),
    Mutant(
        "a fenced producer asks for its epoch again and gets another's",
        "txn/initializing.py",
        (
            "    before = current.previous_producer_id if current.last_epoch >= EPOCH_LAST else "
            "current.producer_id\n"
            "    is_again = current.state is State.EMPTY and named == (before, current.last_epoch)\n"
        ),
        (
            "    is_last = request.producer_id == current.previous_producer_id and "
            "request.producer_epoch >= EPOCH_LAST\n"
            "    is_again = current.state is State.EMPTY and (named == (current.producer_id, "
            "current.last_epoch) or is_last)\n"
        ),
        Breaks.AGREEMENT,
        (
            "unit/txn/test_initializing.py::"
            "test_a_producer_with_the_last_epoch_is_fenced_by_another_one_that_got_a_new_id",
        ),
        holds=("360.6",),
    ),
    Mutant(
        "a producer that bumps its epoch within a transaction is fenced",
        "txn/initializing.py",
        "return None if is_again or is_before_end(current, named) else",
        "return None if is_again else",
        Breaks.ANSWERS,
        (
            "unit/txn/test_initializing.py::"
            "test_a_producer_that_bumps_within_its_transaction_has_it_aborted_and_goes_on",
        ),
        holds=("360.8",),
    ),
    Mutant(
        "an InitProducerId that is sent again takes another epoch",
        "txn/initializing.py",
        (
            "        if is_known and (request.producer_id, request.producer_epoch) != current.client:\n"
            "            return [answer(received, current)]  # sent again: it has its epoch already\n"
        ),
        "",
        Breaks.ANSWERS,
        ("unit/txn/test_initializing.py::test_a_bump_that_is_sent_again_gets_the_same_epoch",),
        holds=("360.2",),
    ),
    Mutant(
        "a prepared transaction is aborted by a client that would decide it",
        "txn/initializing.py",
        "        if request.keep_prepared_txn:\n",
        "        if request.keep_prepared_txn and not current.is_kept:\n",
        Breaks.ANSWERS,
        (
            "unit/txn/test_two_phase.py::"
            "test_each_client_that_takes_over_gets_the_next_epoch_and_the_transaction_keeps_its_own",
        ),
        holds=("939.8",),
    ),
    Mutant(
        "a prepared transaction is never given up, though its client says when",
        "txn/initializing.py",
        "    if has_timeout(request):\n        return request.two_phase_timeout_ms\n",
        "",
        Breaks.ANSWERS,
        (
            "unit/txn/test_two_phase.py::"
            "test_a_client_may_say_when_what_it_prepares_is_given_up_and_no_configuration_limits_that",
        ),
    ),
    Mutant(
        "a prepared transaction that is taken over keeps the time of who began it",
        "txn/initializing.py",
        "            timeout_ms = timeout_of(request) if has_timeout(request) else current.timeout_ms\n",
        "            timeout_ms = current.timeout_ms\n",
        Breaks.DURABILITY,
        ("unit/txn/test_two_phase.py::test_who_takes_over_says_anew_when_it_is_given_up_or_leaves_it_as_it_is",),
    ),
    Mutant(
        "a producer takes any timeout",
        "txn/initializing.py",
        "not 0 < request.transaction_timeout_ms <= self.config.max_timeout_ms",
        "not 0 < request.transaction_timeout_ms",
        Breaks.ANSWERS,
        ("unit/txn/test_initializing.py::test_requests_that_make_no_sense_are_refused",),
        holds=("98.9",),
    ),
    Mutant(
        "partitions are added before they are committed",
        "txn/adding.py",
        "        return self.shards.write(shard, entry, following, now, lambda error, now: done(error))\n",
        (
            "        return [*done(ErrorCode.NONE), *self.shards.write(shard, entry, following, now, "
            "lambda error, now: [])]\n"
        ),
        Breaks.AGREEMENT,
        ("unit/txn/test_adding.py::test_partitions_are_answered_when_they_are_committed",),
        holds=("98.10",),
    ),
    Mutant(
        "a late request of the transaction before joins the next",
        "txn/adding.py",
        (
            "        if producer != current.client"
            " or current.state in DECIDED:  # then the epoch is the markers'\n"
            "            return done(ErrorCode.PRODUCER_FENCED)\n"
        ),
        (
            "        if producer > current.client"
            " or current.state in DECIDED:\n            return done(ErrorCode.PRODUCER_FENCED)\n"
        ),
        Breaks.AGREEMENT,
        ("unit/txn/test_adding.py::test_a_producer_calls_itself_by_the_present_id_and_epoch",),
        holds=("98.7",),
    ),
    Mutant(
        "who has taken over a prepared transaction adds to it",
        "txn/adding.py",
        (
            "        if current.is_kept:\n"
            "            return done(ErrorCode.INVALID_TXN_STATE)  # it may be decided, and get no "
            "more records\n"
        ),
        "",
        Breaks.AGREEMENT,
        ("unit/txn/test_two_phase.py::test_who_has_taken_over_adds_nothing",),
        holds=("939.7",),
    ),
    Mutant(
        "a partition that the coordinator does not know yet is added, and gets no marker",
        "txn/adding.py",
        ("            unknown = self.unknown(wanted)\n            if unknown:\n                effects += one_done("),
        (
            "            unknown = self.unknown(wanted)\n"
            "            if unknown and transaction.producer_id < 0:\n"
            "                effects += one_done("
        ),
        Breaks.DURABILITY,
        ("unit/txn/test_adding.py::test_a_partition_that_does_not_exist_is_refused_with_all_that_was_asked",),
        holds=("98.11",),
    ),
    Mutant(
        "verifying believes what is not committed",
        "txn/adding.py",
        ("        current = None if found[1] is None else found[1].current\n        if current is None or asked"),
        (
            "        current = None if found[1] is None else found[1].pending or found[1].current\n"
            "        if current is None or asked"
        ),
        Breaks.AGREEMENT,
        ("unit/txn/test_adding.py::test_what_is_being_added_is_not_verified_before_it_is_committed",),
        holds=("890.5",),
    ),
    Mutant(
        "verifying does not look at the epoch",
        "txn/adding.py",
        "if asked.producer_epoch != current.epoch or current.is_kept:",
        "if current.is_kept:",
        Breaks.AGREEMENT,
        ("unit/txn/test_adding.py::test_only_the_present_producer_is_verified",),
        holds=("890.6",),
    ),
    Mutant(
        "verifying goes on while a transaction is being completed",
        "txn/adding.py",
        (
            "        if current.state in DECIDED:\n"
            "            return dict.fromkeys(wanted, ErrorCode.CONCURRENT_TRANSACTIONS)\n"
        ),
        "",
        Breaks.AGREEMENT,
        ("unit/txn/test_adding.py::test_partitions_of_a_transaction_that_is_decided_are_not_verified",),
        holds=("890.7",),
    ),
    Mutant(
        "a producer with a new id is refused while its last transaction is completed",
        "txn/adding.py",
        "producer == current.goes_on)",
        "producer >= current.client)",
        Breaks.ANSWERS,
        ("unit/txn/test_adding.py::test_a_producer_that_goes_on_by_another_id_waits_although_that_is_smaller",),
    ),
)
