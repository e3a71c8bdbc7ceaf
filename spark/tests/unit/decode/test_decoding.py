"""Record batches to Arrow: the compiled kernel, its twin, and the project's own record reader say the same."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.wire.batch import CRC_AT, HEADER_SIZE, SEQUENCE_MAX, Draft, batches, build, patch, read_header, scan
from strandline.wire.compress import Codec
from strandline.wire.control import EndTxnMarker, build_end_txn
from strandline.wire.record import records
from strandline_spark.decode import Columns, Corrupt, Origin, UnknownColumn, decode, decode_heads, walk
from strandline_spark.decode.columns import TYPES
from strandline_spark.decode.decoding import check_headers

EVERYTHING = Columns.of([name for name in TYPES if name not in ("broker", "directory", "topic_id", "segment")])
BOTH = pytest.mark.parametrize("compiled", [True, False], ids=["numba", "python"])

drafts = st.lists(
    st.tuples(
        st.integers(-5, 1 << 43) | st.sampled_from([-(1 << 63), (1 << 63) - 1, 9223372036854775, -9223372036854775]),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


class Stored(NamedTuple):
    """One batch as it is to be built."""

    drafts: list[Draft]
    codec: Codec
    gap: int
    stamped: int | None
    producer: int
    transactional: bool


stored = st.builds(
    Stored,
    drafts,
    st.sampled_from(Codec),
    st.integers(0, 5),
    st.none() | st.integers(0, 1 << 43),
    st.integers(-1, 5),
    st.booleans(),
)


def log_of(parts: Sequence[Stored], base: int = 0) -> bytes:
    out = bytearray()
    for part in parts:
        base += part.gap
        out += build(
            clipped(part.drafts),
            base_offset=base,
            leader_epoch=3,
            codec=part.codec,
            producer_id=part.producer,
            producer_epoch=0 if part.producer >= 0 else -1,
            base_sequence=base & SEQUENCE_MAX if part.producer >= 0 else -1,
            transactional=part.transactional,
            log_append_time=part.stamped,
        )
        base += len(part.drafts)
    return bytes(out)


def clipped(wanted: list[Draft]) -> list[Draft]:
    """A difference of more than 64 bits cannot be written."""
    base = wanted[0][0]
    return [(t if -(1 << 63) <= t - base < 1 << 63 else base, *rest) for t, *rest in wanted]  # type: ignore[misc]


def oracle(buffer: bytes, first: int, end: int) -> list[dict[str, Any]]:
    """By the reader that brokers use."""
    rows = []
    for header in batches(buffer):
        for record in records(header, buffer):
            if first <= record.offset < end:
                stamp = record.timestamp * 1000
                sequence = (header.base_sequence + record.offset - header.base_offset) & SEQUENCE_MAX
                rows.append(
                    {
                        "key": record.key,
                        "value": record.value,
                        "offset": record.offset,
                        "timestamp": stamp if abs(stamp) < 1 << 63 else None,
                        "headers": [{"key": name, "value": content} for name, content in record.headers] or None,
                        "sequence": -1 if header.base_sequence < 0 else sequence,
                        "timestampType": int(header.is_log_append_time),
                        "position": header.position,
                        "leader_epoch": header.partition_leader_epoch,
                        "producer_id": header.producer_id,
                        "producer_epoch": header.producer_epoch,
                        "is_control": header.is_control,
                        "is_transactional": header.is_transactional,
                        "topic": "t",
                        "partition": 7,
                    }
                )
    return rows


def rows_of(found: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    for batch in found:
        batch.validate(full=True)
    table = pa.Table.from_batches(found, schema=EVERYTHING.schema)
    at = table.schema.get_field_index("timestamp")
    if at >= 0:  # Python's datetime ends in the year 9999
        table = table.set_column(at, "timestamp", table.column(at).cast(pa.int64()))
    return list(table.to_pylist())


def both(buffer: bytes, first: int = 0, end: int = 1 << 62) -> Iterator[list[dict[str, Any]] | str]:
    for compiled in (True, False):
        heads = walk(buffer, compiled=compiled)
        try:
            check_headers(heads.table, Origin("t", 7))
            found = decode_heads(
                buffer, heads.table, EVERYTHING, Origin("t", 7), first=first, end=end, compiled=compiled
            )
            yield rows_of(list(found))
        except Corrupt:
            yield "corrupt"


# --- the same rows


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(stored, min_size=1, max_size=5), base=st.integers(0, 1 << 40), window=st.data())
def test_kernel_twin_and_reader_see_the_same_rows(parts: list[Stored], base: int, window: st.DataObject) -> None:
    buffer = log_of(parts, base)
    last = read_header(buffer, scan(buffer).headers[-1].position).last_offset
    first = window.draw(st.integers(base, last + 1))
    end = window.draw(st.integers(first, last + 2))
    wanted = oracle(buffer, first, end)
    assert list(both(buffer, first, end)) == [wanted, wanted]
    got, _ = decode(buffer, EVERYTHING, topic="t", partition=7, first=first, end=end)
    assert rows_of(got) == wanted


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(stored, max_size=4), cut=st.data())
def test_a_walk_finds_what_brokers_find(parts: list[Stored], cut: st.DataObject) -> None:
    buffer = log_of(parts)
    buffer = buffer[: cut.draw(st.integers(0, len(buffer)))] + cut.draw(st.binary(max_size=20))
    wanted = scan(buffer)
    for compiled in (True, False):
        heads = walk(buffer, compiled=compiled)
        assert (heads.end, heads.tail) == (wanted.end, wanted.tail)
        assert heads.table[:, 0].tolist() == [header.position for header in wanted.headers]
        for row, header in zip(heads.table.tolist(), wanted.headers, strict=True):
            assert row[1:3] == [header.base_offset, header.size]
            assert row[3:] == [
                header.partition_leader_epoch, header.magic, header.crc, header.attributes, header.last_offset_delta,
                header.base_timestamp, header.max_timestamp, header.producer_id, header.producer_epoch,
                header.base_sequence, header.record_count,
            ]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(stored, min_size=1, max_size=2),
    changes=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_nonsense_is_refused_by_both_or_read_alike(parts: list[Stored], changes: list[tuple[int, int]]) -> None:
    """CRCs are not looked at here: they would hide it all."""
    buffer = bytearray(log_of(parts))
    for position, byte in changes:
        buffer[position % len(buffer)] = byte
    one, other = both(bytes(buffer))
    assert one == other


@settings(max_examples=300, deadline=None)
@given(plain=st.binary(max_size=60), count=st.integers(0, 8))
def test_random_records_are_refused_by_both_or_read_alike(plain: bytes, count: int) -> None:
    buffer = bytearray(build([], last_offset_delta=20, base_offset=5) + plain)
    buffer[8:12] = (len(buffer) - 12).to_bytes(4, "big")
    buffer[57:61] = count.to_bytes(4, "big")
    one, other = both(bytes(buffer))
    assert one == other
    try:
        assert one == oracle(bytes(buffer), 0, 1 << 62)
    except Corrupt as error:
        assert one == "corrupt" or "UTF-8" in str(error)


def test_more_than_one_portion() -> None:
    large = [(1000 + i, b"k%d" % i, bytes(700_000), []) for i in range(3)]
    buffer = b"".join(
        build(large, base_offset=3 * i, codec=codec)
        for i, codec in enumerate([Codec.NONE] * 5 + [Codec.LZ4] * 3 + [Codec.NONE] * 4)
    )
    got, following = decode(buffer, EVERYTHING, topic="t", partition=7, first=0)
    assert (following, [batch.num_rows > 0 for batch in got]) == (36, [True] * len(got))
    assert 6 <= len(got) <= 8
    assert rows_of(got) == oracle(buffer, 0, 100)


@BOTH
def test_a_snappy_batch_in_either_framing(compiled: bool) -> None:
    import cramjam

    from strandline.wire.batch import repacked

    plain = build([(1, b"k", b"v" * 1000, [])])
    raw = bytes(cramjam.snappy.compress_raw(plain[HEADER_SIZE:]))
    batch = bytes(repacked(read_header(plain), plain, Codec.SNAPPY, raw))
    found = decode_heads(batch, walk(batch).table, EVERYTHING, Origin("t", 7), compiled=compiled)
    assert [row["value"] for row in rows_of(list(found))] == [b"v" * 1000]


# --- what is passed over, and where to go on

TWO: list[Draft] = [(1000, b"k", b"one", []), (1001, None, None, [("h", None)])]
MARKER = EndTxnMarker(commits=False, coordinator_epoch=1)


def at(base: int, batch: bytes) -> bytes:
    out = bytearray(batch)
    patch(out, read_header(batch), base, 0)
    return bytes(out)


def offsets(found: tuple[list[pa.RecordBatch], int]) -> tuple[list[int], int]:
    return [row["offset"] for row in rows_of(found[0])], found[1]


def test_control_batches_are_passed_over() -> None:
    marker = build_end_txn(MARKER, timestamp=1, producer_id=1, producer_epoch=0)
    buffer = build(TWO) + at(2, marker)
    assert offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=0)) == ([0, 1], 3)
    assert offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=2)) == ([], 3)


def test_only_committed_records_if_that_is_asked_for() -> None:
    def of(producer: int, base: int) -> bytes:
        return build(TWO, base_offset=base, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    def ends(producer: int, base: int, *, commits: bool) -> bytes:
        marker = EndTxnMarker(commits=commits, coordinator_epoch=1)
        return at(base, build_end_txn(marker, timestamp=1, producer_id=producer, producer_epoch=0))

    buffer = b"".join(
        [
            of(1, 0),  # aborted
            of(2, 2),  # committed
            build(TWO, base_offset=4),  # of no transaction
            ends(1, 6, commits=False),
            of(1, 7),  # the same producer's next one, committed
            ends(2, 9, commits=True),
            ends(1, 10, commits=True),
        ]
    )
    aborted = [(1, 0)]
    seen = offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=0, aborted=aborted, read_committed=True))
    assert seen == ([2, 3, 4, 5, 7, 8], 11)
    # The window begins after the batch that the transaction began with.
    seen = offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=5, aborted=aborted, read_committed=True))
    assert seen == ([5, 7, 8], 11)
    seen = offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=0, aborted=aborted))
    assert seen == ([0, 1, 2, 3, 4, 5, 7, 8], 11)


def test_a_window_cuts_through_batches_and_what_lies_behind_it_is_not_looked_at() -> None:
    buffer = build(TWO) + build(TWO, base_offset=2) + build(TWO, base_offset=4)
    assert offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=1, end=3)) == ([1, 2], 3)
    rotten = buffer[:-1] + b"?"
    assert offsets(decode(rotten, EVERYTHING, topic="t", partition=7, first=0, end=4)) == ([0, 1, 2, 3], 4)
    assert offsets(decode(buffer + bytes(40), EVERYTHING, topic="t", partition=7, first=0, end=6))[1] == 6


def test_the_last_batch_is_cut_off() -> None:
    buffer = build(TWO) + build(TWO, base_offset=2)[:-3]
    assert offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=0)) == ([0, 1], 2)
    assert offsets(decode(buffer[:30], EVERYTHING, topic="t", partition=7, first=0)) == ([], 0)
    assert offsets(decode(b"", EVERYTHING, topic="t", partition=7, first=9)) == ([], 9)


def test_offsets_that_compaction_took_are_passed_over() -> None:
    buffer = build(TWO[:1], offset_deltas=[3], last_offset_delta=6, base_offset=10) + build(
        [], last_offset_delta=2, base_offset=17
    )
    assert offsets(decode(buffer, EVERYTHING, topic="t", partition=7, first=10)) == ([13], 20)


# --- damage


def resealed(batch: bytearray) -> bytes:
    from crc32c import crc32c

    batch[CRC_AT : CRC_AT + 4] = crc32c(bytes(batch[CRC_AT + 4 :])).to_bytes(4, "big")
    return bytes(batch)


def complaint(buffer: bytes) -> str:
    with pytest.raises(Corrupt) as error:
        decode(buffer, EVERYTHING, topic="t", partition=7, first=0)
    return str(error.value)


def test_damage_names_partition_and_offset() -> None:
    sound = build(TWO)
    rotten = bytearray(build(TWO, base_offset=2))
    rotten[-1] ^= 1
    assert complaint(sound + bytes(rotten)) == (
        f"t-7: the batch at offset 2 (byte {len(sound)}) is corrupt: its CRC is wrong"
    )
    assert complaint(sound + bytes(40)) == (
        f"t-7: no batch begins at byte {len(sound)}, where offset 2 must be: formats 0 and 1 are not supported"
    )
    many = bytearray(sound)
    many[57:61] = (1 << 30).to_bytes(4, "big")
    assert "1073741824 records in" in complaint(resealed(many))
    unknown = bytearray(sound)
    unknown[22] |= 5
    assert "its header is not valid" in complaint(resealed(unknown))
    last = bytearray(sound)
    last[:8] = ((1 << 63) - 2).to_bytes(8, "big")
    assert "its header is not valid" in complaint(bytes(last))


@BOTH
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_bytes_that_do_not_unpack(codec: Codec, compiled: bool) -> None:
    batch = bytearray(build(TWO, codec=codec))
    batch[HEADER_SIZE:] = b"\xff" * (len(batch) - HEADER_SIZE)
    with pytest.raises(Corrupt, match="batch at offset 0"):
        list(decode_heads(bytes(batch), walk(batch).table, EVERYTHING, Origin("t", 7), compiled=compiled))


# --- columns


def test_a_header_whose_name_is_no_text_is_read_as_javas_clients_read_it() -> None:
    """Brokers do not look into headers, and librdkafka writes any bytes as a name."""
    buffer = bytearray(build([(1, None, b"v", [("n~me", b"x")]), (2, None, b"w", [])]))
    buffer[buffer.index(b"~")] = 0xFF
    one, other = both(bytes(buffer))
    assert one == other
    assert [row["headers"] for row in one] == [[{"key": "n\ufffdme", "value": b"x"}], None]


@pytest.mark.parametrize("compiled", [True, False])
def test_headers_that_nobody_wants_are_not_looked_into(compiled: bool) -> None:
    buffer = bytearray(build([(1, None, b"v", [("n~me", b"x")])]))
    buffer[buffer.index(b"~")] = 0xFF
    table = walk(bytes(buffer), compiled=compiled).table
    (batch,) = decode_heads(bytes(buffer), table, Columns.of(["value"]), Origin("t", 7), compiled=compiled)
    assert batch.column(0).to_pylist() == [b"v"]


def test_only_the_wanted_columns_in_their_order() -> None:
    columns = Columns.of(["value", "partition", "broker", "key"])
    heads = walk(build(TWO))
    (batch,) = decode_heads(build(TWO), heads.table, columns, Origin("t", 7, broker=3))
    assert batch.schema == columns.schema
    assert batch.to_pylist() == [
        {"value": b"one", "partition": 7, "broker": 3, "key": b"k"},
        {"value": None, "partition": 7, "broker": 3, "key": None},
    ]


def test_a_column_that_there_is_not() -> None:
    with pytest.raises(UnknownColumn, match="no column 'colour'; there are key, value, "):
        Columns.of(["key", "colour"])
    with pytest.raises(UnknownColumn, match="'key' is binary, not string: cast it"):
        Columns.of(pa.schema([pa.field("key", pa.string())]))


def test_the_types_are_those_that_spark_makes() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    from strandline_spark.schemas import REPLICA_RECORD, TOPIC_ROW_WITH_HEADERS

    for wanted in (TOPIC_ROW_WITH_HEADERS, REPLICA_RECORD):
        schema = to_arrow_schema(wanted, timezone="UTC")
        assert Columns.of(schema.names).schema.equals(schema)
        (batch,) = decode_heads(build(TWO), walk(build(TWO)).table, Columns.of(schema), Origin("t", 7))
        assert schema.equals(batch.schema)
        batch.validate(full=True)
