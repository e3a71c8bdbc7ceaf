"""The files of log directories that real clients filled, read without any of our code (`kafka_files`).

One cluster writes all of them: topics that keep what each client compressed and topics that have a compression of their
own, more than one leader epoch, deleted records. It is stopped in order; then nothing here runs but the readers.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cluster.conftest import QUICK
from tests.cluster.driving import admin_of, create, isr_of, leader_of, logs_agree, quiet, until
from tests.cluster.kafka_files import (
    Batch,
    ProducerEntry,
    batches_of,
    epochs_in,
    offset_index,
    offsets_in,
    producer_snapshot,
    properties_in,
    time_index,
)

from strandline.testing.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("files")]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OWN = {"uncompressed": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
TOPICS = ("as-sent", *[f"in-{name}" for name in OWN])
EACH = 60  # records of each client in each topic
DAY_ONE = 1_700_000_000_000
CUT_AT = 25


class Written(NamedTuple):
    """What was sent, and what librdkafka, whose codecs are its own, read of it; then the directories."""

    expected: list[tuple[bytes, bytes, int]]  # key, value, timestamp, the same in all topics
    consumed: dict[str, list[tuple[bytes, bytes, int]]]
    folders: list[Path]

    def directories(self, topic: str) -> list[Path]:
        return [folder / f"{topic}-0" for folder in self.folders]


def record(i: int) -> tuple[bytes, bytes, int]:
    return b"k%d" % (i % 7), b"%d " % i * (i % 90 + 1), DAY_ONE + i


def produce(cluster: LocalCluster, topics: tuple[str, ...], codec: str, start: int, count: int) -> None:
    settings = quiet(cluster.bootstrap, enable_idempotence=True, compression_type=codec, linger_ms=5, batch_size=4000)
    producer = Producer(settings)
    for i in range(start, start + count):
        key, value, timestamp = record(i)
        for topic in topics:
            producer.produce(topic, value, key=key, timestamp=timestamp)
        producer.poll(0)
    assert producer.flush(20) == 0


def consumed(cluster: LocalCluster, topic: str, count: int) -> list[tuple[bytes, bytes, int]]:
    consumer = Consumer(quiet(cluster.bootstrap, group_id="g", check_crcs=True, enable_auto_commit=False))
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []

    def enough() -> bool:
        found.extend(consumer.consume(1000, timeout=0.2))
        return len(found) >= count

    until(enough)
    consumer.close()
    assert [message.error() for message in found if message.error()] == []
    return [(message.key(), message.value(), message.timestamp()[1]) for message in found]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with LocalCluster(tmp_path_factory.mktemp("files"), 3, properties=QUICK) as cluster:
        create(cluster, "as-sent")
        create(cluster, "cut")
        for name in OWN:
            create(cluster, f"in-{name}", compression_type=name)
        for at, codec in enumerate(CODECS):
            produce(cluster, TOPICS, codec, at * EACH, EACH)
        produce(cluster, ("cut",), "gzip", 0, EACH)
        cut = TopicPartition("cut", 0, CUT_AT)
        admin = admin_of(cluster)
        admin.delete_records([cut])[cut].result(10)
        cluster_moves_its_leaders(cluster)
        produce(cluster, TOPICS, "none", len(CODECS) * EACH, EACH)
        count = (len(CODECS) + 1) * EACH
        until(lambda: all(isr_of(cluster, topic) == {1, 2, 3} and logs_agree(cluster, topic) for topic in TOPICS))
        read = {topic: consumed(cluster, topic, count) for topic in TOPICS}
        assert cluster.stop() == [0, 0, 0]
        yield Written([record(i) for i in range(count)], read, [node.data_path for node in cluster.nodes])


def cluster_moves_its_leaders(cluster: LocalCluster) -> None:
    """A node stops in order and comes back: what it led has a new epoch."""
    node = cluster.node(leader_of(cluster, "as-sent"))
    node.terminate()
    assert node.wait_stopped() == 0
    until(lambda: leader_of(cluster, "as-sent") != node.node_id)
    node.start()
    until(lambda: isr_of(cluster, "as-sent") == {1, 2, 3})


def stored(directory: Path) -> list[Batch]:
    return [batch for segment in sorted(directory.glob("*.log")) for batch in batches_of(segment)]


def codecs_of(batches: list[Batch]) -> list[str]:
    return [CODECS[batch.codec] for batch in batches]


# --- segments


@pytest.mark.parametrize("topic", TOPICS)
def test_all_records_are_there_in_order_on_all_replicas(written: Written, topic: str) -> None:
    for directory in written.directories(topic):
        batches = stored(directory)
        records = [record for batch in batches for record in batch.records]
        assert [record.offset for record in records] == list(range(len(written.expected)))
        assert [(record.key, record.value) for record in records] == [
            (key, value) for key, value, _ in written.expected
        ]
        assert [batch.max_timestamp for batch in batches] == [DAY_ONE + batch.last_offset for batch in batches]
        assert not any(batch.is_stamped for batch in batches)


@pytest.mark.parametrize("topic", TOPICS)
def test_another_client_with_codecs_of_its_own_reads_them(written: Written, topic: str) -> None:
    assert written.consumed[topic] == written.expected


def test_a_topic_without_a_compression_keeps_what_each_client_sent(written: Written) -> None:
    for directory in written.directories("as-sent"):
        for batch, codec in zip(stored(directory), codecs_of(stored(directory)), strict=True):
            sent_in = (*CODECS, "none")[batch.base_offset // EACH]
            assert codec == sent_in


@pytest.mark.parametrize(("name", "codec"), OWN.items())
def test_a_topic_with_a_compression_has_every_batch_in_it(written: Written, name: str, codec: str) -> None:
    for directory in written.directories(f"in-{name}"):
        batches = stored(directory)
        assert set(codecs_of(batches)) == {codec}
        assert len(batches) > len(CODECS)


@pytest.mark.parametrize("name", OWN)
def test_recompressed_batches_name_their_producer_and_its_sequences(written: Written, name: str) -> None:
    for directory in written.directories(f"in-{name}"):
        next_of: dict[int, int] = {}
        for batch in stored(directory):
            assert batch.producer_epoch == 0
            assert batch.base_sequence == next_of.get(batch.producer_id, 0)
            next_of[batch.producer_id] = batch.base_sequence + len(batch.records)
        assert list(next_of.values()) == [EACH] * (len(CODECS) + 1)


# --- small files


@pytest.mark.parametrize("topic", TOPICS)
def test_the_leader_epochs_are_those_of_the_batches(written: Written, topic: str) -> None:
    """And one more at most: who began to lead while the others stopped has written nothing."""
    for directory in written.directories(topic):
        begins: dict[int, int] = {}
        for batch in stored(directory):
            begins.setdefault(batch.leader_epoch, batch.base_offset)
        epochs = epochs_in(directory / "leader-epoch-checkpoint")
        count = len(begins)
        assert epochs[:count] == list(begins.items())
        assert [start for _, start in epochs[count:]] in ([], [len(written.expected)])
        assert epochs == sorted(dict(epochs).items())


def test_a_new_leader_began_a_new_epoch(written: Written) -> None:
    for directory in written.directories("as-sent"):
        assert len(epochs_in(directory / "leader-epoch-checkpoint")) >= 2


def test_the_checkpoints_of_a_directory_say_where_its_logs_end_and_begin(written: Written) -> None:
    for folder in written.folders:
        ends = {(topic, 0): len(written.expected) for topic in TOPICS} | {("cut", 0): EACH}
        durable = offsets_in(folder / "recovery-point-offset-checkpoint")
        assert {at: durable[at] for at in ends} == ends
        committed = offsets_in(folder / "replication-offset-checkpoint")
        assert {at: committed[at] for at in ends} == ends
        assert offsets_in(folder / "log-start-offset-checkpoint") == {("cut", 0): CUT_AT}
        assert set(durable) == set(committed) == {at for at in committed if (folder / f"{at[0]}-{at[1]}").is_dir()}


@pytest.mark.parametrize("topic", ["as-sent", "in-uncompressed", "in-zstd"])
def test_a_producer_snapshot_has_the_last_batches_of_each_producer(written: Written, topic: str) -> None:
    """Of several rows of one producer Kafka believes the last."""
    for directory in written.directories(topic):
        newest = max(directory.glob("*.snapshot"))
        assert int(newest.stem) == len(written.expected), "a clean stop writes one at the log's end"
        rows = producer_snapshot(newest)
        expected: dict[int, list[ProducerEntry]] = {}
        for batch in stored(directory):
            delta = len(batch.records) - 1
            last_sequence = batch.base_sequence + delta
            entry = (batch.producer_id, 0, last_sequence, batch.last_offset, delta, batch.max_timestamp, -1, -1)
            expected.setdefault(batch.producer_id, []).append(ProducerEntry(*entry))
        assert rows == [entry for _, entries in sorted(expected.items()) for entry in entries[-5:]]


def test_a_directory_and_each_partition_in_it_say_what_they_are(written: Written) -> None:
    ids: dict[str, set[str]] = {}
    clusters = set()
    for at, folder in enumerate(written.folders):
        meta = properties_in(folder / "meta.properties")
        assert (meta["version"], meta["node.id"]) == ("1", str(at + 1))
        clusters.add(meta["cluster.id"])
        for topic in TOPICS:
            version, topic_id = (folder / f"{topic}-0" / "partition.metadata").read_text().splitlines()
            assert version == "version: 0"
            ids.setdefault(topic, set()).add(topic_id.removeprefix("topic_id: "))
    assert len(clusters) == 1
    assert [len(found) for found in ids.values()] == [1] * len(TOPICS)
    assert len(set.union(*ids.values())) == len(TOPICS)


def test_the_metadata_log_is_made_of_kafkas_batches(written: Written) -> None:
    for folder in written.folders:
        (segment,) = (folder / "__cluster_metadata-0").glob("*.log")
        batches = batches_of(segment)
        assert batches[0].base_offset == 0
        offsets = [record.offset for batch in batches for record in batch.records]
        assert offsets == list(range(len(offsets)))
        starts = epochs_in(folder / "__cluster_metadata-0" / "leader-epoch-checkpoint")
        assert [epoch for epoch, _ in starts] == list(dict.fromkeys(batch.leader_epoch for batch in batches))


# --- indexes, of more segments than one


def test_segments_and_their_indexes_are_kafkas(cluster: LocalCluster) -> None:
    topics = ("producer", "gzip")  # by their compression
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, batch_size=20_000, linger_ms=1))
    value = Random(1).randbytes(12_000)  # what no codec makes smaller
    for topic in topics:
        create(cluster, topic, segment_bytes="1048576", compression_type=topic)
        for i in range(400):
            producer.produce(topic, value, key=b"k", timestamp=DAY_ONE + i)
            producer.poll(0)
    assert producer.flush(20) == 0
    until(lambda: all(isr_of(cluster, topic) == {1, 2, 3} and logs_agree(cluster, topic) for topic in topics))
    assert cluster.stop() == [0, 0, 0]
    for folder in [node.data_path / f"{topic}-0" for node in cluster.nodes for topic in topics]:
        segments = sorted(folder.glob("*.log"))
        assert len(segments) > 2
        expected = 0
        for segment in segments:
            batches = batches_of(segment)
            assert int(segment.stem) == batches[0].base_offset == expected, "a segment is named for its first offset"
            expected = batches[-1].last_offset + 1
            assert segment.stat().st_size <= 1048576
            check_indexes(segment, batches)
        assert expected == 400
        snapshots = [int(path.stem) for path in sorted(folder.glob("*.snapshot"))]
        assert snapshots == [*[int(segment.stem) for segment in segments[1:]], 400]


def check_indexes(segment: Path, batches: list[Batch]) -> None:
    """Worked out anew from the batches: an entry for a batch that begins more than 4,096 bytes behind the last one with
    an entry; in the time index the largest timestamp so far, and at the end that of the whole segment."""
    base = int(segment.stem)
    places = {batch.position: batch.last_offset - base for batch in batches}
    entries = offset_index(segment.with_suffix(".index"))
    assert entries
    assert [relative for relative, _ in entries] == [places[position] for _, position in entries]
    positions = [0, *[position for _, position in entries]]
    assert all(later - earlier > 4096 for earlier, later in pairwise(positions))
    times = time_index(segment.with_suffix(".timeindex"))
    assert times == sorted(set(times))
    assert all(timestamp == DAY_ONE + base + relative for timestamp, relative in times)
    assert {relative for _, relative in times} <= set(places.values())
    assert times[-1] == (DAY_ONE + batches[-1].last_offset, batches[-1].last_offset - base)
