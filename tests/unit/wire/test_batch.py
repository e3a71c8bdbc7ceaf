"""Headers, walks, checks, patches and building of record batches."""

import contextlib

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX
from strandline.wire.batch import (
    CRC_AT,
    HEADER_SIZE,
    PREFIX_SIZE,
    Draft,
    Scan,
    Tail,
    batches,
    build,
    patch,
    patch_log_append_time,
    prefix,
    read_header,
    read_produced,
    scan,
    why_invalid,
)
from strandline.wire.compress import Codec, Corrupt, compress
from strandline.wire.record import Record, all_records, records, records_without_key

THREE: list[Draft] = [
    (1000, b"k", b"first", []),
    (1007, None, b"second", [("h", b"x"), ("n", None)]),
    (999, b"k", None, []),
]
LIMIT = 1 << 20

drafts = st.lists(
    st.tuples(
        st.integers(0, 1 << 50),
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def resealed(batch: bytes) -> bytes:
    """The batch with a right CRC after a test has changed it."""
    out = bytearray(batch)
    out[CRC_AT : CRC_AT + 4] = crc32c(bytes(out[CRC_AT + 4 :])).to_bytes(4, "big")
    return bytes(out)


def with_bytes(batch: bytes, position: int, change: bytes) -> bytes:
    return resealed(batch[:position] + change + batch[position + len(change) :])


# --- building and reading


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=40, deadline=None)
@given(wanted=drafts, base=st.integers(0, 1 << 40), epoch=st.integers(-1, 1 << 30))
def test_what_is_built_is_read(codec: Codec, wanted: list[Draft], base: int, epoch: int) -> None:
    buffer = memoryview(build(wanted, base_offset=base, leader_epoch=epoch, codec=codec))
    (header,) = batches(buffer)
    assert why_invalid(header, buffer) is None
    assert (header.base_offset, header.partition_leader_epoch, header.codec) == (base, epoch, codec)
    assert (header.size, header.record_count) == (len(buffer), len(wanted))
    assert (header.last_offset, header.next_offset) == (base + len(wanted) - 1, base + len(wanted))
    assert (header.base_timestamp, header.max_timestamp) == (wanted[0][0], max(draft[0] for draft in wanted))
    got = list(records(header, buffer))
    assert got == [Record(base + i, t, k, v, tuple(h)) for i, (t, k, v, h) in enumerate(wanted)]


def test_attributes_say_what_was_asked_for() -> None:
    plain = read_header(build(THREE))
    assert not (plain.is_transactional or plain.is_control or plain.is_log_append_time or plain.has_delete_horizon)
    assert not plain.has_producer_id
    assert plain.last_sequence == -1
    full = read_header(
        build(
            THREE,
            transactional=True,
            control=True,
            producer_id=7,
            producer_epoch=3,
            base_sequence=0x7FFF_FFFE,
            log_append_time=5000,
            delete_horizon=900,
        )
    )
    assert full.is_transactional
    assert full.is_control
    assert full.is_log_append_time
    assert full.has_delete_horizon
    assert (full.producer_id, full.producer_epoch, full.max_timestamp, full.base_timestamp) == (7, 3, 5000, 900)
    assert full.last_sequence == 0, "sequences wrap after the largest int32"


def test_a_compacted_batch_keeps_its_range() -> None:
    batch = build(THREE[:2], base_offset=100, offset_deltas=[3, 8], last_offset_delta=9)
    header = read_header(batch)
    assert (header.last_offset, header.record_count) == (109, 2)
    assert [record.offset for record in records(header, batch)] == [103, 108]
    assert why_invalid(header, batch) is None


def test_a_compacted_batch_may_be_empty() -> None:
    batch = build([], base_offset=100, last_offset_delta=9, codec=Codec.LZ4)
    header = read_header(batch)
    assert (len(batch), header.record_count, header.next_offset) == (HEADER_SIZE, 0, 110)
    assert why_invalid(header, batch) is None
    assert list(records(header, batch)) == []


def test_the_brokers_time_replaces_each_records() -> None:
    batch = build(THREE, log_append_time=5000)
    assert {record.timestamp for record in records(read_header(batch), batch)} == {5000}


def test_control_records_are_left_out() -> None:
    buffer = build(THREE) + build(THREE, base_offset=3, control=True) + build(THREE, base_offset=6)
    assert [record.offset for record in all_records(buffer)] == [0, 1, 2, 6, 7, 8]


# --- walking


def test_a_walk_sees_every_complete_batch() -> None:
    parts = [build(THREE, base_offset=3 * i) for i in range(4)]
    buffer = b"".join(parts)
    found = scan(memoryview(buffer))
    assert [header.base_offset for header in found.headers] == [0, 3, 6, 9]
    assert [header.position for header in found.headers] == [i * len(parts[0]) for i in range(4)]
    assert (found.end, found.tail) == (len(buffer), Tail.COMPLETE)
    assert scan(buffer, found.headers[2].position).headers == found.headers[2:]


def test_an_empty_buffer_is_complete() -> None:
    assert scan(b"") == Scan([], 0, Tail.COMPLETE)


def test_a_tail_cut_at_any_byte_is_truncated() -> None:
    first, second = build(THREE), build(THREE, base_offset=3)
    for cut in range(1, len(second)):
        found = scan(first + second[:cut])
        assert (len(found.headers), found.end, found.tail) == (1, len(first), Tail.TRUNCATED), cut


@pytest.mark.parametrize("length", [-1, 0, 48, -(1 << 31)])
def test_an_impossible_length_ends_the_walk(length: int) -> None:
    first = build(THREE)
    broken = first[:8] + length.to_bytes(4, "big", signed=True) + first[12:]
    found = scan(first + broken)
    assert (len(found.headers), found.end, found.tail) == (1, len(first), Tail.CORRUPT)


def test_zeros_after_the_last_batch_are_corrupt() -> None:
    assert scan(build(THREE) + bytes(100)).tail is Tail.CORRUPT


@settings(max_examples=200, deadline=None)
@given(garbage=st.binary(max_size=300), magic=st.booleans())
def test_garbage_raises_nothing_but_corrupt(garbage: bytes, magic: bool) -> None:
    buffer = garbage[:11] + bytes([60]) + garbage[12:16] + b"\x02" + garbage[17:] if magic else garbage
    for header in scan(buffer).headers:
        why_invalid(header, buffer)
        records_without_key(header, buffer)
        with contextlib.suppress(Corrupt):
            list(records(header, buffer, LIMIT))
    read_produced(buffer, LIMIT)


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=100, deadline=None)
@given(position=st.integers(21, 110), change=st.binary(min_size=1, max_size=6))
def test_a_wrong_batch_with_a_right_crc_raises_nothing_but_corrupt(codec: Codec, position: int, change: bytes) -> None:
    batch = with_bytes(build(THREE, codec=codec), position, change)
    header = read_header(batch)
    why_invalid(header, batch)
    with contextlib.suppress(Corrupt):
        list(records(header, batch, LIMIT))


# --- checking


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_flipped_bit_anywhere_below_the_crc_is_noticed(codec: Codec) -> None:
    batch = build(THREE, codec=codec)
    for position in range(CRC_AT, len(batch)):
        for bit in (0x01, 0x80):
            broken = bytearray(batch)
            broken[position] ^= bit
            assert why_invalid(read_header(broken), broken) is ErrorCode.CORRUPT_MESSAGE, position


def test_a_batch_that_does_not_fit_its_buffer_is_corrupt() -> None:
    batch = build(THREE)
    assert why_invalid(read_header(batch), batch[:-1]) is ErrorCode.CORRUPT_MESSAGE


BUILT = build(THREE)
REFUSED = {
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "two batches": (BUILT * 2, ErrorCode.INVALID_RECORD),
    "bytes after the batch": (BUILT + b"x", ErrorCode.CORRUPT_MESSAGE),
    "cut off": (BUILT[:-1], ErrorCode.CORRUPT_MESSAGE),
    "a message of format 1": (BUILT[:16] + b"\x01" + BUILT[17:], ErrorCode.INVALID_RECORD),
    "a message of no format": (BUILT[:16] + b"\x09" + BUILT[17:], ErrorCode.CORRUPT_MESSAGE),
    "a wrong CRC": (BUILT[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
    "larger than allowed": (build([(0, None, bytes(LIMIT), [])]), ErrorCode.MESSAGE_TOO_LARGE),
    "a base offset": (build(THREE, base_offset=1), ErrorCode.INVALID_RECORD),
    "a negative base offset": (b"\xff" * 8 + BUILT[8:], ErrorCode.CORRUPT_MESSAGE),
    "gaps": (build(THREE[:1], last_offset_delta=3), ErrorCode.INVALID_RECORD),
    "no records": (build([], last_offset_delta=0), ErrorCode.INVALID_RECORD),
    "negative last offset delta": (with_bytes(BUILT, 23, b"\xff\xff\xff\xff"), ErrorCode.CORRUPT_MESSAGE),
    "negative count": (with_bytes(BUILT, 57, b"\xff\xff\xff\xff"), ErrorCode.CORRUPT_MESSAGE),
    "more records than its bytes can hold": (
        with_bytes(with_bytes(BUILT, 23, b"\x7f\xff\xff\xfe"), 57, b"\x7f\xff\xff\xff"),
        ErrorCode.INVALID_RECORD,
    ),
    "control": (build(THREE, control=True), ErrorCode.INVALID_RECORD),
    "a delete horizon": (build(THREE, delete_horizon=5), ErrorCode.INVALID_RECORD),
    "codec 5": (with_bytes(BUILT, 22, b"\x05"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "transactional without a producer": (build(THREE, transactional=True), ErrorCode.INVALID_RECORD),
    "producer without a sequence": (build(THREE, producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "producer without an epoch": (build(THREE, producer_id=1, base_sequence=0), ErrorCode.INVALID_RECORD),
}


@each("what", REFUSED)
def test_a_producer_may_not_send(what: str) -> None:
    buffer, error = REFUSED[what]
    assert read_produced(buffer, LIMIT) is error


@pytest.mark.parametrize("codec", Codec)
def test_a_producer_may_send_one_sound_batch(codec: Codec) -> None:
    batch = build(THREE, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert read_produced(memoryview(batch), len(batch)) == read_header(batch)


def test_records_are_looked_into_only_on_demand() -> None:
    sound = build(THREE[:1] * 2)
    assert records_without_key(read_header(sound), sound) == ()
    keyless = build(THREE)
    keys = [record.key for record in all_records(keyless)]
    assert records_without_key(read_header(keyless), keyless) == tuple(i for i, key in enumerate(keys) if key is None)
    assert None in keys
    gap = build(THREE, offset_deltas=[0, 2, 2])
    assert records_without_key(read_header(gap), gap) is None
    hollow = with_bytes(BUILT, HEADER_SIZE, b"\x7f")
    assert why_invalid(read_header(hollow), hollow) is None
    assert records_without_key(read_header(hollow), hollow) is None


def test_a_batch_that_decompresses_beyond_the_limit_is_corrupt() -> None:
    bomb = build([(0, None, bytes(LIMIT), [])], codec=Codec.ZSTD)
    assert len(bomb) < 1000 < len(compress(Codec.NONE, bytes(LIMIT)))
    with pytest.raises(Corrupt, match="limit"):
        list(records(read_header(bomb), bomb, LIMIT))


# --- patching


def test_offset_and_epoch_are_patched_in_place_and_the_crc_stays_right() -> None:
    first, second = build(THREE), build(THREE, codec=Codec.GZIP)
    buffer = bytearray(first + second)
    for header, (base, epoch) in zip(scan(buffer).headers, [(1 << 40, 5), (77, 6)], strict=True):
        patch(memoryview(buffer), header, base, epoch)
    patched = scan(buffer).headers
    assert [(h.base_offset, h.partition_leader_epoch) for h in patched] == [(1 << 40, 5), (77, 6)]
    assert [why_invalid(header, buffer) for header in patched] == [None, None]
    assert buffer[PREFIX_SIZE : len(first)] == first[PREFIX_SIZE:]


def test_a_prefix_replaces_the_patch_where_the_buffer_may_not_change() -> None:
    batch = build(THREE)
    gathered = prefix(read_header(batch), 500, 9) + batch[PREFIX_SIZE:]
    assert gathered == build(THREE, base_offset=500, leader_epoch=9)


def test_log_append_time_is_patched_with_a_new_crc() -> None:
    buffer = bytearray(b"before" + build(THREE, codec=Codec.SNAPPY) + b"after")
    header = read_header(buffer, 6)
    patch_log_append_time(buffer, header, 123_456)
    patched = read_header(buffer, 6)
    assert patched.is_log_append_time
    assert patched.codec == Codec.SNAPPY
    assert patched.max_timestamp == 123_456
    assert why_invalid(patched, buffer) is None
    assert [record.timestamp for record in records(patched, buffer)] == [123_456] * 3
    assert (buffer[:6], buffer[-5:]) == (b"before", b"after")


def test_an_offset_that_no_log_comes_to_is_damage() -> None:
    for base, error in ((OFFSET_MAX, None), (OFFSET_MAX + 1, ErrorCode.CORRUPT_MESSAGE)):
        batch = build(THREE, base_offset=base)
        assert why_invalid(read_header(batch), batch) is error
