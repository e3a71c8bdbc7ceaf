"""What watched clients did becomes operations, and what an application lost or saw twice is named."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import SerializingProducer
from confluent_kafka.aio import AIOProducer

from strandline.base.ids import ZERO_UUID
from strandline.history.judge import judge
from strandline.history.operation import Key, Kind, Outcome
from strandline.history.policy import Facts
from strandline.testing.answers.captured import Request, heard
from strandline.testing.watching.confluent import Consumer, Producer
from strandline.testing.watching.history import Verdict
from strandline.testing.watching.recording import HEADER, Recording, Traits
from strandline.testing.watching.wire_traits import traits_of
from strandline.testing.watching.wrapping import wrapped
from strandline.wire.batch import build
from strandline.wire.frame import encode_request
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SAFE, PLAIN = Traits(is_idempotent=True), Traits()
KEY = Key("t", ZERO_UUID, 0)


class Clock(Recording):
    """Every look at the time is 10 ms later."""

    ticks = 0

    def now_ms(self) -> int:
        self.ticks += 10
        return self.ticks


class Error:
    def __init__(self, name: str) -> None:
        self.text = name

    def name(self) -> str:
        return self.text


class Message:
    def __init__(self, offset: int, value: bytes, headers: Any, partition: int = 0) -> None:
        self.fields = {"offset": offset, "value": value, "headers": headers, "partition": partition, "topic": "t"}

    def __getattr__(self, name: str) -> Callable[[], Any]:
        if name == "error":
            return lambda: None
        return lambda: self.fields[name]


class Broker:
    """A client of confluent-kafka that keeps what it is given. Its log is shared by all."""

    def __init__(self) -> None:
        self.log: list[Message] = []
        self.waiting: list[tuple[Callable[[Any, Any], None], Message]] = []
        self.position, self.end = 0, 0
        self.callbacks: dict[str, Any] = {}

    def produce(self, topic: str, value: Any, key: Any, partition: int, on_delivery: Any, headers: Any) -> None:
        if value == b"full":
            raise BufferError("Local: Queue full")
        self.waiting.append((on_delivery, Message(-1, value, headers)))

    def deliver(self, *, twice: bool = False, lose: bool = False, error: Any = None) -> None:
        for on_delivery, message in self.waiting:
            message.fields["offset"] = self.end
            for _ in range(1 + twice):
                if not lose:
                    self.log.append(Message(self.end, message.fields["value"], message.fields["headers"]))
                self.end += 1
            on_delivery(error, message)
        self.waiting = []

    def consume(self, count: int, timeout: float) -> list[Message]:
        found, self.position = self.log[self.position :], len(self.log)
        return found

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def begin_transaction(self) -> None: ...

    def commit_transaction(self) -> None: ...

    def abort_transaction(self) -> None: ...


@pytest.fixture
def recording() -> Recording:
    return Clock()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def producer(broker: Broker, recording: Recording) -> Producer:
    return Producer(broker, recording, "p")


@pytest.fixture
def consumer(broker: Broker, recording: Recording) -> Consumer:
    return Consumer(broker, recording, "c")


def operations(recording: Recording, of_producer: Traits = PLAIN, of_consumer: Traits = PLAIN) -> list[Any]:
    return recording.operations({}, {"p": of_producer, "c": of_consumer})


def verdict(recording: Recording, of_producer: Traits = PLAIN, of_consumer: Traits = PLAIN) -> Verdict:
    """`c` has read everything."""
    return Verdict(judge(operations(recording, of_producer, of_consumer), Facts(), {}, {KEY: "c"}), 0, 0)


def test_records_with_equal_values_are_told_apart_by_a_header(
    broker: Broker, recording: Recording, producer: Producer, consumer: Consumer
) -> None:
    for _ in range(2):
        producer.produce("t", b"same", headers=[("theirs", b"1")])
    broker.deliver()
    assert [message.value() for message in consumer.consume(10, 1)] == [b"same", b"same"]
    first, second, poll = operations(recording)
    assert [write.value for write in (*first.writes, *second.writes)] == [read.value for read in poll.reads]
    assert first.writes[0].value != second.writes[0].value
    assert [name for name, _ in broker.log[0].headers()] == ["theirs", HEADER]
    assert verdict(recording).judgement.violations == ()


def test_a_record_of_somebody_else_is_known_by_its_place(
    broker: Broker, recording: Recording, consumer: Consumer
) -> None:
    broker.log = [Message(0, b"same", None), Message(1, b"same", [(HEADER, b"of another run")])]
    consumer.consume(10, 1)
    (poll,) = operations(recording)
    assert [read.value for read in poll.reads] == [b"same @0", b"same @1"]


def test_a_lost_record_is_named(broker: Broker, recording: Recording, producer: Producer, consumer: Consumer) -> None:
    for value, lose in ((b"one", True), (b"two", False)):
        producer.produce("t", value)
        broker.deliver(lose=lose)
    consumer.consume(10, 1)
    found = verdict(recording)
    assert [anomaly.values for anomaly in found.lost] == [(b"one #0",)]
    assert (found.duplicated, found.reordered, found.uncommitted) == ((), (), ())
    assert "1 lost" in str(found)


@pytest.mark.parametrize("traits", [SAFE, PLAIN])
def test_a_duplicate_is_wrong_if_the_producer_promises_none(
    broker: Broker, recording: Recording, producer: Producer, consumer: Consumer, traits: Traits
) -> None:
    producer.produce("t", b"one")
    broker.deliver(twice=True)
    consumer.consume(10, 1)
    found = verdict(recording, traits)
    assert bool(found.duplicated) == traits.is_idempotent
    assert bool(found.tolerated) != traits.is_idempotent


@pytest.mark.parametrize("traits", [SAFE, PLAIN])
def test_the_order_of_overlapping_sends_is_judged_if_the_producer_promises_it(
    broker: Broker, recording: Recording, producer: Producer, traits: Traits
) -> None:
    producer.produce("t", b"one")
    producer.produce("t", b"two")
    broker.waiting.reverse()
    broker.deliver()
    assert bool(verdict(recording, traits).reordered) == traits.is_idempotent


def test_threads_that_share_a_producer_are_recorded_in_the_order_of_sending(
    broker: Broker, recording: Recording, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = threading.Thread(target=producer.produce, args=("t", b"second"))
    produce = broker.produce

    def slow(topic: str, value: Any, **how: Any) -> None:
        if value == b"first":
            other.start()
            other.join(0.2)  # without a lock it would send, and be before the first
        produce(topic, value, **how)

    monkeypatch.setattr(broker, "produce", slow)
    producer.produce("t", b"first")
    other.join()
    assert [message.value() for _, message in broker.waiting] == [b"first", b"second"]
    broker.deliver()
    assert verdict(recording, SAFE).reordered == ()


def test_sends_that_do_not_overlap_are_operations_of_their_own(
    broker: Broker, recording: Recording, producer: Producer
) -> None:
    for values in ((b"one", b"two"), (b"three",)):
        for value in values:
            producer.produce("t", value)
        broker.deliver()
    assert [len(operation.writes) for operation in operations(recording, SAFE)] == [2, 1]
    assert [len(operation.writes) for operation in operations(recording, PLAIN)] == [1, 1, 1]


def test_what_a_client_heard_of_a_send_is_its_outcome(broker: Broker, recording: Recording, producer: Producer) -> None:
    heard_by_application: list[Any] = []
    for error in (None, Error("_MSG_TIMED_OUT"), Error("MSG_SIZE_TOO_LARGE")):
        producer.produce("t", b"x", on_delivery=lambda error, _: heard_by_application.append(error))
        broker.deliver(error=error)
    with pytest.raises(BufferError):
        producer.produce("t", b"full")
    producer.produce("t", b"not answered")
    outcomes = [operation.outcome for operation in operations(recording)]
    assert outcomes == [Outcome.OK, Outcome.UNKNOWN, Outcome.FAIL, Outcome.FAIL, Outcome.UNKNOWN]
    assert [error and error.name() for error in heard_by_application] == [None, "_MSG_TIMED_OUT", "MSG_SIZE_TOO_LARGE"]


def test_a_transaction_is_one_operation_with_the_fate_of_the_whole(
    broker: Broker, recording: Recording, producer: Producer, consumer: Consumer
) -> None:
    for value, end in ((b"good", producer.commit_transaction), (b"bad", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("t", value)
        producer.produce("t", value)
        broker.deliver()
        end()
    producer.begin_transaction()
    producer.produce("t", b"open")
    broker.deliver()
    sends = operations(recording)
    sends.sort(key=lambda operation: operation.began_ms)
    outcomes = [(operation.outcome, len(operation.writes)) for operation in sends]
    assert outcomes == [(Outcome.OK, 2), (Outcome.FAIL, 2), (Outcome.UNKNOWN, 1)]
    assert all(op.transactional_id for op in sends)
    consumer.consume(10, 1)
    assert verdict(recording).uncommitted == ()
    found = verdict(recording, PLAIN, Traits(is_read_committed=True))
    assert {anomaly.values for anomaly in found.uncommitted} == {(b"bad #2",), (b"bad #3",)}


def test_a_new_assignment_begins_another_reading(
    broker: Broker, recording: Recording, producer: Producer, consumer: Consumer
) -> None:
    producer.produce("t", b"one")
    broker.deliver()
    given: list[Any] = []
    consumer.subscribe(["t"], on_assign=lambda consumer, partitions: given.append((consumer, partitions)))
    consumer.consume(10, 1)
    broker.callbacks["on_assign"](broker, ["t-0"])
    broker.position = 0
    consumer.consume(10, 1)
    assert given == [(consumer, ["t-0"])]
    assert [op.kind for op in operations(recording)] == [Kind.SEND, Kind.POLL, Kind.ASSIGN, Kind.POLL]
    assert verdict(recording).judgement.violations == ()
    broker.position = 0
    consumer.consume(10, 1)
    assert [anomaly.name for anomaly in verdict(recording).reordered] == ["nonmonotonic-poll"]


def test_a_watched_client_is_true_and_a_context_as_the_clients_own(recording: Recording) -> None:
    class Own:
        left: tuple[Any, ...] = ()

        def __enter__(self) -> "Own":
            return self

        def __exit__(self, *failure: Any) -> bool:
            self.left = failure
            return True

    own = Own()
    with Consumer(own, recording, "c") as watched:
        assert watched
        raise ValueError
    assert isinstance(watched, Consumer)
    assert own.left[0] is ValueError


def test_a_serializing_producers_key_comes_before_its_value(recording: Recording) -> None:
    given: list[tuple[Any, Any]] = []

    class Serializing(SerializingProducer):
        def __init__(self) -> None: ...

        def produce(self, topic: str, key: Any = None, value: Any = None, *_: Any, **__: Any) -> None:
            given.append((key, value))

    producer = wrapped(Serializing(), recording, "p")
    producer.produce("t", "the key", "the value")
    producer.produce("t", key="the key", value="the value")
    assert given == [("the key", "the value")] * 2
    assert [send.identity for send in recording.sends] == [b"the value #0", b"the value #1"]


def test_a_client_whose_methods_are_coroutines_is_refused(recording: Recording) -> None:
    with pytest.raises(TypeError, match="AIOProducer is not a client"):
        wrapped(object.__new__(AIOProducer), recording, "p")


def test_what_is_not_a_known_client_is_refused(recording: Recording) -> None:
    with pytest.raises(TypeError, match="Broker is not a client of confluent-kafka, aiokafka or kafka-python"):
        wrapped(Broker(), recording, "p")


# --- what requests show


def request(message: Any, version: int) -> Request:
    found = heard(1, b"".join(encode_request(message, version, 1, "app"))[4:])
    assert found is not None
    return found


def produced(mark: bytes, acks: int, producer_id: int) -> Request:
    batch = build([(0, None, b"x", ((HEADER, mark),))], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(0, batch),))
    return request(ProduceRequest(acks=acks, topic_data=(data,)), 9)


def test_a_producer_is_what_its_requests_show() -> None:
    requests = [produced(b"of p", -1, 7), produced(b"of q", 1, -1), produced(b"of nobody", 0, 9)]
    found = traits_of({b"of p": "p", b"of q": "q"}, ["p", "q", "r"], requests)
    assert found == {"p": Traits(-1, True), "q": Traits(1, False), "r": Traits()}


@pytest.mark.parametrize(("levels", "is_committed"), [((1, 1), True), ((0,), False), ((0, 1), False), ((), False)])
def test_readers_are_read_committed_if_all_fetches_were(levels: tuple[int, ...], is_committed: bool) -> None:
    fetches = [request(FetchRequest(isolation_level=level), 11) for level in levels]
    assert traits_of({}, ["c"], fetches)["c"].is_read_committed == is_committed
