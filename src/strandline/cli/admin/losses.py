"""`strandline losses`: acknowledged records that were lost, or may be; and whether all brokers answered."""

import json
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, draw
from strandline.client.admin.loss_acknowledgement import acknowledge as acknowledge_losses
from strandline.client.admin.loss_acknowledgement import acknowledgement
from strandline.client.admin.loss_ledger import (
    Ledger,
    as_json,
    ask_ledger,
    entries,
    exactly_lost,
    missing_copies,
)
from strandline.client.admin.partitions import pages, parse_place
from strandline.client.ask import Servers, ask_any
from strandline.client.brokers import brokers_of, may_describe_cluster
from strandline.diagnosis.loss_words import CERTAINTIES, acknowledged, line_of, records, repeated, when, who
from strandline.metadata.losses import EXACTLY, NO_END
from strandline.wire.messages.own.describe_losses import Loss

NOTHING_LOST, LOST, INCOMPLETE = 0, 2, 3


def losses(
    place: str | None = None,
    /,
    *,
    acknowledge: Annotated[bool, Parameter(negative="")] = False,
    show_all: Annotated[bool, Parameter(name="--all", negative="")] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> int:
    """List the loss ledger: unclean elections, and committed records that a replica's log lost.

    Exit status 0 if every entry is acknowledged, or there is none; 2 if there are others; 3 if a broker did not answer,
    or could not read its whole ledger, or may show only topics that the user may describe.

    Parameters
    ----------
    place
        TOPIC or TOPIC:PARTITION; everything if it is omitted
    acknowledge
        list the entries, and record in the metadata log that they were seen: they are hidden from then on
    show_all
        list acknowledged entries too; --json always has them
    """
    topic, index = (None, None) if place is None else parse_place(place)
    brokers = brokers_of(cluster.config)
    ledger = ask_ledger(brokers, None if topic is None else [topic])
    ledger = replace(ledger, is_restricted=not may_describe_cluster(cluster.config))
    chosen = [loss for loss in ledger.losses if index in (None, loss.partition)]
    if topic is not None and not chosen and not is_there(cluster.config, topic, index):
        fail(f"{place} does not exist, and is not in the ledger", "`strandline topics list` names the topics")
    if acknowledge:
        acknowledge_losses(cluster.config, [loss for loss in chosen if loss not in ledger.acknowledged])
    open_entries = print_entries(ledger, chosen, len(brokers), json_output, show_all or json_output, acknowledge)
    if not ledger.is_complete:
        return INCOMPLETE
    return LOST if open_entries and not acknowledge else NOTHING_LOST


def print_entries(
    ledger: Ledger, chosen: list[Loss], brokers: int, json_output: bool, show_all: bool, acknowledge: bool
) -> int:
    """How many entries are not acknowledged."""
    every = entries(chosen)
    rows = [as_json(entry, acknowledgement(entry, ledger.acknowledged)) for entry in every]
    open_rows = [row for row in rows if not row["acknowledged"]]
    if show_all:
        shown, listed = rows, chosen
    else:
        shown = open_rows
        listed = [loss for entry, row in zip(every, rows, strict=True) if row in shown for loss in entry.losses]
    counts = {"exactly_lost_records": exactly_lost(listed), "missing_copies": missing_copies(listed)}
    if json_output:
        print(json.dumps({"losses": shown, **counts, **gaps_of(ledger)}))
    else:
        show_ledger(shown, len(rows) - len(shown), counts, ledger, brokers)
        if acknowledge and open_rows:
            print(f"{counted(len(open_rows))} {'is' if len(open_rows) == 1 else 'are'} acknowledged now")
    return len(open_rows)


def gaps_of(ledger: Ledger) -> dict[str, Any]:
    silent = [{"broker": node, "why": why} for node, why in ledger.silent.items()]
    unread = [{"broker": node, "directory": path} for node, path in ledger.unread]
    restricted = {"restricted": True} if ledger.is_restricted else {}
    return {"not_asked": silent, "left_out": ledger.left_out, "unread": unread, **restricted}


def show_ledger(rows: list[dict[str, Any]], hidden: int, counts: dict[str, int], ledger: Ledger, brokers: int) -> None:
    show(rows, ledger)
    text = summary(rows, ledger, **counts)
    if hidden:
        text = f"{text if rows else 'nothing else was lost'}; not shown (--all): {counted(hidden, 'acknowledged ')}"
    print(f"{text} ({brokers - len(ledger.silent)} of {brokers} brokers asked)")


def is_there(bootstrap: Servers, topic: str, index: int | None) -> bool:
    answers = pages(lambda request: ask_any(bootstrap, request, 0), [topic])
    found = [row.partition_index for page in answers if page.error_code == ErrorCode.NONE for row in page.partitions]
    return bool(found) if index is None else index in found


def show(rows: list[dict[str, Any]], ledger: Ledger) -> None:
    if rows and sys.stdout.isatty():
        draw(table_of(rows))
    else:
        for row in rows:
            print(line_of(row))
    for node, why in ledger.silent.items():
        print(f"not asked: broker {node} {why}")
    for node, path in ledger.unread:
        print(f"not read: log directory {path} of broker {node} is offline, and its ledger with it")
    if ledger.left_out:
        print(f"not listed: {ledger.left_out} older entries")
    if ledger.is_restricted:
        print("not listed: topics that you may not describe, and offline log directories (Describe on the cluster)")


def summary(rows: list[dict[str, Any]], ledger: Ledger, exactly_lost_records: int, missing_copies: int) -> str:
    if not rows:
        if ledger.is_restricted:
            return "nothing that you may see was lost"
        return "nothing was lost" if ledger.is_complete else "nothing that the others know of was lost"
    loose = sum(row["certainty"] != EXACTLY for row in rows)
    total = counted(len(rows))
    if loose == len(rows):
        return f"{total}: it is not known exactly how much was lost"
    copies = f"; {records(missing_copies)} that a single replica missed, copied again if its leader had them"
    unknown = f"; of {loose} it is not known exactly how much"
    text = f"exactly {records(exactly_lost_records)} lost"
    return f"{total}: {text}{copies if missing_copies else ''}{unknown if loose else ''}"


def counted(entries: int, kind: str = "") -> str:
    return f"{entries} {kind}entr{'y' if entries == 1 else 'ies'}"


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    table = Fitted(
        Column("time", drops=1),
        Column("partition"),
        Column("from", "right"),
        Column("to", "right"),
        Column("certainty"),
        Column("whose log", drops=2),
        Column("epochs", drops=3),
        Column("cause", is_text=True),
    )
    for row in rows:
        end = "?" if row["end"] == NO_END else str(row["end"] - 1)
        start = "?" if not row["certainty"] else str(row["start"])
        place = f"{row['topic']}-{row['partition']}"
        epochs = f"{row['old_epoch']} → {row['new_epoch']}"
        known = CERTAINTIES.get(row["certainty"], "unknown")
        style = "red" if row["certainty"] == EXACTLY else "yellow"
        cells = (start, end, known, who(row), epochs, row["cause"] + repeated(row) + acknowledged(row))
        table.add_row(when(row["time_ms"]), place, *cells, style=style)
    return table
