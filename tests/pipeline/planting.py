"""Damage to log directories that a real cluster has written, of the kinds that an audit must find."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

from strandline.base.ids import TopicPartition
from strandline.log.checkpoints import format_offsets, parse_offsets
from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE, BatchHeader, scan

TOPIC = "planted"
HIGH_WATERMARKS = "replication-offset-checkpoint"
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


def mark(directory: Path, partition: int, change: Callable[[int], int]) -> None:
    path = directory / HIGH_WATERMARKS
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
]
SEGMENTED = 3  # the partition whose segments are swapped
