"""DeleteRecords (key 21): move the start of partitions' logs."""

from strandline.wire.schema import Group, Int16, Int32, Int64, Message, String, message


class DeleteRecordsPartition(Group, frozen=True):
    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(Group, frozen=True):
    name: String = ""
    partitions: tuple[DeleteRecordsPartition, ...] = ()


@message(key=21, kind="request", versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message, frozen=True):
    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Group, frozen=True):
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Group, frozen=True):
    name: String = ""
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


@message(key=21, kind="response", versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
