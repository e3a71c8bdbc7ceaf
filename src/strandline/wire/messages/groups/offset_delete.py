"""OffsetDelete (key 47): committed offsets of a group are deleted (KIP-496)."""

from strandline.wire.schema import Group, Int16, Int32, Message, String, message


class OffsetDeleteRequestPartition(Group, frozen=True):
    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[OffsetDeleteRequestPartition, ...] = ()


@message(key=47, kind="request", versions="0")
class OffsetDeleteRequest(Message, frozen=True):
    group_id: String = ""
    topics: tuple[OffsetDeleteRequestTopic, ...] = ()


class OffsetDeleteResponsePartition(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@message(key=47, kind="response", versions="0")
class OffsetDeleteResponse(Message, frozen=True):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
