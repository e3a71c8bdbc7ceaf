"""Records put into another form, and what is asked of them without decoding each."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.wire.batch import (
    HEADER_SIZE,
    BatchHeader,
    build,
    patch_create_time,
    patch_log_append_time,
    read_header,
    repacked,
    why_invalid,
)
from strandline.wire.compress import Codec, Corrupt, compress
from strandline.wire.record import are_records, plain_records, records, timestamps

Drafts = list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
drafts = st.lists(
    st.tuples(
        st.integers(-1, 1 << 45),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=8,
)
quick = settings(max_examples=100, deadline=None)


def plain_of(batch: bytes) -> bytes:
    return plain_records(read_header(batch), batch)


@pytest.mark.parametrize("codec", Codec)
@quick
@given(wanted=drafts)
def test_there_and_back_is_the_same_batch(codec: Codec, wanted: Drafts) -> None:
    batch = build(wanted, base_offset=9, leader_epoch=4, producer_id=7, producer_epoch=1, base_sequence=3)
    other = repacked(read_header(batch), batch, codec, compress(codec, plain_of(batch)))
    there = read_header(other)
    assert why_invalid(there, other) is None
    assert (there.codec, there.end) == (codec, len(other))
    assert list(records(there, other)) == list(records(read_header(batch), batch))
    assert repacked(there, other, Codec.NONE, plain_of(bytes(other))) == batch


def test_the_batch_may_lie_in_the_middle_of_a_buffer() -> None:
    batch = build([(1, b"k", b"v", [])])
    buffer = b"before" + batch + b"after"
    assert repacked(read_header(buffer, 6), buffer, Codec.NONE, batch[HEADER_SIZE:]) == batch


def test_a_stamp_is_taken_back_with_a_new_crc() -> None:
    batch = build([(5, b"k", b"v", [])], codec=Codec.GZIP)
    buffer = bytearray(batch)
    patch_log_append_time(buffer, read_header(buffer), 5)
    assert buffer != batch
    patch_create_time(buffer, read_header(buffer))
    assert buffer == batch, "its largest timestamp was the stamp"


def decoded(plain: bytes, count: int) -> bool:
    """The naive way: decode them all."""
    header = BatchHeader(0, 0, HEADER_SIZE - 12 + len(plain), 0, 2, 0, 0, count, 0, 0, -1, -1, -1, count)
    try:
        return len(list(records(header, bytes(HEADER_SIZE) + plain))) == count
    except Corrupt:
        return False


@quick
@given(wanted=drafts)
def test_sound_records_are_counted_by_their_lengths(wanted: Drafts) -> None:
    plain = plain_of(build(wanted))
    assert are_records(plain, len(wanted))
    assert not are_records(plain, len(wanted) - 1)
    assert not are_records(plain, len(wanted) + 1)
    assert not are_records(plain + b"\2", len(wanted))
    assert not are_records(plain[:-1], len(wanted))


@quick
@given(plain=st.binary(max_size=60), count=st.integers(1, 5))
@example(plain=b"", count=2**31 - 1)
@example(plain=b"\0" * 40, count=2**31 - 1)
@example(plain=b"\1" * 4, count=4)
@example(plain=b"\xff" * 20, count=1)
@example(plain=b"\x81\x01", count=1)
def test_whatever_can_be_decoded_counts_as_records(plain: bytes, count: int) -> None:
    assert are_records(plain, count) or not decoded(plain, count)


@pytest.mark.parametrize("codec", Codec)
@quick
@given(wanted=drafts)
def test_timestamps_are_those_of_the_records(codec: Codec, wanted: Drafts) -> None:
    batch = build(wanted, codec=codec)
    assert timestamps(read_header(batch), batch) == [draft[0] for draft in wanted]


@quick
@given(plain=st.binary(max_size=60), count=st.integers(1, 5))
@example(plain=b"\2\0", count=1)
@example(plain=b"\4\0\x80", count=1)
def test_no_timestamps_where_there_are_no_records(plain: bytes, count: int) -> None:
    batch = build([(0, None, None, [])] * count)
    broken = repacked(read_header(batch), batch, Codec.NONE, plain)
    found = timestamps(read_header(broken), broken)
    assert found is None or (len(found) == count and are_records(plain, count))
