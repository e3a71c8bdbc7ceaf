"""DescribeQuorum (key 55): who leads the metadata quorum, and how far each replica is (KIP-642)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    String,
    UInt16,
    UuidField,
    V,
    message,
)


class PartitionData(Group, frozen=True):
    partition_index: Int32 = 0


class TopicData(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionData, ...] = ()


@message(key=55, kind="request", versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message, frozen=True):
    topics: tuple[TopicData, ...] = ()


class ReplicaState(Group, frozen=True):
    replica_id: Int32 = 0
    replica_directory_id: Annotated[UuidField, V("2+")] = ZERO_UUID
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Annotated[Int64, V("1+")] = -1
    last_caught_up_timestamp: Annotated[Int64, V("1+")] = -1


class PartitionDataResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[NullableString, V("2+")] = None
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()


class TopicDataResponse(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionDataResponse, ...] = ()


class Listener(Group, frozen=True):
    name: Annotated[String, V("2+")] = ""
    host: Annotated[String, V("2+")] = ""
    port: Annotated[UInt16, V("2+")] = 0


class Node(Group, frozen=True):
    node_id: Annotated[Int32, V("2+")] = 0
    listeners: Annotated[tuple[Listener, ...], V("2+")] = ()


@message(key=55, kind="response", versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message, frozen=True):
    error_code: Int16 = 0
    error_message: Annotated[NullableString, V("2+")] = None
    topics: tuple[TopicDataResponse, ...] = ()
    nodes: Annotated[tuple[Node, ...], V("2+")] = ()
