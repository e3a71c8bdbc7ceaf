"""Records to Arrow in Python, by the project's own reader: the kernel's oracle, and what runs without numba.

As in Spark's Kafka connector, a record without headers has none rather than an empty list of them; and as in Java's
clients, a header's name that is not UTF-8 is read with U+FFFD in place of what is wrong: brokers take any bytes there.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from strandline.wire.batch import MAGIC, BatchHeader
from strandline.wire.compress import Corrupt
from strandline.wire.record import read_record
from strandline_spark.decode.columns import TYPES
from strandline_spark.decode.rows import (
    BASE,
    BASE_TIMESTAMP,
    COUNT,
    DELTA,
    END,
    IS_STAMPED,
    STAMP,
    START,
    Rows,
    Run,
    Wants,
    Wrong,
)

MILLISECONDS_MAX = (1 << 63) // 1000


def decode_rows(runs: list[Run], wants: Wants) -> Rows:
    """Raises `Wrong`."""
    counts: list[int] = []
    offsets: list[int] = []
    stamps: list[int | None] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[list[dict[str, Any]] | None] = []
    for run in runs:
        for job in run.jobs.tolist():
            before = len(offsets)
            plain = run.source[job[START] : job[END]].tobytes()
            position, stamp = 0, job[STAMP] if job[IS_STAMPED] else None
            try:
                for _ in range(job[COUNT]):
                    record, position = read_record(plain, position, header_of(job), stamp, errors="replace")
                    if wants.first <= record.offset < wants.end:
                        offsets.append(record.offset)
                        stamps.append(microseconds(record.timestamp))
                        keys.append(record.key)
                        values.append(record.value)
                        headers.append([{"key": key, "value": content} for key, content in record.headers] or None)
            except Corrupt as error:
                raise Wrong(len(counts), str(error)) from None
            if position != len(plain):
                raise Wrong(len(counts), f"{len(plain) - position} bytes follow the last record")
            counts.append(len(offsets) - before)
    return Rows(
        np.array(counts, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        pa.array(stamps, pa.int64()).cast(TYPES["timestamp"]),
        pa.array(keys, TYPES["key"]) if wants.keys else None,
        pa.array(values, TYPES["value"]) if wants.values else None,
        pa.array(headers, TYPES["headers"]) if wants.headers else None,
    )


def header_of(job: list[int]) -> BatchHeader:
    """As much of it as `read_record` looks at."""
    return BatchHeader(
        0, job[BASE], 0, 0, MAGIC, 0, 0, job[DELTA], job[BASE_TIMESTAMP], job[STAMP], 0, 0, 0, job[COUNT]
    )


def microseconds(timestamp: int) -> int | None:
    return timestamp * 1000 if -MILLISECONDS_MAX <= timestamp <= MILLISECONDS_MAX else None
