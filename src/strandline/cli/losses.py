"""`strandline losses`: what was lost of what had been acknowledged, or may have been; and whether all brokers told."""

import json
import sys
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from strandline.base.errors import ErrorCode
from strandline.cli.brokers import brokers_of
from strandline.cli.cluster import ask_any
from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, Json, fail
from strandline.cli.loss_words import CERTAINTIES, range_words, records
from strandline.cli.partitions import pages, parse_place
from strandline.metadata.losses import EXACTLY, NO_END
from strandline.server.loss_ledger import (
    METADATA,
    WITHDRAWN,
    Ledger,
    as_json,
    ask_ledger,
    entries,
    exactly_lost,
    missing_copies,
)

NOTHING_LOST, LOST, INCOMPLETE = 0, 2, 3


def losses(place: str | None = None, /, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, json_output: Json = False) -> int:
    """List the loss ledger: each unclean election, and each record that a replica's log lost although it was committed.

    Exit status 0 if nothing was lost, 2 if there are entries, 3 if some broker could not be asked, or not tell all.

    Parameters
    ----------
    place
        TOPIC or TOPIC:PARTITION; everything if none is given
    """
    topic, index = (None, None) if place is None else parse_place(place)
    brokers = brokers_of(bootstrap)
    ledger = ask_ledger(brokers, None if topic is None else [topic])
    chosen = [loss for loss in ledger.losses if index in (None, loss.partition)]
    rows = [as_json(entry) for entry in entries(chosen)]
    if topic is not None and not rows and not is_there(bootstrap, topic, index):
        fail(f"{place} does not exist, and the ledger does not name it", "`strandline topics list` names the topics")
    counts = {"exactly_lost_records": exactly_lost(chosen), "missing_copies": missing_copies(chosen)}
    if json_output:
        silent = [{"broker": node, "why": why} for node, why in ledger.silent.items()]
        unread = [{"broker": node, "directory": path} for node, path in ledger.unread]
        gaps = {"not_asked": silent, "left_out": ledger.left_out, "unread": unread}
        print(json.dumps({"losses": rows, **counts, **gaps}))
    else:
        show(rows, ledger)
        asked = len(brokers) - len(ledger.silent)
        print(f"{summary(rows, ledger, **counts)} ({asked} of {len(brokers)} brokers asked)")
    return INCOMPLETE if not ledger.is_complete else LOST if rows else NOTHING_LOST


def is_there(bootstrap: str, topic: str, index: int | None) -> bool:
    told = pages(lambda request: ask_any(bootstrap, request, 0), [topic])
    found = [row.partition_index for page in told if page.error_code == ErrorCode.NONE for row in page.partitions]
    return bool(found) if index is None else index in found


def show(rows: list[dict[str, Any]], ledger: Ledger) -> None:
    if rows and sys.stdout.isatty():
        Console().print(table_of(rows))
    else:
        for row in rows:
            print(line_of(row))
    for node, why in ledger.silent.items():
        print(f"not asked: broker {node} {why}")
    for node, path in ledger.unread:
        print(f"not read: broker {node} has log directory {path} offline, and with it what was lost there")
    if ledger.left_out:
        print(f"not told: {ledger.left_out} older entries")


def summary(rows: list[dict[str, Any]], ledger: Ledger, exactly_lost_records: int, missing_copies: int) -> str:
    if not rows:
        return "nothing was lost" if ledger.is_complete else "nothing that the others know of was lost"
    loose = sum(row["certainty"] != EXACTLY for row in rows)
    told_of = f"{len(rows)} entr{'y' if len(rows) == 1 else 'ies'}"
    if loose == len(rows):
        return f"{told_of}: it is not known exactly how much was lost"
    copies = f"; {records(missing_copies)} that a single replica missed, copied again if its leader had them"
    unknown = f"; of {loose} it is not known exactly how much"
    told = f"exactly {records(exactly_lost_records)} lost"
    return f"{told_of}: {told}{copies if missing_copies else ''}{unknown if loose else ''}"


def line_of(row: dict[str, Any]) -> str:
    what = range_words(row["start"], row["end"], row["certainty"])
    epochs = f"epoch {row['old_epoch']} to {row['new_epoch']}"
    place = f"{row['topic']}-{row['partition']}"
    return f"{when(row['time_ms'])} {place}: {what}; {who(row)}, {epochs}; {row['cause']}{repeated(row)}"


def repeated(row: dict[str, Any]) -> str:
    return f" ({row['count']} times, last at {when(row['last_time_ms'])})" if row["count"] > 1 else ""


def who(row: dict[str, Any]) -> str:
    if row["where"] == WITHDRAWN:
        return f"broker {row['replica']} left ISR and ELR"
    return f"broker {row['replica']} was elected" if row["where"] == METADATA else f"broker {row['replica']}'s log"


def when(time_ms: int) -> str:
    if time_ms < 0:
        return "(no time)"
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("time", "partition", "from", "to", "certainty", "whose log", "epochs", "cause"):
        table.add_column(column, justify="right" if column in ("from", "to") else "left")
    for row in rows:
        end = "?" if row["end"] == NO_END else str(row["end"] - 1)
        start = "?" if not row["certainty"] else str(row["start"])
        place = f"{row['topic']}-{row['partition']}"
        epochs = f"{row['old_epoch']} → {row['new_epoch']}"
        known = CERTAINTIES.get(row["certainty"], "unknown")
        style = "red" if row["certainty"] == EXACTLY else "yellow"
        cells = (start, end, known, who(row), epochs, row["cause"] + repeated(row))
        table.add_row(when(row["time_ms"]), place, *cells, style=style)
    return table
