"""Bugs that Kafka's transaction coordinator has had, by their numbers: what was wrong there is right here."""

from typing import Any

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, add_request, added, end_request, init_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.txn import expiring
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction
from strandline.wire.record import all_records

MINUTE_MS = 60_000


def open_at(w: World, epoch: int) -> None:
    """A transaction of producer 7 is open, in this epoch."""
    rows: dict[str, Any] = {"partitions": (T0,), "started_at": w.now, "version": 2}
    w.put(Transaction(ID, 7, epoch, MINUTE_MS, State.ONGOING, Instant(5), **rows))


@each("commits", [True, False])
def test_kafka_18464_an_abort_of_the_next_transaction_while_markers_are_written_fences_nobody(commits: bool) -> None:
    """The producer has its new epoch, and aborts at once what it has just begun, and has written nothing in."""
    w = World()
    end = w.end(w.begun(T0), commits=commits)
    following = end.producer_id, end.producer_epoch
    assert w.end(following, commits=False).error_code == E.CONCURRENT_TRANSACTIONS
    w.run_until_idle()
    again = w.end(following, commits=False)
    assert (again.error_code, again.producer_epoch) == (E.NONE, following[1] + 1)
    assert [row[3] for row in w.written] == [commits], "nothing was written that an abort could be about"


def test_kafka_18660_neither_does_one_of_a_producer_that_goes_on_by_another_id() -> None:
    w = World()
    open_at(w, EPOCH_LAST)
    end = w.end((7, EPOCH_LAST))
    following = end.producer_id, end.producer_epoch
    assert following == (100, 0)
    assert w.end(following, commits=False).error_code == E.CONCURRENT_TRANSACTIONS
    w.run_until_idle()
    assert w.end(following, commits=False).error_code == E.NONE


@each("moment", ["decided", "marked"])
def test_kafka_20310_the_next_coordinator_knows_the_producer_id_before_and_the_one_that_follows(moment: str) -> None:
    w = World()
    open_at(w, EPOCH_LAST)
    end = w.end((7, EPOCH_LAST))
    if moment == "marked":
        w.run_until_idle()
    w.sent.clear()
    w.transactions.markers.under_way.clear()
    w.lead(9)
    w.run_until_idle()
    again = w.end((7, EPOCH_LAST))
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, *w.current().client)
    assert w.current().client == (end.producer_id, end.producer_epoch) == (100, 0)


def test_kafka_20090_a_late_abort_of_a_producer_that_timed_out_in_the_last_epoch_leaves_nothing_open() -> None:
    w = World()
    open_at(w, EPOCH_LAST)
    w.wait(80_000)
    late = w.send(end_request((7, EPOCH_LAST), commits=False))
    w.run_until_idle()
    assert w.answers[late].error_code == E.CONCURRENT_TRANSACTIONS
    assert w.written == [(T0, 7, EPOCH_LAST + 1, False, 1)]
    again = w.end((7, EPOCH_LAST), commits=False)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, 100, 0)
    assert w.add((100, 0), T0) == {T0: E.NONE}


@each(("epoch", "client"), [(EPOCH_LAST - 2, (7, EPOCH_LAST)), (EPOCH_LAST - 1, (100, 0)), (EPOCH_LAST, (100, 1))])
def test_kafka_19367_an_abort_by_the_next_producer_never_takes_more_epochs_than_there_are(
    epoch: int, client: tuple[int, int]
) -> None:
    w = World()
    open_at(w, epoch)
    number = w.send(init_request())
    w.run_until_idle()
    answer = w.answers[number]
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (E.NONE, *client)
    assert w.written == [(T0, 7, epoch + 1, False, 1)]


def test_kafka_5415_and_8803_a_clock_that_goes_back_stops_no_transaction_and_no_timeout() -> None:
    w = World()
    producer = w.begun(T0)
    before = w.current().updated_at
    w.now -= 30_000
    assert w.add(producer, T1) == {T1: E.NONE}
    end = w.end(producer)
    w.run_until_idle()
    assert (w.current().state, w.current().updated_at) == (State.COMPLETE_COMMIT, before)
    w.add((end.producer_id, end.producer_epoch), T0)
    w.wait(60_000 + 30_000 + 10_001)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT


def test_kafka_13099_tombstones_of_very_many_ids_come_in_batches_of_a_bounded_size() -> None:
    w = World(id_expiration_ms=MINUTE_MS, remove_interval_ms=MINUTE_MS)
    names = [f"id-{number}" for number in range(2 * expiring.TOMBSTONES_MAX + 1)]
    for name in names:
        w.start(name)
    w.wait(2 * MINUTE_MS)
    sizes = [len(list(all_records(batch))) for batch, _ in w.log.under_way]
    assert sizes == [expiring.TOMBSTONES_MAX, expiring.TOMBSTONES_MAX, 1]
    w.commit()
    assert not w.transactions.shards.loaded[0].entries


def test_kafka_14904_a_partition_that_is_there_is_verified_while_another_one_is_being_added() -> None:
    w = World()
    producer = w.begun(T0, old=True)
    w.send(add_request(producer, T1, old=True), 3)
    number = w.send(add_request(producer, T0, old=False, verify=True), 5)
    assert added(w.answers[number]) == {T0: E.NONE}


@each("commits", [True, False])
def test_kafka_17754_a_late_end_of_the_transaction_before_leaves_the_next_one_alone(commits: bool) -> None:
    """Jepsen found lost writes, aborted reads and torn transactions that came of it."""
    w = World()
    first = w.begun(T0)
    end = w.end(first, commits=not commits)
    w.run_until_idle()
    second = end.producer_id, end.producer_epoch
    w.add(second, T0, T1)
    late = w.send(end_request(first, commits=commits))
    assert w.answers[late].error_code == E.PRODUCER_FENCED
    assert not w.log.under_way
    w.end(second, commits=not commits)
    w.run_until_idle()
    assert {row[3] for row in w.written} == {not commits}


def test_kafka_5351_what_could_not_be_written_holds_up_nothing_that_comes_later() -> None:
    w = World()
    producer = w.start()
    for _ in range(2):
        number = w.send(add_request(producer, T0, old=False), 5)
        w.fail(E.NOT_ENOUGH_REPLICAS)
        assert added(w.answers[number]) == {T0: E.COORDINATOR_NOT_AVAILABLE}
    assert w.add(producer, T0) == {T0: E.NONE}
    number = w.send(end_request(producer))
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert w.answers[number].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert w.end(producer).error_code == E.NONE
