"""Mutants of what operators see of transactions: commands, `explain`, metrics."""

from tests.mutants.mutant import Breaks, Mutant, table

ASKED = "unit/client/test_transactions.py::"
SHOWN = "unit/cli/test_transactions.py::"
MEASURED = "unit/broker/test_transaction_metrics.py::"

TRANSACTION_COMMANDS = table(
    Mutant(
        "a transaction hangs although its coordinator has not answered",
        "client/admin/transactions.py",
        "    return Uncertain(unheard) if unheard else None\n",
        "    return None\n",
        Breaks.ANSWERS,
        (ASKED + "test_it_is_uncertain_while_anybody_who_may_know_it_has_not_said",),
    ),
    Mutant(
        "a transaction that its coordinator has in other partitions does not hang in this one",
        "client/admin/transactions.py",
        "        if isinstance(row, Coordinated) and one.at in row.places:\n",
        "        if isinstance(row, Coordinated):\n",
        Breaks.ANSWERS,
        (ASKED + "test_one_that_its_coordinator_has_only_elsewhere_or_not_at_all_hangs",),
    ),
    Mutant(
        "coordinators that moved while they were asked count as heard",
        "client/admin/transactions.py",
        "    moved = [(state.at, state.leader, state.leader_epoch) for state in before]\n",
        "    moved = [(state.at, state.leader, state.leader_epoch) for state in after]\n",
        Breaks.ANSWERS,
        (ASKED + "test_all_coordinators_were_heard",),
    ),
    Mutant(
        "a partition of transactional ids without a leader is not missed",
        "client/admin/transactions.py",
        "        if state.is_unavailable:\n",
        "        if False:\n",
        Breaks.ANSWERS,
        (ASKED + "test_all_coordinators_were_heard",),
    ),
    Mutant(
        "a transaction that has ended meanwhile is found hanging",
        "client/admin/open_transactions.py",
        "    return any((row.producer_id, row.start_offset) == (one.producer_id, one.start_offset) for row in told)\n",
        "    return True\n",
        Breaks.ANSWERS,
        (ASKED + "test_one_that_ended_while_coordinators_were_asked_does_not",),
    ),
    Mutant(
        "a follower's word is enough for a hanging transaction",
        "client/admin/open_transactions.py",
        "                suspects.setdefault(leaders.get(one.at, node), []).append(one)\n",
        "                suspects.setdefault(node, []).append(one)\n",
        Breaks.ANSWERS,
        (ASKED + "test_a_follower_that_is_asked_does_not_say_alone_that_one_is_open_still",),
    ),
    Mutant(
        "whatever is open holds the last stable offset",
        "client/admin/open_transactions.py",
        "one is not None and one.start_offset <= waiting[at][1].last_stable_offset:",
        "one is not None:",
        Breaks.ANSWERS,
        (ASKED + "test_what_ended_meanwhile_holds_nothing",),
    ),
    Mutant(
        "an abort of a producer without markers has a coordinator epoch that no log takes",
        "client/admin/transactions.py",
        "        coordinator_epoch=max(one.coordinator_epoch, 0),",
        "        coordinator_epoch=one.coordinator_epoch,",
        Breaks.ANSWERS,
        (ASKED + "test_an_abort_has_the_producers_epoch_and_its_last_coordinators_or_the_first",),
    ),
    Mutant(
        "a transaction that its coordinator knows is aborted in one partition",
        "cli/admin/transactions.py",
        "    if not force:\n",
        "    if False:\n",
        Breaks.AGREEMENT,
        (SHOWN + "test_what_a_coordinator_knows_or_may_know_is_aborted_only_by_force",),
    ),
    Mutant(
        "a search that missed somebody ends as one that found nothing",
        "cli/admin/transactions.py",
        "    return INCOMPLETE\n",
        "    return 0\n",
        Breaks.ANSWERS,
        (SHOWN + "test_a_search_ends_with_what_it_found",),
    ),
    Mutant(
        "explain waits for the timeout of a transaction that has none",
        "diagnosis/transactions.py",
        "    if known.timeout_ms >= NEVER_TIMES_OUT:\n",
        "    if False:\n",
        Breaks.ANSWERS,
        (SHOWN + "test_one_that_somebody_else_has_prepared_never_times_out",),
    ),
    Mutant(
        "every transaction that rests is late",
        "broker/transaction_metrics.py",
        "    bound = now - coordinator.initializing.config.max_timeout_ms - LATE_MS\n",
        "    bound = now - LATE_MS\n",
        Breaks.ANSWERS,
        (MEASURED + "test_a_partition_is_late_when_its_oldest_transaction_rests_for_longer_than_any_may",),
    ),
    Mutant(
        "partitions without a leader are not counted",
        "broker/transaction_metrics.py",
        "len(markers.waiting.get(NOBODY, ()))",
        "0",
        Breaks.ANSWERS,
        (MEASURED + "test_markers_wait_for_a_leader",),
    ),
    Mutant(
        "only leaders describe producers",
        "replica/serving/transactions/describing.py",
        "    if hosted is None or hosted.role is None:\n",
        "    if hosted is None or type(hosted.role).__name__ != 'Leader':\n",
        Breaks.ANSWERS,
        ("unit/replica/serving/test_transactions.py::test_a_follower_describes_its_producers_too",),
    ),
)
