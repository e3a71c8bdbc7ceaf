"""ListOffsets (key 2): an offset by timestamp, or by one of the negative timestamps that name an end of the log."""

from typing import Annotated

from strandline.wire.schema import Group, Int8, Int16, Int32, Int64, Message, String, V, message

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5


class ListOffsetsPartition(Group, frozen=True):
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, V("4+")] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[ListOffsetsPartition, ...] = ()


@message(key=2, kind="request", versions="1-11", flexible="6+")
class ListOffsetsRequest(Message, frozen=True):
    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, V("2+")] = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: Annotated[Int32, V("10+")] = 0


class ListOffsetsPartitionResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Annotated[Int64, V("1+")] = -1
    offset: Annotated[Int64, V("1+")] = -1
    leader_epoch: Annotated[Int32, V("4+")] = -1


class ListOffsetsTopicResponse(Group, frozen=True):
    name: String = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


@message(key=2, kind="response", versions="1-11", flexible="6+")
class ListOffsetsResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("2+")] = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
