"""What clients see: acks, long polls, limits, sessions, offsets, deletion of records."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, START

from strandline.base.effects import Caller, Close, Effect, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.base.ports import Buffer
from strandline.metadata import records as r
from strandline.wire.batch import batches, build
from strandline.wire.compress import Codec
from strandline.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CALLER = Caller("client", "127.0.0.1", "PLAINTEXT")


def offsets_in(records: Any) -> list[int]:
    parts: tuple[Buffer, ...] = records if isinstance(records, tuple) else (records,)
    return [header.base_offset for header in batches(b"".join(parts))]


def ask(world: Any, node: int, name: str, request: Any, version: int = 7) -> Any:
    to = world.to(version)
    effects = getattr(world.nodes[node], name)(to, CALLER, request, world.now)
    world.perform(NodeId(node), effects)
    return lambda: world.answers.get(to.correlation_id)


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
    logs = [world.nodes[node].host.named("t", 0).log for node in (1, 2, 3)]
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

    def then(error: ErrorCode, base_offset: int) -> list[Effect]:
        done.append((error, base_offset))
        return []

    batch = bytearray(build([(0, None, b"v", ())]))
    world.perform(NodeId(1), world.nodes[1].append_internal("t", 0, batch, world.now, then))
    assert done == []
    world.cut = set()
    world.run(3_000)
    assert done == [(ErrorCode.NONE, 0)]
    assert world.nodes[1].high_watermark("t", 0) == 1
    assert offsets_in(world.nodes[1].read_internal("t", 0, 0, 1 << 20).buffers) == [0]
    assert world.nodes[1].leads("t", 0) == 0
    assert world.nodes[2].leads("t", 0) is None
    world.perform(NodeId(2), world.nodes[2].append_internal("t", 0, batch, world.now, then))
    assert done[1:] == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


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


# --- offsets


def list_offset(
    world: Any, timestamp: int, node: int = 1, version: int = 11, replica: int = -1, isolation: int = 0
) -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="t", partitions=(asked,)),)
    request = ListOffsetsRequest(replica_id=replica, isolation_level=isolation, topics=topics)
    return ask(world, node, "list_offsets", request, version=version)().topics[0].partitions[0]


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_timestamp_is_refused_in_versions_that_did_not_have_it(
    world: Any, timestamp: int, since: int
) -> None:
    world.create(replicas=(1,))
    world.produce(1)
    assert list_offset(world, timestamp, version=since - 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(world, timestamp, version=since).error_code == ErrorCode.NONE


def test_offsets_by_name_and_by_time(world: Any) -> None:
    world.create(replicas=(1,))
    for at in (100, 200, 300):
        world.produce(1, batch=build([(world.now - 1_000 + at, None, b"v", ())]))
    assert list_offset(world, -1).offset == 3
    assert list_offset(world, -2).offset == 0
    assert list_offset(world, world.now - 1_000 + 150).offset == 1
    assert list_offset(world, world.now).offset == -1
    assert (list_offset(world, -3).offset, list_offset(world, -3).timestamp) == (2, world.now - 700)
    assert list_offset(world, -9).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_new_leader_does_not_name_an_end_that_may_lie_before_the_old_one(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.cut = {1}  # 2 has the records, and was not yet told that they are committed
    world.change(leader=2, isr=(2, 1), skip=(1,))
    assert world.row(2)[2:4] == (0, 3)
    assert list_offset(world, -1, node=2).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(world, -1, node=2, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert list_offset(world, -1, node=2, replica=3).offset == 3  # replicas ask for the log's end
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert list_offset(world, -1, node=2).offset == 3


@pytest.mark.parametrize("isolation", [0, 1])
def test_a_time_whose_record_a_new_leader_has_not_committed_yet_is_not_answered_with_nothing(
    world: Any, isolation: int
) -> None:
    """ "None" sends a consumer to the end, past records that the leader before has committed and shown."""
    world.create(replicas=(1, 2))
    world.run(1_000)
    times = [world.now - 900, world.now - 800]
    world.produce(1, batch=build([(times[0], None, b"v", ())]))
    world.run(1_000)
    world.produce(1, batch=build([(times[1], None, b"v", ())]))
    world.cut = {1}
    world.change(leader=2, isr=(2, 1), skip=(1,))
    assert world.row(2)[2:4] == (1, 2)

    def found(timestamp: int, version: int = 11) -> tuple[int, int]:
        row = list_offset(world, timestamp, node=2, version=version, isolation=isolation)
        return row.error_code, row.offset

    assert found(times[0]) == (ErrorCode.NONE, 0)  # what is committed is found
    assert found(times[1]) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert found(-3) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert found(times[1], version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert found(times[1] + 1) == (ErrorCode.NONE, -1)  # there is none, in no log that may be committed
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert found(times[1]) == (ErrorCode.NONE, 1)


def test_a_time_beyond_the_high_watermark_of_a_settled_leader_has_no_record_yet(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.cut = {2}
    world.produce(1, batch=build([(world.now, None, b"v", ())]))
    row = list_offset(world, world.now)
    assert (row.error_code, row.offset) == (ErrorCode.NONE, -1)
    assert list_offset(world, world.now, replica=2).offset == 0


def test_who_debugs_asks_any_replica_and_sees_its_log_to_the_end(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    world.cut = {2}
    world.produce(1, batch=build([(world.now, None, b"v", ())]))
    assert (world.row(1)[2:4], world.row(2)[2:4]) == ((3, 4), (3, 3))
    assert [list_offset(world, -1, node=node, replica=-2).offset for node in (1, 2)] == [4, 3]
    assert list_offset(world, world.now, replica=-2).offset == 3
    assert list_offset(world, -1).offset == 3  # a consumer sees no further than what is committed
    for replica in (-1, -3, 1):
        assert list_offset(world, -1, node=2, replica=replica).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.change(leader=2, isr=(2, 1), skip=(1,))
    assert list_offset(world, -1, node=2).error_code == ErrorCode.NONE
    assert list_offset(world, -1, node=1, replica=-2).offset == 4  # as it was before it heard of that


def test_who_debugs_fetches_as_a_consumer_does(world: Any) -> None:
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


def test_the_end_of_an_epoch(world: Any) -> None:
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.run(1_000)
    world.change(leader=2)
    world.produce(2, 2)
    world.run(1_000)
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=1, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(asked,)),))
    row = ask(world, 2, "offsets_for_leader_epoch", request, version=4)().topics[0].partitions[0]
    assert (row.leader_epoch, row.end_offset) == (0, 3)


# --- deletion


def delete_to(world: Any, offset: int, timeout_ms: int = 10_000) -> Any:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(timeout_ms=timeout_ms, topics=(DeleteRecordsTopic(name="t", partitions=(asked,)),))
    answer = ask(world, 1, "delete_records", request, version=2)
    return lambda: None if answer() is None else answer().topics[0].partitions[0]


def test_records_are_deleted_when_all_live_replicas_have_done_it(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.produce(1, 2)
    world.run(1_000)
    answer = delete_to(world, 2)
    world.run(1_000)
    assert (answer().error_code, answer().low_watermark) == (ErrorCode.NONE, 2)
    assert [world.nodes[n].host.named("t", 0).log.log_start_offset for n in (1, 2, 3)] == [2, 2, 2]
    assert world.consume(1, 0)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleting_what_is_deleted_already_tells_where_the_log_starts(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 2)
    world.produce(1, 2)
    for offset in (3, 1):
        answer = delete_to(world, offset)
        assert (answer().error_code, answer().low_watermark) == (ErrorCode.NONE, 3)


def test_deletion_waits_for_a_silent_replica_until_its_time_is_over(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.cut = {3}
    answer = delete_to(world, -1, timeout_ms=2_000)
    world.run(1_999)
    assert answer() is None
    world.run(1)
    assert answer().error_code == ErrorCode.REQUEST_TIMED_OUT


def test_uncommitted_records_cannot_be_deleted(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 2)
    assert delete_to(world, 3)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# --- internal and compacted topics


def internal(world: Any) -> None:
    world.commit(
        r.TopicRecord(name=OFFSETS_TOPIC, topic_id=AT.topic_id),
        r.PartitionRecord(
            partition_id=0, topic_id=AT.topic_id, replicas=(1,), isr=(1,), leader=1, directories=(bytes([1]) * 16,)
        ),
    )


def written_by(world: Any, client: str) -> ErrorCode:
    batch = memoryview(bytearray(build([(0, b"k", b"v", ())])))
    data = (TopicProduceData(name=OFFSETS_TOPIC, partition_data=(PartitionProduceData(index=0, records=batch),)),)
    to = world.to()
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=data)
    world.perform(NodeId(1), world.nodes[1].produce(to, Caller(client, "h", "PLAINTEXT"), request, world.now))
    (row,) = world.answers[to.correlation_id].responses[0].partition_responses
    return ErrorCode(row.error_code)


def test_clients_do_not_write_the_coordinators_records(world: Any) -> None:
    """Forged offsets would be believed. Kafka lets a client that calls itself its admin client do it."""
    internal(world)
    assert written_by(world, "client") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.nodes[1].host.find(AT).log.log_end_offset == 0
    assert written_by(world, "__admin_client") is ErrorCode.NONE


def deleted(world: Any, topic: str) -> ErrorCode:
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),), timeout_ms=1000)
    answer = ask(world, 1, "delete_records", request, 2)
    world.run(2000)
    return ErrorCode(answer().topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("policy", "error"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE), ("delete", ErrorCode.NONE)],
)
def test_records_of_a_log_that_is_only_compacted_are_not_deleted(world: Any, policy: str, error: ErrorCode) -> None:
    world.create(cleanup_policy=policy)
    world.run(500)
    world.produce(1, batch=build([(START, b"k", b"v", ())]))
    world.run(500)
    assert deleted(world, "t") is error


def test_records_of_an_internal_topic_are_not_deleted(world: Any) -> None:
    internal(world)
    written_by(world, "__admin_client")
    assert deleted(world, OFFSETS_TOPIC) is ErrorCode.INVALID_TOPIC_EXCEPTION
