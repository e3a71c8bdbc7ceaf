"""The records of one batch, decoded one by one.

For the metadata log, committed offsets, look-ups by timestamp, and tests. Fetch never comes here, and Produce only for
topics whose configuration is about single records.

Every reader raises `Corrupt`, and nothing else, when the bytes are not records.
"""

from collections.abc import Iterator
from typing import NamedTuple

from strandline.base.ports import Buffer
from strandline.wire.batch import HEADER_SIZE, BatchHeader, batches
from strandline.wire.compress import DECOMPRESSED_SIZE_MAX, Codec, Corrupt, decompress
from strandline.wire.varint import read_signed, read_unsigned


class Record(NamedTuple):
    """One record. `timestamp` is the batch's if the broker stamped it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


Row = tuple[int, bytes | None, bytes | None]  # a record's offset, key and value


def records(header: BatchHeader, buffer: Buffer, limit: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
    """The records of the batch that `header` was read from. `limit` bounds the decompressed size in bytes."""
    plain = plain_records(header, buffer, limit)
    stamp = header.max_timestamp if header.is_log_append_time else None
    position = 0
    for _ in range(header.record_count):
        record, position = read_record(plain, position, header, stamp)
        yield record
    if position != len(plain):
        raise Corrupt(f"{len(plain) - position} bytes follow the last record")


def rows(header: BatchHeader, buffer: Buffer, found: list[Row], limit: int = DECOMPRESSED_SIZE_MAX) -> None:
    """Append the offset, key and value of each record to `found`: what `records` yields, for readers of millions. If
    it raises, the records before that have been appended."""
    plain = plain_records(header, buffer, limit)
    base, last = header.base_offset, header.last_offset_delta
    position, size = 0, len(plain)
    for _ in range(header.record_count):
        # Nearly all records: short numbers, key and value, and no headers. `read_record` decides about all others.
        try:
            length, at = plain[position], position + 1
            if length >= 0x80:
                length, at = length & 0x7F | plain[at] << 7, at + 1
            end, stamp = at + (length >> 1), plain[at + 1]
            delta, key_size, at = plain[at + 2], plain[at + 3], at + 4
            if delta >= 0x80:
                delta, key_size, at = delta & 0x7F | key_size << 7, plain[at], at + 1
            if key_size >= 0x80:
                key_size, at = key_size & 0x7F | plain[at] << 7, at + 1
            key_end = at + (key_size >> 1)
            value_size, value_at = plain[key_end], key_end + 1
            if value_size == 1:
                value_size = 0
                value: bytes | None = None
            else:
                if value_size >= 0x80:
                    value_size, value_at = value_size & 0x7F | plain[value_at] << 7, value_at + 1
                value = plain[value_at : value_at + (value_size >> 1)]
            is_plain = (
                value_at + (value_size >> 1) + 1 == end <= size
                and not (length | delta | key_size | value_size) & 1
                and plain[end - 1] == 0
                and delta >> 1 <= last
                and stamp < 0x80
                and max(length, delta, key_size, value_size) < 0x4000
            )
        except IndexError:
            is_plain = False
        if is_plain:
            found.append((base + (delta >> 1), plain[at:key_end], value))
            position = end
        else:
            record, position = read_record(plain, position, header, None)
            found.append(record[0:1] + record[2:4])
    if position != size:
        raise Corrupt(f"{size - position} bytes follow the last record")


def plain_records(header: BatchHeader, buffer: Buffer, limit: int = DECOMPRESSED_SIZE_MAX) -> bytes:
    """The bytes of all records, uncompressed."""
    if header.codec > Codec.ZSTD:
        raise Corrupt(f"compression codec {header.codec} does not exist")
    packed = memoryview(buffer)[header.position + HEADER_SIZE : header.end]
    return decompress(Codec(header.codec), packed, limit) if header.record_count else b""


def all_records(buffer: Buffer, position: int = 0) -> Iterator[Record]:
    """The records of all complete batches of `buffer`, control records left out."""
    for header in batches(buffer, position):
        if not header.is_control:
            yield from records(header, buffer)


def read_record(
    plain: bytes, position: int, header: BatchHeader, stamp: int | None, errors: str = "strict"
) -> tuple[Record, int]:
    """The record at `position`, and its end. `errors`: what becomes of headers' names that are not UTF-8 (PEP 293)."""
    try:
        length, position = read_signed(plain, position)
        end = position + length
        if length < 1 or end > len(plain):
            raise Corrupt(f"a record of {length} bytes does not fit")
        delta, position = read_signed(plain, position + 1)
        offset_delta, position = read_signed(plain, position)
        key, position = read_bytes(plain, position, end)
        value, position = read_bytes(plain, position, end)
        count, position = read_signed(plain, position)
        if not 0 <= count <= end - position:
            raise Corrupt(f"{count} headers do not fit")
        pairs: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            name, position = read_bytes(plain, position, end)
            content, position = read_bytes(plain, position, end)
            if name is None:
                raise Corrupt("a header without a name")
            pairs.append((name.decode(errors=errors), content))
    except UnicodeDecodeError:
        raise Corrupt("the name of a header is not UTF-8") from None
    except Corrupt:
        raise
    except ValueError as error:
        raise Corrupt(str(error)) from None
    if position != end:
        raise Corrupt("a record is longer or shorter than it says")
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise Corrupt(f"offset delta {offset_delta} lies outside of the batch")
    timestamp = header.base_timestamp + delta if stamp is None else stamp
    return Record(header.base_offset + offset_delta, timestamp, key, value, tuple(pairs)), end


def read_bytes(plain: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_signed(plain, position)
    if size == -1:
        return None, position
    if not 0 <= size <= end - position:
        raise Corrupt(f"{size} bytes do not fit")
    return plain[position : position + size], position + size


# --- what a broker asks of produced records, where a topic's configuration makes it look

PRODUCED_SIZE_MAX = 64 << 20


def are_records(plain: bytes, count: int) -> bool:
    """Do these bytes have as many records as that, by their lengths, and nothing else? No record is looked into."""
    position, size = 0, len(plain)
    for _ in range(count):
        if position + 2 > size:
            return False
        low, high = plain[position], plain[position + 1]
        if low < 0x80:
            raw, position = low, position + 1
        elif high < 0x80:  # nearly all records: 64 bytes to 8 KiB
            raw, position = low & 0x7F | high << 7, position + 2
        else:
            try:
                raw, position = read_unsigned(plain, position)
            except ValueError:
                return False
        if raw & 1 or not raw:
            return False  # a negative length, or none
        position += raw >> 1
    return position == size


def timestamps(header: BatchHeader, buffer: Buffer) -> list[int] | None:
    """The records' own timestamps; None if the records make no sense."""
    try:
        plain = plain_records(header, buffer, PRODUCED_SIZE_MAX)
        stamps, position = [], 0
        for _ in range(header.record_count):
            length, position = read_signed(plain, position)
            delta, _ = read_signed(plain, position + 1)
            if not 1 < length <= len(plain) - position:
                return None
            stamps.append(header.base_timestamp + delta)
            position += length
    except ValueError:
        return None
    return stamps if position == len(plain) else None


def records_without_key(header: BatchHeader, buffer: Buffer) -> tuple[int, ...] | None:
    """Which records of a produced batch have no key, counted from 0? None if the records make no sense.

    Only compacted topics ask: it costs time per record.
    """
    keyless = []
    try:
        for delta, record in enumerate(records(header, buffer, PRODUCED_SIZE_MAX)):  # one at a time: they may be many
            if record.offset != header.base_offset + delta:
                return None
            if record.key is None:
                keyless.append(delta)
    except Corrupt:
        return None
    return tuple(keyless)
