"""Every metric of a node: name, type, help, labels, and what Kafka calls it. One row each.

The names are those that the common rules of Prometheus' JMX exporter make of Kafka's object names, without lower-casing
them: `kafka.server:type=ReplicaManager,name=IsrShrinksPerSec` is `kafka_server_ReplicaManager_IsrShrinks_total`, a
counter whose rate Prometheus computes. What Kafka does not have begins with `strandline_`, or with `process_` where
every client library of Prometheus has the name. KIP-966 names some with dots, `kafka.controller.…_count`; they have
underscores instead.

Invariant: names are distinct; a counter's ends in `_total`, and no other's does.
"""

from strandline.base.metrics import Kind, Labels, Metric
from strandline.broker.metrics import of_limits, of_process, of_transactions
from strandline.broker.quotas import metrics as quota_metrics
from strandline.broker.telemetry import metrics as telemetry_metrics


def rows(kind: Kind, labels: Labels, *table: tuple[str, str, str]) -> tuple[Metric, ...]:
    return tuple(Metric(name, kind, help_text, labels, source) for name, source, help_text in table)


def of_partition(name: str, help_text: str, source: str = "") -> Metric:
    return Metric(name, Kind.GAUGE, help_text, ("topic", "partition"), source and f"{source},topic=*,partition=*")


PARTITION = "kafka.cluster:type=Partition,name="
LOG = "kafka.log:type=Log,name="
# By field of `gauges.PartitionReading`. Those of kafka.cluster are 0 where this broker does not lead, as in Kafka.
PARTITION_GAUGES: dict[str, Metric] = {
    "is_under_replicated": of_partition(
        "kafka_cluster_Partition_UnderReplicated",
        "1 if the committed ISR lacks a replica that should be in it",
        PARTITION + "UnderReplicated",
    ),
    "in_sync_replicas": of_partition(
        "kafka_cluster_Partition_InSyncReplicasCount", "Members of the committed ISR", PARTITION + "InSyncReplicasCount"
    ),
    "replicas": of_partition(
        "kafka_cluster_Partition_ReplicasCount",
        "Replicas, without those that a reassignment adds",
        PARTITION + "ReplicasCount",
    ),
    "last_stable_offset_lag": of_partition(
        "kafka_cluster_Partition_LastStableOffsetLag",
        "High watermark minus last stable offset: records that wait for the end of a transaction",
        PARTITION + "LastStableOffsetLag",
    ),
    "is_under_min_isr": of_partition(
        "kafka_cluster_Partition_UnderMinIsr",
        "1 if the committed ISR is smaller than the effective min ISR: nothing is committed",
        PARTITION + "UnderMinIsr",
    ),
    "is_at_min_isr": of_partition(
        "kafka_cluster_Partition_AtMinIsr",
        "1 if the committed ISR is as large as the effective min ISR: one more loss stops writes",
        PARTITION + "AtMinIsr",
    ),
    "log_end_offset": of_partition(
        "kafka_log_Log_LogEndOffset", "Offset of the next record to be appended", LOG + "LogEndOffset"
    ),
    "log_start_offset": of_partition(
        "kafka_log_Log_LogStartOffset", "First offset that can be read", LOG + "LogStartOffset"
    ),
    "size_bytes": of_partition("kafka_log_Log_Size", "Bytes in segments", LOG + "Size"),
    "segments": of_partition("kafka_log_Log_NumLogSegments", "Segments", LOG + "NumLogSegments"),
    "high_watermark": of_partition(
        "strandline_partition_high_watermark", "First offset that is not committed, as this replica knows it"
    ),
    "above_while_under": of_partition(
        "strandline_partition_records_above_high_watermark_under_min_isr",
        "Records that consumers cannot read, because the committed ISR is below the effective min ISR; 0 otherwise",
    ),
    "electable_leaders": of_partition(
        "strandline_partition_electable_leaders",
        "Members of ISR and ELR: replicas that may lead without loss (KIP-966). All its replicas report it",
    ),
}

CONSUMER_LAG = of_partition(
    "kafka_server_FetcherLagMetrics_ConsumerLag",
    "On a follower: committed records, by its leader's last answer, that it has not copied yet",
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=*",
)
MAX_LAG = Metric(
    "kafka_server_ReplicaFetcherManager_MaxLag",
    Kind.GAUGE,
    "The largest lag of a follower here, in records",
    (),
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica",
)

TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
# By field of `replica.counters.TopicCounters`.
TOPIC_COUNTERS: dict[str, Metric] = {
    field: Metric(
        f"kafka_server_BrokerTopicMetrics_{name}_total",
        Kind.COUNTER,
        help_text,
        ("topic",),
        f"{TOPIC}{name}PerSec,topic=*",
    )
    for field, name, help_text in (
        ("messages_in", "MessagesIn", "Records that this broker appended as leader"),
        ("bytes_in", "BytesIn", "Bytes of these records, as they are stored"),
        ("bytes_out", "BytesOut", "Bytes of records that were sent to consumers"),
        ("bytes_rejected", "BytesRejected", "Bytes of batches that were rejected as too large"),
        ("produces", "TotalProduceRequests", "Produced batches, one for each partition of a request"),
        (
            "failed_produces",
            "FailedProduceRequests",
            "Batches rejected for other reasons than size, damage, storage and leadership",
        ),
        ("failed_fetches", "FailedFetchRequests", "Partitions whose log could not be read for a Fetch"),
    )
}
REPLICATION_IN, REPLICATION_OUT = rows(
    Kind.COUNTER,
    (),
    (
        "kafka_server_BrokerTopicMetrics_ReplicationBytesIn_total",
        TOPIC + "ReplicationBytesInPerSec",
        "Bytes of records that this broker copied as follower",
    ),
    (
        "kafka_server_BrokerTopicMetrics_ReplicationBytesOut_total",
        TOPIC + "ReplicationBytesOutPerSec",
        "Bytes of records that were sent to followers",
    ),
)

DELAYED = Metric(
    "kafka_server_DelayedOperationPurgatory_NumDelayedOperations",
    Kind.GAUGE,
    "Requests that wait: Produce for followers, Fetch for records",
    ("delayedOperation",),
    "kafka.server:type=DelayedOperationPurgatory,name=NumDelayedOperations,delayedOperation=*",
)
# Named as Kafka would: strandline.replica:type=LossLedger,name=LostRecordsCount
LOST_RECORDS = Metric(
    "strandline_replica_LossLedger_LostRecordsCount",
    Kind.GAUGE,
    "Committed records that replicas of this broker have lost for certain, since its loss ledger began",
    (),
)
LOSS_EVENTS = Metric(
    "strandline_replica_LossLedger_LossEventsCount",
    Kind.GAUGE,
    "Events in this broker's loss ledger since it began, of losses that are certain or possible",
    (),
)
# What was read, and of places that were found damaged: all, those that were repaired, those that nobody could repair.
SCRUBBED = rows(
    Kind.COUNTER,
    (),
    ("strandline_replica_Scrubber_ScrubbedBytes_total", "", "Bytes of logs that the scrubber has read and checked"),
    ("strandline_replica_Scrubber_Damaged_total", "", "Places in logs that were found damaged, also by reads"),
    ("strandline_replica_Scrubber_Repaired_total", "", "Damaged places that another replica's records have repaired"),
    ("strandline_replica_Scrubber_Lost_total", "", "Damaged places whose records no other replica has"),
)
UNREPAIRED = Metric(
    "strandline_replica_Scrubber_UnrepairedCount", Kind.GAUGE, "Damaged places that are not repaired now", ()
)
THROTTLED_BYTES = Metric(
    "strandline_throttled_bytes_total",
    Kind.COUNTER,
    "Bytes that counted for a quota: sent as leader, taken as follower, copied between directories",
    ("quota",),
)
THROTTLED_RATE = Metric(
    "strandline_throttled_rate", Kind.GAUGE, "Bytes a second that the quota allows, as it is set now", ("quota",)
)
DIRECTORY_MOVES = Metric(
    "strandline_log_directory_moves", Kind.GAUGE, "Replicas that move from one log directory to another"
)

LOG_MANAGER = "kafka.log:type=LogManager,name="
OFFLINE_DIRECTORIES = Metric(
    "kafka_log_LogManager_OfflineLogDirectoryCount",
    Kind.GAUGE,
    "Log directories that have failed",
    (),
    LOG_MANAGER + "OfflineLogDirectoryCount",
)
DIRECTORY_OFFLINE = Metric(
    "kafka_log_LogManager_LogDirectoryOffline",
    Kind.GAUGE,
    "1 if this log directory has failed",
    ("logDirectory",),
    LOG_MANAGER + "LogDirectoryOffline,logDirectory=*",
)
CORDONED_DIRECTORIES = Metric(
    "kafka_log_LogManager_CordonedLogDirectoryCount",
    Kind.GAUGE,
    "Log directories that get no new replicas",
    (),
    LOG_MANAGER + "CordonedLogDirectoryCount",
)
DIRECTORY_CORDONED = Metric(
    "kafka_log_LogManager_LogDirectoryCordoned",
    Kind.GAUGE,
    "1 if this log directory gets no new replicas",
    ("logDirectory",),
    LOG_MANAGER + "LogDirectoryCordoned,logDirectory=*",
)
BROKER_STATE = Metric(
    "kafka_server_KafkaServer_BrokerState",
    Kind.GAUGE,
    "1: not registered yet, 2: fenced, 3: running, 6: in controlled shutdown, 7: stops",
    (),
    "kafka.server:type=KafkaServer,name=BrokerState",
)

REPLICA_MANAGER = "kafka.server:type=ReplicaManager,name="
# By field of `gauges.Totals`.
TOTALS: dict[str, Metric] = {
    field: Metric(f"kafka_server_ReplicaManager_{name}", Kind.GAUGE, help_text, (), REPLICA_MANAGER + name)
    for field, name, help_text in (
        ("partitions", "PartitionCount", "Partitions hosted here"),
        ("leaders", "LeaderCount", "Partitions led by this broker"),
        ("under_replicated", "UnderReplicatedPartitions", "Partitions led here whose ISR lacks a replica"),
        ("under_min_isr", "UnderMinIsrPartitionCount", "Partitions led here below their effective min ISR"),
        ("at_min_isr", "AtMinIsrPartitionCount", "Partitions led here exactly at their effective min ISR"),
        ("reassigning", "ReassigningPartitions", "Partitions led here with a reassignment under way"),
        (
            "producer_ids",
            "ProducerIdCount",
            "Idempotent producers that are known, for each partition they write to",
        ),
        ("offline", "OfflineReplicaCount", "Replicas that metadata assigns to this broker and that it does not serve"),
    )
}

ISR_SHRINKS, ISR_EXPANDS, FAILED_ISR_UPDATES = rows(
    Kind.COUNTER,
    (),
    (
        "kafka_server_ReplicaManager_IsrShrinks_total",
        REPLICA_MANAGER + "IsrShrinksPerSec",
        "ISRs made smaller, as the controller answered",
    ),
    (
        "kafka_server_ReplicaManager_IsrExpands_total",
        REPLICA_MANAGER + "IsrExpandsPerSec",
        "ISRs made larger, as the controller answered",
    ),
    (
        "kafka_server_ReplicaManager_FailedIsrUpdates_total",
        REPLICA_MANAGER + "FailedIsrUpdatesPerSec",
        "Proposed changes of an ISR that the controller rejected",
    ),
)
FETCH_SESSIONS, FETCH_SESSION_PARTITIONS, BROKER_APPLIED, METADATA_ERRORS, BROKER_UNFENCED = OF_BROKER = rows(
    Kind.GAUGE,
    (),
    (
        "kafka_server_FetchSessionCache_NumIncrementalFetchSessions",
        "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
        "Fetch sessions (KIP-227)",
    ),
    (
        "kafka_server_FetchSessionCache_NumIncrementalFetchPartitionsCached",
        "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached",
        "Partitions in all fetch sessions",
    ),
    (
        "kafka_server_brokermetadatametrics_last_applied_record_offset",
        "kafka.server:type=broker-metadata-metrics last-applied-record-offset",
        "Offset of the last metadata record that this broker has applied",
    ),
    (
        "kafka_server_brokermetadatametrics_metadata_load_error_count",
        "kafka.server:type=broker-metadata-metrics metadata-load-error-count",
        "Metadata records and snapshots that this broker could not apply",
    ),
    ("strandline_broker_unfenced", "", "1 while the controller lets this broker serve"),
)

CONTROLLER = "kafka.controller:type=KafkaController,name="
CONTROLLER_GAUGES: dict[str, Metric] = {
    name: Metric(f"kafka_controller_KafkaController_{name}", Kind.GAUGE, help_text, (), CONTROLLER + name)
    for name, help_text in (
        ("ActiveControllerCount", "1 on the active controller"),
        ("ActiveBrokerCount", "Brokers that are registered and not fenced"),
        ("FencedBrokerCount", "Brokers that are registered and fenced"),
        ("GlobalTopicCount", "Topics"),
        ("GlobalPartitionCount", "Partitions of all topics"),
        ("OfflinePartitionsCount", "Partitions without a leader"),
        ("PreferredReplicaImbalanceCount", "Partitions that their preferred replica does not lead"),
        ("ControlledShutdownBrokerCount", "Brokers in a controlled shutdown"),
        ("NewActiveControllersCount", "How often this node has heard of another active controller"),
        ("TimedOutBrokerHeartbeatCount", "Brokers that this node fenced because it got no heartbeat"),
        ("LastAppliedRecordOffset", "Offset of the last metadata record that this controller has applied"),
        ("LastCommittedRecordOffset", "Offset of the last metadata record that this controller knows to be committed"),
        ("MetadataErrorCount", "Metadata records and snapshots that this controller could not apply"),
    )
}

# By KIP-966's names, which Kafka does not have so far.
UNDER_MIN_ISR, RECOVERING_PARTITIONS, MANUAL_ELECTIONS = rows(
    Kind.GAUGE,
    (),
    (
        "kafka_controller_global_under_min_isr_partition_count",
        "kafka.controller.global_under_min_isr_partition_count",
        "Partitions, also those without a leader, whose ISR is below their effective min ISR (KIP-966)",
    ),
    (
        "kafka_controller_unclean_recovery_partitions_count",
        "kafka.controller.unclean_recovery_partitions_count",
        "On the active controller: partitions under unclean recovery, or that wait for all last eligible replicas",
    ),
    (
        "kafka_controller_manual_leader_election_required_partition_count",
        "kafka.controller.manual_leader_election_required_partition_count",
        "Partitions without a leader for which an operator must find one",
    ),
)
RECOVERIES_FINISHED = Metric(
    "kafka_controller_unclean_recovery_finished_total",
    Kind.COUNTER,
    "Unclean recoveries that this node has finished since it became the active controller, those by hand included",
    (),
    "kafka.controller.unclean_recovery_finished_count",
)
BROKER_REGISTRATION = Metric(
    "kafka_controller_KafkaController_BrokerRegistrationState",
    Kind.GAUGE,
    "10: fenced, 20: in a controlled shutdown, 30: active",
    ("broker",),
    CONTROLLER + "BrokerRegistrationState,broker=*",
)
STATS = "kafka.controller:type=ControllerStats,name="
UNCLEAN_ELECTIONS, ELIGIBLE_ELECTIONS, ELECTIONS = rows(
    Kind.COUNTER,
    (),
    (
        "kafka_controller_ControllerStats_UncleanLeaderElections_total",
        STATS + "UncleanLeaderElectionsPerSec",
        "Elections by this node of a replica that was neither in the ISR nor eligible: committed records may be lost",
    ),
    (
        "kafka_controller_ControllerStats_ElectionFromEligibleLeaderReplicas_total",
        STATS + "ElectionFromEligibleLeaderReplicasPerSec",
        "Elections by this node of an eligible replica that was not in the ISR (KIP-966)",
    ),
    ("strandline_controller_leader_elections_total", "", "Changes of a partition's leader that this node decided"),
)

RAFT = "kafka.server:type=raft-metrics "
CURRENT_LEADER, CURRENT_EPOCH, CURRENT_VOTE, RAFT_HIGH_WATERMARK, RAFT_LOG_END, RAFT_LOG_END_EPOCH = rows(
    Kind.GAUGE,
    (),
    ("kafka_server_raftmetrics_current_leader", RAFT + "current-leader", "Leader of the metadata quorum; -1: unknown"),
    ("kafka_server_raftmetrics_current_epoch", RAFT + "current-epoch", "Epoch of the metadata quorum"),
    (
        "kafka_server_raftmetrics_current_vote",
        RAFT + "current-vote",
        "The voter for which this node voted in the epoch; -1: none",
    ),
    ("kafka_server_raftmetrics_high_watermark", RAFT + "high-watermark", "High watermark of the metadata log"),
    ("kafka_server_raftmetrics_log_end_offset", RAFT + "log-end-offset", "End of this node's metadata log"),
    (
        "kafka_server_raftmetrics_log_end_epoch",
        RAFT + "log-end-epoch",
        "Epoch of the last record of this node's metadata log",
    ),
)
CURRENT_STATE = Metric(
    "kafka_server_raftmetrics_current_state",
    Kind.GAUGE,
    "1, with the node's role in the metadata quorum as label",
    ("current_state",),
    RAFT + "current-state",
)

NETWORK = "kafka.network:type=RequestMetrics,name="
REQUESTS = Metric(
    "kafka_network_RequestMetrics_Requests_total",
    Kind.COUNTER,
    "Requests that were answered, or need no answer",
    ("request", "version"),
    NETWORK + "RequestsPerSec,request=*,version=*",
)
ERRORS = Metric(
    "kafka_network_RequestMetrics_Errors_total",
    Kind.COUNTER,
    "Error codes in responses, one for every partition, topic or group that has one",
    ("request", "error"),
    NETWORK + "ErrorsPerSec,request=*,error=*",
)
QUEUE_TIME, LOCAL_TIME, TOTAL_TIME = rows(
    Kind.HISTOGRAM,
    ("request",),
    (
        "kafka_network_RequestMetrics_RequestQueueTimeMs",
        NETWORK + "RequestQueueTimeMs,request=*",
        "Milliseconds that a request waited in this process for requests read before it",
    ),
    (
        "kafka_network_RequestMetrics_LocalTimeMs",
        NETWORK + "LocalTimeMs,request=*",
        "Milliseconds that this node worked on a request when it arrived, also on answers to others that it released",
    ),
    (
        "kafka_network_RequestMetrics_TotalTimeMs",
        NETWORK + "TotalTimeMs,request=*",
        "Milliseconds from a request's last byte to its answer, waiting for followers, records or time included",
    ),
)
SOCKETS = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=* "
CONNECTIONS = Metric(
    "kafka_server_socketservermetrics_connection_count",
    Kind.GAUGE,
    "Open connections",
    ("listener",),
    SOCKETS + "connection-count",
)
CONNECTIONS_MADE, BYTES_IN, BYTES_OUT = rows(
    Kind.COUNTER,
    ("listener",),
    (
        "kafka_server_socketservermetrics_connection_creation_total",
        SOCKETS + "connection-creation-total",
        "Connections that were accepted",
    ),
    ("kafka_server_socketservermetrics_incoming_byte_total", SOCKETS + "incoming-byte-total", "Bytes read"),
    ("kafka_server_socketservermetrics_outgoing_byte_total", SOCKETS + "outgoing-byte-total", "Bytes written"),
)

INFO = Metric(
    "strandline_node_info", Kind.GAUGE, "1; labels identify the node", ("node_id", "roles", "version", "cluster_id")
)

METRICS: tuple[Metric, ...] = (
    *TOTALS.values(),
    ISR_SHRINKS,
    ISR_EXPANDS,
    FAILED_ISR_UPDATES,
    *PARTITION_GAUGES.values(),
    CONSUMER_LAG,
    MAX_LAG,
    *of_transactions.METRICS,
    *quota_metrics.METRICS,
    *telemetry_metrics.METRICS,
    *TOPIC_COUNTERS.values(),
    REPLICATION_IN,
    REPLICATION_OUT,
    DELAYED,
    LOST_RECORDS,
    LOSS_EVENTS,
    *SCRUBBED,
    UNREPAIRED,
    THROTTLED_BYTES,
    THROTTLED_RATE,
    DIRECTORY_MOVES,
    OFFLINE_DIRECTORIES,
    DIRECTORY_OFFLINE,
    CORDONED_DIRECTORIES,
    DIRECTORY_CORDONED,
    BROKER_STATE,
    *OF_BROKER,
    *CONTROLLER_GAUGES.values(),
    UNDER_MIN_ISR,
    RECOVERING_PARTITIONS,
    MANUAL_ELECTIONS,
    RECOVERIES_FINISHED,
    BROKER_REGISTRATION,
    UNCLEAN_ELECTIONS,
    ELIGIBLE_ELECTIONS,
    ELECTIONS,
    *(CURRENT_LEADER, CURRENT_EPOCH, CURRENT_VOTE),
    RAFT_HIGH_WATERMARK,
    RAFT_LOG_END,
    RAFT_LOG_END_EPOCH,
    CURRENT_STATE,
    REQUESTS,
    ERRORS,
    QUEUE_TIME,
    LOCAL_TIME,
    TOTAL_TIME,
    *(CONNECTIONS, CONNECTIONS_MADE),
    *(BYTES_IN, BYTES_OUT),
    *of_limits.METRICS,
    *of_process.METRICS,
    INFO,
)
assert len({metric.name for metric in METRICS}) == len(METRICS), "names are distinct"
assert all(metric.name.endswith("_total") == (metric.kind is Kind.COUNTER) for metric in METRICS)
