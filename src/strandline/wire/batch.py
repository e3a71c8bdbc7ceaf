"""Record batches, Kafka's format 2 (KIP-98): what one header says, how to walk, check, patch and build batches.

The hot path (append, fetch) reads headers only: one `struct` call for a batch, none for a record.

    position  0  base offset        8  length of the rest   12  partition leader epoch   16  magic   17  CRC-32C
             21  attributes        23  last offset delta    27  base timestamp           35  max timestamp
             43  producer id       51  producer epoch       53  base sequence            57  record count   61  records

Invariants:
  - the CRC covers everything from the attributes on, so base offset and leader epoch may be patched in place;
  - a walk never leaves its buffer and always ends, whatever the bytes say.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from struct import Struct as Layout

from msgspec import Struct

from strandline.base.crc32c import crc32c
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX
from strandline.base.ports import Buffer
from strandline.wire.compress import Codec, compress
from strandline.wire.varint import append_signed

HEADER = Layout(">qiibIhiqqqhii")
HEADER_SIZE = 61
PREFIX = Layout(">qii")  # base offset, length, leader epoch: what lies before the magic
PREFIX_SIZE = 16
RECORD_SIZE_MIN = 7  # one byte for each of its seven parts
RECORDS_MAX = 250_000  # of a compressed batch that a producer sends
LOG_OVERHEAD = 12  # base offset and length themselves, which the length does not count
MAGIC = 2
MAGIC_AT, CRC_AT, ATTRIBUTES_AT, MAX_TIMESTAMP_AT = 16, 17, 21, 35

CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40

NO_PRODUCER_ID = -1
NO_TIMESTAMP = -1
NO_SEQUENCE = -1
SEQUENCE_MAX = 0x7FFF_FFFF

Header = tuple[str, Buffer | None]
Draft = tuple[int, Buffer | None, Buffer | None, Sequence[Header]]  # timestamp, key, value, headers

assert HEADER.size == HEADER_SIZE
assert PREFIX.size == PREFIX_SIZE


class BatchHeader(Struct, frozen=True, gc=False):
    """The header of the batch at `position` of the buffer that it was read from."""

    position: int
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int  # the delete horizon if `has_delete_horizon`
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """A number of `Codec`, if `why_invalid` says so."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequences wrap to 0 after the largest int32. NO_SEQUENCE if the batch has none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX


class Tail(Enum):
    """How a walk ended."""

    COMPLETE = "the buffer ends with a batch"
    TRUNCATED = "the last batch is cut off"
    CORRUPT = "a length or magic that no batch has"


class Scan(Struct, frozen=True):
    """The complete batches of a buffer, the position after them, and what follows there."""

    headers: list[BatchHeader]
    end: int
    tail: Tail


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked. The caller knows that 61 bytes are there."""
    return BatchHeader(position, *HEADER.unpack_from(buffer, position))


def why_no_batch(buffer: Buffer, position: int) -> Tail | None:
    """Why does no complete batch start at `position`? None if one does. Its content is not looked at."""
    rest = len(buffer) - position
    if rest <= 0:
        return Tail.COMPLETE
    if rest < PREFIX_SIZE + 1:
        return Tail.TRUNCATED
    length = PREFIX.unpack_from(buffer, position)[1]
    if length < HEADER_SIZE - LOG_OVERHEAD or buffer[position + MAGIC_AT] != MAGIC:
        return Tail.CORRUPT
    return Tail.TRUNCATED if length + LOG_OVERHEAD > rest else None


def batches(buffer: Buffer, position: int = 0, start: int = 0) -> Iterator[BatchHeader]:
    """The complete batches from `position` on. Use `scan` to learn why the walk ended. `start`: where the buffer begins
    in what the headers' positions are counted in, a file for example."""
    size = len(buffer)
    while position + HEADER_SIZE <= size:  # and as `why_no_batch`, for which the header need not be read twice
        header = BatchHeader(start + position, *HEADER.unpack_from(buffer, position))
        after = position + header.batch_length + LOG_OVERHEAD
        if header.magic != MAGIC or not position + HEADER_SIZE <= after <= size:
            return
        yield header
        position = after


def scan(buffer: Buffer, position: int = 0) -> Scan:
    """Walk all complete batches; say where and why the walk ended."""
    headers = list(batches(buffer, position))
    end = headers[-1].end if headers else position
    tail = why_no_batch(buffer, end)
    assert tail is not None
    assert position <= end <= max(position, len(buffer)), "a walk stays in its buffer"
    return Scan(headers, end, tail)


def crc_of(header: BatchHeader, buffer: Buffer) -> int:
    """CRC-32C of the bytes that the CRC covers."""
    return crc32c(memoryview(buffer)[header.position + ATTRIBUTES_AT : header.end])


def why_invalid(header: BatchHeader, buffer: Buffer) -> ErrorCode | None:
    """Why may this batch not be believed, whoever sent it? None means it may. `header` came from a walk."""
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or header.end > len(buffer):
        return ErrorCode.CORRUPT_MESSAGE
    if header.magic != MAGIC:
        return ErrorCode.CORRUPT_MESSAGE
    if header.crc != crc_of(header, buffer):
        return ErrorCode.CORRUPT_MESSAGE
    if not 0 <= header.base_offset <= OFFSET_MAX or header.last_offset_delta < 0 or header.record_count < 0:
        return ErrorCode.CORRUPT_MESSAGE
    if header.codec > Codec.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return None


def why_not_from_client(header: BatchHeader) -> ErrorCode | None:
    """What a producer may not send though the bytes are sound: None means it may (Kafka's LogValidator)."""
    if header.base_offset != 0:
        return ErrorCode.INVALID_RECORD
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        return ErrorCode.INVALID_RECORD
    if header.codec:
        # A few bytes can unpack to millions, and whoever reads records reads all of a batch. Producers split a batch
        # that is too large.
        if header.record_count > RECORDS_MAX:
            return ErrorCode.MESSAGE_TOO_LARGE
    elif header.record_count * RECORD_SIZE_MIN > header.size - HEADER_SIZE:
        return ErrorCode.INVALID_RECORD  # or one batch could move the log's end by two thousand million
    if header.is_control or header.has_delete_horizon:  # a cleaner's alone: it would take the tombstones at once
        return ErrorCode.INVALID_RECORD
    if header.is_transactional and not header.has_producer_id:
        return ErrorCode.INVALID_RECORD
    if header.has_producer_id and (header.base_sequence < 0 or header.producer_epoch < 0):
        return ErrorCode.INVALID_RECORD
    return None


def read_produced(buffer: Buffer, size_max: int) -> BatchHeader | ErrorCode:
    """The one batch that a Produce request has for a partition, or why it is refused."""
    size = len(buffer)
    if size < HEADER_SIZE:
        return why_not_one_batch(buffer)
    header = read_header(buffer)
    if header.magic != MAGIC or header.size != size:
        return why_not_one_batch(buffer)
    if size > size_max:
        return ErrorCode.MESSAGE_TOO_LARGE
    return why_invalid(header, buffer) or why_not_from_client(header) or header


def why_not_one_batch(buffer: Buffer) -> ErrorCode:
    """Kafka: exactly one batch, of this format."""
    tail = why_no_batch(buffer, 0)
    if tail is None:
        end = read_header(buffer).end
        assert end < len(buffer), "it is one batch"
        return ErrorCode.INVALID_RECORD if why_no_batch(buffer, end) is None else ErrorCode.CORRUPT_MESSAGE
    is_old = tail is Tail.CORRUPT and len(buffer) > MAGIC_AT and buffer[MAGIC_AT] in (0, 1)
    return ErrorCode.INVALID_RECORD if tail is Tail.COMPLETE or is_old else ErrorCode.CORRUPT_MESSAGE


def prefix(header: BatchHeader, base_offset: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of the batch with another base offset and leader epoch, for a gathering write of a buffer
    that must not be changed: `[prefix(…), buffer[header.position + PREFIX_SIZE : header.end]]`."""
    return PREFIX.pack(base_offset, header.batch_length, leader_epoch)


def patch(buffer: bytearray | memoryview, header: BatchHeader, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch in place. The CRC stays right."""
    assert base_offset >= 0
    PREFIX.pack_into(buffer, header.position, base_offset, header.batch_length, leader_epoch)


MAX_TIMESTAMP = Layout(">q")
CRC_AND_ATTRIBUTES = Layout(">Ih")


def patch_log_append_time(buffer: bytearray | memoryview, header: BatchHeader, timestamp: int) -> None:
    """Make all records of the batch bear the broker's time (message.timestamp.type=LogAppendTime), with a new CRC."""
    assert timestamp >= 0
    attributes = header.attributes | LOG_APPEND_TIME
    CRC_AND_ATTRIBUTES.pack_into(buffer, header.position + CRC_AT, 0, attributes)
    MAX_TIMESTAMP.pack_into(buffer, header.position + MAX_TIMESTAMP_AT, timestamp)
    CRC_AND_ATTRIBUTES.pack_into(buffer, header.position + CRC_AT, crc_of(header, buffer), attributes)


def patch_create_time(buffer: bytearray | memoryview, header: BatchHeader) -> None:
    """Let the records bear their own time again, with a new CRC."""
    attributes = header.attributes & ~LOG_APPEND_TIME
    CRC_AND_ATTRIBUTES.pack_into(buffer, header.position + CRC_AT, 0, attributes)
    CRC_AND_ATTRIBUTES.pack_into(buffer, header.position + CRC_AT, crc_of(header, buffer), attributes)


def repacked(header: BatchHeader, buffer: Buffer, codec: Codec, packed: Buffer) -> bytearray:
    """The batch with the same records in the form that `codec` gave them. All else is kept; length and CRC are new."""
    assert header.record_count > 0, "there is nothing to pack"
    batch = bytearray(HEADER_SIZE + len(packed))
    # guard: recompressed-batch-forgets-its-producer
    batch[:HEADER_SIZE] = buffer[header.position : header.position + HEADER_SIZE]
    batch[HEADER_SIZE:] = packed
    PREFIX.pack_into(batch, 0, header.base_offset, len(batch) - LOG_OVERHEAD, header.partition_leader_epoch)
    attributes = header.attributes & ~CODEC_MASK | codec
    CRC_AND_ATTRIBUTES.pack_into(batch, CRC_AT, 0, attributes)
    crc = crc32c(memoryview(batch)[ATTRIBUTES_AT:])
    CRC_AND_ATTRIBUTES.pack_into(batch, CRC_AT, crc, attributes)
    assert read_header(batch).end == len(batch)
    return batch


def build(
    records: Sequence[Draft],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    delete_horizon: int | None = None,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """A batch of `records`, each (timestamp, key, value, headers).

    After compaction a batch has gaps: `offset_deltas` says where each record lies, and `last_offset_delta` keeps the
    batch's range; then it may even be empty.
    """
    deltas = range(len(records)) if offset_deltas is None else offset_deltas
    assert len(deltas) == len(records)
    assert base_offset >= 0
    last = last_offset_delta if last_offset_delta is not None else deltas[-1] if len(deltas) else -1
    assert last >= 0, "a batch spans at least one offset"
    assert not deltas or deltas[-1] <= last
    base = delete_horizon if delete_horizon is not None else records[0][0] if records else NO_TIMESTAMP
    latest = max((record[0] for record in records), default=NO_TIMESTAMP)
    attributes = codec | transactional * TRANSACTIONAL | control * CONTROL
    attributes |= (log_append_time is not None) * LOG_APPEND_TIME | (delete_horizon is not None) * DELETE_HORIZON
    plain = bytearray()
    for delta, record in zip(deltas, records, strict=True):
        append_record(plain, delta, base, record)
    packed = compress(codec, plain) if codec and records else plain
    batch = bytearray(HEADER_SIZE) + packed
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last,
        base,
        latest if log_append_time is None else log_append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    CRC_AND_ATTRIBUTES.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]), attributes)
    return bytes(batch)


def append_record(out: bytearray, offset_delta: int, base_timestamp: int, record: Draft) -> None:
    """One record: its length, then attributes (none are in use), deltas, key, value, headers."""
    timestamp, key, value, headers = record
    body = bytearray(1)
    append_signed(body, timestamp - base_timestamp)
    append_signed(body, offset_delta)
    append_bytes(body, key)
    append_bytes(body, value)
    append_signed(body, len(headers))
    for name, content in headers:
        append_bytes(body, name.encode())
        append_bytes(body, content)
    append_signed(out, len(body))
    out += body


def append_bytes(out: bytearray, content: Buffer | None) -> None:
    """Length and bytes; length -1 is null."""
    if content is None:
        out.append(1)
        return
    append_signed(out, len(content))
    out += content
