"""Offsets along one log: each batch begins where the one before it ended, and holds as many records as offsets.

Only a cleaner makes gaps, and it says of which logs it has been at (`cleaned_to`).
"""

from strandline_spark.jobs.audit.replicas import SOUND
from strandline_spark.jobs.audit.rows import case, said

RULES = {
    "gap": "offsets are missing between two batches of a log that no cleaner has changed",
    "overlap": "two batches of one log have the same offsets",
    "record-count": "a batch's number of records differs from its number of offsets",
    "epoch-order": "a batch has an older leader epoch than the one before it",
}


def cases() -> list[str]:
    """Of rows of `walk`: `expected` is the end of the batch before, `epoch_before` its epoch."""
    whole = {"offset": "base_offset", "end": "last_offset + 1"}
    gap = said("no batch has the offsets %d to %d", "expected", "base_offset - 1")
    overlap = said("a batch begins at %d, the one before it ended at %d", "base_offset", "expected")
    count = said("the batch at %d says that it has %d records", "base_offset", "records")
    order = said("leader epoch %d comes after %d", "leader_epoch", "epoch_before")
    is_gap = f"({SOUND}) and cleaned_to is null and base_offset > expected and base_offset > start"
    is_count = "fault is null and cleaned_to is null and records <> last_offset - base_offset + 1"
    both = "least(last_offset + 1, expected)"
    return [
        case(is_gap, "gap", gap, offset="expected", end="base_offset"),
        case(f"({SOUND}) and base_offset < expected", "overlap", overlap, offset="base_offset", end=both),
        case(is_count, "record-count", count, **whole),
        case(f"({SOUND}) and leader_epoch < epoch_before", "epoch-order", order, **whole),
    ]
