"""The error answers of requests that another node should have answered, each in its response's own form."""

from collections.abc import Callable
from typing import Any

from strandline.base.errors import ErrorCode, message_of
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from strandline.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from strandline.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from strandline.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from strandline.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from strandline.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from strandline.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def create_topics(request: CreateTopicsRequest, error: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=t.name, error_code=error, error_message=message_of(error), configs=())
            for t in request.topics
        )
    )


def delete_topics(request: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    named = [DeletableTopicResult(name=name, error_code=error) for name in request.topic_names]
    states = [DeletableTopicResult(name=t.name, topic_id=t.topic_id, error_code=error) for t in request.topics]
    return DeleteTopicsResponse(responses=tuple(named + states))


def create_partitions(request: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=t.name, error_code=error, error_message=message_of(error))
            for t in request.topics
        )
    )


def alter_configs(request: IncrementalAlterConfigsRequest, error: ErrorCode) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                resource_type=r.resource_type,
                resource_name=r.resource_name,
                error_code=error,
                error_message=message_of(error),
            )
            for r in request.resources
        )
    )


REFUSALS: dict[type, Callable[[Any, ErrorCode], Any]] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    IncrementalAlterConfigsRequest: alter_configs,
    BrokerRegistrationRequest: lambda _, error: BrokerRegistrationResponse(error_code=error),
    BrokerHeartbeatRequest: lambda _, error: BrokerHeartbeatResponse(error_code=error),
    AlterPartitionRequest: lambda _, error: AlterPartitionResponse(error_code=error),
    AllocateProducerIdsRequest: lambda _, error: AllocateProducerIdsResponse(error_code=error),
    DescribeQuorumRequest: lambda _, error: DescribeQuorumResponse(error_code=error),
    UnregisterBrokerRequest: lambda _, error: UnregisterBrokerResponse(error_code=error),
}


def refusal_of(request: Any, error: ErrorCode) -> Any:
    """The response to `request` in which everything failed with `error`."""
    return REFUSALS[type(request)](request, error)


def error_in(response: Any) -> ErrorCode:
    """The error that a whole response failed with: its own, or the one that its first entry has."""
    match response:
        case CreateTopicsResponse(topics=(first, *_)):
            return ErrorCode(first.error_code)
        case DeleteTopicsResponse(responses=(first, *_)) | IncrementalAlterConfigsResponse(responses=(first, *_)):
            return ErrorCode(first.error_code)
        case CreatePartitionsResponse(results=(first, *_)):
            return ErrorCode(first.error_code)
        case DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic, *_)) if topic.partitions:
            return ErrorCode(topic.partitions[0].error_code)
        case _:
            return ErrorCode(getattr(response, "error_code", 0))
