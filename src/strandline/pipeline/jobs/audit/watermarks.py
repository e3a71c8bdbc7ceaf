"""High watermarks: what a replica knows to be committed, it has.

A checkpoint is a lower bound that was true when it was saved, and is read before the log is: from then on nothing that
it covers may be cut. (A broker that finds less at its start notes that in the loss ledger.)
"""

from collections.abc import Iterator, Sequence

from strandline.pipeline.jobs.audit.replicas import Known
from strandline.pipeline.jobs.audit.rows import Row, plain

RULES = {"high-watermark": "a log ends below its own high watermark"}


def high_watermarks(known: Sequence[Known]) -> Iterator[Row]:
    for one in known:
        if one.high_watermark > one.end:
            what = f"the log ends at {one.end}, and its high watermark was saved as {one.high_watermark}"
            yield plain("high-watermark", what, one.key, one.end, one.high_watermark)
