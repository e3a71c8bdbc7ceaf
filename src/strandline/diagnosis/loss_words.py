"""Losses in words: the same ones for what an election would lose, and for what the ledger says was lost."""

from datetime import UTC, datetime

from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END

CERTAINTIES = {0: "unknown", AT_MOST: "at most", EXACTLY: "exactly"}


def range_words(start: int, end: int, certainty: int) -> str:
    """ "exactly 3 records, offsets 5 to 7"; a range is half-open, but people read its last offset."""
    if certainty not in (AT_MOST, EXACTLY):
        where = f"perhaps some from offset {start} on" if start > 0 else "nobody can say which records"
        return f"unknown: {where}"
    if end == NO_END:
        return f"{CERTAINTIES[certainty]} what was committed from offset {start} on"
    return f"{CERTAINTIES[certainty]} {records(end - start)}{offsets(start, end)}"


def records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def offsets(start: int, end: int) -> str:
    if end <= start:
        return ""
    return f", offset {start}" if end == start + 1 else f", offsets {start} to {end - 1}"


def when(time_ms: int) -> str:
    if time_ms < 0:
        return "(no time)"
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
