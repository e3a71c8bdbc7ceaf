"""The audit of a real cluster's log directories: silent while it works, and it finds each damage that is planted."""

import json
import random
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Message, Producer
from spark.tests.audit.planting import KINDS, OF_THE_STOP, PARTITIONS, SEGMENTED, TOPIC
from tests.cluster.driving import create, quiet, until
from tests.printed import hold

from strandline.base.ids import METADATA_TOPIC
from strandline.log.checkpoints import parse_offsets
from strandline.quorum.storage.metadata_log import DIRECTORY as METADATA
from strandline.quorum.storage.metadata_log import QUORUM_STATE
from strandline.replica.hosting.rows import CLEANED
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.jobs.audit.files import read_acknowledged, readable_directories
from strandline_spark.jobs.audit.job import audit
from strandline_spark.jobs.audit.ledger import as_rows, losses_in
from strandline_spark.jobs.audit.page import audit_page
from strandline_spark.jobs.audit.report import CLEAN, FINDINGS, INCOMPLETE, AuditReport, report_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Retention and cleaners are at work all the time, and yet there are seconds in which a log can be read.
BUSY = {
    "log.retention.check.interval.ms": "4000",
    "log.cleaner.backoff.ms": "4000",
    "log.flush.offset.checkpoint.interval.ms": "300",  # only what is durable is compacted
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "replica.lag.time.max.ms": "1500",
}
SMALL = {"segment_bytes": str(1 << 20)}
SMALLER = {"internal_segment_bytes": str(1 << 18)}  # a few of them are written in seconds


class Noting:
    """Writes down what is acknowledged, as producers are to do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("a")
        self.count = 0

    def __call__(self, error: Any, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            row = (message.topic(), message.partition(), message.offset(), zlib.crc32(value), None)
            names = ("topic", "partition", "offset", "crc32", "time_ms")
            self.file.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
            self.count += 1


def producer_of(cluster: LocalCluster, **settings: Any) -> Producer:
    return Producer(quiet(cluster.bootstrap, enable_idempotence=True, linger_ms=1, **settings))


@contextmanager
def load(cluster: LocalCluster, noting: Noting) -> Iterator[threading.Event]:
    """Producers that never stop: random values to one topic, a few keys again and again to a compacted one. They are
    slower after the event is set: segments still roll every few seconds, and the audit has most of the machine."""
    over, slower = threading.Event(), threading.Event()
    rng = random.Random(1)

    def run() -> None:
        producer = producer_of(cluster, batch_size=8000)
        count = 0
        while not over.is_set():
            for _ in range(50):
                count += 1
                producer.produce("orders", rng.randbytes(1000), on_delivery=noting)
                producer.produce("states", rng.randbytes(500), str(count % 30).encode())
            producer.flush(20)
            time.sleep(0.3 if slower.is_set() else 0.03)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield slower
    finally:
        over.set()
        thread.join()
        noting.file.flush()


def fill(cluster: LocalCluster, noting: Noting) -> None:
    """Each partition of the topic that will be damaged: batches of a few records; some with several segments."""
    rng = random.Random(2)
    producer = producer_of(cluster)
    for _ in range(12):
        for partition in range(PARTITIONS):
            size = 60_000 if partition in SEGMENTED else 500
            for _ in range(4):
                producer.produce(TOPIC, rng.randbytes(size), partition=partition, on_delivery=noting)
        assert producer.flush(20) == 0


def audit_of(spark: "SparkSession", directories: list[Path], files: list[Path]) -> AuditReport:
    found = readable_directories([str(one) for one in directories])
    losses = losses_in(found.paths)
    options = {"path": ",".join(found.paths)}
    with read_acknowledged(spark, [str(file) for file in files]) as (acks, unread):
        result = audit(spark, options, acknowledged=acks, losses=as_rows(spark, losses.rows))
        return report_of(result, 50, losses, (*found.unread, *unread), acks.count())


def printed(cluster: LocalCluster, path: Path, lines: int) -> None:
    """By the command, as users do it."""
    command = [sys.executable, "-m", "strandline", "produce", "told", "--acknowledged", str(path)]
    text = "".join(f"line {at}\n" for at in range(lines)).encode()
    subprocess.run([*command, "--bootstrap", cluster.bootstrap], input=text, check=True, timeout=30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("audited"), 3, properties=BUSY) as running:
        create(running, TOPIC, PARTITIONS, index_interval_bytes="1", **SMALL)
        create(running, "orders", 2, retention_bytes=str(1 << 19), **SMALLER)
        create(running, "states", 2, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", **SMALLER)
        create(running, "told", 1)
        yield running


def is_busy(cluster: LocalCluster) -> bool:
    """Has retention taken something, and has a cleaner been at work? Else silence would prove little."""
    data = cluster.node(2).data_path
    cleaned = parse_offsets((data / CLEANED).read_bytes())
    oldest = [min((data / f"orders-{partition}").glob("*.log")).stem for partition in range(2)]
    return any(int(name) for name in oldest) and any(offset for at, offset in cleaned.items() if at.topic == "states")


def data_of(cluster: LocalCluster) -> list[Path]:
    return [node.data_path for node in cluster.nodes]


@pytest.mark.long  # minutes of Spark's
@pytest.mark.timeout(300)  # two audits; most of it is Spark's beginning where others use the machine too
def test_a_cluster_under_load_is_clean_and_of_its_damaged_copy_each_damage_is_found(
    spark: "SparkSession", cluster: LocalCluster, tmp_path: Path
) -> None:
    """Retention, compaction and a leader's death while it is read; then many damages to a copy of what it left."""
    files = [tmp_path / "acknowledged.jsonl", tmp_path / "told.jsonl"]
    noting = Noting(files[0])
    fill(cluster, noting)
    printed(cluster, files[1], 300)
    with load(cluster, noting) as slower:
        time.sleep(1)
        cluster.node(1).kill()
        time.sleep(1)
        cluster.node(1).start()
        until(lambda: is_busy(cluster), 60)
        slower.set()
        noting.file.flush()
        healthy = audit_of(spark, data_of(cluster), files)
    assert healthy.findings == ()
    # Where a cleaner makes a log anew each time that it is looked at, the audit says so: that is no damage.
    assert all(one.startswith("states-") and "changed each time" in one for one in healthy.unread)
    assert len(healthy.unread) < 2 * 3
    assert healthy.status == (INCOMPLETE if healthy.unread else CLEAN)
    assert healthy.acknowledged is not None
    assert healthy.acknowledged > 300
    assert any(row["topic"] == "orders" and row["start"] > 0 for row in healthy.replicas)
    assert any(row["topic"] == "states" and row["cleaned_to"] for row in healthy.replicas)
    noting.file.close()
    cluster.node(1).wait_listening()
    cluster.stop()
    copies = [Path(shutil.copytree(path, tmp_path / f"node-{at}")) for at, path in enumerate(data_of(cluster), 1)]
    for partition, (plant, _) in enumerate(KINDS):
        plant(copies, partition)
    (copies[1] / METADATA / QUORUM_STATE).unlink()
    damaged = audit_of(spark, copies, files)
    assert damaged.status == FINDINGS
    of_metadata = {row["rule"] for row in damaged.findings if row["topic"] == METADATA_TOPIC}
    assert of_metadata == {"quorum-state"}
    assert {row["topic"] for row in damaged.findings} == {TOPIC, METADATA_TOPIC}
    found = {
        partition: {row["rule"] for row in damaged.findings if (row["topic"], row["partition"]) == (TOPIC, partition)}
        for partition in range(len(KINDS))
    }
    assert {plant.__name__: rule in found[at] for at, (plant, rule) in enumerate(KINDS)} == {
        plant.__name__: True for plant, _ in KINDS
    }
    of_the_stop = {OF_THE_STOP, "checkpoint"}  # what it left is not there any more
    assert found[5] - of_the_stop <= {"duplicate-sequence", "sequence-gap"}  # its own sequences are missing
    assert found[6] == {"high-watermark", OF_THE_STOP}
    assert found[7] == {"index", OF_THE_STOP}
    assert found[8] >= {"diverged"}
    assert found[9] - of_the_stop == {"acknowledged-lost"}
    assert found[10] - of_the_stop == {"acknowledged-lost-recorded"}
    html = audit_page(damaged, "copies")
    assert all(rule in html for _, rule in KINDS)
    hold(["pipeline", "audit", "--json"], json.dumps(damaged.as_json()))
    assert damaged.as_json()["counts"]["crc"] == 1


def test_directories_and_acknowledgements_that_cannot_be_read_are_named(spark: "SparkSession", tmp_path: Path) -> None:
    found = readable_directories([str(tmp_path / "node-3")])
    assert found.paths == ()
    (tmp_path / "broken.jsonl").write_text('{"topic": "told", "partition": 0, "offset": 0}\n{"topic": "to')
    files = [str(tmp_path / "broken.jsonl"), str(tmp_path / "absent.jsonl")]
    with read_acknowledged(spark, files) as (acks, unread):
        assert [one.rpartition("/")[2] for one in (*found.unread, *unread)] == [
            "node-3: there is no such directory",
            "broken.jsonl: 1 lines are not valid",
            "absent.jsonl: there is no such file",
        ]
        assert acks.count() == 1
