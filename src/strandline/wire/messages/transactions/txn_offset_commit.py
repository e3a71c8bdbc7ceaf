"""TxnOffsetCommit (key 28): offsets of a group that count when the producer's transaction is committed.

Topics go by id from version 6 on (KIP-1319), which is not offered to clients.
"""

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


class TxnOffsetCommitRequestPartition(Group, frozen=True):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, V("2+")] = -1
    committed_metadata: NullableString = None


class TxnOffsetCommitRequestTopic(Group, frozen=True):
    name: Annotated[String, V("0-5")] = ""
    topic_id: Annotated[UuidField, V("6+")] = ZERO_UUID
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


@message(key=28, kind="request", versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Message, frozen=True):
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, V("3+")] = -1
    member_id: Annotated[String, V("3+")] = ""
    group_instance_id: Annotated[NullableString, V("3+")] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()


class TxnOffsetCommitResponsePartition(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Group, frozen=True):
    name: Annotated[String, V("0-5")] = ""
    topic_id: Annotated[UuidField, V("6+")] = ZERO_UUID
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


@message(key=28, kind="response", versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()
