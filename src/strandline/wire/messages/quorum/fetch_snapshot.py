"""FetchSnapshot (key 59): a snapshot of the metadata log, piece by piece (KIP-630)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Primitive,
    RecordsValue,
    String,
    Tag,
    UInt16,
    UuidField,
    V,
    message,
)


class SnapshotId(Group, frozen=True):
    end_offset: Int64 = 0
    epoch: Int32 = 0


class PartitionSnapshot(Group, frozen=True):
    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: SnapshotId = SnapshotId()
    position: Int64 = 0
    replica_directory_id: Annotated[UuidField, V("1+"), Tag(0)] = ZERO_UUID


class TopicSnapshot(Group, frozen=True):
    name: String = ""
    partitions: tuple[PartitionSnapshot, ...] = ()


@message(key=59, kind="request", versions="0-1", flexible="0+")
class FetchSnapshotRequest(Message, frozen=True):
    cluster_id: Annotated[NullableString, Tag(0)] = None
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF
    topics: tuple[TopicSnapshot, ...] = ()


class LeaderIdAndEpoch(Group, frozen=True):
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class PartitionSnapshotResponse(Group, frozen=True):
    """`unaligned_records` may begin and end within a batch."""

    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: SnapshotId = SnapshotId()
    current_leader: Annotated[LeaderIdAndEpoch, Tag(0)] = LeaderIdAndEpoch()
    size: Int64 = 0
    position: Int64 = 0
    unaligned_records: Annotated[RecordsValue, Primitive("records")] = b""


class TopicSnapshotResponse(Group, frozen=True):
    name: String = ""
    partitions: tuple[PartitionSnapshotResponse, ...] = ()


class NodeEndpoint(Group, frozen=True):
    node_id: Annotated[Int32, V("1+")] = 0
    host: Annotated[String, V("1+")] = ""
    port: Annotated[UInt16, V("1+")] = 0


@message(key=59, kind="response", versions="0-1", flexible="0+")
class FetchSnapshotResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: tuple[TopicSnapshotResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], V("1+"), Tag(0)] = ()
