"""Rows become records: the kernel, its twin, and the project's own record writer make the same bytes."""

import sys
from warnings import catch_warnings, simplefilter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spark.tests.unit.sink.rows import Row, batch_of, row_lists

from strandline.client.config import ClientConfig
from strandline.client.lanes import Pending
from strandline.wire.batch import append_record, build, read_header, read_produced
from strandline.wire.compress import Codec
from strandline.wire.record import records
from strandline_spark.sink import kernel, twin
from strandline_spark.sink.batches import Growing, SlowEncoding, Where, encoders, splitter
from strandline_spark.sink.layout import NO_BYTES, frozen, nulls, rows_of

with catch_warnings():  # kafka-python's own
    simplefilter("ignore")
    from kafka.partitioner.default import murmur2 as their_murmur2

BOTH = pytest.mark.parametrize("code", [kernel, twin], ids=["kernel", "twin"])
COLUMNS = {"key": 0, "value": 1, "headers": 2}
NO_PARTITIONS = np.empty(0, np.int32)


def config(**options: str) -> ClientConfig:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    return ClientConfig.of({"kafka.bootstrap.servers": "h:1", **given})


@settings(max_examples=150, deadline=None)
@given(rows=row_lists, delta=st.sampled_from([0, 1, 63, 64, 10_000, 2**40]), first=st.sampled_from([0, 63, 64, 8191]))
def test_all_three_make_the_same_records(rows: list[Row], delta: int, first: int) -> None:
    columns = rows_of(batch_of(rows), COLUMNS)
    expected = bytearray()
    for i, row in enumerate(rows):
        append_record(expected, first + i, 0, (delta, row.key, row.value, row.headers or ()))
    chosen = np.arange(len(rows), dtype=np.int64)
    for code in (kernel, twin):
        out = np.zeros(1 << 20, np.uint8)
        result = code.encode(columns, chosen, 0, out, 61, first, delta, 1 << 20, 1 << 20)
        assert result == (code.DONE, len(rows), 61 + len(expected), first + len(rows))
        assert out[61 : 61 + len(expected)].tobytes() == bytes(expected)


@settings(max_examples=150, deadline=None)
@given(rows=row_lists, limit=st.integers(62, 20_000), data=st.data())
def test_both_stop_at_the_same_row(rows: list[Row], limit: int, data: st.DataObject) -> None:
    columns = rows_of(batch_of(rows), COLUMNS)
    picks = data.draw(st.lists(st.integers(0, max(len(rows) - 1, 0)), max_size=30)) if rows else []
    chosen = np.array(picks, np.int64)
    stopped_at = []
    for code in (kernel, twin):
        out = np.zeros(10_000, np.uint8)
        at, position, count, steps = 0, 61, 0, []
        while True:
            why, at, position, count = code.encode(columns, chosen, at, out, position, count, 5, limit, 9_000)
            steps.append((int(why), int(at), int(position), int(count), out[:position].tobytes() if why < 2 else b""))
            if why != code.FULL:
                break
            position, count = 61, 0
        stopped_at.append(steps)
    assert stopped_at[0] == stopped_at[1]


@BOTH
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_strings_and_large_columns_are_taken_as_they_are(code: object, kind: pa.DataType) -> None:
    rows = [Row(b"k", b"v1", None), Row(None, b"", []), Row(b"", None, [("h", None)])]
    growing = Growing(config(), code.encode)  # type: ignore[attr-defined]
    growing.append(rows_of(batch_of(rows, kind), COLUMNS), np.arange(3), 0, 0)
    batch = growing.sealed()[0]
    assert [(r.key, r.value, list(r.headers)) for r in records(read_header(batch), batch)] == [
        (b"k", b"v1", []),
        (None, b"", []),
        (b"", None, [("h", None)]),
    ]
    texts = pa.RecordBatch.from_pydict({"value": pa.array(["ü", None])})
    growing.append(rows_of(texts, {"value": 0}), np.arange(2), 0, 0)
    batch = growing.sealed()[0]
    assert [(r.key, r.value) for r in records(read_header(batch), batch)] == [(None, "ü".encode()), (None, None)]


@BOTH
@pytest.mark.parametrize("codec", list(Codec))
def test_a_sealed_batch_is_what_the_record_writer_builds(code: object, codec: Codec) -> None:
    rows = [Row(b"k%d" % i, b"v" * i, [("h", b"x")]) for i in range(50)]
    growing = Growing(config(compression_type=codec.name.lower()), code.encode)  # type: ignore[attr-defined]
    growing.append(rows_of(batch_of(rows), COLUMNS), np.arange(50), 0, 0)
    batch, where = growing.sealed()
    stamp = read_header(batch).base_timestamp
    pending = Pending(batch, where, None)
    pending.stamp(7, 1, 100)
    drafts = [(stamp, row.key, row.value, row.headers or ()) for row in rows]
    assert bytes(batch) == build(drafts, codec=codec, producer_id=7, producer_epoch=1, base_sequence=100)
    assert read_produced(batch, 1 << 20) == read_header(batch)
    assert [where.row(i) for i in (0, 49)] == [0, 49]


@BOTH
def test_a_header_without_a_key_is_refused(code: object) -> None:
    pairs = pa.array([[{"key": None, "value": b"x"}]], batch_of([]).schema.field("headers").type)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"v"]), "headers": pairs})
    growing = Growing(config(), code.encode)  # type: ignore[attr-defined]
    why, at, _ = growing.append(rows_of(batch, {"value": 0, "headers": 1}), np.arange(1), 0, 0)
    assert (why, at) == (kernel.NAMELESS, 0)


@settings(max_examples=200, deadline=None)
@given(key=st.binary(max_size=40))
def test_keys_go_where_every_client_of_kafka_sends_them(key: bytes) -> None:
    assert twin.murmur2(key) == their_murmur2(key) & 0xFFFF_FFFF
    array = frozen(np.frombuffer(b"##" + key + b"##", np.uint8))
    assert kernel.murmur2(array, 2, 2 + len(key)) == twin.murmur2(key)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hashes_of_kafkas_own_tests(key: bytes, expected: int) -> None:
    assert twin.murmur2(key) == expected & 0xFFFF_FFFF


@BOTH
def test_a_given_partition_goes_before_the_key_and_one_that_is_missing_is_found(code: object) -> None:
    columns = rows_of(batch_of([Row(b"21", b"", None), Row(None, b"", None), Row(b"abc", b"", None)]), COLUMNS)
    everything = np.arange(3, dtype=np.int64)
    out = np.zeros(3, np.int32)

    def target(given: list[int], valid: list[int], partitions: int = 4, ignores: int = 0) -> object:
        has = frozen(np.array(valid, np.uint8)) if valid else NO_BYTES
        where = np.array(given, np.int32)
        bad = code.targets(columns.keys, where, has, everything, partitions, ignores, out)  # type: ignore[attr-defined]
        return out.tolist() if bad < 0 else int(bad)

    by_key = [(twin.murmur2(key) & 0x7FFF_FFFF) % 4 for key in (b"21", b"abc")]
    assert target([], []) == [by_key[0], -1, by_key[1]]
    assert target([], [], ignores=1) == [-1, -1, -1]
    assert target([3, 2, 0], []) == [3, 2, 0]
    assert target([3, -1, -1], [1, 0, 0]) == [3, -1, by_key[1]]
    assert target([3, 4, 0], []) == 1
    assert target([3, -1, 0], []) == 1


def test_batches_are_full_before_they_leave_and_hold_at_least_one_record() -> None:
    growing = Growing(config(batch_size="1000", max_request_size="5000"), kernel.encode)
    rows = rows_of(batch_of([Row(None, bytes(size), None) for size in (400, 400, 400, 3000, 6000)]), COLUMNS)
    chosen = np.arange(5)
    assert growing.append(rows, chosen, 0, 10)[:2] == (kernel.FULL, 2)
    assert growing.sealed()[1].row(1) == 11
    assert growing.append(rows, chosen, 2, 10)[:2] == (kernel.FULL, 3)
    growing.sealed()
    assert growing.append(rows, chosen, 3, 10)[:2] == (kernel.FULL, 4)  # too large for its batch, not for a request
    batch, where = growing.sealed()
    assert len(batch) > 3000
    assert where.row(0) == 13
    why, at, size = growing.append(rows, chosen, 4, 10)
    assert (why, at) == (kernel.TOO_LARGE, 4)
    assert 6000 < size < 6100


def test_a_batch_that_a_broker_finds_too_large_becomes_halves_down_to_one_record() -> None:
    growing = Growing(config(compression_type="zstd"), kernel.encode)
    rows = rows_of(batch_of([Row(b"%d" % i, bytes(100), None) for i in range(5)]), COLUMNS)
    growing.append(rows, np.array([4, 3, 2, 1, 0]), 0, 100)
    batch, where = growing.sealed()
    first, second = splitter(batch, where, growing.shrink)()
    assert (first.count, second.count) == (3, 2)
    assert isinstance(second.tag, Where)
    assert [second.tag.row(0), second.tag.row(1)] == [101, 100]
    assert read_header(second.bytes).codec == Codec.ZSTD
    assert growing.limit < growing.config.batch_size
    assert second.split is not None
    last = second.split()[1]
    assert [r.key for r in records(read_header(last.bytes), last.bytes)] == [b"0"]
    assert last.tag.row(0) == 100


def test_a_column_that_is_missing_is_null() -> None:
    assert twin.draft_of(rows_of(pa.RecordBatch.from_pydict({"value": pa.array([b"v"])}), {"value": 0}), 0, 3) == (
        3,
        None,
        b"v",
        [],
    )
    assert len(nulls(2).offsets) == 3


def test_without_numba_the_twin_writes_and_a_warning_names_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    encoders.cache_clear()
    monkeypatch.setitem(sys.modules, "strandline_spark.sink.kernel", None)
    monkeypatch.delattr("strandline_spark.sink.kernel")
    with pytest.warns(SlowEncoding, match="15 times slower"):
        assert encoders() is twin
    encoders.cache_clear()


def test_the_kernel_is_compiled_once_whatever_the_columns_are() -> None:
    """Columns that Spark sends are not writable, those that are missing are made here: one type for all."""
    received = pa.ipc.open_stream(stream_of(batch_of([Row(b"k", b"v", [("h", b"x")]), Row(None, None, None)])))
    batch = received.read_next_batch()
    for names in (COLUMNS, {"value": 1}, {"value": 1, "headers": 2}):
        growing = Growing(config(), kernel.encode)
        growing.append(rows_of(batch, names), np.arange(2, dtype=np.int64), 0, 0)
        assert growing.count == 2
    assert len(kernel.encode.signatures) == 1  # type: ignore[attr-defined]


def stream_of(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
