"""Mutants of transactions beyond the log: their coordinator, the leaders that ask it, and groups."""

from tests.mutants.mutant import Breaks, Mutant, table

SERVED = "unit/replica/serving/test_transactions.py::"
HANGING = "kip/traps/test_hanging.py::"
COORDINATED = "unit/txn/"
GROUPED = "unit/group/offsets/test_transactional.py::"

TRANSACTIONS_SERVED = table(
    Mutant(
        "a batch overtakes one that was held and refused",
        "replica/serving/producing.py",
        "            if part.done or code in COMES_AGAIN:\n",
        "            if False:\n",
        Breaks.DURABILITY,
        (SERVED + "test_no_batch_comes_before_one_that_was_held_and_refused",),
        holds=("890.9",),
    ),
    Mutant(
        "a coordinator that never answers holds up everybody",
        "replica/serving/transactions/verifying.py",
        "        self.late.set(now + GIVEN_UP_MS)\n",
        "        pass\n",
        Breaks.ANSWERS,
        (SERVED + "test_a_coordinator_that_never_answers_is_given_up",),
    ),
    Mutant(
        "a broker that refuses markers is asked again at once",
        "txn/markers.py",
        " and node not in self.pausing:",
        ":",
        Breaks.ANSWERS,
        (COORDINATED + "test_markers.py::test_a_broker_that_has_refused_something_waits_though_others_answer",),
    ),
    Mutant(
        "a transaction that its coordinator will end is aborted by the leader",
        "replica/serving/transactions/hanging.py",
        "        return not suspect.is_in(row)\n",
        "        return True\n",
        Breaks.DURABILITY,
        (HANGING + "test_t42_what_its_coordinator_will_end_is_left_to_it_and_asked_for_again",),
        ("T42",),
    ),
    Mutant(
        "a transaction that hangs is only reported",
        "replica/losses/hanging_transactions.py",
        "        self.opened(hosted, look.open, now)\n",
        "        pass\n",
        Breaks.ANSWERS,
        (HANGING + "test_t42_what_its_coordinator_does_not_have_there_is_aborted_and_stays_in_the_ledger",),
        ("T42", "664.13"),
    ),
    Mutant(
        "a suspect that nobody was asked about counts as unknown",
        "replica/serving/transactions/hanging.py",
        "            if one.end is None:\n",
        "            if False:\n",
        Breaks.DURABILITY,
        (
            HANGING
            + "test_t42_a_transaction_that_is_suspected_while_brokers_are_asked_about_others_counts_as_not_asked",
        ),
    ),
    Mutant(
        "an exhausted producer gets an id that its record has already",
        "txn/transaction.py",
        "fresh_id in (None, self.producer_id, self.next_producer_id)",
        "fresh_id is None",
        Breaks.ANSWERS,
        (COORDINATED + "test_foreign_records.py::test_an_exhausted_producer_gets_no_id_that_its_record_has_already",),
    ),
    Mutant(
        "an idle id goes on by what its record says of another transaction",
        "txn/transaction.py",
        "NO_EPOCH if is_idle else value.next_producer_epoch",
        "value.next_producer_epoch",
        Breaks.ANSWERS,
        (COORDINATED + "test_foreign_records.py::test_what_follows_a_transaction_is_no_concern_of_an_idle_id",),
    ),
)
