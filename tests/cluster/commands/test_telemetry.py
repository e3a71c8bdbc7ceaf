"""Metrics that a real client pushes to a real node (KIP-714): the operator subscribes, and the next scrape has them."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster import commanding
from tests.cluster.driving import quiet, until

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess, free_ports
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.telemetry.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from strandline.wire.messages.telemetry.push_telemetry import PushTelemetryRequest

pytestmark = pytest.mark.cluster

APP = 'app-"one"'
SHOWN = "strandline_pushed_org_apache_kafka_"
COUNTS = "kafka_server_clientmetrics_"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    ports = free_ports(3)
    with LocalCluster(tmp_path, 1, ports=ports[:2], metrics_ports=ports[2:]) as cluster:
        yield cluster


def configs(cluster: LocalCluster, *arguments: str, status: int = 0) -> str:
    where = ("--entity-type=client-metrics", "--bootstrap-server", cluster.bootstrap)
    done = commanding.strandline("configs", *arguments, *where)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def scrape(node: NodeProcess) -> dict[str, list[tuple[dict[str, str], float]]]:
    with urlopen(f"http://{HOST}:{node.metrics_port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found


def value(node: NodeProcess, name: str) -> float:
    ((_, found),) = scrape(node)[name]
    return found


def offered(node: NodeProcess) -> set[int]:
    return {row.api_key for row in ask(HOST, node.port, ApiVersionsRequest(), 3).api_keys} & {71, 72}


def test_a_client_pushes_what_the_operator_subscribed_to_and_a_scrape_shows_it(cluster: LocalCluster) -> None:
    (node,) = cluster.nodes
    assert offered(node) == {71, 72}
    asked = ask(HOST, node.port, GetTelemetrySubscriptionsRequest(), 0)
    assert (asked.requested_metrics, asked.push_interval_ms) == ((), 300_000)

    named = "--entity-name=s"
    settings = f"metrics=*,interval.ms=300,match=[client_id={re.escape(APP)},client_software_name=confluent-kafka.*]"
    configs(cluster, "alter", named, "--add-config", settings)
    assert "  interval.ms=300 sensitive=false" in configs(cluster, "describe", named)
    assert configs(cluster, "describe") == configs(cluster, "describe", named), "it is the only one"
    refused = configs(cluster, "alter", named, "--add-config=interval.ms=1", status=1)
    assert "Invalid value 1 for interval.ms" in refused

    loud = {**quiet(cluster.bootstrap), "client.id": APP, "enable.metrics.push": True}
    producer = Producer(loud)
    consumer = Consumer({**loud, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    silent = Producer({**loud, "client.id": "other"})

    def both_are_shown() -> bool:
        for one in (producer, silent):
            one.produce("t", b"x")
            one.flush(5)
        consumer.poll(0.05)
        names = [name for name in scrape(node) if name.startswith(SHOWN)]
        return any("_producer_" in name for name in names) and any("_consumer_" in name for name in names)

    until(both_are_shown, 20)
    until(lambda: value(node, f"{COUNTS}plugin_export_count_total") >= 4)
    page = scrape(node)
    pushed = [labels for name, rows in page.items() if name.startswith("strandline_pushed_") for labels, _ in rows]
    assert {labels["client_id"] for labels in pushed} == {APP}
    assert len({labels["client_instance_id"] for labels in pushed}) == 2
    assert page[f"{SHOWN}producer_node_request_latency_max"][0][0]["node_id"] == "1", "a label of the client's own"
    assert value(node, f"{COUNTS}plugin_error_count_total") == 0
    assert page["strandline_telemetry_series"][0][1] == len(pushed)
    assert commanding.strandline("metrics", "--bootstrap-server", cluster.bootstrap).returncode == 0

    for one in (consumer, producer, silent):
        one.close()
    until(lambda: value(node, f"{COUNTS}instance_count") == 0)
    assert any(name.startswith(SHOWN) for name in scrape(node)), "what it pushed last is shown for a while"
    configs(cluster, "alter", named, "--delete-config", "metrics,interval.ms,match")
    assert configs(cluster, "describe", named) == "Dynamic configs for client-metric s are:\n"


def test_a_node_that_serves_no_metrics_does_not_offer_to_take_any(one_node: LocalCluster) -> None:
    (node,) = one_node.nodes
    assert offered(node) == set()
    for request in (GetTelemetrySubscriptionsRequest(), PushTelemetryRequest()):
        assert ask(HOST, node.port, request, 0).error_code == ErrorCode.UNSUPPORTED_VERSION
