"""Damage to log directories that a real cluster has written, of the kinds that an audit must find."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
from crc32c import crc32c

from strandline.base.ids import TopicPartition
from strandline.base.time import Instant
from strandline.log.checkpoints import format_offsets, parse_offsets
from strandline.log.producers.producer_snapshot import decode, encode
from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE, BatchHeader, scan

TOPIC = "victims"  # sorted behind all others: a page shows the first replicas
HIGH_WATERMARKS, RECOVERY_POINTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"
OF_THE_STOP = "changed-since-stop"
EPOCH_AT, SEQUENCE_AT = 12, 53
Nodes = list[Path]  # their log directories


def logs_of(directory: Path, partition: int) -> list[Path]:
    return sorted((directory / f"{TOPIC}-{partition}").glob("*.log"))


def changed(path: Path, change: Callable[[bytearray, list[BatchHeader]], None]) -> None:
    content = bytearray(path.read_bytes())
    change(content, scan(content).headers)
    path.write_bytes(content)


def resealed(content: bytearray, header: BatchHeader) -> None:
    crc = crc32c(bytes(content[header.position + ATTRIBUTES_AT : header.end]))
    struct.pack_into(">I", content, header.position + CRC_AT, crc)


def middle(headers: list[BatchHeader]) -> BatchHeader:
    return headers[len(headers) // 2]


def mark(directory: Path, partition: int, change: Callable[[int], int], file: str = HIGH_WATERMARKS) -> None:
    path = directory / file
    offsets = parse_offsets(path.read_bytes())
    at = TopicPartition(TOPIC, partition)
    path.write_bytes(format_offsets({**offsets, at: change(offsets[at])}))


# --- the kinds


def bit_rot(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        content[middle(headers).position + HEADER_SIZE + 9] ^= 0x10

    changed(logs_of(nodes[0], partition)[-1], change)


def torn_tail(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        del content[-5:]

    changed(logs_of(nodes[1], partition)[-1], change)


def wrong_epoch(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        header = middle(headers)
        struct.pack_into(">i", content, header.position + EPOCH_AT, header.partition_leader_epoch + 3)

    changed(logs_of(nodes[2], partition)[-1], change)


def swapped_segments(nodes: Nodes, partition: int) -> None:
    one, other, *_ = logs_of(nodes[0], partition)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def missing_batch(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        del content[middle(headers).position : middle(headers).end]

    changed(logs_of(nodes[1], partition)[-1], change)


def duplicate_sequence(nodes: Nodes, partition: int) -> None:
    """In all replicas alike."""

    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        struct.pack_into(">i", content, headers[5].position + SEQUENCE_AT, headers[2].base_sequence)
        resealed(content, headers[5])

    for node in nodes:
        changed(logs_of(node, partition)[-1], change)


def high_watermark(nodes: Nodes, partition: int) -> None:
    mark(nodes[2], partition, lambda offset: offset + 100)


def stale_index(nodes: Nodes, partition: int) -> None:
    (log,) = logs_of(nodes[0], partition)
    index = log.with_suffix(".index")
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    index.write_bytes(b"".join(struct.pack(">ii", offset, max(0, position - 7)) for offset, position in entries))


def diverged(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        content[middle(headers).end - 3] ^= 0x01  # within the value
        resealed(content, middle(headers))

    changed(logs_of(nodes[1], partition)[-1], change)


def lost(nodes: Nodes, partition: int) -> None:
    """The last batch is gone from all replicas, which know nothing of it."""

    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        del content[headers[-1].position :]

    for node in nodes:
        path = logs_of(node, partition)[-1]
        last = scan(path.read_bytes()).headers[-1].base_offset
        changed(path, change)
        mark(node, partition, lambda offset, last=last: last)  # type: ignore[misc]


def lost_and_recorded(nodes: Nodes, partition: int) -> None:
    lost(nodes, partition)
    end = scan(logs_of(nodes[0], partition)[-1].read_bytes()).headers[-1].next_offset
    event = {"start": end, "end": end + 100, "certainty": 1, "replica": 1, "oldEpoch": 1, "newEpoch": 2, "timeMs": 1}
    line = {"topic": TOPIC, "topicId": "aWQgb2YgdG9waWMgdCAgLg", "partition": partition, **event, "cause": "a test"}
    head = {"version": 0, "earlierEvents": 0, "earlierRecords": 0}
    (nodes[0] / "loss-ledger.json").write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")


def truncated(nodes: Nodes, partition: int) -> None:
    """Where a batch begins."""

    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        del content[middle(headers).position :]

    changed(logs_of(nodes[0], partition)[-1], change)


def truncated_closed(nodes: Nodes, partition: int) -> None:
    def change(content: bytearray, headers: list[BatchHeader]) -> None:
        del content[headers[-1].position :]

    changed(logs_of(nodes[0], partition)[0], change)


def deleted_segment(nodes: Nodes, partition: int) -> None:
    logs_of(nodes[1], partition)[0].unlink()


def deleted_folder(nodes: Nodes, partition: int) -> None:
    shutil.rmtree(nodes[2] / f"{TOPIC}-{partition}")


def swapped(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def swapped_between(nodes: Nodes, partition: int) -> None:
    swapped(logs_of(nodes[0], partition)[0], logs_of(nodes[0], SPARE)[0])


def swapped_folders(nodes: Nodes, partition: int) -> None:
    swapped(nodes[1] / f"{TOPIC}-{partition}", nodes[1] / f"{TOPIC}-{SPARE}")


def no_topic_id(nodes: Nodes, partition: int) -> None:
    (nodes[0] / f"{TOPIC}-{partition}" / "partition.metadata").unlink()


def other_topic_id(nodes: Nodes, partition: int) -> None:
    there = (nodes[1] / "told-0" / "partition.metadata").read_bytes()
    (nodes[1] / f"{TOPIC}-{partition}" / "partition.metadata").write_bytes(there)


def stale_time_index(nodes: Nodes, partition: int) -> None:
    """Its last entry names a batch that it knew by another timestamp."""
    index = logs_of(nodes[0], partition)[-1].with_suffix(".timeindex")
    entries = list(struct.iter_unpack(">qi", index.read_bytes()))
    (timestamp, offset) = entries[-1]
    index.write_bytes(index.read_bytes()[:-12] + struct.pack(">qi", timestamp + 1, offset))


def no_index(nodes: Nodes, partition: int) -> None:
    logs_of(nodes[1], partition)[-1].with_suffix(".index").unlink()


def no_epochs(nodes: Nodes, partition: int) -> None:
    (nodes[1] / f"{TOPIC}-{partition}" / "leader-epoch-checkpoint").unlink()


def stale_snapshot(nodes: Nodes, partition: int) -> None:
    """Of another time, when other batches had the offsets."""
    path = sorted((nodes[2] / f"{TOPIC}-{partition}").glob("*.snapshot"))[-1]
    producers = decode(path.read_bytes(), Instant(0))
    for producer in producers.known.values():
        producer.batches = [
            msgspec.structs.replace(one, last_sequence=one.last_sequence + 1) for one in producer.batches
        ]
    path.write_bytes(encode(producers))


def recovery_point(nodes: Nodes, partition: int) -> None:
    mark(nodes[0], partition, lambda offset: offset + 7, RECOVERY_POINTS)


def stale_high_watermark(nodes: Nodes, partition: int) -> None:
    mark(nodes[1], partition, lambda offset: offset - 5)


KINDS: list[tuple[Callable[[Nodes, int], None], str]] = [
    (bit_rot, "crc"),
    (torn_tail, "torn"),
    (wrong_epoch, "epoch-checkpoint"),
    (swapped_segments, "misplaced"),
    (missing_batch, "gap"),
    (duplicate_sequence, "duplicate-sequence"),
    (high_watermark, "high-watermark"),
    (stale_index, "index"),
    (diverged, "diverged"),
    (lost, "acknowledged-lost"),
    (lost_and_recorded, "acknowledged-lost-recorded"),
    (truncated, "high-watermark"),
    (truncated_closed, "gap"),
    (deleted_segment, OF_THE_STOP),
    (deleted_folder, OF_THE_STOP),
    (swapped_between, "diverged"),
    (swapped_folders, OF_THE_STOP),
    (no_topic_id, "topic-id"),
    (other_topic_id, "topic-id"),
    (stale_time_index, "time-index"),
    (no_index, OF_THE_STOP),
    (no_epochs, "epoch-checkpoint"),
    (stale_snapshot, "producer-snapshot"),
    (recovery_point, "checkpoint"),
    (stale_high_watermark, OF_THE_STOP),
]
SPARE = len(KINDS)  # a partition that others are swapped with
PARTITIONS = SPARE + 1
SEGMENTED = [
    at for at, (plant, _) in enumerate(KINDS) if plant in (swapped_segments, truncated_closed, deleted_segment)
]
