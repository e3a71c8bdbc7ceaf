"""The refused rows of requests that are a list of topics, each with its partitions."""

from typing import Any

from strandline.base.errors import ErrorCode, message_of
from strandline.wire.messages.records.delete_records import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from strandline.wire.messages.records.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from strandline.wire.messages.records.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderTopicResult
from strandline.wire.messages.transactions.describe_producers import PartitionResponse, TopicResponse


def listed_offsets(topic: Any, error: ErrorCode) -> ListOffsetsTopicResponse:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=error) for p in topic.partitions
    )
    return ListOffsetsTopicResponse(name=topic.name, partitions=rows)


def deleted_records(topic: Any, error: ErrorCode) -> DeleteRecordsTopicResult:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        DeleteRecordsPartitionResult(partition_index=p.partition_index, low_watermark=-1, error_code=error)
        for p in topic.partitions
    )
    return DeleteRecordsTopicResult(name=topic.name, partitions=rows)


def end_offsets(topic: Any, error: ErrorCode) -> OffsetForLeaderTopicResult:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(EpochEndOffset(partition=p.partition, error_code=error) for p in topic.partitions)
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows)


def producers(topic: Any, error: ErrorCode) -> TopicResponse:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        PartitionResponse(partition_index=index, error_code=error, error_message=message_of(error))
        for index in topic.partition_indexes
    )
    return TopicResponse(name=topic.name, partitions=rows)
