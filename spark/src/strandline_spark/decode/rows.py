"""The columns of a record's own, as either backend gives them."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strandline_spark.decode.heads import Bytes, Table

# The columns of a table of jobs: where a batch's records lie in their source, and what its header says of them.
START, END, BASE, DELTA, BASE_TIMESTAMP, STAMP, IS_STAMPED, COUNT = range(8)
JOB_WIDTH = 8


class Run(NamedTuple):
    """Batches whose records, uncompressed, lie in one piece of memory. A row of `jobs` for each."""

    source: Bytes
    jobs: Table


class Wants(NamedTuple):
    """Which columns are made, and of which offsets: [first, end)."""

    keys: bool
    values: bool
    headers: bool
    first: int
    end: int


class Rows(NamedTuple):
    """Columns of equal length; None: not wanted. `counts` are the rows of each job, over all runs."""

    counts: Table
    offsets: NDArray[np.int64]
    stamps: pa.Array
    keys: pa.Array | None
    values: pa.Array | None
    headers: pa.Array | None


class Wrong(Exception):
    """A job's records make no sense."""

    def __init__(self, job: int, why: str) -> None:
        super().__init__(why)
        self.job = job
        self.why = why
