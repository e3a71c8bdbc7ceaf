"""The main metrics of nodes, from their metrics listeners (`strandline.metrics.listener`)."""

from collections import defaultdict
from urllib.request import urlopen

from strandline.client.admin.topics import live_brokers
from strandline.client.ask import Servers, ask
from strandline.client.brokers import BrokerAt
from strandline.client.errors import refused
from strandline.metadata.configs.node_configs import METRICS_LISTENER
from strandline.metadata.image import BROKER_RESOURCE
from strandline.server.metrics.exposition import read_samples
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TIMEOUT_S = 5.0
EVERYWHERE = ("0.0.0.0", "::", "[::]")

# What is shown of a node: the column, the metrics whose samples it sums, and whether anything above 0 needs attention.
COLUMNS: tuple[tuple[str, str, bool], ...] = (
    ("partitions", "kafka_server_ReplicaManager_PartitionCount", False),
    ("leads", "kafka_server_ReplicaManager_LeaderCount", False),
    ("under replicated", "kafka_server_ReplicaManager_UnderReplicatedPartitions", True),
    ("under min ISR", "kafka_server_ReplicaManager_UnderMinIsrPartitionCount", True),
    ("at min ISR", "kafka_server_ReplicaManager_AtMinIsrPartitionCount", False),
    ("records held back", "strandline_partition_records_above_high_watermark_under_min_isr", True),
    ("offline replicas", "kafka_server_ReplicaManager_OfflineReplicaCount", True),
    ("offline directories", "kafka_log_LogManager_OfflineLogDirectoryCount", True),
    ("moves of directories", "strandline_log_directory_moves", False),
    ("largest lag", "kafka_server_ReplicaFetcherManager_MaxLag", False),
    ("records in", "kafka_server_BrokerTopicMetrics_MessagesIn_total", False),
    ("bytes in", "kafka_server_BrokerTopicMetrics_BytesIn_total", False),
    ("bytes out", "kafka_server_BrokerTopicMetrics_BytesOut_total", False),
    ("bytes replicated in", "kafka_server_BrokerTopicMetrics_ReplicationBytesIn_total", False),
    ("ISR shrinks", "kafka_server_ReplicaManager_IsrShrinks_total", False),
    ("ISR expands", "kafka_server_ReplicaManager_IsrExpands_total", False),
    ("active controller", "kafka_controller_KafkaController_ActiveControllerCount", False),
    ("offline partitions", "kafka_controller_KafkaController_OfflinePartitionsCount", True),
    ("wait for an operator", "kafka_controller_manual_leader_election_required_partition_count", True),
    ("under recovery", "kafka_controller_unclean_recovery_partitions_count", True),
    ("leader elections", "strandline_controller_leader_elections_total", False),
    ("unclean elections", "kafka_controller_ControllerStats_UncleanLeaderElections_total", True),
    ("fenced brokers", "kafka_controller_KafkaController_FencedBrokerCount", True),
    ("metadata offset", "kafka_server_raftmetrics_log_end_offset", False),
)


def urls(bootstrap: Servers) -> dict[int, str | None]:
    """Where each broker serves metrics, by its own configuration; None: unknown."""
    return {node: url_of(broker) for node, broker in live_brokers(bootstrap).items()}


def url_of(broker: BrokerAt) -> str | None:
    asked = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(broker.node), configuration_keys=(METRICS_LISTENER,)
    )
    try:
        answer = ask(broker.host, broker.port, DescribeConfigsRequest(resources=(asked,)), 4, config=broker.config)
    except OSError:
        return None
    (result,) = answer.results
    if result.error_code:
        raise refused(result.error_code, f"the configuration of broker {broker.node}", result.error_message)
    for entry in result.configs:
        own_host, _, own_port = (entry.value or "").rpartition(":")
        if own_port not in ("", "0"):
            return f"http://{broker.host if own_host in EVERYWHERE else own_host or '127.0.0.1'}:{own_port}/metrics"
    return None


def gauges_of(url: str | None) -> dict[str, int] | None:
    """By column; None if the node does not answer."""
    if url is None:
        return None
    try:
        with urlopen(url, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
        sums: dict[str, float] = defaultdict(float)
        for name, _, value in read_samples(text):
            sums[name] += value
    except (OSError, ValueError):
        return None
    return {column: int(sums[name]) for column, name, _ in COLUMNS if name in sums}
