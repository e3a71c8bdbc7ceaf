"""What clients see: acks, long polls, limits, sessions."""

from typing import Any

import pytest
from tests.unit.replica.asking import CALLER, ask, offsets_in, written_by
from tests.unit.replica.conftest import AT, a_batch

from strandline.base.effects import Close, Effect, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, NodeId
from strandline.base.time import Instant
from strandline.wire.batch import batches, build
from strandline.wire.compress import Codec
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# --- produce


def produced(world: Any, acks: int, topic: str = "t") -> list[Effect]:
    batch = memoryview(bytearray(build([(0, None, b"v", ())])))
    data = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),)),)
    request = ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=data)
    effects: list[Effect] = world.nodes[1].produce(world.to(), CALLER, request, world.now)
    return effects


def test_acks_0_has_no_answer(world: Any) -> None:
    world.create(replicas=(1,))
    (reply,) = produced(world, 0)
    assert isinstance(reply, Reply)
    assert reply.message is None
    assert world.row(1)[3] == 1


def test_acks_0_that_fails_closes_the_connection(world: Any) -> None:
    reply, close = produced(world, 0, topic="unknown")
    assert isinstance(reply, Reply)
    assert reply.message is None
    assert isinstance(close, Close)


def test_acks_1_is_answered_before_followers_have_the_records(world: Any) -> None:
    world.create()
    world.cut = {1}
    assert world.produce(1, acks=1)().error_code == ErrorCode.NONE


def test_a_batch_that_is_sent_again_is_acknowledged_when_it_is_committed_and_not_before(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.cut = {2, 3}
    batch = a_batch(1, producer_id=7, producer_epoch=0, base_sequence=0)
    first, again = (world.produce(1, timeout_ms=60_000, batch=batch) for _ in range(2))
    assert (first(), again()) == (None, None)
    assert world.row(1)[3] == 1
    world.cut = set()
    world.run(5_000)
    assert [(answer().error_code, answer().base_offset) for answer in (first, again)] == [(ErrorCode.NONE, 0)] * 2


def test_a_fetch_that_waits_for_a_record_is_not_answered_with_the_one_before_it(world: Any) -> None:
    class Waiting:
        done = False

        def __init__(self, required: int) -> None:
            self.required = required

        def complete(self, error: ErrorCode, now: Instant) -> list[Any]:
            self.done = True
            return []

    world.create(replicas=(1,))
    world.produce(1, 2)
    hosted = world.nodes[1].host.partitions.named("t", 0)
    waiters = [Waiting(required) for required in (1, 2, 3)]
    for waiter in waiters:
        hosted.wait(waiter)
    hosted.complete_waiting(hosted.role, world.now)
    assert [waiter.done for waiter in waiters] == [True, True, False]


def test_other_acks_are_refused(world: Any) -> None:
    world.create(replicas=(1,))
    assert world.produce(1, acks=2)().error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert world.row(1)[3] == 0


def test_a_follower_refuses_and_names_the_leader(world: Any) -> None:
    world.create()
    answer = world.produce(2)()
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)


def test_an_unknown_topic_is_unknown(world: Any) -> None:
    (reply,) = produced(world, 1, topic="unknown")
    assert isinstance(reply, Reply)
    row = reply.message.responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_broken_batch_is_refused(world: Any) -> None:
    world.create(replicas=(1,))
    broken = bytearray(build([(0, None, b"v", ())]))
    broken[-1] ^= 1
    assert world.produce(1, batch=bytes(broken))().error_code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("version", "error"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_zstd_is_for_producers_who_know_version_7(world: Any, version: int, error: ErrorCode) -> None:
    """KIP-110. It is said for one partition of several, and nothing of that one is written."""
    world.create(replicas=(1,))
    parts = [PartitionProduceData(index=0, records=a_record(codec)) for codec in (Codec.ZSTD, Codec.LZ4)]
    request = ProduceRequest(acks=1, topic_data=(TopicProduceData(name="t", partition_data=tuple(parts)),))
    answer = ask(world, 1, "produce", request, version)()
    assert [row.error_code for row in answer.responses[0].partition_responses] == [error, ErrorCode.NONE]
    assert world.row(1)[3] == (1 if error else 2)


def a_record(codec: Codec = Codec.NONE, size: int = 1) -> memoryview:
    return memoryview(bytearray(build([(0, None, b"v" * size, ())], codec=codec)))


def test_the_time_of_the_append_is_in_the_answer_and_in_the_records(world: Any) -> None:
    world.create(**{"message.timestamp.type": "LogAppendTime"})
    first = world.produce(1)()
    assert (first.error_code, first.log_append_time_ms) == (ErrorCode.NONE, world.now)
    (header,) = batches(bytes(world.consume(1, 0)().records))
    assert (header.is_log_append_time, header.max_timestamp) == (True, world.now)


def test_without_it_there_is_no_time_in_the_answer(world: Any) -> None:
    world.create(replicas=(1,))
    assert world.produce(1)().log_append_time_ms == -1


def test_a_record_out_of_the_topics_time_is_named_in_the_answer(world: Any) -> None:
    world.create(**{"message.timestamp.before.max.ms": "1000"})
    batch = build([(world.now, None, b"v", ()), (world.now - 1001, None, b"v", ())])
    answer = world.produce(1, batch=batch)()
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert answer.log_append_time_ms == -1


def test_replicas_store_what_the_topic_says_and_keep_to_its_level(world: Any) -> None:
    world.create(**{"compression.type": "zstd", "compression.zstd.level": "1"})
    assert world.produce(1, 50)().error_code == ErrorCode.NONE
    world.run(1_000)
    logs = [world.nodes[node].host.partitions.named("t", 0).log for node in (1, 2, 3)]
    assert [log.config.compression_zstd_level for log in logs] == [1, 1, 1]
    stored = [b"".join(log.read(0, 1 << 20, upto=50, min_one=True).buffers) for log in logs]
    assert stored[0] == stored[1] == stored[2]
    assert [header.codec for header in batches(stored[0])] == [Codec.ZSTD]


def test_a_follower_that_waits_for_bytes_waits_for_those_that_are_stored(world: Any) -> None:
    world.create(**{"compression.type": "uncompressed"})
    world.run(1_000)
    asked = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=3, replica_epoch=103),
        session_epoch=-1,
        max_wait_ms=10_000,
        min_bytes=5_000,
        topics=(FetchTopic(topic="t", partitions=(asked,)),),
    )
    answer = ask(world, 1, "fetch", request, 12)
    batch = bytes(a_record(Codec.ZSTD, 6_000))
    assert len(batch) < 5_000
    world.produce(1, acks=1, batch=batch)
    assert offsets_in(answer().responses[0].partitions[0].records) == [0]


def test_the_brokers_own_append_is_done_when_it_is_committed(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.cut = {2, 3}
    done: list[tuple[ErrorCode, int]] = []
    ended: list[Instant] = []

    def then(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
        done.append((error, base_offset))
        ended.append(now)
        return []

    batch = bytearray(build([(0, None, b"v", ())]))
    world.perform(NodeId(1), world.nodes[1].append_internal("t", 0, batch, world.now, then))
    world.run(500)
    assert done == []
    asked = world.now
    world.cut = set()
    world.run(3_000)
    assert done == [(ErrorCode.NONE, 0)]
    assert ended[0] >= asked, "the time is that of the end, and not that of the append"
    assert world.nodes[1].high_watermark("t", 0) == 1
    assert offsets_in(world.nodes[1].read_internal("t", 0, 0, 1 << 20).buffers) == [0]
    assert world.nodes[1].leads("t", 0) == 0
    assert world.nodes[2].leads("t", 0) is None
    world.perform(NodeId(2), world.nodes[2].append_internal("t", 0, batch, world.now, then))
    assert done[1:] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_clients_do_not_write_the_coordinators_records(world: Any, topic: str) -> None:
    """Forged offsets and decisions would be believed. Kafka lets a client that calls itself its admin client do it."""
    world.create(topic, replicas=(1,))
    assert written_by(world, "client", topic) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.nodes[1].host.partitions.find(AT).log.log_end_offset == 0
    assert written_by(world, "__admin_client", topic) is ErrorCode.NONE


# --- fetch


def test_a_consumer_sees_only_what_is_committed(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.cut = {2, 3}
    world.produce(1, acks=1)
    answer = world.consume(1, 0)()
    assert (answer.error_code, answer.high_watermark, len(answer.records)) == (ErrorCode.NONE, 0, 0)


def test_a_long_poll_is_answered_when_the_high_watermark_passes(world: Any) -> None:
    world.create()
    world.run(1_000)
    answer = world.consume(1, 0, max_wait_ms=10_000)
    world.run(5_000)
    assert answer() is None
    world.produce(1, 2)
    assert offsets_in(answer().records) == [0]
    assert answer().high_watermark == 2


def test_a_long_poll_waits_for_its_bytes_but_not_longer_than_it_may(world: Any) -> None:
    world.create(replicas=(1,))
    answer = world.consume(1, 0, max_wait_ms=500, min_bytes=1_000)
    world.produce(1)
    world.run(499)
    assert answer() is None
    world.run(1)
    assert offsets_in(answer().records) == [0]
    answer = world.consume(1, 0, max_wait_ms=500, min_bytes=1_000)
    world.produce(1, 100)
    assert offsets_in(answer().records) == [0, 1]


def test_an_offset_that_the_log_does_not_have(world: Any) -> None:
    world.create(replicas=(1,))
    assert world.consume(1, 1, max_wait_ms=500)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.consume(1, 0, epoch=1)().error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_first_batch_comes_whole_even_beyond_the_limit(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 50)
    world.produce(1, 50)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10)
    request = FetchRequest(max_bytes=10, session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(asked,)),))
    answer = ask(world, 1, "fetch", request)().responses[0].partitions[0]
    assert offsets_in(answer.records) == [0]


def test_a_debugging_consumer_fetches_as_a_consumer_does(world: Any) -> None:
    """As in Kafka: only ListOffsets looks beyond the high watermark."""
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    world.cut = {2}
    world.produce(1, 1)

    def fetched(replica: int) -> Any:
        asked = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
        request = FetchRequest(
            replica_id=replica, session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(asked,)),)
        )
        return ask(world, 1, "fetch", request, version=11)().responses[0].partitions[0]

    assert (fetched(-2).high_watermark, len(fetched(-2).records)) == (3, 0)
    assert len(fetched(2).records) > 0


# --- sessions


def incremental(session_id: int, epoch: int, *asked: FetchPartition, max_wait_ms: int = 0) -> FetchRequest:
    topics = (FetchTopic(topic="t", partitions=asked),) if asked else ()
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, max_wait_ms=max_wait_ms, min_bytes=1)


def test_a_session_answers_only_what_is_new(world: Any) -> None:
    world.create(replicas=(1,))
    first = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    opened = ask(world, 1, "fetch", incremental(0, 0, first))()
    assert opened.session_id > 0
    assert len(opened.responses) == 1
    nothing = ask(world, 1, "fetch", incremental(opened.session_id, 1))()
    assert nothing.responses == ()
    world.produce(1, 3)
    again = ask(world, 1, "fetch", incremental(opened.session_id, 2))()
    assert offsets_in(again.responses[0].partitions[0].records) == [0]
    # The client lost that answer: it asks for the same once more.
    again = ask(world, 1, "fetch", incremental(opened.session_id, 3))()
    assert offsets_in(again.responses[0].partitions[0].records) == [0]
    moved = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
    waiting = ask(world, 1, "fetch", incremental(opened.session_id, 4, moved, max_wait_ms=1_000))
    assert waiting() is None
    world.produce(1)
    assert offsets_in(waiting().responses[0].partitions[0].records) == [3]
    world.nodes[1].check()


def test_sessions_refuse_what_does_not_fit(world: Any) -> None:
    world.create(replicas=(1,))
    first = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    opened = ask(world, 1, "fetch", incremental(0, 0, first))()
    wrong = ask(world, 1, "fetch", incremental(opened.session_id, 2))()
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = ask(world, 1, "fetch", incremental(opened.session_id + 1, 1))()
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    by_id = ask(world, 1, "fetch", incremental(opened.session_id, 1), version=13)()
    assert by_id.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    closed = ask(world, 1, "fetch", incremental(opened.session_id, -1))()
    assert closed.session_id == 0
    gone = ask(world, 1, "fetch", incremental(opened.session_id, 1))()
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("min_bytes", [1, 100])
def test_a_consumer_that_comes_between_append_and_commit_hears_of_the_commit_at_once(
    world: Any, min_bytes: int
) -> None:
    """It waits for records that were there when it came, and that it might not see yet."""
    world.create()
    world.run(1_000)
    world.cut = {2, 3}
    world.produce(1, 40, acks=1)
    answer = world.consume(1, 0, max_wait_ms=30_000, min_bytes=min_bytes)
    assert answer() is None
    world.cut = set()
    world.run(2_000)
    assert answer() is not None
    assert offsets_in(answer().records) == [0]


@pytest.mark.parametrize("version", [12, 17])
def test_a_fetch_that_bears_the_brokers_own_id_is_refused(world: Any, version: int) -> None:
    """A client may say that it is any broker, also this one."""
    world.create()
    topic = FetchTopic(topic="t", topic_id=AT.topic_id, partitions=(FetchPartition(partition=0),))
    request = FetchRequest(replica_id=1, replica_state=ReplicaState(1, 101), topics=(topic,))
    (row,) = ask(world, 1, "fetch", request, version)().responses[0].partitions
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
