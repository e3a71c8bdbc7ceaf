"""Transactions end by their timeout, and ids that nobody uses are forgotten (KIP-98, KIP-664)."""

from msgspec.structs import replace
from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, add_request, added, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction

HOUR_MS = 3_600_000
QUICK = {"id_expiration_ms": 7 * HOUR_MS, "remove_interval_ms": HOUR_MS}


@each("feature", [0, 1, 2])
def test_a_transaction_is_aborted_when_its_time_is_up_and_its_producer_is_fenced(feature: int) -> None:
    w = World(feature=feature)
    producer = w.begun(T0, old=True)
    w.wait(60_000)
    assert w.current().state is State.ONGOING
    w.wait(10_001)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT
    assert w.written == [(T0, producer[0], producer[1] + 1, False, 0)]
    assert w.add(producer, T0, old=True) == {T0: E.PRODUCER_FENCED}
    assert w.end(producer, commits=True, version=4).error_code == E.PRODUCER_FENCED
    assert any(ID in text for text in w.reports)


def test_a_commit_of_a_transaction_that_timed_out_is_refused_and_its_abort_lets_the_producer_go_on() -> None:
    w = World()
    producer = w.begun(T0)
    w.wait(80_000)
    w.run_until_idle()
    assert w.end(producer, commits=True).error_code == E.INVALID_TXN_STATE
    answer = w.end(producer, commits=False)
    assert (answer.error_code, answer.producer_epoch) == (E.NONE, producer[1] + 1)


def test_an_abort_by_time_that_is_not_written_is_tried_again_with_the_same_epoch() -> None:
    w = World()
    producer = w.begun(T0)
    w.wait(80_000)
    w.fail(E.NOT_ENOUGH_REPLICAS)
    w.wait(10_000)
    w.run_until_idle()
    assert w.written == [(T0, producer[0], producer[1] + 1, False, 0)]


def test_time_does_not_end_what_is_being_ended() -> None:
    w = World()
    producer = w.begun(T0)
    w.wait(59_000)
    w.end(producer)
    w.wait(100_000)
    w.run_until_idle()
    assert {row[3] for row in w.written} == {True}


def test_time_does_not_touch_an_id_with_a_write_under_way() -> None:
    w = World()
    producer = w.begun(T0)
    number = w.send(add_request(producer, T1, old=False), 5)
    w.wait(100_000)
    assert len(w.log.under_way) == 1
    w.commit()
    assert added(w.answers[number]) == {T1: E.NONE}
    assert w.current().state is State.ONGOING


def test_the_timeout_counts_from_the_transactions_beginning() -> None:
    w = World()
    producer = w.begun(T0)
    for _ in range(7):
        w.wait(10_000)
        w.ask(add_request(producer, T0, old=False), 5)
    w.run_until_idle()
    assert w.current().state is not State.ONGOING


def test_an_exhausted_producer_is_aborted_by_time_and_its_id_goes_on_with_another() -> None:
    w = World()
    w.put(
        Transaction(ID, 7, EPOCH_LAST, 60_000, State.ONGOING, Instant(5), partitions=(T0,), started_at=w.now, version=2)
    )
    w.wait(80_000)
    w.run_until_idle()
    assert w.written == [(T0, 7, EPOCH_LAST + 1, False, 1)]
    assert w.current().client == (100, 0)
    assert w.start() == (100, 1)


def test_without_a_producer_id_an_exhausted_producer_is_aborted_later() -> None:
    w = World()
    w.put(
        Transaction(ID, 7, EPOCH_LAST, 60_000, State.ONGOING, Instant(5), partitions=(T0,), started_at=w.now, version=2)
    )
    w.ids.is_held = True
    w.wait(80_000)
    for done in w.ids.waiting:
        w.take(done(E.COORDINATOR_LOAD_IN_PROGRESS, Instant(w.now)))
    assert w.current().state is State.ONGOING
    w.ids.is_held = False
    w.wait(10_000)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT


# --- ids


@each("how", ["empty", "committed", "aborted"])
def test_an_id_is_forgotten_when_nobody_used_it_for_long(how: str) -> None:
    w = World(**QUICK)
    if how == "empty":
        w.start()
    else:
        w.end(w.begun(T0), commits=how == "committed")
        w.run_until_idle()
    w.wait(6 * HOUR_MS)
    assert not w.log.under_way
    w.wait(2 * HOUR_MS)
    assert ID in w.transactions.shards.loaded[0].entries, "its tombstone is not committed"
    w.commit()
    assert ID not in w.transactions.shards.loaded[0].entries
    w.lead(1)
    assert ID not in w.transactions.shards.loaded[0].entries
    assert w.start() == (101, 0)


@each("state", [State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_an_id_with_a_transaction_under_way_is_not_forgotten(state: State) -> None:
    w = World(two_phase_commit_enable=True, **QUICK)
    w.put(Transaction(ID, 7, 3, (1 << 31) - 1, state, Instant(w.now), partitions=(T0,), started_at=w.now, version=2))
    w.wait(9 * HOUR_MS)
    assert w.current().state is state
    assert not w.log.under_way


def test_a_producer_that_begins_while_its_id_is_being_forgotten_waits_and_begins_anew() -> None:
    w = World(**QUICK)
    w.start()
    w.wait(8 * HOUR_MS)
    number = w.send(init_request())
    assert number not in w.answers
    w.commit()
    assert (w.answers[number].producer_id, w.answers[number].producer_epoch) == (101, 0)


def test_a_tombstone_that_is_not_written_leaves_the_id() -> None:
    w = World(**QUICK)
    w.start()
    w.wait(8 * HOUR_MS)
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.start() == (100, 1)


def test_a_transaction_that_began_by_a_clock_that_is_ahead_times_out_all_the_same() -> None:
    """Its coordinator's machine was an hour ahead of that of the next one."""
    w = World()
    w.begun(T0)
    w.put(replace(w.current(), started_at=w.now + HOUR_MS))
    w.wait(60_000)
    assert w.current().state is State.ONGOING
    w.wait(20_001)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT
