"""Rows for tests, as Arrow columns of every kind that Spark may hand over."""

from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


blobs = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([bytes(63), bytes(64), bytes(8191), bytes(8192)]))
headers = st.one_of(
    st.none(), st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=3)
)
row_lists = st.lists(st.builds(Row, blobs, blobs, headers), max_size=30)


def batch_of(rows: list[Row], kind: pa.DataType | None = None) -> pa.RecordBatch:
    """With another row before and after them, cut off again: columns of a slice have an offset."""
    around = Row(b"before", None, [("no", b"no")])
    whole = [around, *rows, around]
    blob = kind or pa.binary()
    pairs = [None if r.headers is None else [{"key": k, "value": v} for k, v in r.headers] for r in whole]
    columns = {
        "key": pa.array([r.key for r in whole], blob),
        "value": pa.array([r.value for r in whole], blob),
        "headers": pa.array(pairs, HEADERS),
    }
    return pa.RecordBatch.from_pydict(columns).slice(1, len(rows))
