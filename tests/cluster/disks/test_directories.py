"""Brokers with several log directories, one of which fails under a running cluster."""

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cluster import commanding
from tests.cluster.driving import QUICK, create, quiet, until

from strandline.testing.local_cluster import LocalCluster, NodeProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka.admin import KafkaAdminClient
    from kafka.structs import TopicPartitionReplica

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
OFTEN = {"replica.high.watermark.checkpoint.interval.ms": "200", "log.flush.offset.checkpoint.interval.ms": "300"}


class Jbod(LocalCluster):
    """Each node has its metadata in one directory and partitions in three others."""

    def directories(self, node: NodeProcess) -> list[Path]:
        return [node.folder / f"d{number}" for number in range(3)]

    def properties_text(self, node: NodeProcess) -> str:
        log_dirs = ",".join(map(str, self.directories(node)))
        return super().properties_text(node) + f"metadata.log.dir={node.data_path}\nlog.dirs={log_dirs}\n"

    def described(self, *arguments: str) -> list[dict[str, Any]]:
        done = strandline(self, "log-dirs", "describe", "--json", *arguments)
        assert done.stdout, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        assert done.returncode == any(row["error"] for row in rows)
        return rows

    def leaders(self, topic: str) -> dict[int, int]:
        from confluent_kafka.admin import AdminClient

        found = AdminClient(quiet(self.bootstrap)).list_topics(topic, timeout=10).topics[topic]
        return {index: partition.leader for index, partition in found.partitions.items()}


@pytest.fixture
def jbod(tmp_path: Path) -> Iterator[Jbod]:
    with Jbod(tmp_path / "cluster", 3, properties=QUICK | OFTEN) as cluster:
        yield cluster


def produced(cluster: LocalCluster, partitions: int) -> int:
    """How many of ten records to each partition are acknowledged by all in-sync replicas."""
    acknowledged = []
    producer = Producer(quiet(cluster.bootstrap, acks="all", message_timeout_ms=20_000))
    for number in range(10 * partitions):
        value = b"%d" % number
        producer.produce(
            "t", value, partition=number % partitions, callback=lambda e, m: None if e else acknowledged.append(m)
        )
    producer.flush(30)
    return len(acknowledged)


def test_a_directory_that_fails_moves_its_leaders_and_the_broker_lives_on(jbod: Jbod) -> None:
    create(jbod, "t", partitions=9)
    assert produced(jbod, 9) == 90
    node = jbod.node(1)
    rows = {row["log_dir"]: row for row in jbod.described("--broker", "1", "--topic", "t")}
    lying = {path: [log["partition"] for log in row["partitions"]] for path, row in rows.items()}
    assert sorted(map(len, lying.values())) == [3, 3, 3], "spread over the directories"
    assert all(0 < row["usable_bytes"] <= row["total_bytes"] for row in rows.values())
    led = [index for index, leader in jbod.leaders("t").items() if leader == 1]
    broken = next(path for path, indexes in lying.items() if set(indexes) & set(led))
    kept = set(led) - set(lying[broken])
    os.rename(broken, f"{broken}.gone")
    Path(broken).write_text("not a directory")
    until(lambda: produced(jbod, 9) == 90 and 1 not in {jbod.leaders("t")[index] for index in lying[broken]})
    assert node.running
    assert kept <= {index for index, leader in jbod.leaders("t").items() if leader == 1}
    errors = {row["log_dir"]: row["error"] for row in jbod.described("--broker", "1")}
    assert errors == dict.fromkeys(rows) | {broken: "KAFKA_STORAGE_ERROR"}
    # With the directory back, and a new process, all replicas are in sync again.
    os.unlink(broken)
    os.rename(f"{broken}.gone", broken)
    node.terminate()
    assert node.wait_stopped() == 0
    node.start()
    node.wait_listening()
    until(lambda: in_sync(jbod) == {index: {1, 2, 3} for index in range(9)})
    assert [log["partition"] for row in jbod.described("--broker", "1", "--topic", "t") for log in row["partitions"]]


def in_sync(cluster: LocalCluster) -> dict[int, set[int]]:
    from confluent_kafka.admin import AdminClient

    found = AdminClient(quiet(cluster.bootstrap)).list_topics("t", timeout=10).topics["t"]
    return {index: set(partition.isrs) for index, partition in found.partitions.items()}


def test_another_client_reads_the_directories(jbod: Jbod) -> None:
    create(jbod, "t", partitions=3)
    assert produced(jbod, 3) == 30
    admin = KafkaAdminClient(bootstrap_servers=jbod.node(1).address)
    described = admin.describe_log_dirs()
    text = str(described)
    for path in jbod.directories(jbod.node(1)):
        assert str(path) in text
    admin.close()


def test_a_replica_moves_under_load_and_nothing_is_lost(jbod: Jbod) -> None:
    """Its leader, while every record is acknowledged by all; then what was consumed is what was produced."""
    create(jbod, "t", partitions=1)
    leader = jbod.leaders("t")[0]
    assert produced(jbod, 1) == 10

    def where() -> list[tuple[str, bool, int]]:
        rows = jbod.described("--broker", str(leader), "--topic", "t")
        return [(row["log_dir"], log["is_future"], log["offset_lag"]) for row in rows for log in row["partitions"]]

    ((home, _, _),) = where()
    other = next(str(path) for path in jbod.directories(jbod.node(leader)) if str(path) != home)
    at = ("--broker", str(leader), "--topic", "t", "--partition", "0")
    assert strandline(jbod, "log-dirs", "move", *at, "--to", other).returncode == 0
    count = 10
    while where() != [(other, False, 0)]:
        assert produced(jbod, 1) == 10
        count += 10
        assert count < 1000, where()
    assert produced(jbod, 1) == 10
    assert jbod.leaders("t")[0] == leader, "it led all the time"
    assert not [path.name for path in Path(home).iterdir() if path.name.startswith("t-0")]
    until(lambda: in_sync(jbod) == {0: {1, 2, 3}})
    consumer = Consumer(quiet(jbod.bootstrap, group_id="g", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[Any] = []
    until(lambda: values.extend(m.value() for m in consumer.consume(1000, 0.5)) or len(values) >= count + 10)
    assert values == [b"%d" % number for _ in range(count // 10 + 1) for number in range(10)]
    consumer.close()


def strandline(jbod: Jbod, *arguments: str) -> commanding.Done:
    return commanding.strandline(*arguments, "--bootstrap-server", jbod.bootstrap)


def test_a_cordoned_broker_keeps_what_it_has_and_gets_nothing_new(jbod: Jbod) -> None:
    create(jbod, "t", partitions=3)
    closed, *free = (str(path) for path in jbod.directories(jbod.node(1)))
    alter = ("configs", "alter", "--entity-type", "brokers", "--entity-name", "1")

    def cordoned() -> list[str]:
        return [row["log_dir"] for row in jbod.described("--broker", "1") if row["is_cordoned"]]

    def used(topic: str) -> set[int]:
        from confluent_kafka.admin import AdminClient

        found = AdminClient(quiet(jbod.bootstrap)).list_topics(topic, timeout=10).topics[topic]
        return {node for partition in found.partitions.values() for node in partition.replicas}

    # One directory: new replicas lie in the others, and none moves there.
    assert strandline(jbod, *alter, "--add-config", f"cordoned.log.dirs={closed}").returncode == 0
    until(lambda: cordoned() == [closed])
    create(jbod, "u", partitions=6)
    rows = {row["log_dir"]: len(row["partitions"]) for row in jbod.described("--broker", "1", "--topic", "u")}
    assert rows[closed] == 0
    assert sorted(rows[path] for path in free) == [3, 3]
    # "u-0" lies elsewhere.
    moved = strandline(jbod, "log-dirs", "move", "--broker", "1", "--topic", "u", "--partition", "0", "--to", closed)
    assert moved.returncode == 1 and moved.stderr.startswith("error: u-0: INVALID_REPLICA_ASSIGNMENT\n")
    # All: the broker leads and follows as before, and gets no new partition.
    assert strandline(jbod, *alter, "--add-config", "cordoned.log.dirs=*").returncode == 0
    until(lambda: len(cordoned()) == 3)
    assert strandline(jbod, "topics", "create", "v", "--partitions", "4", "--replication-factor", "2").returncode == 0
    until(lambda: used("v") == {2, 3})
    refused = strandline(jbod, "topics", "create", "w", "--partitions", "1", "--replication-factor", "3")
    assert refused.returncode == 1
    assert "or some brokers have all their log directories cordoned" in refused.stderr
    assert produced(jbod, 3) == 30
    assert in_sync(jbod) == {index: {1, 2, 3} for index in range(3)}
    # A new process hears of it from the metadata.
    node = jbod.node(1)
    node.kill()
    node.start()
    node.wait_listening()
    until(lambda: len(cordoned()) == 3 and in_sync(jbod) == {index: {1, 2, 3} for index in range(3)})
    assert strandline(jbod, "topics", "create", "w", "--partitions", "1", "--replication-factor", "3").returncode == 1
    assert strandline(jbod, *alter, "--delete-config", "cordoned.log.dirs").returncode == 0
    until(lambda: cordoned() == [])
    assert strandline(jbod, "topics", "create", "w", "--partitions", "1", "--replication-factor", "3").returncode == 0


def test_another_client_moves_a_replica(jbod: Jbod) -> None:
    create(jbod, "t", partitions=1)
    assert produced(jbod, 1) == 10
    rows = jbod.described("--broker", "2", "--topic", "t")
    other = next(row["log_dir"] for row in rows if not row["partitions"])
    admin = KafkaAdminClient(bootstrap_servers=jbod.bootstrap)
    admin.alter_replica_log_dirs({TopicPartitionReplica("t", 0, 2): other})
    until(
        lambda: (
            [row["log_dir"] for row in jbod.described("--broker", "2", "--topic", "t") if row["partitions"]] == [other]
        )
    )
    admin.close()
