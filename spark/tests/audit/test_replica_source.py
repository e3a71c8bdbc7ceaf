"""Replicas of real clusters in Spark: from their directories and over the wire, while brokers write, and damaged."""

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.cluster.driving import create, leader_of, quiet, until

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import sentence_of

Reading = Callable[..., DataFrame]
RECORDS = 300


def value_of(i: int) -> bytes:
    """16 KB that do not compress."""
    return Random(i).randbytes(16_000)


def write(cluster: LocalCluster, topic: str, count: int = RECORDS, first: int = 0, **settings: Any) -> None:
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, linger_ms=1, batch_size=40_000, **settings))
    for i in range(first, first + count):
        producer.produce(topic, key=b"k%d" % i, value=value_of(i), headers=[("n", b"%d" % i)], partition=i % 2)
    assert producer.flush(20) == 0


def wait_replicated(cluster: LocalCluster, topic: str) -> None:
    """All replicas' files have the same bytes, and every broker has heard that all is committed."""

    def same() -> bool:
        for partition in range(2):
            files = [sorted((node.data_path / f"{topic}-{partition}").glob("*.log")) for node in cluster.nodes]
            if len({tuple((f.name, f.read_bytes()) for f in each) for each in files}) != 1:
                return False
        return True

    until(same)


@pytest.fixture(scope="module")
def written(cluster3: LocalCluster) -> LocalCluster:
    create(cluster3, "replicas", 2, segment_bytes="1048576")
    write(cluster3, "replicas", RECORDS // 2, compression_type="zstd")
    write(cluster3, "replicas", RECORDS // 2, RECORDS // 2)
    wait_replicated(cluster3, "replicas")
    return cluster3


@pytest.fixture
def reading(spark: SparkSession, written: LocalCluster) -> Reading:
    def read(level: str = "batch", **options: str) -> DataFrame:
        source = spark.read.format("strandline-replica").options(level=level, subscribe="replicas", **options)
        return source.load(",".join(str(node.data_path) for node in written.nodes))

    return read


@pytest.fixture
def over_the_wire(spark: SparkSession, written: LocalCluster) -> Reading:
    def read(level: str = "batch", **options: str) -> DataFrame:
        source = spark.read.format("strandline-replica").option("kafka.bootstrap.servers", written.bootstrap)
        return source.options(level=level, subscribe="replicas", **options).load()

    return read


def test_all_replicas_have_the_same_batches(reading: Reading) -> None:
    batches = reading().collect()
    assert [row for row in batches if row.fault is not None or not row.crc_ok] == []
    assert len({row.topic_id for row in batches}) == 1
    copies = [
        sorted(
            (b.partition, b.base_offset, b.last_offset, b.leader_epoch, b.crc) for b in batches if b.broker == broker
        )
        for broker in (1, 2, 3)
    ]
    assert copies[0] == copies[1] == copies[2]
    assert sum(batch.records for batch in batches) == 3 * RECORDS


def test_records_are_those_that_were_written(reading: Reading) -> None:
    rows = sorted(reading("record").where("broker = 2").collect(), key=lambda row: (row.partition, row.offset))
    wanted = [[i for i in range(RECORDS) if i % 2 == partition] for partition in range(2)]
    assert [(row.partition, row.offset, row.key, row.value) for row in rows] == [
        (partition, offset, b"k%d" % i, value_of(i))
        for partition in range(2)
        for offset, i in enumerate(wanted[partition])
    ]
    assert [row.headers[0].value for row in rows] == [row.key[1:] for row in rows]
    assert {row.sequence for row in rows} == set(range(RECORDS // 4))
    assert not any(row.is_control or row.is_transactional for row in rows)


def test_over_the_wire_they_are_the_same(reading: Reading, over_the_wire: Reading) -> None:
    """Of every broker, which answers for its own replica up to what it knows to be committed."""
    names = ["broker", "topic", "topic_id", "partition", "base_offset", "last_offset", "leader_epoch", "crc", "crc_ok"]
    on_disk = sorted(reading().select(names).collect())
    until(lambda: sorted(over_the_wire().select(names).collect()) == on_disk)
    (nowhere,) = over_the_wire().select("segment", "position", "directory").distinct().collect()
    assert tuple(nowhere) == (None, None, None)
    names = ["broker", "partition", "offset", "timestamp", "key", "value", "headers", "sequence"]
    records = over_the_wire("record", splitBytes="500000").select(names).collect()
    assert len(records) == 3 * RECORDS
    assert sorted(records) == sorted(reading("record").select(names).collect())


def test_a_schema_with_fewer_columns(spark: SparkSession, written: LocalCluster) -> None:
    path = str(written.node(1).data_path)
    source = spark.read.schema("offset long, value binary").format("strandline-replica")
    found = source.options(level="record", subscribe="replicas").load(path)
    assert found.columns == ["offset", "value"]
    assert sorted(row.offset for row in found.collect()) == sorted([*range(RECORDS // 2)] * 2)


def test_the_other_levels(reading: Reading) -> None:
    segments = reading("segment").collect()
    batches = reading().collect()
    assert len(segments) > len([row for row in segments if row.is_active]) == 6
    assert sum(row.size for row in segments) == sum(row.size for row in batches)
    places = {(row.broker, row.partition, row.segment, row.position, row.last_offset) for row in batches}
    entries = reading("index").collect()
    assert {(row.broker, row.partition, row.segment, row.position, row.offset) for row in entries} <= places
    assert len(entries) > 6
    assert {(row.partition, row.start_offset) for row in reading("epoch").collect()} == {(0, 0), (1, 0)}
    assert {row.log_end_offset for row in reading("checkpoint").collect()} == {RECORDS // 2}
    until(lambda: {row.high_watermark for row in reading("checkpoint").collect()} == {RECORDS // 2}, 20)


def test_sql_reads_it_too(spark: SparkSession, written: LocalCluster) -> None:
    path = written.node(3).data_path
    spark.sql(f"create or replace temp view r using `strandline-replica` options (path '{path}', subscribe 'replicas')")
    assert spark.sql("select distinct broker from r").collect()[0].broker == 3


def test_while_brokers_write_nothing_looks_damaged(
    spark: SparkSession, cluster3: LocalCluster, written: LocalCluster
) -> None:
    """Segments roll, retention takes some, and what is read is whole."""
    create(cluster3, "busy", 2, segment_bytes="1048576")
    stop = threading.Event()

    def load() -> None:
        at = 0
        while not stop.is_set():
            write(cluster3, "busy", 100, at)
            at += 100
            stop.wait(0.1)

    writer = threading.Thread(target=load)
    writer.start()
    try:
        path = ",".join(str(node.data_path) for node in cluster3.nodes)
        for _ in range(2):
            source = spark.read.format("strandline-replica").option("subscribe", "busy")
            faults = source.load(path).where("fault is not null").collect()
            assert faults == []
            remote = spark.read.format("strandline-replica").option("subscribe", "busy")
            found = remote.option("kafka.bootstrap.servers", cluster3.bootstrap).load()
            assert found.where("fault is not null").collect() == []
    finally:
        stop.set()
        writer.join()


def test_damage_is_found_and_records_are_refused(spark: SparkSession, tmp_path: Path, written: LocalCluster) -> None:
    import shutil

    copied = tmp_path / "copy"
    shutil.copytree(written.node(leader_of(written, "replicas")).data_path, copied)
    first = sorted((copied / "replicas-0").glob("*.log"))[0]
    content = bytearray(first.read_bytes())
    content[200] ^= 1
    first.write_bytes(content)
    source = spark.read.format("strandline-replica").option("subscribe", "replicas")
    (row,) = source.load(str(copied)).where("fault is not null").collect()
    assert (row.partition, row.position, row.fault, row.crc_ok) == (0, 0, "crc", False)
    with pytest.raises(PySparkException) as error:
        source.option("level", "record").load(str(copied)).count()
    sentence = sentence_of(error.value)
    assert sentence.problem.endswith("the batch at offset 0, byte 0 has the fault 'crc'")
    assert "DROPMALFORMED" in sentence.advice
    left = source.options(level="record", mode="DROPMALFORMED").load(str(copied)).count()
    assert 0 < left < RECORDS


def test_what_cannot_be_read_is_said_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    for options, path, problem in (
        ({}, str(tmp_path / "none"), "none is not a directory"),
        ({"levle": "batch"}, str(tmp_path), "no option 'levle'"),
        ({"level": "epoch", "kafka.bootstrap.servers": "127.0.0.1:1"}, None, "cannot be read over the wire"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, None, "no broker answers at 127.0.0.1:1"),
    ):
        with pytest.raises(PySparkException) as error:
            spark.read.format("strandline-replica").options(**options).load(path).count()
        assert problem in sentence_of(error.value).problem
