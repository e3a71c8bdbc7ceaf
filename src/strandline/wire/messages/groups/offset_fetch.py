"""OffsetFetch (key 9): one group until version 7, then several (KIP-709); null topics ask for all."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    String,
    UuidField,
    V,
    message,
)


class OffsetFetchRequestTopic(Group, frozen=True):
    name: String = ""
    partition_indexes: tuple[Int32, ...] = ()


class OffsetFetchRequestTopics(Group, frozen=True):
    name: Annotated[String, V("8-9")] = ""
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    partition_indexes: tuple[Int32, ...] = ()


class OffsetFetchRequestGroup(Group, frozen=True):
    group_id: String = ""
    member_id: Annotated[NullableString, V("9+")] = None
    member_epoch: Annotated[Int32, V("9+")] = -1
    topics: Annotated[tuple[OffsetFetchRequestTopics, ...] | None, Nullable("8+")] = ()


@message(key=9, kind="request", versions="1-10", flexible="6+")
class OffsetFetchRequest(Message, frozen=True):
    group_id: Annotated[String, V("0-7")] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, V("0-7"), Nullable("2-7")] = ()
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], V("8+")] = ()
    require_stable: Annotated[Bool, V("7+")] = False


class OffsetFetchResponsePartition(Group, frozen=True):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V("5-7")] = -1
    metadata: NullableString = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


class OffsetFetchResponsePartitions(Group, frozen=True):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: NullableString = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Group, frozen=True):
    name: Annotated[String, V("8-9")] = ""
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()


class OffsetFetchResponseGroup(Group, frozen=True):
    group_id: String = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: Int16 = 0


@message(key=9, kind="response", versions="1-10", flexible="6+")
class OffsetFetchResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("3+")] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], V("0-7")] = ()
    error_code: Annotated[Int16, V("2-7")] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], V("8+")] = ()
