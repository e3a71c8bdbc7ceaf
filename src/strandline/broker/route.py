"""Which request goes where: one row per API and listener. A request without a row is not served."""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply, in_a_line
from strandline.base.errors import ErrorCode
from strandline.base.interrupted import Interrupted
from strandline.base.time import Instant
from strandline.broker.authenticating import Authenticating
from strandline.broker.forward import Forwarding
from strandline.broker.handlers import (
    alter_replica_log_dirs,
    api_versions,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_log_dirs,
    describe_losses,
    describe_topic_partitions,
    describe_user_scram_credentials,
    find_coordinator,
    get_replica_log_info,
    metadata,
    quarantine,
)
from strandline.broker.handlers.configs import describe_configs, list_config_resources
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.broker.quotas.throttling import ClientQuotas
from strandline.broker.refusals import refusal_of
from strandline.controller.controller import Controller
from strandline.controller.partitions.manual import is_manual
from strandline.quorum.quorum import Quorum
from strandline.replica.serving.transactions.describing import describe_producers
from strandline.wire.api import API_BY_KEY
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest
from strandline.wire.messages.cluster.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest
from strandline.wire.messages.cluster.describe_log_dirs import DescribeLogDirsRequest
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest
from strandline.wire.messages.cluster.incremental_alter_configs import IncrementalAlterConfigsRequest
from strandline.wire.messages.cluster.list_config_resources import ListConfigResourcesRequest
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.cluster.update_features import UpdateFeaturesRequest
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest
from strandline.wire.messages.groups.offset_delete import OffsetDeleteRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoRequest
from strandline.wire.messages.own.quarantine import QuarantineRequest
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest
from strandline.wire.messages.records.delete_records import DeleteRecordsRequest
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.records.list_offsets import ListOffsetsRequest
from strandline.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from strandline.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from strandline.wire.messages.security.create_acls import CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsRequest
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest
from strandline.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest
from strandline.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from strandline.wire.messages.telemetry.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from strandline.wire.messages.telemetry.push_telemetry import PushTelemetryRequest
from strandline.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest
from strandline.wire.messages.topics.create_topics import CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest
from strandline.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from strandline.wire.messages.topics.elect_leaders import OWN_VERSION, UNCLEAN, ElectLeadersRequest
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from strandline.wire.messages.transactions.write_txn_markers import WriteTxnMarkersRequest


class Machines(NodePort, Protocol):
    """What a row may ask beyond a handler: the machines of a node that answer by themselves."""

    @property
    def quorum(self) -> Quorum: ...

    @property
    def controller(self) -> Controller | None: ...

    @property
    def forwarding(self) -> Forwarding: ...

    @property
    def authenticating(self) -> Authenticating: ...

    @property
    def quotas(self) -> ClientQuotas: ...

    @property
    def has_quotas(self) -> bool: ...

    completes_answers: bool


OF_BROKERS = 4  # the version of AddPartitionsToTxn from which it is a broker's

Route = Callable[[Machines, Received, Instant], list[Effect]]


def handshake(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return node.authenticating.handshake(received, now)


def authenticate(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return node.authenticating.authenticate(received, now)


def refuse_stranger(received: Received) -> list[Effect]:
    """Only nodes ask this, and the connection did not prove the cluster's secret. Nothing is done, nothing revealed."""
    response = API_BY_KEY[received.to.api_key].response
    return [Reply(received.to, response(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))]


def of_nodes(route: Route) -> Route:
    """For what only a node may ask of another (Kafka: ClusterAction on the cluster)."""

    def guarded(node: Machines, received: Received, now: Instant) -> list[Effect]:
        if not received.caller.is_node:  # guard: strangers-are-believed
            return refuse_stranger(received)
        return route(node, received, now)

    return guarded


def produce(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.produce(received.to, received.caller, received.message, now)


def fetch(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.fetch(received.to, received.caller, received.message, now)


def take_in_metadata(node: Machines, received: Received, now: Instant) -> list[Effect]:
    """Answered a moment later, by `handlers.metadata`; at once where no topic is asked for, and so no leader named."""
    if metadata.asks_for_no_topic(received.message, received.to.api_version):
        return metadata.answer(node, received, now)
    effects = metadata.create_missing(node, received, now)
    try:
        broker_of(node).suspects.take_in(received, now)
    except Exception as error:
        raise Interrupted(effects) from error
    return effects


def list_offsets(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.list_offsets(received.to, received.caller, received.message, now)


def offsets_for_leader_epoch(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.offsets_for_leader_epoch(received.to, received.caller, received.message, now)


def delete_records(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.delete_records(received.to, received.caller, received.message, now)


def init_producer_id(node: Machines, received: Received, now: Instant) -> list[Effect]:
    if received.message.transactional_id is not None:
        return to_transactions(node, received, now)
    return broker_of(node).producer_ids.init_producer_id(received.to, received.message, now)


def to_transactions(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).transactions.answer(received, now)


def add_partitions(node: Machines, received: Received, now: Instant) -> list[Effect]:
    """The form for many transactions is a broker's, on behalf of its clients (KIP-890)."""
    # guard: anybody-adds-partitions-for-brokers
    if received.to.api_version >= OF_BROKERS and not received.caller.is_node:
        return refuse_stranger(received)
    return to_transactions(node, received, now)


def write_markers(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).replicas.markers.write(received.to, received.message, now)


def producers(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return describe_producers(broker_of(node).replicas.host, received.to, received.message, now)


def telemetry(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).telemetry.answer(received, now)


def to_group(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return broker_of(node).groups.answer(received, now)


def to_quorum(node: Machines, received: Received, now: Instant) -> list[Effect]:
    return node.quorum.step(received, now)


def to_controller(node: Machines, received: Received, now: Instant) -> list[Effect]:
    if node.controller is None:
        return [Reply(received.to, refusal_of(received.message, ErrorCode.NOT_CONTROLLER))]
    if not received.caller.is_node:
        received = replace(received, message=signed(received))
    return node.controller.step(received, now)


def signed(received: Received) -> Any:
    """The message with who wants it, where that is written down: as the node knows it that a client asks, and never as
    the client says itself. A node that passes such a request on has signed it."""
    message, caller = received.message, received.caller
    if isinstance(message, ElectLeadersRequest):
        return replace(message, asked_by=caller.named)
    if isinstance(message, AcknowledgeLossesRequest):
        return replace(message, asked_by=f"{in_a_line(message.asked_by)} ({caller.named})")
    return message


def pass_on(node: Machines, received: Received, now: Instant) -> list[Effect]:
    """A client may ask any broker; the active controller answers."""
    message, version = received.message, received.to.api_version
    if isinstance(message, ElectLeadersRequest) and (is_manual(message, version) or message.election_type == UNCLEAN):
        # Who wanted what may lose records is written down, and the controller sees this node alone.
        message, version = signed(received), OWN_VERSION
    elif isinstance(message, AcknowledgeLossesRequest):
        message = signed(received)
    return node.forwarding.forward(received.to, message, version, getattr(message, "timeout_ms", None), now)


def within_quota(route: Route) -> Route:
    """The route of a request that creates or deletes partitions, for as much as the client's quota allows. It stands
    behind the gate of an authorizer: a quota says nothing about topics that the client may not see."""

    def limited(node: Machines, received: Received, now: Instant) -> list[Effect]:
        if not node.has_quotas:
            return route(node, received, now)
        allowed = node.quotas.allow(received, node.image, now)
        return allowed if isinstance(allowed, list) else route(node, allowed, now)

    return limited


pass_on_within_quota, to_controller_within_quota = within_quota(pass_on), within_quota(to_controller)


BROKER_ROUTES: dict[type, Route] = {
    SaslHandshakeRequest: handshake,
    SaslAuthenticateRequest: authenticate,
    ProduceRequest: produce,
    FetchRequest: fetch,
    ListOffsetsRequest: list_offsets,
    OffsetForLeaderEpochRequest: offsets_for_leader_epoch,
    DeleteRecordsRequest: delete_records,
    MetadataRequest: take_in_metadata,
    ApiVersionsRequest: api_versions.answer,
    DescribeClusterRequest: describe_cluster.answer,
    DescribeTopicPartitionsRequest: describe_topic_partitions.answer,
    DescribeConfigsRequest: describe_configs.answer,
    ListConfigResourcesRequest: list_config_resources.answer,
    DescribeAclsRequest: describe_acls.answer,
    CreateAclsRequest: pass_on,
    DeleteAclsRequest: pass_on,
    InitProducerIdRequest: init_producer_id,
    AlterReplicaLogDirsRequest: alter_replica_log_dirs.answer,
    DescribeLogDirsRequest: describe_log_dirs.answer,
    DescribeLossesRequest: describe_losses.answer,
    AcknowledgeLossesRequest: pass_on,
    GetReplicaLogInfoRequest: get_replica_log_info.answer,
    QuarantineRequest: of_nodes(quarantine.answer),
    FindCoordinatorRequest: find_coordinator.answer,
    ConsumerGroupHeartbeatRequest: to_group,
    ConsumerGroupDescribeRequest: to_group,
    JoinGroupRequest: to_group,
    SyncGroupRequest: to_group,
    HeartbeatRequest: to_group,
    LeaveGroupRequest: to_group,
    OffsetCommitRequest: to_group,
    OffsetFetchRequest: to_group,
    OffsetDeleteRequest: to_group,
    TxnOffsetCommitRequest: to_group,
    DescribeGroupsRequest: to_group,
    ListGroupsRequest: to_group,
    DeleteGroupsRequest: to_group,
    AddPartitionsToTxnRequest: add_partitions,
    AddOffsetsToTxnRequest: to_transactions,
    EndTxnRequest: to_transactions,
    DescribeTransactionsRequest: to_transactions,
    ListTransactionsRequest: to_transactions,
    WriteTxnMarkersRequest: write_markers,
    DescribeProducersRequest: producers,
    GetTelemetrySubscriptionsRequest: telemetry,
    PushTelemetryRequest: telemetry,
    CreateTopicsRequest: pass_on_within_quota,
    DeleteTopicsRequest: pass_on_within_quota,
    CreatePartitionsRequest: pass_on_within_quota,
    AlterConfigsRequest: pass_on,
    IncrementalAlterConfigsRequest: pass_on,
    DescribeQuorumRequest: pass_on,
    UnregisterBrokerRequest: pass_on,
    AlterPartitionReassignmentsRequest: pass_on,
    ListPartitionReassignmentsRequest: pass_on,
    ElectLeadersRequest: pass_on,
    UpdateFeaturesRequest: pass_on,
    DescribeClientQuotasRequest: describe_client_quotas.answer,
    AlterClientQuotasRequest: pass_on,
    DescribeUserScramCredentialsRequest: describe_user_scram_credentials.answer,
    AlterUserScramCredentialsRequest: pass_on,
}

CONTROLLER_ROUTES: dict[type, Route] = {
    SaslHandshakeRequest: handshake,
    SaslAuthenticateRequest: authenticate,
    ApiVersionsRequest: api_versions.answer,
    DescribeClusterRequest: describe_cluster.answer,
    DescribeConfigsRequest: describe_configs.answer,
    DescribeAclsRequest: describe_acls.answer,
    CreateAclsRequest: to_controller,
    DeleteAclsRequest: to_controller,
    VoteRequest: of_nodes(to_quorum),
    BeginQuorumEpochRequest: of_nodes(to_quorum),
    EndQuorumEpochRequest: of_nodes(to_quorum),
    FetchRequest: of_nodes(to_quorum),
    FetchSnapshotRequest: of_nodes(to_quorum),
    DescribeQuorumRequest: to_quorum,
    QuarantineRequest: of_nodes(quarantine.answer),
    BrokerRegistrationRequest: of_nodes(to_controller),
    BrokerHeartbeatRequest: of_nodes(to_controller),
    AlterPartitionRequest: of_nodes(to_controller),
    AssignReplicasToDirsRequest: of_nodes(to_controller),
    AllocateProducerIdsRequest: of_nodes(to_controller),
    UnregisterBrokerRequest: to_controller,
    AcknowledgeLossesRequest: to_controller,
    CreateTopicsRequest: to_controller_within_quota,
    DeleteTopicsRequest: to_controller_within_quota,
    CreatePartitionsRequest: to_controller_within_quota,
    AlterConfigsRequest: to_controller,
    IncrementalAlterConfigsRequest: to_controller,
    AlterPartitionReassignmentsRequest: to_controller,
    ListPartitionReassignmentsRequest: to_controller,
    ElectLeadersRequest: to_controller,
    UpdateFeaturesRequest: to_controller,
    AlterClientQuotasRequest: to_controller,
    AlterUserScramCredentialsRequest: to_controller,
}
