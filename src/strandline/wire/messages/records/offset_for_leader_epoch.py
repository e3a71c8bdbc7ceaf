"""OffsetForLeaderEpoch (key 23): where an epoch ended (KIP-320)."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Int64, Message, String, V, message


class OffsetForLeaderPartition(Group, frozen=True):
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Group, frozen=True):
    topic: String = ""
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


@message(key=23, kind="request", versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message, frozen=True):
    replica_id: Annotated[Int32, V("3+")] = -2
    topics: tuple[OffsetForLeaderTopic, ...] = ()


class EpochEndOffset(Group, frozen=True):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Group, frozen=True):
    topic: String = ""
    partitions: tuple[EpochEndOffset, ...] = ()


@message(key=23, kind="response", versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()
