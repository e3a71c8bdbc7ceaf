"""What an operator sees when a broker dies: the metrics of a real cluster, read by Prometheus' own client library."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster import commanding
from tests.cluster.driving import QUICK, active_controller, admin_of, create, leader_of, quiet, until

from strandline.broker.metrics.table import METRICS
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess, free_ports
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

pytestmark = pytest.mark.cluster

ABOVE = "strandline_partition_records_above_high_watermark_under_min_isr"
MANAGER = "kafka_server_ReplicaManager"
CONTROLLER = "kafka_controller_KafkaController"
TOPICS = "kafka_server_BrokerTopicMetrics"
REQUESTS = "kafka_network_RequestMetrics"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    ports = free_ports(9)
    with LocalCluster(tmp_path, 3, ports=ports[:6], metrics_ports=ports[6:], properties=QUICK) as cluster:
        yield cluster


class Scrape:
    """One node's page at one moment."""

    def __init__(self, node: NodeProcess) -> None:
        with urlopen(f"http://{HOST}:{node.metrics_port}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            self.families = list(text_string_to_metric_families(answer.read().decode()))

    def __call__(self, name: str, **labels: Any) -> float:
        """The sum of the samples that have these labels."""
        wanted = {key: str(value) for key, value in labels.items()}
        found = [
            sample.value
            for family in self.families
            for sample in family.samples
            if sample.name == name and wanted.items() <= sample.labels.items()
        ]
        assert found, f"no sample {name} {labels}"
        return sum(found)


def read_first(node: NodeProcess, topic: str) -> None:
    """All of partition 0, without a group, whose offsets topic would change the counts."""
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=(FetchTopic(topic=topic, partitions=(asked,)),))
    assert ask(HOST, node.port, request, 12).responses[0].partitions[0].error_code == 0


def produce(cluster: LocalCluster, topic: str, count: int, acks: str, partitions: int = 1) -> None:
    """To each partition in turn."""
    producer = Producer(quiet(cluster.bootstrap, acks=acks))
    for n in range(count):
        producer.produce(topic, b"%d" % n, partition=n % partitions)
    assert producer.flush(20) == 0


def strandline(*arguments: str) -> str:
    done = commanding.strandline(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_broker_dies_and_the_others_say_so(cluster: LocalCluster) -> None:
    create(cluster, "t", partitions=3)
    produce(cluster, "t", 300, "all", partitions=3)
    pages = [Scrape(node) for node in cluster.nodes]
    assert sum(page(f"{MANAGER}_LeaderCount") for page in pages) == 3
    for page in pages:
        assert page(f"{MANAGER}_PartitionCount") == 3
        assert page(f"{MANAGER}_UnderReplicatedPartitions") == 0
        assert page(f"{CONTROLLER}_ActiveBrokerCount") == 3
        assert page(f"{REQUESTS}_Requests_total", request="FetchFollower") > 0
        assert page("kafka_log_LogManager_OfflineLogDirectoryCount") == 0
        assert page("kafka_server_KafkaServer_BrokerState") == 3
        assert page("process_resident_memory_bytes") > 1e6
    assert sum(page(f"{CONTROLLER}_ActiveControllerCount") for page in pages) == 1
    until(lambda: all(Scrape(node)("kafka_log_Log_LogEndOffset", topic="t") == 300 for node in cluster.nodes))
    copied = [Scrape(node) for node in cluster.nodes]
    assert sum(page(f"{TOPICS}_MessagesIn_total", topic="t") for page in copied) == 300
    size = sum(page(f"{TOPICS}_BytesIn_total", topic="t") for page in copied)
    assert size == sum(page("kafka_log_Log_Size", topic="t") for page in copied) / 3
    assert sum(page(f"{TOPICS}_ReplicationBytesIn_total") for page in copied) == 2 * size
    assert sum(page(f"{TOPICS}_ReplicationBytesOut_total") for page in copied) >= 2 * size
    assert [page("kafka_server_ReplicaFetcherManager_MaxLag") for page in copied] == [0, 0, 0]
    leader = cluster.node(leader_of(cluster, "t"))
    read_first(leader, "t")
    page = Scrape(leader)
    assert page(f"{TOPICS}_BytesOut_total", topic="t") == page("kafka_log_Log_Size", topic="t", partition=0)
    assert page(f"{REQUESTS}_Requests_total", request="FetchConsumer") == 1
    produced = sum(page(f"{REQUESTS}_TotalTimeMs_count", request="Produce") for page in pages)
    assert produced == sum(page(f"{REQUESTS}_Requests_total", request="Produce") for page in pages) >= 3

    served = {
        family.name + ("_total" if family.type == "counter" else "") for page in pages for family in page.families
    }
    perhaps_not_yet = {f"{REQUESTS}_Errors_total", "strandline_node_long_steps_ms"}
    assert {metric.name for metric in METRICS} - served <= perhaps_not_yet
    assert served <= {metric.name for metric in METRICS}

    controller = active_controller(cluster)
    victim = next(node for node in cluster.nodes if node is not controller)
    others = [node for node in cluster.nodes if node is not victim]
    victim.kill()

    def the_others_know() -> bool:
        now = [Scrape(node) for node in others]
        return (
            sum(page(f"{MANAGER}_LeaderCount") for page in now) == 3
            and sum(page(f"{MANAGER}_UnderReplicatedPartitions") for page in now) == 3
            and sum(page(f"{MANAGER}_AtMinIsrPartitionCount") for page in now) == 3
            and all(page(f"{CONTROLLER}_FencedBrokerCount") == 1 for page in now)
            and all(page(f"{CONTROLLER}_OfflinePartitionsCount") == 0 for page in now)
        )

    until(the_others_know)
    elected = [Scrape(node) for node in others]
    assert sum(page("strandline_controller_leader_elections_total") for page in elected) == 1
    assert sum(page("kafka_controller_ControllerStats_UncleanLeaderElections_total") for page in elected) == 0
    states = [page(f"{CONTROLLER}_BrokerRegistrationState", broker=victim.node_id) for page in elected]
    assert states == [10, 10]
    assert sum(Scrape(node)("kafka_cluster_Partition_InSyncReplicasCount", topic="t") for node in others) == 6
    victim.start()
    until(lambda: sum(Scrape(node)(f"{MANAGER}_UnderReplicatedPartitions") for node in others) == 0, 30)
    # Counted by the answer, which metadata may overtake.
    until(lambda: sum(Scrape(node)(f"{MANAGER}_IsrExpands_total") for node in others) >= 3)


def test_t24_what_is_written_below_min_isr_is_counted_and_the_command_shows_it(cluster: LocalCluster) -> None:
    """T24: with too few replicas in sync, acks=1 is acknowledged and nobody can read it."""
    create(cluster, "t")
    produce(cluster, "t", 10, "all")
    rows = json.loads(strandline("metrics", "--json", "--bootstrap-server", cluster.bootstrap))
    assert [row["node"] for row in rows] == [1, 2, 3]
    assert sum(row["leads"] for row in rows) == 1
    assert sum(row["active controller"] for row in rows) == 1

    leader = cluster.node(leader_of(cluster, "t"))
    controller = active_controller(cluster)
    first = next(node for node in cluster.nodes if node not in (leader, controller))
    first.kill()
    until(lambda: Scrape(leader)(f"{MANAGER}_AtMinIsrPartitionCount") == 1)
    entry = ConfigEntry("min.insync.replicas", "3", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[entry])
    admin = admin_of(cluster)  # kept by name: it answers its futures only while it lives
    admin.incremental_alter_configs([changed])[changed].result(10)
    until(lambda: Scrape(leader)(f"{MANAGER}_UnderMinIsrPartitionCount") == 1)
    produce(cluster, "t", 7, "1")
    assert Scrape(leader)(ABOVE, topic="t", partition=0) == 7
    text = strandline("metrics", "--bootstrap-server", cluster.bootstrap)
    assert "records-held-back=7" in text
    assert "under-min-ISR=1" in text
    assert sum(row["records in"] for row in rows) == 10
    assert [row["unclean elections"] for row in rows] == [0, 0, 0]
    first.start()
    until(lambda: Scrape(leader)(ABOVE, topic="t") == 0, 30)


def test_a_node_without_the_setting_serves_no_metrics_and_the_command_says_what_to_set(
    shared_cluster: LocalCluster,
) -> None:
    done = commanding.strandline("metrics", "--bootstrap-server", shared_cluster.bootstrap)
    assert done.returncode == 1
    assert "strandline.metrics.listener=" in done.stderr
