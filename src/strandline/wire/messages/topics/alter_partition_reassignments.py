"""AlterPartitionReassignments (key 45): give partitions other replicas; null replicas cancel (KIP-455)."""

from typing import Annotated

from strandline.wire.schema import Bool, Group, Int16, Int32, Message, Nullable, NullableString, String, V, message


class ReassignablePartition(Group, frozen=True):
    partition_index: Int32 = 0
    replicas: Annotated[tuple[Int32, ...] | None, Nullable()] = None


class ReassignableTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[ReassignablePartition, ...] = ()


@message(key=45, kind="request", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message, frozen=True):
    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[Bool, V("1+")] = True
    topics: tuple[ReassignableTopic, ...] = ()


class ReassignablePartitionResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None


class ReassignableTopicResponse(Group, frozen=True):
    name: String = ""
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


@message(key=45, kind="response", versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Bool, V("1+")] = True
    error_code: Int16 = 0
    error_message: NullableString = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
