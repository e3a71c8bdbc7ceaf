"""DataFrames that are computed once and used several times. Spark keeps those until it is asked to drop
them, also when nobody has them any more: the session of a notebook would fill up."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def persisted(rows: "DataFrame") -> "Iterator[DataFrame]":
    """Kept from its first use to the end of the block."""
    rows.persist()
    try:
        yield rows
    finally:
        rows.unpersist()
