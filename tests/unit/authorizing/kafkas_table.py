"""Which operation on which kind of resource each API needs in Kafka.

By the documentation of Kafka 4.3 ("Operations and Resources on Protocols" in docs/security/authorization-and-acls.md),
for the APIs that Strandline serves. `CODE` has what the documentation leaves out or has wrong, by KafkaApis.scala,
ControllerApis.scala and DescribeTopicPartitionsRequestHandler.java.
"""

Row = tuple[str, str, str]  # API, operation, resource


def rows(text: str) -> set[Row]:
    found = set()
    for line in text.strip().splitlines():
        api, operation, resource = line.split()
        found.add((api, operation, resource))
    return found


DOCUMENTED = rows("""
    Produce                      Write            TransactionalId
    Produce                      IdempotentWrite  Cluster
    Produce                      Write            Topic
    Fetch                        ClusterAction    Cluster
    Fetch                        Read             Topic
    ListOffsets                  Describe         Topic
    Metadata                     Describe         Topic
    Metadata                     Create           Cluster
    Metadata                     Create           Topic
    OffsetCommit                 Read             Group
    OffsetCommit                 Read             Topic
    OffsetFetch                  Describe         Group
    OffsetFetch                  Describe         Topic
    FindCoordinator              Describe         Group
    FindCoordinator              Describe         TransactionalId
    JoinGroup                    Read             Group
    Heartbeat                    Read             Group
    LeaveGroup                   Read             Group
    SyncGroup                    Read             Group
    ConsumerGroupHeartbeat       Read             Group
    ConsumerGroupHeartbeat       Describe         Topic
    ConsumerGroupDescribe        Describe         Group
    ConsumerGroupDescribe        Describe         Topic
    DescribeGroups               Describe         Group
    ListGroups                   Describe         Cluster
    ListGroups                   Describe         Group
    CreateTopics                 Create           Cluster
    CreateTopics                 Create           Topic
    DeleteTopics                 Delete           Topic
    DeleteRecords                Delete           Topic
    InitProducerId               Write            TransactionalId
    InitProducerId               IdempotentWrite  Cluster
    OffsetForLeaderEpoch         ClusterAction    Cluster
    OffsetForLeaderEpoch         Describe         Topic
    AddPartitionsToTxn           Write            TransactionalId
    AddPartitionsToTxn           Write            Topic
    AddOffsetsToTxn              Write            TransactionalId
    AddOffsetsToTxn              Read             Group
    EndTxn                       Write            TransactionalId
    WriteTxnMarkers              Alter            Cluster
    WriteTxnMarkers              ClusterAction    Cluster
    TxnOffsetCommit              Write            TransactionalId
    TxnOffsetCommit              Read             Group
    TxnOffsetCommit              Read             Topic
    DescribeAcls                 Describe         Cluster
    CreateAcls                   Alter            Cluster
    DeleteAcls                   Alter            Cluster
    DescribeConfigs              DescribeConfigs  Cluster
    DescribeConfigs              DescribeConfigs  Topic
    AlterConfigs                 AlterConfigs     Cluster
    AlterConfigs                 AlterConfigs     Topic
    AlterReplicaLogDirs          Alter            Cluster
    DescribeLogDirs              Describe         Cluster
    CreatePartitions             Alter            Topic
    DeleteGroups                 Delete           Group
    OffsetDelete                 Delete           Group
    OffsetDelete                 Read             Topic
    ElectLeaders                 ClusterAction    Cluster
    IncrementalAlterConfigs      AlterConfigs     Cluster
    IncrementalAlterConfigs      AlterConfigs     Topic
    AlterPartitionReassignments  Alter            Cluster
    ListPartitionReassignments   Describe         Cluster
    DescribeClientQuotas         DescribeConfigs  Cluster
    AlterClientQuotas            AlterConfigs     Cluster
    DescribeUserScramCredentials Describe         Cluster
    AlterUserScramCredentials    Alter            Cluster
    Vote                         ClusterAction    Cluster
    BeginQuorumEpoch             ClusterAction    Cluster
    EndQuorumEpoch               ClusterAction    Cluster
    DescribeQuorum               Describe         Cluster
    AlterPartition               ClusterAction    Cluster
    UpdateFeatures               Alter            Cluster
    FetchSnapshot                ClusterAction    Cluster
    DescribeCluster              Describe         Cluster
    DescribeProducers            Read             Topic
    BrokerRegistration           ClusterAction    Cluster
    BrokerHeartbeat              ClusterAction    Cluster
    UnregisterBroker             Alter            Cluster
    DescribeTransactions         Describe         TransactionalId
    ListTransactions             Describe         TransactionalId
    AllocateProducerIds          ClusterAction    Cluster
    AssignReplicasToDirs         ClusterAction    Cluster
    ListConfigResources          DescribeConfigs  Cluster
    DescribeTopicPartitions      Describe         Topic
""")

CODE = rows("""
    CreateTopics                 DescribeConfigs  Topic
    DeleteTopics                 Delete           Cluster
    DeleteTopics                 Describe         Topic
    InitProducerId               Write            Topic
    InitProducerId               TwoPhaseCommit   TransactionalId
    AddPartitionsToTxn           ClusterAction    Cluster
    DescribeConfigs              DescribeConfigs  Group
    AlterConfigs                 AlterConfigs     Group
    IncrementalAlterConfigs      AlterConfigs     Group
    ElectLeaders                 Alter            Cluster
    Metadata                     Describe         Cluster
    DescribeCluster              Alter            Cluster
    DescribeTransactions         Describe         Topic
""")
# Since KIP-679 whoever may write may do so idempotently; a leader is elected by who may alter the cluster.
NOT_IN_CODE = rows("""
    Produce                      IdempotentWrite  Cluster
    ElectLeaders                 ClusterAction    Cluster
""")
KAFKAS = DOCUMENTED - NOT_IN_CODE | CODE

# Nothing is needed: the first come before anybody is known, and what clients push is about themselves.
FREE = {"ApiVersions", "SaslHandshake", "SaslAuthenticate", "GetTelemetrySubscriptions", "PushTelemetry"}

# Of our own.
OWN = rows("""
    GetReplicaLogInfo            ClusterAction    Cluster
    GetReplicaLogInfo            Describe         Cluster
    GetReplicaLogInfo            Describe         Topic
    DescribeLosses               Describe         Cluster
    DescribeLosses               Describe         Topic
    AcknowledgeLosses            Alter            Cluster
    Quarantine                   ClusterAction    Cluster
""")
