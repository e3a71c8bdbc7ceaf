"""Partitions are in a transaction before anything is written there (KIP-98, KIP-890)."""

from tests.rows import each
from tests.unit.txn.world import (
    ID,
    T0,
    T1,
    U0,
    World,
    add_request,
    added,
    end_request,
    init_request,
    offsets_request,
    topics_of,
)

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import OFFSETS_TOPIC, TopicPartition
from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)

NOWHERE = TopicPartition("nowhere", 0)


@each("old", [True, False])
def test_partitions_are_answered_when_they_are_committed(old: bool) -> None:
    w = World()
    producer = w.start()
    number = w.send(add_request(producer, T0, U0, old=old), 3 if old else 5)
    assert number not in w.answers, "nothing proves it yet"
    w.commit()
    assert added(w.answers[number], old=old) == {T0: E.NONE, U0: E.NONE}
    assert (w.current().state, w.current().partitions) == (State.ONGOING, (T0, U0))


@each("old", [True, False])
def test_partitions_that_are_not_written_are_refused_and_not_there(old: bool) -> None:
    w = World()
    producer = w.start()
    number = w.send(add_request(producer, T0, old=old), 3 if old else 5)
    w.fail(E.NOT_ENOUGH_REPLICAS)
    assert added(w.answers[number], old=old) == {T0: E.COORDINATOR_NOT_AVAILABLE}
    assert (w.current().state, w.current().partitions) == (State.EMPTY, ())


def test_partitions_come_to_those_that_are_there() -> None:
    w = World()
    producer = w.begun(T0)
    began = w.current().started_at
    w.wait(5)
    w.add(producer, U0)
    assert w.current().partitions == (T0, U0)
    assert w.current().started_at == began


def test_partitions_that_are_there_are_not_written_again() -> None:
    w = World()
    producer = w.begun(T0, T1)
    number = w.send(add_request(producer, T1, old=False), 5)
    assert added(w.answers[number]) == {T1: E.NONE}
    assert not w.log.under_way


def test_a_coordinator_of_the_past_does_not_confirm_partitions_to_an_older_client() -> None:
    """All transactions of an older client have one epoch. If another broker coordinates the id by now, what is here may
    be one that is over, and the client asks for its next."""
    w = World()
    producer = w.begun(T0, old=True)
    number = w.send(add_request(producer, T0, old=True), 3)
    assert number not in w.answers, "nothing proves that this broker coordinates the id still"
    w.fail(E.NOT_LEADER_OR_FOLLOWER)
    assert added(w.answers[number], old=True) == {T0: E.NOT_COORDINATOR}
    assert w.add(producer, T0, old=True) == {T0: E.NONE}


def test_the_partitions_of_a_transaction_are_not_those_of_the_next() -> None:
    w = World()
    producer = w.begun(T0)
    end = w.end(producer)
    w.run_until_idle()
    w.add((end.producer_id, end.producer_epoch), U0)
    assert w.current().partitions == (U0,)


@each("old", [True, False])
def test_a_partition_that_does_not_exist_is_refused_with_all_that_was_asked(old: bool) -> None:
    """A coordinator that does not know a topic yet would write no marker there."""
    w = World()
    assert w.add(w.start(), T0, NOWHERE, old=old) == {
        T0: E.OPERATION_NOT_ATTEMPTED,
        NOWHERE: E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert w.current().state is State.EMPTY


@each(
    ("named", "old", "error"),
    [
        ((100, 1), True, E.PRODUCER_FENCED),
        ((100, 3), True, E.PRODUCER_FENCED),
        ((100, 1), False, E.PRODUCER_FENCED),
        ((99, 2), True, E.INVALID_PRODUCER_ID_MAPPING),
        ((99, 2), False, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_a_producer_calls_itself_by_the_present_id_and_epoch(named: tuple[int, int], old: bool, error: E) -> None:
    w = World()
    for _ in range(3):
        w.start()
    assert w.add(named, T0, old=old) == {T0: error}
    request = offsets_request(named)
    assert w.ask(request).error_code == error


def test_versions_that_do_not_know_that_they_are_fenced_are_told_of_their_epoch() -> None:
    w = World()
    old = w.start()
    w.start()
    assert added(w.ask(add_request(old, T0, old=True), 1), old=True) == {T0: E.INVALID_PRODUCER_EPOCH}
    assert w.ask(offsets_request(old), 1).error_code == E.INVALID_PRODUCER_EPOCH


def test_nobody_knows_an_id_that_was_not_initialized() -> None:
    w = World()
    assert w.add((100, 0), T0) == {T0: E.INVALID_PRODUCER_ID_MAPPING}
    assert w.add((100, 0), T0, verify=True) == {T0: E.INVALID_PRODUCER_ID_MAPPING}
    assert w.ask(offsets_request((100, 0))).error_code == E.INVALID_PRODUCER_ID_MAPPING


# --- the transaction before


@each("old", [True, False])
def test_the_next_transaction_waits_until_the_one_before_is_complete(old: bool) -> None:
    w = World()
    producer = w.begun(T0, old=old)
    end = w.end(producer, version=4 if old else 5)
    following = producer if old else (end.producer_id, end.producer_epoch)
    number = w.send(add_request(following, U0, old=old), 3 if old else 5)
    assert number not in w.answers
    assert w.current().partitions == (T0,)
    w.run_until_idle()
    assert added(w.answers[number], old=old) == {U0: E.NONE}
    assert w.current().partitions == (U0,)


def test_who_waits_too_long_is_asked_to_come_again() -> None:
    w = World()
    end = w.end(w.begun())
    number = w.send(add_request((end.producer_id, end.producer_epoch), U0, old=False), 5)
    w.wait(1_000)
    assert added(w.answers[number]) == {U0: E.CONCURRENT_TRANSACTIONS}


def test_a_producer_that_goes_on_by_another_id_waits_although_that_is_smaller() -> None:
    w = World()
    before = Transaction(
        ID, 5000, EPOCH_LAST, 60_000, State.ONGOING, Instant(5), partitions=(T0,), started_at=w.now, version=2
    )
    w.put(before)
    end = w.end((5000, EPOCH_LAST))
    assert (end.producer_id, end.producer_epoch) == (100, 0)
    number = w.send(add_request((100, 0), U0, old=False), 5)
    assert number not in w.answers
    w.run_until_idle()
    assert added(w.answers[number]) == {U0: E.NONE}


def test_late_partitions_neither_join_nor_open_a_transaction() -> None:
    """KIP-890: each transaction has an epoch of its own."""
    w = World()
    late = w.begun(T0)
    w.end(late)
    assert w.add(late, U0) == {U0: E.PRODUCER_FENCED}
    w.run_until_idle()
    assert w.add(late, U0) == {U0: E.PRODUCER_FENCED}
    assert w.current().state is State.COMPLETE_COMMIT


def test_what_waits_for_a_write_is_judged_by_what_was_written() -> None:
    w = World()
    producer = w.start()
    w.send(init_request())
    number = w.send(add_request(producer, T0, old=False), 5)
    assert number not in w.answers
    w.commit()
    assert added(w.answers[number]) == {T0: E.PRODUCER_FENCED}


# --- verifying


def test_verifying_adds_nothing() -> None:
    w = World()
    producer = w.begun(T0, old=True)
    assert w.add(producer, T0, T1, verify=True) == {T0: E.NONE, T1: E.TRANSACTION_ABORTABLE}
    assert not w.log.under_way
    assert w.current().partitions == (T0,)


def test_what_is_being_added_is_not_verified_before_it_is_committed() -> None:
    w = World()
    producer = w.begun(T0, old=True)
    w.send(add_request(producer, T1, old=True), 3)
    number = w.send(add_request(producer, T1, old=False, verify=True), 5)
    assert added(w.answers[number]) == {T1: E.TRANSACTION_ABORTABLE}


def test_partitions_of_a_transaction_that_is_decided_are_not_verified() -> None:
    w = World()
    producer = w.begun(T0, old=True)
    w.end(producer, version=4)
    assert w.add(producer, T0, verify=True) == {T0: E.CONCURRENT_TRANSACTIONS}
    w.run_until_idle()
    assert w.add(producer, T0, verify=True) == {T0: E.TRANSACTION_ABORTABLE}


@each(("named", "error"), [((100, 5), E.PRODUCER_FENCED), ((5, 0), E.INVALID_PRODUCER_ID_MAPPING)])
def test_only_the_present_producer_is_verified(named: tuple[int, int], error: E) -> None:
    w = World()
    w.begun(T0)
    assert w.add(named, T0, verify=True) == {T0: error}


def test_several_transactions_of_one_request_are_answered_in_its_order() -> None:
    w = World()
    first, second = w.start(), w.start("other")
    rows = [
        AddPartitionsToTxnTransaction(
            transactional_id=name, producer_id=p[0], producer_epoch=p[1], verify_only=verify, topics=topics_of([at])
        )
        for name, p, verify, at in (
            (ID, first, False, T0),
            ("unknown", first, False, T0),
            ("other", second, True, T1),
            ("other", second, False, U0),
        )
    ]
    answer = w.ask(AddPartitionsToTxnRequest(transactions=tuple(rows)))
    reported = [
        (row.transactional_id, row.topic_results[0].results_by_partition[0].partition_error_code)
        for row in answer.results_by_transaction
    ]
    assert reported == [
        (ID, E.NONE),
        ("unknown", E.INVALID_PRODUCER_ID_MAPPING),
        ("other", E.TRANSACTION_ABORTABLE),
        ("other", E.NONE),
    ]
    assert w.ask(AddPartitionsToTxnRequest(transactions=())).results_by_transaction == ()


# --- offsets


def test_a_groups_offsets_add_the_partition_that_keeps_them() -> None:
    w = World()
    producer = w.start()
    assert w.ask(offsets_request(producer)).error_code == E.NONE
    assert w.current().partitions == (TopicPartition(OFFSETS_TOPIC, 0),)


def test_a_groups_offsets_are_kept_where_its_own_id_says() -> None:
    w = World()
    producer = w.start()
    w.delete(OFFSETS_TOPIC)
    w.create(OFFSETS_TOPIC, 50)
    assert w.ask(offsets_request(producer, "g")).error_code == E.NONE
    assert w.current().partitions == (TopicPartition(OFFSETS_TOPIC, 3),), "Java's hash of 'g' is 103"


def test_offsets_need_a_group_and_a_topic_that_keeps_it() -> None:
    w = World()
    producer = w.start()
    assert w.ask(offsets_request(producer, "")).error_code == E.INVALID_GROUP_ID
    w.delete(OFFSETS_TOPIC)
    assert w.ask(offsets_request(producer)).error_code == E.COORDINATOR_NOT_AVAILABLE


def test_what_is_asked_while_an_end_is_being_written_is_of_the_next_transaction() -> None:
    w = World()
    producer = w.begun(T0)
    w.send(end_request(producer))
    number = w.send(add_request(producer, U0, old=False), 5)
    w.run_until_idle()
    assert added(w.answers[number]) == {U0: E.PRODUCER_FENCED}
    assert {row[0] for row in w.written} == {T0}


def test_nobody_is_the_producer_of_the_markers_epoch() -> None:
    w = World()
    w.put(
        Transaction(ID, 7, EPOCH_LAST, 60_000, State.ONGOING, Instant(5), partitions=(T0,), started_at=w.now, version=2)
    )
    w.end((7, EPOCH_LAST))
    assert w.add((7, EPOCH_LAST + 1), U0) == {U0: E.PRODUCER_FENCED}
    assert w.current().partitions == (T0,)
