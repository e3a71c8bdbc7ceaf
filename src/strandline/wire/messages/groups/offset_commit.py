"""OffsetCommit (key 8); topics go by id from version 10 on (KIP-848)."""

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
    UuidField,
    V,
    message,
)


class OffsetCommitRequestPartition(Group, frozen=True):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V("6+")] = -1
    committed_metadata: NullableString = ""


class OffsetCommitRequestTopic(Group, frozen=True):
    name: Annotated[String, V("0-9")] = ""
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()


@message(key=8, kind="request", versions="2-10", flexible="8+")
class OffsetCommitRequest(Message, frozen=True):
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("7+")] = None
    retention_time_ms: Annotated[Int64, V("2-4")] = -1
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


class OffsetCommitResponsePartition(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Group, frozen=True):
    name: Annotated[String, V("0-9")] = ""
    topic_id: Annotated[UuidField, V("10+")] = ZERO_UUID
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


@message(key=8, kind="response", versions="2-10", flexible="8+")
class OffsetCommitResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("3+")] = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
