"""Kafka's files, read without any of our code: by kafka-python's and kio's readers, and as the formats' descriptions
say. Only the libraries of the checksum and of zstd are ours too; librdkafka, which reads the same topics, has its own.
"""

import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cramjam
from crc32c import crc32c
from kio.records.readers import read_record

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka.record import MemoryRecords

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
HEADER_SIZE = 61
XERIAL = b"\x82SNAPPY\0"  # librdkafka leaves it out; readers know both


class Batch(NamedTuple):
    position: int
    size: int
    base_offset: int
    leader_epoch: int
    codec: int
    is_stamped: bool
    last_offset: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: list[Any]  # kio's, with seconds as timestamps


def batches_of(segment: Path) -> list[Batch]:
    """All batches of a segment; what kafka-python reads of a header and what the format says is compared."""
    content = segment.read_bytes()
    theirs, found, position = MemoryRecords(content), [], 0
    while (their := theirs.next_batch()) is not None:
        batch = batch_at(content, position)
        assert their.validate_crc()
        assert (their.base_offset, their.compression_type) == (batch.base_offset, batch.codec)
        assert (their.producer_id, their.base_sequence) == (batch.producer_id, batch.base_sequence)
        found.append(batch)
        position += batch.size
    assert position == len(content), "nothing is left behind the last batch"
    return found


def batch_at(content: bytes, position: int) -> Batch:
    base_offset, length, epoch, magic, crc, attributes = struct.unpack_from(">qiibIh", content, position)
    last_delta, first_time, max_time, producer_id, producer_epoch, sequence, count = struct.unpack_from(
        ">iqqqhii", content, position + 23
    )
    end = position + 12 + length
    assert magic == 2
    assert crc == crc32c(content[position + 21 : end])
    codec = attributes & 7
    plain, at, records = unpacked(codec, content[position + HEADER_SIZE : end]), 0, []
    for _ in range(count):
        record, size = read_record(plain, first_time, base_offset, at)
        records.append(record)
        at += size
    assert at == len(plain), "nothing is left behind the last record"
    return Batch(
        position,
        end - position,
        base_offset,
        epoch,
        codec,
        bool(attributes & 8),
        base_offset + last_delta,
        max_time,
        producer_id,
        producer_epoch,
        sequence,
        records,
    )


# --- codecs


def unpacked(codec: int, packed: bytes) -> bytes:
    if codec == GZIP:
        return zlib.decompress(packed, 31)
    if codec == SNAPPY:
        return b"".join(xerial(packed)) if packed.startswith(XERIAL) else snappy_block(packed)
    if codec == LZ4:
        return b"".join(lz4_frame(packed))
    return bytes(cramjam.zstd.decompress(packed)) if codec == ZSTD else packed


def xerial(packed: bytes) -> Iterator[bytes]:
    """What snappy-java writes: a magic, two versions, and blocks with their sizes."""
    assert struct.unpack_from(">ii", packed, 8) == (1, 1)
    position = 16
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        yield snappy_block(packed[position + 4 : position + 4 + size])
        position += 4 + size
    assert position == len(packed)


def snappy_block(packed: bytes) -> bytes:
    """The size, then literals and copies of what came before (format_description.txt of snappy)."""
    size = shift = position = 0
    while True:
        byte = packed[position]
        size |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    out = bytearray()
    while position < len(packed):
        tag = packed[position]
        position += 1
        if tag & 3 == 0:
            length, extra = (tag >> 2) + 1, max(0, (tag >> 2) - 59)
            if extra:
                length = int.from_bytes(packed[position : position + extra], "little") + 1
            out += packed[position + extra : position + extra + length]
            position += extra + length
            continue
        width = (0, 1, 2, 4)[tag & 3]
        back = int.from_bytes(packed[position : position + width], "little")
        length = (tag >> 2) + 1
        if width == 1:
            back, length = back | (tag >> 5) << 8, ((tag >> 2) & 7) + 4
        position += width
        copy(out, back, length)
    assert len(out) == size
    return bytes(out)


def lz4_frame(packed: bytes) -> Iterator[bytes]:
    """As Kafka's Java reader wants it: version 1, independent blocks, no dictionary (lz4_Frame_format.md)."""
    magic, flags, block_descriptor = struct.unpack_from("<IBB", packed)
    assert magic == 0x184D2204
    assert flags >> 6 == 1, "the version"
    assert flags & 0x20, "no block may need the one before it"
    assert not flags & 1, "no dictionary"
    block_size_max = 1 << (8 + 2 * (block_descriptor >> 4))
    position = 7 + (8 if flags & 8 else 0)
    while True:
        (size,) = struct.unpack_from("<I", packed, position)
        position += 4
        if not size:
            break
        content = packed[position : position + (size & 0x7FFF_FFFF)]
        block = content if size >> 31 else lz4_block(content)
        assert len(block) <= block_size_max
        yield block
        position += len(content) + (4 if flags & 0x10 else 0)
    assert position + (4 if flags & 4 else 0) == len(packed)


def lz4_block(packed: bytes) -> bytes:
    """Sequences of literals and a copy; the last has no copy (lz4_Block_format.md)."""
    out, position = bytearray(), 0

    def length_of(nibble: int) -> int:
        nonlocal position
        length, more = nibble, 255 if nibble == 15 else 0
        while more == 255:
            more = packed[position]
            length += more
            position += 1
        return length

    while True:
        token = packed[position]
        position += 1
        literals = length_of(token >> 4)
        out += packed[position : position + literals]
        position += literals
        if position >= len(packed):
            return bytes(out)
        back = int.from_bytes(packed[position : position + 2], "little")
        position += 2
        copy(out, back, length_of(token & 15) + 4)


def copy(out: bytearray, back: int, length: int) -> None:
    """It may reach into what it writes itself."""
    assert 0 < back <= len(out)
    start = len(out) - back
    while length:
        piece = out[start : start + min(length, back)]
        out += piece
        length -= len(piece)


# --- the small files


def offset_index(path: Path) -> list[tuple[int, int]]:
    """(relative offset, position in the segment)"""
    return list(struct.iter_unpack(">ii", path.read_bytes()))


def time_index(path: Path) -> list[tuple[int, int]]:
    """(timestamp, relative offset)"""
    return list(struct.iter_unpack(">qi", path.read_bytes()))


def checkpoint(path: Path) -> list[list[str]]:
    """A version, a count, and so many lines of words."""
    version, count, *lines = path.read_text().removesuffix("\n").split("\n")
    assert (version, int(count)) == ("0", len(lines))
    return [line.split(" ") for line in lines]


def offsets_in(path: Path) -> dict[tuple[str, int], int]:
    """recovery-point-offset-checkpoint, replication-offset-checkpoint, log-start-offset-checkpoint"""
    return {(topic, int(partition)): int(offset) for topic, partition, offset in checkpoint(path)}


def epochs_in(path: Path) -> list[tuple[int, int]]:
    """leader-epoch-checkpoint: (epoch, its first offset)"""
    return [(int(epoch), int(start)) for epoch, start in checkpoint(path)]


def properties_in(path: Path) -> dict[str, str]:
    """meta.properties, as java.util.Properties would read it"""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


class ProducerEntry(NamedTuple):
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    first_offset_of_transaction: int


def producer_snapshot(path: Path) -> list[ProducerEntry]:
    """ProducerSnapshot.json, version 1"""
    content = path.read_bytes()
    version, crc, count = struct.unpack_from(">hIi", content)
    assert (version, crc) == (1, crc32c(content[6:]))
    rows = [ProducerEntry(*row) for row in struct.iter_unpack(">qhiqiqiq", content[10:])]
    assert len(rows) == count
    return rows
