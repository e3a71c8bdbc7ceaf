"""Which permission each API needs: one row for each, by its key, as in Kafka (KafkaApis, ControllerApis).

A request without a row is refused. Nodes and super users are not judged.
"""

from strandline.broker.authorizing import cluster, groups, records, topics, transactions
from strandline.broker.authorizing.fetching import FetchSessions
from strandline.broker.authorizing.rows import deleted_records, end_offsets, listed_offsets, producers
from strandline.broker.authorizing.verdict import Judge, free, on_cluster, on_each, on_one
from strandline.metadata.security.acls import AclOperation, ResourceType
from strandline.wire.messages.cluster import alter_configs, describe_configs, incremental_alter_configs
from strandline.wire.messages.groups.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from strandline.wire.messages.records.delete_records import DeleteRecordsResponse
from strandline.wire.messages.records.list_offsets import ListOffsetsResponse
from strandline.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from strandline.wire.messages.topics.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from strandline.wire.messages.transactions.describe_producers import DescribeProducersResponse

READ, WRITE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID

of_group = on_one((READ, GROUP, "group_id"))
of_nodes = on_cluster(CLUSTER_ACTION)

ROWS: dict[int, Judge] = {
    0: records.produce,
    2: on_each(DESCRIBE, TOPIC, "topics", lambda t: t.name, ListOffsetsResponse, "topics", listed_offsets),
    3: topics.metadata,
    8: groups.commit_offsets,
    9: groups.fetch_offsets,
    10: groups.find_coordinator,
    11: of_group,  # JoinGroup
    12: of_group,  # Heartbeat
    13: of_group,  # LeaveGroup
    14: of_group,  # SyncGroup
    15: groups.describe_groups,
    16: groups.list_groups,
    17: free,  # SaslHandshake
    18: free,  # ApiVersions
    19: topics.create_topics,
    20: topics.delete_topics,
    21: on_each(DELETE, TOPIC, "topics", lambda t: t.name, DeleteRecordsResponse, "topics", deleted_records),
    22: transactions.init_producer_id,
    23: on_each(
        DESCRIBE,
        TOPIC,
        "topics",
        lambda t: t.topic,
        OffsetForLeaderEpochResponse,
        "topics",
        end_offsets,
        unless=CLUSTER_ACTION,
    ),
    24: transactions.add_partitions,
    25: on_one((WRITE, TRANSACTIONAL_ID, "transactional_id"), (READ, GROUP, "group_id")),  # AddOffsetsToTxn
    26: on_one((WRITE, TRANSACTIONAL_ID, "transactional_id")),  # EndTxn
    27: on_cluster(ALTER, CLUSTER_ACTION),  # WriteTxnMarkers
    28: transactions.commit_offsets,
    29: on_cluster(DESCRIBE),  # DescribeAcls
    30: on_cluster(ALTER),  # CreateAcls
    31: on_cluster(ALTER),  # DeleteAcls
    32: cluster.configs(
        DESCRIBE_CONFIGS,
        describe_configs.DescribeConfigsResponse,
        "results",
        describe_configs.DescribeConfigsResult,
    ),
    33: cluster.configs(
        ALTER_CONFIGS,
        alter_configs.AlterConfigsResponse,
        "responses",
        alter_configs.AlterConfigsResourceResponse,
    ),
    34: on_cluster(ALTER),  # AlterReplicaLogDirs
    35: on_cluster(DESCRIBE),  # DescribeLogDirs
    36: free,  # SaslAuthenticate
    37: on_each(
        ALTER,
        TOPIC,
        "topics",
        lambda t: t.name,
        CreatePartitionsResponse,
        "results",
        lambda t, error: CreatePartitionsTopicResult(name=t.name, error_code=error),
    ),
    42: on_each(
        DELETE,
        GROUP,
        "groups_names",
        str,
        DeleteGroupsResponse,
        "results",
        lambda group_id, error: DeletableGroupResult(group_id=group_id, error_code=error),
    ),
    43: on_cluster(ALTER),  # ElectLeaders
    44: cluster.configs(
        ALTER_CONFIGS,
        incremental_alter_configs.IncrementalAlterConfigsResponse,
        "responses",
        incremental_alter_configs.AlterConfigsResourceResponse,
    ),
    45: on_cluster(ALTER),  # AlterPartitionReassignments
    46: on_cluster(DESCRIBE),  # ListPartitionReassignments
    47: groups.delete_offsets,
    48: on_cluster(DESCRIBE_CONFIGS),  # DescribeClientQuotas
    49: on_cluster(ALTER_CONFIGS),  # AlterClientQuotas
    50: on_cluster(DESCRIBE),  # DescribeUserScramCredentials
    51: on_cluster(ALTER),  # AlterUserScramCredentials
    52: of_nodes,  # Vote
    53: of_nodes,  # BeginQuorumEpoch
    54: of_nodes,  # EndQuorumEpoch
    55: on_cluster(DESCRIBE),  # DescribeQuorum
    56: of_nodes,  # AlterPartition
    57: on_cluster(ALTER),  # UpdateFeatures
    59: of_nodes,  # FetchSnapshot
    61: on_each(READ, TOPIC, "topics", lambda t: t.name, DescribeProducersResponse, "topics", producers),
    62: of_nodes,  # BrokerRegistration
    63: of_nodes,  # BrokerHeartbeat
    64: on_cluster(ALTER),  # UnregisterBroker
    65: transactions.describe_transactions,
    66: transactions.list_transactions,
    67: of_nodes,  # AllocateProducerIds
    68: groups.consumer_heartbeat,
    69: groups.describe_consumers,
    71: free,  # GetTelemetrySubscriptions
    72: free,  # PushTelemetry
    73: of_nodes,  # AssignReplicasToDirs
    74: on_cluster(DESCRIBE_CONFIGS),  # ListConfigResources
    75: topics.describe_topic_partitions,
    1000: cluster.replica_logs,
    1001: cluster.describe_losses,
    1002: on_cluster(ALTER),  # AcknowledgeLosses
    1003: of_nodes,  # Quarantine
}

FETCH, DESCRIBE_CLUSTER = 1, 60


def broker_rows(sessions: FetchSessions) -> dict[int, Judge]:
    return {**ROWS, FETCH: sessions.fetch, DESCRIBE_CLUSTER: cluster.describe_cluster}


def controller_rows() -> dict[int, Judge]:
    """A Fetch of a controller is for the metadata log, which has everything."""
    return {**ROWS, FETCH: of_nodes, DESCRIBE_CLUSTER: cluster.describe_controllers}
