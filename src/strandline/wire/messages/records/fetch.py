"""Fetch (key 1): read batches; followers, consumers and the metadata quorum all use it (KIP-227 sessions, KIP-595)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    Records,
    String,
    Tag,
    UuidField,
    V,
    message,
)

NO_HIGH_WATERMARK = (1 << 63) - 1  # a fetch that does not say what it knows


class ReplicaState(Group, frozen=True):
    replica_id: Annotated[Int32, V("15+")] = -1
    replica_epoch: Annotated[Int64, V("15+")] = -1


class FetchPartition(Group, frozen=True):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, V("9+")] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, V("12+")] = -1
    log_start_offset: Annotated[Int64, V("5+")] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[UuidField, V("17+"), Tag(0)] = ZERO_UUID
    high_watermark: Annotated[Int64, V("18+"), Tag(1)] = NO_HIGH_WATERMARK


class FetchTopic(Group, frozen=True):
    topic: Annotated[String, V("0-12")] = ""
    topic_id: Annotated[UuidField, V("13+")] = ZERO_UUID
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Group, frozen=True):
    topic: Annotated[String, V("7-12")] = ""
    topic_id: Annotated[UuidField, V("13+")] = ZERO_UUID
    partitions: Annotated[tuple[Int32, ...], V("7+")] = ()


@message(key=1, kind="request", versions="4-18", flexible="12+")
class FetchRequest(Message, frozen=True):
    cluster_id: Annotated[NullableString, V("12+"), Tag(0)] = None
    replica_id: Annotated[Int32, V("0-14")] = -1
    replica_state: Annotated[ReplicaState, V("15+"), Tag(1)] = ReplicaState()
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Annotated[Int32, V("3+")] = 0x7FFFFFFF
    isolation_level: Annotated[Int8, V("4+")] = 0
    session_id: Annotated[Int32, V("7+")] = 0
    session_epoch: Annotated[Int32, V("7+")] = -1
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], V("7+")] = ()
    rack_id: Annotated[String, V("11+")] = ""


class EpochEndOffset(Group, frozen=True):
    epoch: Annotated[Int32, V("12+")] = -1
    end_offset: Annotated[Int64, V("12+")] = -1


class LeaderIdAndEpoch(Group, frozen=True):
    leader_id: Annotated[Int32, V("12+")] = -1
    leader_epoch: Annotated[Int32, V("12+")] = -1


class SnapshotId(Group, frozen=True):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Group, frozen=True):
    producer_id: Annotated[Int64, V("4+")] = 0
    first_offset: Annotated[Int64, V("4+")] = 0


class PartitionData(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Annotated[Int64, V("4+")] = -1
    log_start_offset: Annotated[Int64, V("5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset, V("12+"), Tag(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, V("12+"), Tag(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, V("12+"), Tag(2)] = SnapshotId()
    # Of our own, for followers: no gap that a cleaner made ends behind this offset. −1: what is missing is damage.
    gaps_end: Annotated[Int64, V("12+"), Tag(10_000)] = -1
    aborted_transactions: Annotated[tuple[AbortedTransaction, ...] | None, V("4+"), Nullable("4+")] = ()
    preferred_read_replica: Annotated[Int32, V("11+")] = -1
    records: Records = None


class FetchableTopicResponse(Group, frozen=True):
    topic: Annotated[String, V("0-12")] = ""
    topic_id: Annotated[UuidField, V("13+")] = ZERO_UUID
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Group, frozen=True):
    node_id: Annotated[Int32, V("16+")] = 0
    host: Annotated[String, V("16+")] = ""
    port: Annotated[Int32, V("16+")] = 0
    rack: Annotated[NullableString, V("16+")] = None


@message(key=1, kind="response", versions="4-18", flexible="12+")
class FetchResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Annotated[Int16, V("7+")] = 0
    session_id: Annotated[Int32, V("7+")] = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], V("16+"), Tag(0)] = ()
