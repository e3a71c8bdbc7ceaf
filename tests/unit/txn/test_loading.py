"""What a coordinator finds in its partition, and what it does before it has read it."""

from tests.rows import each
from tests.unit.txn.world import ID, T0, T1, World, add_request, added, end_request, init_request, offsets_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import TRANSACTION_TOPIC, LeaderEpoch, Uuid
from strandline.base.time import Instant
from strandline.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from strandline.txn.states import State
from strandline.txn.transaction import EPOCH_LAST, Transaction, restored, value_of
from strandline.wire.batch import build
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest
from strandline.wire.messages.transactions.transaction_records import (
    PartitionsSchema,
    TransactionLogValue,
    decode_value,
    encode_key,
    encode_value,
)


def errors_of(w: World) -> set[E]:
    requests = [init_request(), end_request((100, 0)), offsets_request((100, 0))]
    errors = {E(w.answers[w.send(request)].error_code) for request in requests}
    for verify in (True, False):
        errors |= set(added(w.answers[w.send(add_request((100, 0), T0, old=False, verify=verify), 5)]).values())
    described = w.answers[w.send(DescribeTransactionsRequest(transactional_ids=(ID,)))]
    return errors | {E(row.error_code) for row in described.transaction_states}


def test_a_broker_answers_only_for_what_it_leads() -> None:
    w = World()
    w.lead(None)
    assert errors_of(w) == {E.NOT_COORDINATOR}


def test_without_the_topic_there_is_no_coordinator() -> None:
    w = World()
    w.log.epoch = None
    w.delete(TRANSACTION_TOPIC)
    assert errors_of(w) == {E.COORDINATOR_NOT_AVAILABLE}


@each("what", ["is_damaged", "has_committed"])
def test_nothing_is_answered_before_all_is_whole_and_committed(what: str) -> None:
    w = World()
    w.begun(T0)
    setattr(w.log, what, what == "is_damaged")
    w.lead(3)
    assert errors_of(w) == {E.COORDINATOR_LOAD_IN_PROGRESS}
    listed = w.answers[w.send(ListTransactionsRequest())]
    assert listed.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    setattr(w.log, what, what != "is_damaged")
    w.wait(1_000)
    assert w.current().state is State.ONGOING


@each("state", [state for state in State if state is not State.DEAD])
def test_a_new_coordinator_knows_what_the_one_before_has_written(state: State) -> None:
    w = World()
    kept = state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    before = Transaction(
        ID,
        7,
        3,
        60_000,
        state,
        Instant(5),
        partitions=() if kept else (T0, T1),
        started_at=4,
        previous_producer_id=6,
        next_producer_id=-1 if kept else 8,
        next_epoch=-1 if kept else 9,
        version=2,
    )
    decoded = decode_value(encode_value(value_of(before), 1))
    assert decoded is not None
    assert restored(ID, decoded) == before
    w.put(before)
    assert w.current() == before


def test_the_last_record_counts_and_a_tombstone_forgets() -> None:
    w = World()
    w.start()
    w.start()
    w.start("gone")
    w.log.batches.append(bytes(build([(w.now, encode_key("gone"), None, ())])))
    w.lead(1)
    assert w.current().epoch == 1
    assert list(w.transactions.shards.loaded[0].entries) == [ID]


def test_an_answer_that_was_given_holds_after_the_coordinator_failed() -> None:
    w = World()
    producer = w.begun(T0, T1)
    w.lead(1)
    assert w.current().partitions == (T0, T1)
    end = w.end(producer)
    w.sent.clear()
    w.transactions.markers.under_way.clear()
    w.lead(2)
    w.run_until_idle()
    again = w.end(producer)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (E.NONE, end.producer_id, end.producer_epoch)


def test_a_write_that_was_under_way_when_leadership_ended_is_answered_as_unknown_and_has_no_effect_here() -> None:
    w = World()
    producer = w.begun(T0)
    number = w.send(end_request(producer))
    w.lead(1)
    assert w.answers[number].error_code == E.NOT_COORDINATOR
    assert w.current().state is State.ONGOING
    assert not w.sent


def test_an_older_coordinator_decides_nothing_by_a_write_that_ends_late() -> None:
    w = World()
    producer = w.begun(T0)
    number = w.send(end_request(producer))
    (batch, done), w.log.under_way = w.log.under_way[0], []
    w.log.batches.append(batch)
    w.lead(1)
    w.take(done(E.NONE, 0, Instant(w.now)))
    assert w.answers[number].error_code == E.NONE, "it is committed"
    assert len(w.sent) == 1, "by the coordinator that has loaded it"
    assert w.sent[0].message.markers[0].coordinator_epoch == 1


def value(**changes: object) -> TransactionLogValue:
    rows = {"producer_id": 7, "producer_epoch": 3, "transaction_timeout_ms": 1, "transaction_status": 1, **changes}
    return TransactionLogValue(**rows)  # type: ignore[arg-type]


@each(
    "changes",
    [
        {"producer_id": -1},
        {"producer_epoch": -1},
        {"transaction_status": 6},
        {"transaction_status": 7},
        {"transaction_status": -1},
        {"next_producer_epoch": -2},
        {"next_producer_epoch": 4},
        {"next_producer_id": -2, "transaction_status": 2},
        {"next_producer_id": 7, "next_producer_epoch": 3},
        {"next_producer_id": 7, "transaction_status": 3},
    ],
)
def test_records_that_no_coordinator_writes_are_skipped(changes: dict[str, object]) -> None:
    w = World()
    w.start()
    w.log.batches.append(bytes(build([(w.now, encode_key(ID), encode_value(value(**changes), 1), ())])))
    w.log.batches.append(bytes(build([(w.now, encode_key("x"), b"\0\x63", ()), (w.now, b"\0\1\0", b"", ())])))
    w.lead(1)
    assert w.current().epoch == 0
    assert w.transactions.shards.loaded[0].unreadable == 2


def test_a_foreign_record_with_odd_values_can_be_ended() -> None:
    w = World()
    odd = value(
        producer_epoch=EPOCH_LAST + 1,
        client_transaction_version=300,
        transaction_timeout_ms=-5,
        transaction_start_timestamp_ms=-1,
        transaction_last_update_timestamp_ms=(1 << 63) - 1,
        transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(0, -1, 99, 0)),),
    )
    w.log.batches.append(bytes(build([(w.now, encode_key(ID), encode_value(odd, 1), ())])))
    w.lead(1)
    w.wait(11_000)
    w.run_until_idle()
    assert w.written == [(T0, 7, EPOCH_LAST + 1, False, 1)]
    assert w.current().client == (100, 0)


def test_nothing_is_written_by_what_was_known_before_the_partition_is_led_anew() -> None:
    """The request that waits would write behind records that this coordinator has not read."""
    w = World()
    w.start()
    first, second = w.send(init_request()), w.send(init_request())
    w.lead(1)
    assert [w.answers[number].error_code for number in (first, second)] == [E.NOT_COORDINATOR] * 2
    assert not w.log.under_way
    assert w.start() == (100, 1)


def test_what_time_ends_waits_until_a_partition_that_is_led_anew_is_loaded() -> None:
    w = World(id_expiration_ms=100_000, remove_interval_ms=90_000)
    w.begun(T0)
    w.start("idle")
    w.log.epoch = LeaderEpoch(1)  # the metadata comes later
    w.wait(200_000)
    assert not w.log.under_way
    w.lead(1)
    w.wait(100_000)
    w.run_until_idle()
    assert w.current().state is State.COMPLETE_ABORT
    assert list(w.transactions.shards.loaded[0].entries) == [ID]


def test_nothing_is_answered_by_what_was_known_before_the_partition_is_led_anew() -> None:
    w = World()
    w.begun(T0, T1)
    w.log.epoch = LeaderEpoch(1)  # the metadata comes later
    assert errors_of(w) == {E.NOT_COORDINATOR}


def test_a_topic_that_was_deleted_and_created_anew_at_once_knows_no_id() -> None:
    """Its partitions' epochs begin anew too, and metadata may bring both in one step."""
    w = World()
    w.begun(T0)
    w.log.batches.clear()
    old, new = w.image.topic_ids[TRANSACTION_TOPIC], Uuid(b"of the same name")
    w.change(
        RemoveTopicRecord(topic_id=old),
        TopicRecord(name=TRANSACTION_TOPIC, topic_id=new),
        PartitionRecord(partition_id=0, topic_id=new, replicas=(1,), isr=(1,), leader=1),
    )
    assert not w.transactions.shards.loaded[0].entries
