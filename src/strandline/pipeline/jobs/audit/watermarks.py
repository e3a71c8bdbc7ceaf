"""High watermarks: what a replica knows to be committed, it has.

A checkpoint is a lower bound that was true when it was saved, and is read before the log is: from then on nothing that
it covers may be cut. (A broker that finds less at its start notes that in the loss ledger.)
"""

from typing import TYPE_CHECKING

from strandline.pipeline.jobs.audit.rows import case, found, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {"high-watermark": "a log ends below its own high watermark"}


def high_watermarks(replicas: "DataFrame") -> "DataFrame":
    what = said("the log ends at %d, and its high watermark was saved as %d", "end", "high_watermark")
    return found(replicas, case("high_watermark > end", "high-watermark", what, offset="end", end="high_watermark"))
