"""Metadata (key 3): brokers, topics, leaders."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    Primitive,
    String,
    UuidField,
    V,
    message,
)

OPERATIONS_UNKNOWN = -(1 << 31)


class MetadataRequestTopic(Group, frozen=True):
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    name: Annotated[str | None, Primitive("string"), Nullable("10+")] = ""


@message(key=3, kind="request", versions="0-13", flexible="9+")
class MetadataRequest(Message, frozen=True):
    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, Nullable("1+")] = ()
    allow_auto_topic_creation: Annotated[Bool, V("4+")] = True
    include_cluster_authorized_operations: Annotated[Bool, V("8-10")] = False
    include_topic_authorized_operations: Annotated[Bool, V("8+")] = False


class MetadataResponseBroker(Group, frozen=True):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[NullableString, V("1+")] = None


class MetadataResponsePartition(Group, frozen=True):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, V("7+")] = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    offline_replicas: Annotated[tuple[Int32, ...], V("5+")] = ()


class MetadataResponseTopic(Group, frozen=True):
    error_code: Int16 = 0
    name: Annotated[str | None, Primitive("string"), Nullable("12+")] = ""
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    is_internal: Annotated[Bool, V("1+")] = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: Annotated[Int32, V("8+")] = OPERATIONS_UNKNOWN


@message(key=3, kind="response", versions="0-13", flexible="9+")
class MetadataResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("3+")] = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: Annotated[NullableString, V("2+")] = None
    controller_id: Annotated[Int32, V("1+")] = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: Annotated[Int32, V("8-10")] = OPERATIONS_UNKNOWN
    error_code: Annotated[Int16, V("13+")] = 0
