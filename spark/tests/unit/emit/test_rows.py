"""Staged rows, read in pieces: who goes where, in which order, in batches of which size."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.staged import rows as subject
from strandline_spark.jobs.emit.staged.rows import BLOCK, NO_TIMES, ROW_OVERHEAD, Chosen, by_partition, pieces, sizes_of
from strandline_spark.sink.layout import blob, rows_of
from strandline_spark.sink.twin import murmur2

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(keys: list[bytes | None], **more: pa.Array) -> pa.RecordBatch:
    values = pa.array([b"v%d" % at for at in range(len(keys))], pa.binary())
    return pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.binary()), "value": values, **more})


def choose(made: pa.RecordBatch, first_row: int, lane: int, partitions: int) -> list[int]:
    found = [(int(row), to) for to, part in by_partition(made, first_row, lane, partitions) for row in part.indices]
    return [to for _, to in sorted(found)]


def test_a_named_partition_comes_before_the_key_and_the_key_before_the_place() -> None:
    keys = [b"21", b"21", None, None]
    named = pa.array([3, None, 2, None], pa.int32())
    by_key = (murmur2(b"21") & 0x7FFF_FFFF) % 4
    assert choose(batch(keys, partition=named), 0, 1, 4) == [3, by_key, 2, 1]


def test_rows_without_a_key_go_round_in_blocks_and_each_lane_begins_elsewhere() -> None:
    nothing = batch([None] * 3 * BLOCK)
    chosen = choose(nothing, 0, 0, 2)
    assert [chosen[0], chosen[BLOCK - 1], chosen[BLOCK], chosen[2 * BLOCK]] == [0, 0, 1, 0]
    assert choose(nothing, 0, 1, 2)[0] == 1
    assert choose(nothing, BLOCK, 0, 2)[0] == 1


def test_a_partition_that_is_not_there_is_named() -> None:
    with pytest.raises(StrandlineError, match="row 11 of lane 0 names partition 4, and the topic has 4"):
        choose(batch([None, None], partition=pa.array([0, 4], pa.int32())), 10, 0, 4)


def test_however_the_file_is_read_each_partition_gets_the_same_rows_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rows.parquet")
    keys = [None if at % 3 else b"k%d" % (at % 40) for at in range(5000)]
    pq.write_table(pa.Table.from_batches([batch(keys)]), path, row_group_size=700)

    def read() -> dict[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        for partition, part in pieces(path, 2, 3):
            values = [blob(part.rows.values, row) or b"" for row in part.indices]
            found.setdefault(partition, []).extend(values)
        return found

    whole = read()
    monkeypatch.setattr(subject, "PIECE_ROWS_MAX", 37)
    assert read() == whole
    assert sorted(value for rows in whole.values() for value in rows) == sorted(b"v%d" % at for at in range(5000))


def test_of_a_large_file_a_piece_is_in_memory_and_not_what_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, size = str(tmp_path / "rows.parquet"), 16 << 20
    values = pa.array([bytes([at % 256]) * 1024 for at in range(size >> 10)], pa.binary())
    table = pa.table({"key": pa.nulls(len(values), pa.binary()), "value": values})
    pq.write_table(table, path, row_group_size=4096, use_dictionary=False, compression="none")
    del values, table
    monkeypatch.setattr(subject, "PIECE_BYTES", 1 << 20)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in pieces(path, 0, 1)]
    assert len(held) >= 16
    assert max(held) < 5 << 20


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(20, 120))
def test_batches_are_as_large_as_may_be_and_no_larger(sizes: list[int], bytes_max: int) -> None:
    rows = rows_of(batch([None] * len(sizes)), {"key": 0, "value": 1})
    every = Chosen(rows, np.arange(len(sizes)), np.array(sizes, dtype=np.int64), NO_TIMES)
    cuts = list(every.cuts(bytes_max))
    assert [at for first, count in cuts for at in range(first, first + count)] == list(range(len(sizes)))
    for first, count in cuts:
        assert every.part(first, count).size == sum(sizes[first : first + count])
        size = sum(sizes[first : first + count])
        assert size <= bytes_max or count == 1
        assert first + count == len(sizes) or size + sizes[first + count] > bytes_max


def test_sizes_count_keys_values_and_headers_of_slices_too() -> None:
    headers = pa.array([None, [{"key": "h", "value": b"12345"}, {"key": "i", "value": None}], []], HEADERS)
    made = batch([b"abc", None, b""], headers=headers)
    none, some, empty = sizes_of(made).tolist()
    assert (none, empty) == (ROW_OVERHEAD + 3 + 2, ROW_OVERHEAD + 2)
    assert some == ROW_OVERHEAD + 2 + 2 * 10 + 1 + 5 + 1
    assert sizes_of(made.slice(1, 2)).tolist() == [some, empty]
