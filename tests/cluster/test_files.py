"""The files of a log directory, read with kafka-python's and aiokafka's readers (the latter knows every codec here),
and with Kafka's description of indexes and producer snapshots."""

import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from crc32c import crc32c
from tests.cluster.driving import create, isr_of, logs_agree, quiet, until

from strandline.server.local_cluster import LocalCluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka.record.memory_records import MemoryRecords as AioRecords
    from kafka.record import MemoryRecords

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]


def batches_of(segment: Path) -> list[tuple[int, Any]]:
    """(position, batch) of all batches of a segment file."""
    content = segment.read_bytes()
    records = MemoryRecords(content)
    found, position = [], 0
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        found.append((position, batch))
        position += struct.unpack_from(">i", content, position + 8)[0] + 12
    assert position == len(content), "nothing is left behind the last batch"
    return found


def records_of(segment: Path) -> list[Any]:
    """All records, decompressed."""
    reader, found = AioRecords(segment.read_bytes()), []
    while (batch := reader.next_batch()) is not None:
        assert batch.validate_crc()
        found += batch
    return found


def rows_of_snapshot(path: Path) -> list[tuple[int, ...]]:
    """By Kafka's description (ProducerSnapshot.json): producer id, epoch, last sequence, last offset, …"""
    content = path.read_bytes()
    version, crc, count = struct.unpack_from(">hIi", content)
    assert (version, crc) == (1, crc32c(content[6:]))
    rows = list(struct.iter_unpack(">qhiqiqiq", content[10:]))
    assert len(rows) == count
    return rows


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_producer_compressed_and_what_is_known_of_it_is_read_by_others(
    cluster: LocalCluster, codec: str
) -> None:
    create(cluster, "t")
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, compression_type=codec, linger_ms=5))
    for i in range(500):
        producer.produce("t", b"%d" % i * 50, key=b"k%d" % i)
    assert producer.flush(20) == 0
    until(lambda: isr_of(cluster, "t") == {1, 2, 3} and logs_agree(cluster, "t"))
    assert cluster.stop() == [0, 0, 0]
    for node in cluster.nodes:
        directory = node.data_path / "t-0"
        segment = directory / f"{0:020d}.log"
        kinds = ("none", "gzip", "snappy", "lz4", "zstd")
        assert {kinds[batch.compression_type] for _, batch in batches_of(segment)} == {codec}
        assert [record.value for record in records_of(segment)] == [b"%d" % i * 50 for i in range(500)]
        snapshots = sorted(directory.glob("*.snapshot"))
        assert [int(path.stem) for path in snapshots] == [500], "a clean stop writes one at the log's end"
        last = {row[0]: row for row in rows_of_snapshot(snapshots[-1])}
        assert [(row[2], row[3]) for row in last.values()] == [(499, 499)], "the last of a producer's rows counts"


def test_segments_and_their_indexes_are_kafkas(cluster: LocalCluster) -> None:
    create(cluster, "t", segment_bytes="1048576")
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, batch_size=20_000, linger_ms=1))
    for i in range(3000):
        producer.produce("t", b"%d" % i * 200, key=b"k", timestamp=1_700_000_000_000 + i)
        producer.poll(0)
    assert producer.flush(20) == 0
    until(lambda: isr_of(cluster, "t") == {1, 2, 3} and logs_agree(cluster, "t"))
    assert cluster.stop() == [0, 0, 0]
    for node in cluster.nodes:
        segments = sorted((node.data_path / "t-0").glob("*.log"))
        assert len(segments) > 1
        expected = 0
        for segment in segments:
            base = int(segment.stem)
            assert base == expected, "a segment is named for its first offset"
            batches = batches_of(segment)
            for _, batch in batches:
                assert batch.base_offset == expected
                expected += batch.last_offset_delta + 1
                assert [int(record.value[:1]) >= 0 for record in batch]
            last_offset_at = {position: batch.last_offset_delta + batch.base_offset for position, batch in batches}
            entries = list(struct.iter_unpack(">ii", segment.with_suffix(".index").read_bytes()))
            assert entries
            assert [base + offset for offset, _ in entries] == [last_offset_at[position] for _, position in entries]
            times = list(struct.iter_unpack(">qi", segment.with_suffix(".timeindex").read_bytes()))
            assert times
            assert all(times[i] < times[i + 1] for i in range(len(times) - 1))
            assert all(timestamp == 1_700_000_000_000 + base + offset for timestamp, offset in times)
        assert expected == 3000


def test_the_metadata_log_is_made_of_kafkas_batches(cluster: LocalCluster) -> None:
    create(cluster, "t")
    assert cluster.stop() == [0, 0, 0]
    for node in cluster.nodes:
        (segment,) = (node.data_path / "__cluster_metadata-0").glob("*.log")
        batches = [batch for _, batch in batches_of(segment)]
        assert batches[0].is_control_batch, "an epoch begins with the leader's change message"
        assert any(not batch.is_control_batch for batch in batches)
