"""Real clients that say where they are read from the replica in their rack (KIP-392)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cluster.driving import QUICK, create, leader_of, quiet, until

from strandline.replica.serving.selection import RACK_AWARE
from strandline.testing.local_cluster import LocalCluster, NodeProcess

pytestmark = pytest.mark.cluster


class Racks(LocalCluster):
    """Node n is in rack "r" and n."""

    def properties_text(self, node: NodeProcess) -> str:
        return super().properties_text(node) + f"broker.rack=r{node.node_id}\n"


@pytest.fixture
def racks(tmp_path: Path) -> Iterator[LocalCluster]:
    with Racks(tmp_path / "cluster", 3, properties={**QUICK, "replica.selector.class": RACK_AWARE}) as cluster:
        yield cluster


class Reader:
    """librdkafka on partition 0 of topic "t", from its beginning. It tells which broker it reads from."""

    def __init__(self, cluster: LocalCluster, rack: str) -> None:
        self.sources: list[int] = []
        self.values: list[bytes] = []
        settings: dict[str, Any] = quiet(
            cluster.bootstrap,
            group_id="unused",
            client_rack=rack,
            enable_auto_commit=False,
            auto_offset_reset="error",
            statistics_interval_ms=50,
            topic_metadata_refresh_interval_ms=500,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )
        self.consumer = Consumer({**settings, "stats_cb": self.on_statistics})
        self.consumer.assign([TopicPartition("t", 0, 0)])

    def on_statistics(self, text: str) -> None:
        partition = json.loads(text)["topics"].get("t", {}).get("partitions", {}).get("0")
        if partition is not None:
            self.sources.append(partition["broker"])

    def poll(self) -> None:
        for message in self.consumer.consume(1000, 0.05):
            assert message.error() is None, message.error()
            self.values.append(message.value())

    def reads_from(self, node: int) -> bool:
        self.poll()
        return self.sources[-1:] == [node]

    def has_read(self, values: list[bytes]) -> bool:
        self.poll()
        return self.values == values


def produce(cluster: LocalCluster, first: int, end: int) -> list[bytes]:
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True))
    values = [b"%d" % number for number in range(first, end)]
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(20) == 0
    return values


def test_librdkafka_reads_from_its_rack_and_elsewhere_when_that_replica_dies(racks: LocalCluster) -> None:
    create(racks, "t")
    leader = leader_of(racks, "t")
    near = next(node for node in racks.nodes if node.node_id != leader)
    values = produce(racks, 0, 1000)
    reader = Reader(racks, f"r{near.node_id}")
    try:
        until(lambda: reader.reads_from(near.node_id))
        until(lambda: reader.has_read(values))
        values += produce(racks, 1000, 2000)
        until(lambda: reader.has_read(values))
        assert reader.reads_from(near.node_id)
        near.kill()
        values += produce(racks, 2000, 3000)
        until(lambda: reader.has_read(values))
        assert not reader.reads_from(near.node_id)
    finally:
        reader.consumer.close()


@pytest.mark.parametrize("rack", ["", "elsewhere", "the leader's"])
def test_librdkafka_reads_from_the_leader_if_nobody_is_closer(racks: LocalCluster, rack: str) -> None:
    create(racks, "t")
    leader = leader_of(racks, "t")
    values = produce(racks, 0, 100)
    reader = Reader(racks, f"r{leader}" if rack == "the leader's" else rack)
    try:
        until(lambda: reader.has_read(values))
        until(lambda: reader.reads_from(leader))
        assert set(reader.sources) <= {leader, -1}
    finally:
        reader.consumer.close()
