"""High watermarks and the other checkpoints: what a replica knows to be committed, or durable, it has.

A checkpoint is a lower bound that was true when it was saved, and is read before the log is: from then on nothing that
it covers may be cut. (A broker that finds less at its start notes that in the loss ledger.)
"""

from collections.abc import Iterator, Sequence

from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import Row, key_of, plain

RULES = {
    "high-watermark": "a log ends below its own high watermark",
    "checkpoint": "a log ends below where a checkpoint says that it is durable, starts, or was cleaned",
}
NAMED = {"recovery_point": "recovery point", "log_start_offset": "log start", "cleaned_to": "last cleaning"}


def high_watermarks(known: Sequence[Known]) -> Iterator[Row]:
    for one in known:
        if one.high_watermark > one.end:
            what = f"the log ends at {one.end}, and its high watermark was saved as {one.high_watermark}"
            yield plain("high-watermark", what, one.key, one.end, one.high_watermark)


def other_checkpoints(known: Sequence[Known], checkpoints: Sequence[Row]) -> Iterator[Row]:
    ends = {one.key: one.end for one in known}
    for row in checkpoints:
        end = ends.get(key_of(row))
        above = {name: row[name] for name in NAMED if end is not None and (row[name] or 0) > end}
        if end is not None and above:
            texts = ", ".join(f"the {NAMED[name]} as {offset}" for name, offset in above.items())
            what = f"the log ends at {end}, and its directory has {texts}"
            yield plain("checkpoint", what, key_of(row), end, max(above.values()))
