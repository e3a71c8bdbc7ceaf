"""The whole-request refusal of every API that the controller serves, in that response's form."""

from collections.abc import Callable
from typing import Any

from strandline.base.errors import ErrorCode, message_of
from strandline.controller.basis import Refusal
from strandline.controller.security.acls import create_acls_refused, delete_acls_refused
from strandline.controller.security.quotas import refuse_alter_quotas
from strandline.controller.security.scram import refuse_alter_credentials
from strandline.wire.messages.brokers.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from strandline.wire.messages.cluster import alter_configs
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from strandline.wire.messages.cluster.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest, AcknowledgeLossesResponse
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from strandline.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from strandline.wire.messages.security.create_acls import CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsRequest
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from strandline.wire.messages.topics.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from strandline.wire.messages.topics.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.topics.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from strandline.wire.messages.topics.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def refusal(request: Any, error: ErrorCode) -> Any:
    """The response to a request of which nothing was done."""
    assert error is not ErrorCode.NONE
    return REFUSALS[type(request)](request, error)


def refuse_create_topics(request: CreateTopicsRequest, error: ErrorCode) -> CreateTopicsResponse:
    assert error is not ErrorCode.NONE
    return CreateTopicsResponse(
        topics=tuple(
            CreatableTopicResult(name=t.name, error_code=error, error_message=message_of(error)) for t in request.topics
        )
    )


def refuse_delete_topics(request: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    assert error is not ErrorCode.NONE
    states = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(name=s.name, topic_id=s.topic_id, error_code=error, error_message=message_of(error))
            for s in states
        )
    )


def refuse_create_partitions(request: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    assert error is not ErrorCode.NONE
    return CreatePartitionsResponse(
        results=tuple(
            CreatePartitionsTopicResult(name=t.name, error_code=error, error_message=message_of(error))
            for t in request.topics
        )
    )


def refuse_alter_configs(request: IncrementalAlterConfigsRequest, error: ErrorCode) -> IncrementalAlterConfigsResponse:
    assert error is not ErrorCode.NONE
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message_of(error),
                resource_type=r.resource_type,
                resource_name=r.resource_name,
            )
            for r in request.resources
        )
    )


def refuse_replace_configs(request: AlterConfigsRequest, error: ErrorCode) -> AlterConfigsResponse:
    assert error is not ErrorCode.NONE
    return AlterConfigsResponse(
        responses=tuple(
            alter_configs.AlterConfigsResourceResponse(
                error_code=error,
                error_message=message_of(error),
                resource_type=r.resource_type,
                resource_name=r.resource_name,
            )
            for r in request.resources
        )
    )


def refuse_unregistration(request: UnregisterBrokerRequest, error: ErrorCode) -> UnregisterBrokerResponse:
    assert error is not ErrorCode.NONE
    return UnregisterBrokerResponse(error_code=error, error_message=message_of(error))


def refuse_elections(request: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    """Version 0 has no error of its own, only those of the partitions."""
    assert error is not ErrorCode.NONE
    results = tuple(
        ReplicaElectionResult(
            topic=row.topic,
            partition_result=tuple(
                PartitionResult(partition_id=index, error_code=error, error_message=message_of(error))
                for index in row.partitions
            ),
        )
        for row in request.topic_partitions or ()
    )
    return ElectLeadersResponse(error_code=error, replica_election_results=results)


REFUSALS: dict[type, Callable[[Any, ErrorCode], Any]] = {
    AcknowledgeLossesRequest: lambda _, error: AcknowledgeLossesResponse(
        error_code=error, error_message=message_of(error)
    ),
    CreateTopicsRequest: refuse_create_topics,
    DeleteTopicsRequest: refuse_delete_topics,
    CreatePartitionsRequest: refuse_create_partitions,
    IncrementalAlterConfigsRequest: refuse_alter_configs,
    UnregisterBrokerRequest: refuse_unregistration,
    UpdateFeaturesRequest: lambda _, error: UpdateFeaturesResponse(error_code=error, error_message=message_of(error)),
    CreateAclsRequest: lambda request, error: create_acls_refused(request, Refusal(error, message_of(error))),
    DeleteAclsRequest: lambda request, error: delete_acls_refused(request, Refusal(error, message_of(error))),
    BrokerRegistrationRequest: lambda _, error: BrokerRegistrationResponse(error_code=error),
    BrokerHeartbeatRequest: lambda _, error: BrokerHeartbeatResponse(error_code=error),
    AlterConfigsRequest: refuse_replace_configs,
    AlterPartitionRequest: lambda _, error: AlterPartitionResponse(error_code=error),
    AlterPartitionReassignmentsRequest: lambda _, error: AlterPartitionReassignmentsResponse(
        error_code=error, error_message=message_of(error)
    ),
    ListPartitionReassignmentsRequest: lambda _, error: ListPartitionReassignmentsResponse(
        error_code=error, error_message=message_of(error)
    ),
    ElectLeadersRequest: refuse_elections,
    AssignReplicasToDirsRequest: lambda _, error: AssignReplicasToDirsResponse(error_code=error),
    AllocateProducerIdsRequest: lambda _, error: AllocateProducerIdsResponse(error_code=error),
    AlterClientQuotasRequest: refuse_alter_quotas,
    AlterUserScramCredentialsRequest: refuse_alter_credentials,
}
