"""Replicas over the wire where brokers are gone, logs begin late, and topics are made anew; without Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from tests.cluster.driving import admin_of, create, leader_of, quiet, until

from strandline.client.errors import UnknownTopic, Unreachable
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.replica import LogChanged
from strandline_spark.replica.options import BOOTSTRAP
from strandline_spark.replica.source import ReplicaReader, ReplicaSource


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, 2) as running:
        yield running


def write(cluster: LocalCluster, topic: str, count: int) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all", linger_ms=0))
    for i in range(count):
        producer.produce(topic, value=b"%d" % i * 1000, partition=0)
        assert producer.flush(20) == 0


def reader(cluster: LocalCluster, **options: str) -> ReplicaReader:
    given = {BOOTSTRAP: cluster.bootstrap, "kafka.request.timeout.ms": "3000", "kafka.default.api.timeout.ms": "15000"}
    return ReplicaSource({**given, **options}).reader(ReplicaSource({**given, **options}).schema())


def rows(reading: ReplicaReader) -> list[dict[str, Any]]:
    return [row for split in reading.partitions() for part in reading.read(split) for row in part.to_pylist()]


def offsets(reading: ReplicaReader) -> dict[int, list[int]]:
    """The batches of each broker."""
    found: dict[int, list[int]] = {}
    for row in rows(reading):
        assert row["fault"] is None
        found.setdefault(row["broker"], []).append(row["base_offset"])
    return found


def test_ranges_of_offsets_have_each_batch_once(cluster: LocalCluster) -> None:
    create(cluster, "t")
    write(cluster, "t", 20)
    wanted = {1: list(range(20)), 2: list(range(20))}
    until(lambda: offsets(reader(cluster, subscribe="t")) == wanted)
    parts = reader(cluster, subscribe="t", splitBytes="5000")
    assert len(parts.partitions()) > 4
    assert offsets(parts) == wanted
    assert offsets(reader(cluster, assign='{"t": [0]}')) == wanted
    assert offsets(reader(cluster, subscribePattern="u")) == {}


def test_a_topic_that_there_is_not(cluster: LocalCluster) -> None:
    with pytest.raises(UnknownTopic, match="topic none does not exist"):
        reader(cluster, subscribe="none").partitions()


def test_a_log_that_does_not_begin_at_zero(cluster: LocalCluster) -> None:
    create(cluster, "t")
    write(cluster, "t", 10)
    begun = reader(cluster, subscribe="t")
    until(lambda: offsets(begun) == {1: list(range(10)), 2: list(range(10))})
    planned = begun.partitions()
    admin, cut = admin_of(cluster), TopicPartition("t", 0, 6)
    admin.delete_records([cut])[cut].result(10)
    until(lambda: offsets(reader(cluster, subscribe="t")) == {1: [6, 7, 8, 9], 2: [6, 7, 8, 9]})
    with pytest.raises(LogChanged, match="t-0 on broker 1: t-0 does not have offset 0"):
        list(begun.read(planned[0]))


def test_a_topic_that_was_made_anew(cluster: LocalCluster) -> None:
    create(cluster, "t")
    write(cluster, "t", 2)
    old = reader(cluster, subscribe="t", whenChanged="report")
    until(lambda: len(rows(old)) == 4)
    planned = old.partitions()
    admin = admin_of(cluster)
    admin.delete_topics(["t"])["t"].result(10)
    create(cluster, "t")
    write(cluster, "t", 2)
    found = [row for split in planned for part in old.read(split) for row in part.to_pylist()]
    assert [(row["broker"], row["fault"], row["base_offset"]) for row in found] == [
        (1, "changed", None),
        (2, "changed", None),
    ]


def test_a_broker_that_is_gone_is_an_error_or_a_row(cluster: LocalCluster) -> None:
    create(cluster, "t")
    write(cluster, "t", 3)
    until(lambda: len(rows(reader(cluster, subscribe="t"))) == 6)
    gone = cluster.node(3 - leader_of(cluster, "t"))
    gone.kill()
    with pytest.raises(Unreachable, match=rf"replica of t-0 on broker {gone.node_id} cannot be read: .*\n  start the"):
        reader(cluster, subscribe="t").partitions()
    found = rows(reader(cluster, subscribe="t", whenChanged="report"))
    assert [row["fault"] for row in found if row["broker"] == gone.node_id] == ["unreachable"]
    assert [row["fault"] for row in found if row["broker"] != gone.node_id] == [None] * 3
