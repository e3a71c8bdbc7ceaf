"""Sequences of idempotent producers: in one log, those of one producer and epoch follow one another.

The first that is left may be any. A cleaner takes batches, so that gaps say nothing where it has been; it repeats none.
Sequences begin again at 0 after the largest int32: producers that may have come so far are judged step by step.
"""

from typing import TYPE_CHECKING

from strandline_spark.jobs.audit.rows import CONTROL, REPLICA, case, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "duplicate-sequence": "an idempotent producer's batch is in the log twice",
    "sequence-gap": "an idempotent producer's sequences skip some",
}
HALF = 1 << 30
LARGEST = (1 << 31) - 1
COUNTS = f"fault is null and producer_id >= 0 and base_sequence >= 0 and (attributes & {CONTROL}) = 0"


def with_skipped(rows: "DataFrame") -> "DataFrame":
    """`skipped`: how many sequences the producer left out before this batch; more than half of all: it went back.
    Null for a batch without a sequence, and for a producer's first. `before`: the sequence that came before."""
    order = f"partition by {', '.join(REPLICA)}, producer_id, producer_epoch order by base_offset, segment, position"
    before = f"over ({order} rows between unbounded preceding and 1 preceding)"
    last = f"case when {COUNTS} then (base_sequence + last_offset - base_offset) & {LARGEST} end"
    return (
        rows.selectExpr("*", f"{last} as last_sequence")
        .selectExpr(
            "*", f"max(last_sequence) {before} as largest", f"last_value(last_sequence, true) {before} as recent"
        )
        .selectExpr("*", f"if(greatest(largest, last_sequence) < {HALF}, largest, recent) as before")
        .selectExpr("*", f"case when {COUNTS} then (base_sequence - before - 1) & {LARGEST} end as skipped")
    )


def cases() -> list[str]:
    """Of rows of `with_skipped`."""
    whole = {"offset": "base_offset", "end": "last_offset + 1"}
    who = ("producer_id", "producer_epoch", "base_sequence")
    again = said("producer %d, epoch %d: sequences %d to %d come after %d", *who, "last_sequence", "before")
    gap = said("producer %d, epoch %d: sequence %d comes after %d", *who, "before")
    is_gap = f"skipped > 0 and skipped < {HALF} and cleaned_to is null"
    return [
        case(f"skipped >= {HALF}", "duplicate-sequence", again, **whole),
        case(is_gap, "sequence-gap", gap, **whole),
    ]
