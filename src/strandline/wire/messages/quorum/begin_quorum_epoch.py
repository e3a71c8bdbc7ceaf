"""BeginQuorumEpoch (key 53): a new leader of the metadata quorum tells the voters (KIP-595)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int16,
    Int32,
    Message,
    NullableString,
    String,
    Tag,
    UInt16,
    UuidField,
    V,
    message,
)


class PartitionData(Group, frozen=True):
    partition_index: Int32 = 0
    voter_directory_id: Annotated[UuidField, V("1+")] = ZERO_UUID
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class TopicData(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionData, ...] = ()


class LeaderEndpoint(Group, frozen=True):
    name: Annotated[String, V("1+")] = ""
    host: Annotated[String, V("1+")] = ""
    port: Annotated[UInt16, V("1+")] = 0


@message(key=53, kind="request", versions="0-1", flexible="1+")
class BeginQuorumEpochRequest(Message, frozen=True):
    cluster_id: NullableString = None
    voter_id: Annotated[Int32, V("1+")] = -1
    topics: tuple[TopicData, ...] = ()
    leader_endpoints: Annotated[tuple[LeaderEndpoint, ...], V("1+")] = ()


class PartitionDataResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class TopicDataResponse(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionDataResponse, ...] = ()


class NodeEndpoint(Group, frozen=True):
    node_id: Annotated[Int32, V("1+")] = 0
    host: Annotated[String, V("1+")] = ""
    port: Annotated[UInt16, V("1+")] = 0


@message(key=53, kind="response", versions="0-1", flexible="1+")
class BeginQuorumEpochResponse(Message, frozen=True):
    error_code: Int16 = 0
    topics: tuple[TopicDataResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], V("1+"), Tag(0)] = ()
