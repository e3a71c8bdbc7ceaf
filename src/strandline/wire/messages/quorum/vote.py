"""Vote (key 52): a candidate of the metadata quorum asks for a vote, or for a pre-vote (KIP-595, KIP-996)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int16,
    Int32,
    Int64,
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
    replica_epoch: Int32 = 0
    replica_id: Int32 = 0
    replica_directory_id: Annotated[UuidField, V("1+")] = ZERO_UUID
    voter_directory_id: Annotated[UuidField, V("1+")] = ZERO_UUID
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    pre_vote: Annotated[Bool, V("2+")] = False


class TopicData(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionData, ...] = ()


@message(key=52, kind="request", versions="0-2", flexible="0+")
class VoteRequest(Message, frozen=True):
    cluster_id: NullableString = None
    voter_id: Annotated[Int32, V("1+")] = -1
    topics: tuple[TopicData, ...] = ()


class PartitionDataResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    vote_granted: Bool = False


class TopicDataResponse(Group, frozen=True):
    topic_name: String = ""
    partitions: tuple[PartitionDataResponse, ...] = ()


class NodeEndpoint(Group, frozen=True):
    node_id: Annotated[Int32, V("1+")] = 0
    host: Annotated[String, V("1+")] = ""
    port: Annotated[UInt16, V("1+")] = 0


@message(key=52, kind="response", versions="0-2", flexible="0+")
class VoteResponse(Message, frozen=True):
    error_code: Int16 = 0
    topics: tuple[TopicDataResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], V("1+"), Tag(0)] = ()
