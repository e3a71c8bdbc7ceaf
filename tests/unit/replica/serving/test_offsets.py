"""What clients ask of offsets, by name, by time and by epoch; and deletion of records."""

from typing import Any

import pytest
from tests.unit.replica.asking import ask, written_by
from tests.unit.replica.conftest import START, registration

from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, BrokerEpoch, NodeId
from strandline.metadata import records as r
from strandline.wire.batch import build
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

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


def test_a_partition_that_a_request_names_twice_is_not_searched(world: Any) -> None:
    """As in Kafka. Else one small request could ask for thousands of searches."""
    world.create(replicas=(1,))
    world.produce(1)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=0) for index in (0, 1, 0)]
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=tuple(asked)),))
    rows = ask(world, 1, "list_offsets", request, version=11)().topics[0].partitions
    errors = [ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST]
    assert [(row.partition_index, row.error_code) for row in rows] == [(0, errors[0]), (1, errors[1]), (0, errors[2])]


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


def test_a_debugging_consumer_reads_any_replica_to_its_log_end(world: Any) -> None:
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


def delete_to(world: Any, offset: int, timeout_ms: int = 10_000, topic: str = "t") -> Any:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(timeout_ms=timeout_ms, topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),))
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
    assert [world.nodes[n].host.partitions.named("t", 0).log.log_start_offset for n in (1, 2, 3)] == [2, 2, 2]
    assert world.consume(1, 0)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleting_what_is_deleted_already_reports_where_the_log_starts(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 2)
    world.produce(1, 2)
    for offset in (3, 1):
        answer = delete_to(world, offset)
        assert (answer().error_code, answer().low_watermark) == (ErrorCode.NONE, 3)


def test_deletion_waits_for_a_new_incarnation_though_the_one_before_had_deleted_it(world: Any) -> None:
    """The new incarnation may have another disk, on which the records still are."""
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    assert delete_to(world, 1)() is None
    world.run(1_000)
    world.cut = {3}
    world.nodes[NodeId(3)].broker_epoch = BrokerEpoch(500)
    world.commit(registration(NodeId(3), broker_epoch=500))
    answer = delete_to(world, 1)
    assert answer() is None
    world.cut = set()
    world.run(1_000)
    assert answer().error_code == ErrorCode.NONE


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


def test_deletion_does_not_wait_for_a_replica_whose_broker_is_fenced(world: Any) -> None:
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.kill(3)
    world.commit(r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=103, fenced=1))
    answer = delete_to(world, 2)
    world.run(1_000)
    assert (answer().error_code, answer().low_watermark) == (ErrorCode.NONE, 2)


def test_uncommitted_records_cannot_be_deleted(world: Any) -> None:
    world.create(replicas=(1,))
    world.produce(1, 2)
    assert delete_to(world, 3)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_the_leader_has_and_its_followers_lack_cannot_be_deleted(world: Any) -> None:
    """Else the followers' logs would begin behind records that they never had, and that may yet be cut."""
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.cut = {2, 3}
    world.produce(1, 2, acks=1)
    assert world.row(1)[2:4] == (2, 4)
    assert delete_to(world, 3)().error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert world.nodes[1].host.partitions.named("t", 0).log.log_start_offset == 0


@pytest.mark.parametrize(
    ("policy", "error"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE), ("delete", ErrorCode.NONE)],
)
def test_records_of_a_log_that_is_only_compacted_are_not_deleted(world: Any, policy: str, error: ErrorCode) -> None:
    world.create(cleanup_policy=policy)
    world.run(500)
    world.produce(1, batch=build([(START, b"k", b"v", ())]))
    world.run(500)
    answer = delete_to(world, 1)
    world.run(1_000)
    assert answer().error_code == error


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_records_of_an_internal_topic_are_not_deleted(world: Any, topic: str) -> None:
    world.create(topic, replicas=(1,))
    written_by(world, "__admin_client", topic)
    assert delete_to(world, 1, topic=topic)().error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
