"""The answer to a request of which nothing is permitted, in each response's own form."""

from collections.abc import Callable
from typing import Any

from strandline.base.errors import ErrorCode, message_of
from strandline.broker.refusals import refusal_of
from strandline.controller.refusals import REFUSALS
from strandline.wire.api import api_of
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest
from strandline.wire.messages.groups.find_coordinator import Coordinator
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.messages.own.get_replica_log_info import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    PartitionLogInfo,
    TopicPartitionLogInfo,
    TopicPartitions,
)
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.messages.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.schema import Message

BATCHED_TXNS_SINCE = 4
NOBODY_AT = -1


def refused_whole(request: Any, error: ErrorCode, version: int) -> Message | None:
    """None: no answer may be sent (Produce with acks=0)."""
    assert error is not ErrorCode.NONE
    form = FORMS.get(type(request))
    if form is not None:
        return form(request, error, version)
    if type(request) in REFUSALS or isinstance(request, DescribeQuorumRequest):
        response: Message = refusal_of(request, error)
        return response
    answer = api_of(request).response
    assert "error_code" in answer.__struct_fields__, f"{type(request).__name__} has a form of its own"
    message = {"error_message": message_of(error)} if "error_message" in answer.__struct_fields__ else {}
    return answer(error_code=error, **message)


# --- rows of one topic, or one key


def produced(topic: TopicProduceData, error: ErrorCode) -> TopicProduceResponse:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        PartitionProduceResponse(index=p.index, error_code=error, base_offset=-1, error_message=message_of(error))
        for p in topic.partition_data
    )
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)


def committed(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error) for p in topic.partitions
    )
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def committed_in_txn(topic: TxnOffsetCommitRequestTopic, error: ErrorCode) -> TxnOffsetCommitResponseTopic:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error) for p in topic.partitions
    )
    return TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def described_log(topic: TopicPartitions, error: ErrorCode) -> TopicPartitionLogInfo:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    rows = tuple(
        PartitionLogInfo(partition=index, error_code=error, error_message=message_of(error))
        for index in topic.partitions
    )
    return TopicPartitionLogInfo(topic_id=topic.topic_id, partition_log_info=rows)


def not_found(key: str, error: ErrorCode) -> Coordinator:
    assert error is not ErrorCode.NONE, "a row without an error would look like success"
    return Coordinator(
        key=key, node_id=NOBODY_AT, host="", port=NOBODY_AT, error_code=error, error_message=message_of(error)
    )


# --- whole answers


def refuse_produce(request: ProduceRequest, error: ErrorCode, version: int) -> ProduceResponse | None:
    del version
    return ProduceResponse(responses=tuple(produced(t, error) for t in request.topic_data)) if request.acks else None


def refuse_commit(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    del version
    return OffsetCommitResponse(topics=tuple(committed(topic, error) for topic in request.topics))


def refuse_txn_commit(request: TxnOffsetCommitRequest, error: ErrorCode, version: int) -> TxnOffsetCommitResponse:
    del version
    return TxnOffsetCommitResponse(topics=tuple(committed_in_txn(topic, error) for topic in request.topics))


def refuse_adding(request: AddPartitionsToTxnRequest, error: ErrorCode, version: int) -> AddPartitionsToTxnResponse:
    """The form of brokers has an error of its own, that of clients has one for each partition."""
    if version >= BATCHED_TXNS_SINCE:
        return AddPartitionsToTxnResponse(error_code=error)
    rows = tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                for index in topic.partitions
            ),
        )
        for topic in request.v3_and_below_topics
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


def refuse_markers(request: WriteTxnMarkersRequest, error: ErrorCode, version: int) -> WriteTxnMarkersResponse:
    del version
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


def refuse_moves(request: AlterReplicaLogDirsRequest, error: ErrorCode, version: int) -> AlterReplicaLogDirsResponse:
    del version
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index in topic.partitions
                ),
            )
            for wanted in request.dirs
            for topic in wanted.topics
        )
    )


def refuse_log_info(request: GetReplicaLogInfoRequest, error: ErrorCode, version: int) -> GetReplicaLogInfoResponse:
    """It has no error of its own: who asks for all, and may see none, sees none."""
    del version
    rows = tuple(described_log(topic, error) for topic in request.topic_partitions or ())
    return GetReplicaLogInfoResponse(topic_partition_log_info_list=rows)


def refuse_producer_id(request: InitProducerIdRequest, error: ErrorCode, version: int) -> InitProducerIdResponse:
    del request, version
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


FORMS: dict[type, Callable[[Any, ErrorCode, int], Message | None]] = {
    ProduceRequest: refuse_produce,
    OffsetCommitRequest: refuse_commit,
    TxnOffsetCommitRequest: refuse_txn_commit,
    AddPartitionsToTxnRequest: refuse_adding,
    WriteTxnMarkersRequest: refuse_markers,
    AlterReplicaLogDirsRequest: refuse_moves,
    GetReplicaLogInfoRequest: refuse_log_info,
    InitProducerIdRequest: refuse_producer_id,
}
