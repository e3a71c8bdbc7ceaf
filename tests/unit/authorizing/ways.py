"""A request of each API, and the sets of ACLs that each permit it."""

from typing import Any

from tests.unit.authorizing.one_node import (
    fetch_request,
    on_cluster,
    on_group,
    on_topic,
    on_transaction,
    produce_request,
)

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.metadata.security.acls import Acl, AclOperation
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.cluster import alter_configs as replaced
from strandline.wire.messages.cluster import incremental_alter_configs as incremental
from strandline.wire.messages.cluster.alter_configs import AlterConfigsRequest
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.cluster.describe_log_dirs import DescribeLogDirsRequest
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest
from strandline.wire.messages.cluster.incremental_alter_configs import IncrementalAlterConfigsRequest
from strandline.wire.messages.cluster.list_config_resources import ListConfigResourcesRequest
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.cluster.update_features import UpdateFeaturesRequest
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.find_coordinator import GROUP, TRANSACTION, FindCoordinatorRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.groups.sync_group import SyncGroupRequest
from strandline.wire.messages.own.acknowledge_losses import AcknowledgeLossesRequest
from strandline.wire.messages.own.quarantine import QuarantineRequest
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.records.fetch import FetchRequest, ReplicaState
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from strandline.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from strandline.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from strandline.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest
from strandline.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest
from strandline.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from strandline.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.transactions.describe_producers import DescribeProducersRequest
from strandline.wire.messages.transactions.describe_producers import TopicRequest as ProducersOf
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

Op, E = AclOperation, ErrorCode
REFUSALS = {
    E.TOPIC_AUTHORIZATION_FAILED,
    E.GROUP_AUTHORIZATION_FAILED,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
T, G, C, X = (
    E.TOPIC_AUTHORIZATION_FAILED,
    E.GROUP_AUTHORIZATION_FAILED,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
ALTER, DESCRIBE = ((on_cluster(Op.ALTER),),), ((on_cluster(Op.DESCRIBE),),)
OF_NODES = ((on_cluster(Op.CLUSTER_ACTION),),)
TOPIC_CONFIGS, BROKER_CONFIGS, GROUP_CONFIGS = (2, "t"), (4, "1"), (32, "g")


class Case(Value, frozen=True):
    message: Any
    version: int
    error: ErrorCode  # if nothing is permitted
    ways: tuple[tuple[Acl, ...], ...]
    listener: str = "PLAINTEXT"
    is_of_nodes: bool = False  # where it is permitted, the gate alone is asked


def commit(version: int) -> Case:
    rows = (OffsetCommitRequestTopic(name="t", partitions=(OffsetCommitRequestPartition(committed_offset=1),)),)
    message = OffsetCommitRequest(group_id="g", topics=rows)
    return Case(message, version, G, ((on_group(Op.READ, "g"), on_topic(Op.READ, "t")),))


def configs(message: Any, version: int, row: type, operation: AclOperation) -> list[Case]:
    def case(kind: tuple[int, str], error: ErrorCode, needed: Acl) -> Case:
        resource = row(resource_type=kind[0], resource_name=kind[1])
        return Case(message(resources=(resource,)), version, error, ((needed,),))

    return [
        case(TOPIC_CONFIGS, T, on_topic(operation, "t")),
        case(BROKER_CONFIGS, C, on_cluster(operation)),
        case(GROUP_CONFIGS, G, on_group(operation, "g")),
    ]


def of_controllers(message: Any, version: int = 0) -> Case:
    return Case(message, version, C, OF_NODES, "CONTROLLER", is_of_nodes=True)


MARKER = WritableTxnMarker(topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),))
IN_TXN = AddPartitionsToTxnTopic(name="t", partitions=(0,))
TXN_OFFSETS = TxnOffsetCommitRequestTopic(name="t", partitions=(TxnOffsetCommitRequestPartition(),))
CREATION = AclCreation(resource_type=2, resource_name="z", principal="User:z", host="*", operation=3, permission_type=3)
NOTHING = DeleteAclsFilter(2, "nothing", 3, None, None, 3, 3)

CASES: tuple[Case, ...] = (
    Case(produce_request("t"), 9, T, ((on_topic(Op.WRITE, "t"),),)),
    Case(produce_request("t", transactional_id="x"), 9, X, ((on_topic(Op.WRITE, "t"), on_transaction(Op.WRITE, "x")),)),
    Case(fetch_request("t"), 11, T, ((on_topic(Op.READ, "t"),),)),
    Case(FetchRequest(replica_state=ReplicaState(replica_id=2)), 17, C, OF_NODES, is_of_nodes=True),
    of_controllers(FetchRequest(), 17),
    Case(
        ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(),)),)),
        7,
        T,
        ((on_topic(Op.DESCRIBE, "t"),),),
    ),
    Case(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 9, T, ((on_topic(Op.DESCRIBE, "t"),),)),
    *(
        Case(
            MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True),
            9,
            T,
            ((on_topic(Op.DESCRIBE, name), needed),),
        )
        for name, needed in (("new", on_topic(Op.CREATE, "new")), ("newer", on_cluster(Op.CREATE)))
    ),
    commit(2),
    commit(9),
    Case(
        OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)),
        1,
        G,
        ((on_group(Op.DESCRIBE, "g"), on_topic(Op.DESCRIBE, "t")),),
    ),
    Case(
        OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)),
        7,
        G,
        ((on_group(Op.DESCRIBE, "g"), on_topic(Op.DESCRIBE, "t")),),
    ),
    Case(
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
                ),
            )
        ),
        9,
        G,
        ((on_group(Op.DESCRIBE, "g"), on_topic(Op.DESCRIBE, "t")),),
    ),
    Case(FindCoordinatorRequest(key="g"), 3, G, ((on_group(Op.DESCRIBE, "g"),),)),
    Case(FindCoordinatorRequest(coordinator_keys=("g",), key_type=GROUP), 5, G, ((on_group(Op.DESCRIBE, "g"),),)),
    Case(
        FindCoordinatorRequest(coordinator_keys=("x",), key_type=TRANSACTION),
        5,
        X,
        ((on_transaction(Op.DESCRIBE, "x"),),),
    ),
    *(
        Case(message, version, G, ((on_group(Op.READ, "g"),),))
        for message, version in (
            (JoinGroupRequest(group_id="g"), 9),
            (HeartbeatRequest(group_id="g"), 4),
            (LeaveGroupRequest(group_id="g"), 5),
            (SyncGroupRequest(group_id="g"), 5),
        )
    ),
    *(
        Case(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                rebalance_timeout_ms=1,
                subscribed_topic_names=names,
                topic_partitions=(),
            ),
            1,
            error,
            ((on_group(Op.READ, "g"), *needed),),
        )
        for names, error, needed in (((), G, ()), (("t",), G, (on_topic(Op.DESCRIBE, "t"),)))
    ),
    # The group has been assigned the topic by then.
    Case(
        ConsumerGroupDescribeRequest(group_ids=("g",)),
        1,
        G,
        ((on_group(Op.DESCRIBE, "g"), on_topic(Op.DESCRIBE, "t")),),
    ),
    Case(DescribeGroupsRequest(groups=("g",)), 5, G, ((on_group(Op.DESCRIBE, "g"),),)),
    Case(DeleteGroupsRequest(groups_names=("g",)), 2, G, ((on_group(Op.DELETE, "g"),),)),
    Case(
        OffsetDeleteRequest(
            group_id="g", topics=(OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(),)),)
        ),
        0,
        G,
        ((on_group(Op.DELETE, "g"), on_topic(Op.READ, "t")),),
    ),
    Case(
        CreateTopicsRequest(topics=(CreatableTopic("n", 1, 1),), validate_only=True),
        7,
        T,
        tuple(
            (needed, on_topic(Op.DESCRIBE_CONFIGS, "n")) for needed in (on_cluster(Op.CREATE), on_topic(Op.CREATE, "n"))
        ),
    ),
    Case(DeleteTopicsRequest(topic_names=("n",)), 5, T, ((on_cluster(Op.DELETE),), (on_topic(Op.DESCRIBE, "n"),))),
    Case(
        DeleteTopicsRequest(topics=(DeleteTopicState(name="doomed"),)),
        6,
        T,
        ((on_topic(Op.DELETE, "doomed"),),),
    ),
    Case(
        DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(),)),)),
        2,
        T,
        ((on_topic(Op.DELETE, "t"),),),
    ),
    Case(InitProducerIdRequest(), 4, C, ((on_cluster(Op.IDEMPOTENT_WRITE),), (on_topic(Op.WRITE, "any"),))),
    Case(InitProducerIdRequest(transactional_id="x"), 4, X, ((on_transaction(Op.WRITE, "x"),),)),
    Case(
        InitProducerIdRequest(transactional_id="x", enable2_pc=True),
        6,
        X,
        ((on_transaction(Op.WRITE, "x"), on_transaction(Op.TWO_PHASE_COMMIT, "x")),),
    ),
    Case(
        OffsetForLeaderEpochRequest(
            topics=(OffsetForLeaderTopic(topic="t", partitions=(OffsetForLeaderPartition(),)),)
        ),
        4,
        T,
        ((on_topic(Op.DESCRIBE, "t"),), (on_cluster(Op.CLUSTER_ACTION),)),
    ),
    Case(
        AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=(IN_TXN,)),
        3,
        X,
        ((on_transaction(Op.WRITE, "x"), on_topic(Op.WRITE, "t")),),
    ),
    Case(
        AddPartitionsToTxnRequest(
            transactions=(AddPartitionsToTxnTransaction(transactional_id="x", topics=(IN_TXN,)),)
        ),
        5,
        C,
        OF_NODES,
        is_of_nodes=True,
    ),
    Case(
        AddOffsetsToTxnRequest(transactional_id="x", group_id="g"),
        3,
        X,
        ((on_transaction(Op.WRITE, "x"), on_group(Op.READ, "g")),),
    ),
    Case(EndTxnRequest(transactional_id="x"), 4, X, ((on_transaction(Op.WRITE, "x"),),)),
    Case(WriteTxnMarkersRequest(markers=(MARKER,)), 1, C, (*ALTER, *OF_NODES)),
    Case(
        TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=(TXN_OFFSETS,)),
        4,
        X,
        ((on_transaction(Op.WRITE, "x"), on_group(Op.READ, "g"), on_topic(Op.READ, "t")),),
    ),
    Case(DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3, C, DESCRIBE),
    Case(CreateAclsRequest(creations=(CREATION,)), 3, C, ALTER),
    Case(DeleteAclsRequest(filters=(NOTHING,)), 3, C, ALTER),
    *configs(DescribeConfigsRequest, 4, DescribeConfigsResource, Op.DESCRIBE_CONFIGS),
    *configs(AlterConfigsRequest, 2, replaced.AlterConfigsResource, Op.ALTER_CONFIGS),
    *configs(IncrementalAlterConfigsRequest, 1, incremental.AlterConfigsResource, Op.ALTER_CONFIGS),
    Case(
        AlterReplicaLogDirsRequest(
            dirs=(AlterReplicaLogDir(path="/d", topics=(AlterReplicaLogDirTopic(name="t", partitions=(0,)),)),)
        ),
        2,
        C,
        ALTER,
    ),
    Case(DescribeLogDirsRequest(topics=None), 4, C, DESCRIBE),
    Case(
        CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=2),), validate_only=True),
        3,
        T,
        ((on_topic(Op.ALTER, "t"),),),
    ),
    Case(ElectLeadersRequest(topic_partitions=None), 2, C, ALTER),
    Case(AlterPartitionReassignmentsRequest(), 0, C, ALTER),
    Case(ListPartitionReassignmentsRequest(), 0, C, DESCRIBE),
    Case(DescribeQuorumRequest(), 1, C, DESCRIBE),
    Case(DescribeQuorumRequest(), 1, C, DESCRIBE, "CONTROLLER"),
    Case(DescribeClusterRequest(endpoint_type=2), 1, C, ALTER, "CONTROLLER"),
    Case(UpdateFeaturesRequest(), 1, C, ALTER),
    Case(ListConfigResourcesRequest(), 1, C, ((on_cluster(Op.DESCRIBE_CONFIGS),),)),
    Case(DescribeClientQuotasRequest(), 1, C, ((on_cluster(Op.DESCRIBE_CONFIGS),),)),
    Case(
        AlterClientQuotasRequest(entries=(EntryData(entity=(EntityData("user", "u"),)),), validate_only=True),
        1,
        C,
        ((on_cluster(Op.ALTER_CONFIGS),),),
    ),
    Case(DescribeUserScramCredentialsRequest(), 0, C, DESCRIBE),
    Case(AlterUserScramCredentialsRequest(deletions=(ScramCredentialDeletion("nobody", 1),)), 0, C, ALTER),
    Case(UnregisterBrokerRequest(broker_id=77), 0, C, ALTER),
    Case(UnregisterBrokerRequest(broker_id=77), 0, C, ALTER, "CONTROLLER"),
    *(of_controllers(message()) for message in (VoteRequest, EndQuorumEpochRequest, FetchSnapshotRequest)),
    *(of_controllers(message()) for message in (BeginQuorumEpochRequest, BrokerRegistrationRequest)),
    *(of_controllers(message()) for message in (BrokerHeartbeatRequest, AllocateProducerIdsRequest)),
    *(of_controllers(message(), 2) for message in (AlterPartitionRequest,)),
    *(of_controllers(message()) for message in (AssignReplicasToDirsRequest,)),
    Case(
        DescribeProducersRequest(topics=(ProducersOf(name="t", partition_indexes=(0,)),)),
        0,
        T,
        ((on_topic(Op.READ, "t"),),),
    ),
    Case(DescribeTransactionsRequest(transactional_ids=("x",)), 0, X, ((on_transaction(Op.DESCRIBE, "x"),),)),
    Case(DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),)), 0, T, ((on_topic(Op.DESCRIBE, "t"),),)),
    Case(AcknowledgeLossesRequest(), 0, C, ALTER),
    of_controllers(QuarantineRequest()),
    Case(AcknowledgeLossesRequest(), 0, C, ALTER, "CONTROLLER"),
)
