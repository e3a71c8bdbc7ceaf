"""Batches of a lane: the compiled loop beside Python's, and both beside a reader."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.client.config import ClientConfig
from strandline.wire.batch import patch_create_time, read_header
from strandline.wire.record import all_records
from strandline_spark.jobs.emit.plan import Lane
from strandline_spark.jobs.emit.staged.encoding import compiled, encode, in_python
from strandline_spark.jobs.emit.staged.rows import Chosen, by_partition

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LANE = Lane(3, "f", 0, producer_id=1 << 40, producer_epoch=2)

blobs = st.none() | st.binary(max_size=200)
headers = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=20), "value": st.none() | st.binary(max_size=20)}), max_size=3
)
times = st.none() | st.integers(0, 1 << 41)
row = st.tuples(blobs, blobs, headers, times)


def chosen_of(rows: list[tuple[object, ...]]) -> Chosen:
    keys, values, named, stamps = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(named, HEADERS),
            "timestamp_ms": pa.array(stamps, pa.int64()),
        }
    )
    [(_, chosen)] = by_partition(batch, 0, 0, 1)
    return chosen


@settings(max_examples=150, deadline=None)
@given(st.lists(row, min_size=1, max_size=12), st.integers(0, 11))
def test_the_compiled_loop_writes_what_python_writes_within_the_bound(
    rows: list[tuple[object, ...]], skip: int
) -> None:
    chosen = chosen_of(rows).part(min(skip, len(rows) - 1), len(rows))
    deltas = chosen.times(5) - int(chosen.times(5)[0])
    written = bytes(compiled(chosen, deltas))
    assert written == in_python(chosen, deltas)
    assert len(written) <= chosen.size


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4", "snappy", "gzip"])
def test_a_batch_says_whose_it_is_and_what_is_in_it(codec: str) -> None:
    config = ClientConfig.of({"kafka.bootstrap.servers": "h:1", "kafka.compression.type": codec})
    rows = [
        (b"k", b"v" * 100, [{"key": "h", "value": b"x"}, {"key": "i", "value": None}], 5000),
        (None, None, None, None),
        (b"", b"", [], 2000),
    ]
    batch = encode(chosen_of(rows), LANE, 77, config, 3000)
    patch_create_time(batch, read_header(batch))
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 40, 2, 77)
    assert (header.record_count, header.last_offset_delta, header.base_timestamp) == (3, 2, 5000)
    assert header.max_timestamp == 5000
    found = [(r.timestamp, r.key and bytes(r.key), r.value and bytes(r.value)) for r in all_records(batch)]
    assert found == [(5000, b"k", b"v" * 100), (3000, None, None), (2000, b"", b"")]
    assert [len(r.headers) for r in all_records(batch)] == [2, 0, 0]


def test_numbers_at_their_largest_stay_within_the_bound() -> None:
    rows = [(b"", b"", None, at * (1 << 40)) for at in (3, 0, 1, 4)] * 40
    chosen = chosen_of(rows)
    deltas = np.asarray(chosen.times(0) - int(chosen.times(0)[0]))
    assert len(compiled(chosen, deltas)) <= chosen.size
