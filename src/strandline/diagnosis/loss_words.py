"""Losses in words: the same ones for what an election would lose, and for what the ledger says was lost."""

from datetime import UTC, datetime
from typing import Any

from strandline.client.admin.loss_ledger import METADATA, WITHDRAWN
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


# --- entries of the ledger, as `client.admin.loss_ledger.as_json` has them


def line_of(row: dict[str, Any]) -> str:
    what = range_words(row["start"], row["end"], row["certainty"])
    epochs = f"epoch {row['old_epoch']} to {row['new_epoch']}"
    place = f"{row['topic']}-{row['partition']}"
    cause = f"{row['cause']}{repeated(row)}{acknowledged(row)}"
    return f"{when(row['time_ms'])} {place}: {what}; {who(row)}, {epochs}; {cause}"


def repeated(row: dict[str, Any]) -> str:
    return f" ({row['count']} times, last at {when(row['last_time_ms'])})" if row["count"] > 1 else ""


def acknowledged(row: dict[str, Any]) -> str:
    if not row["acknowledged"]:
        return ""
    return f" [acknowledged by {row['acknowledged_by']} at {when(row['acknowledged_ms'])}]"


def who(row: dict[str, Any]) -> str:
    if row["where"] == WITHDRAWN:
        return f"broker {row['replica']} left ISR and ELR"
    return f"broker {row['replica']} was elected" if row["where"] == METADATA else f"broker {row['replica']}'s log"
