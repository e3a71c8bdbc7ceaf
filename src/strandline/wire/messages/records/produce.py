"""Produce (key 0): append batches to partitions."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Group,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    Records,
    String,
    Tag,
    UuidField,
    V,
    message,
)


class PartitionProduceData(Group, frozen=True):
    index: Int32 = 0
    records: Records = None


class TopicProduceData(Group, frozen=True):
    name: Annotated[String, V("0-12")] = ""
    topic_id: Annotated[UuidField, V("13+")] = ZERO_UUID
    partition_data: tuple[PartitionProduceData, ...] = ()


@message(key=0, kind="request", versions="3-13", flexible="9+")
class ProduceRequest(Message, frozen=True):
    transactional_id: Annotated[NullableString, V("3+")] = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: tuple[TopicProduceData, ...] = ()


class BatchIndexAndErrorMessage(Group, frozen=True):
    batch_index: Annotated[Int32, V("8+")] = 0
    batch_index_error_message: Annotated[NullableString, V("8+")] = None


class LeaderIdAndEpoch(Group, frozen=True):
    leader_id: Annotated[Int32, V("10+")] = -1
    leader_epoch: Annotated[Int32, V("10+")] = -1


class PartitionProduceResponse(Group, frozen=True):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Annotated[Int64, V("2+")] = -1
    log_start_offset: Annotated[Int64, V("5+")] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], V("8+")] = ()
    error_message: Annotated[NullableString, V("8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch, V("10+"), Tag(0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Group, frozen=True):
    name: Annotated[String, V("0-12")] = ""
    topic_id: Annotated[UuidField, V("13+")] = ZERO_UUID
    partition_responses: tuple[PartitionProduceResponse, ...] = ()


class NodeEndpoint(Group, frozen=True):
    node_id: Annotated[Int32, V("10+")] = 0
    host: Annotated[String, V("10+")] = ""
    port: Annotated[Int32, V("10+")] = 0
    rack: Annotated[NullableString, V("10+")] = None


@message(key=0, kind="response", versions="3-13", flexible="9+")
class ProduceResponse(Message, frozen=True):
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], V("10+"), Tag(0)] = ()
