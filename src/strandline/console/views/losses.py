"""The loss ledger as a timeline: the cluster's, a partition's, and the offsets that are meant."""

from typing import Any

from strandline.client.admin.loss_acknowledgement import acknowledgement
from strandline.client.admin.loss_ledger import (
    WITHDRAWN,
    Ledger,
    as_json,
    entries,
    exactly_lost,
    is_of_one_replica,
    missing_copies,
)
from strandline.console.changes.acknowledgement import ACKNOWLEDGEMENT
from strandline.console.facts import Facts
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, View
from strandline.diagnosis.ledger_facts import meaning
from strandline.diagnosis.loss_words import CERTAINTIES, range_words, who
from strandline.metadata.losses import NO_END


def loss_rows(facts: Facts) -> Rows:
    """By what makes an entry another one. An end of -1 is open: whatever was committed behind the start."""
    if facts.ledger is None:
        return {}
    rows: dict[str, Json] = {}
    for entry in entries(facts.ledger.losses):
        row = as_json(entry, acknowledgement(entry, facts.ledger.acknowledged))
        first = entry.losses[0]
        name = f"{row['time_ms']}:{row['topic']}:{row['partition']}:{row['where']}:{row['broker']}:{row['replica']}"
        rows[f"{name}:{row['start']}:{row['end']}:{row['old_epoch']}:{row['new_epoch']}"] = {
            **row,
            "is_open": row["end"] == NO_END,
            "is_of_one_replica": is_of_one_replica(first) and row["where"] != WITHDRAWN,
            "known": CERTAINTIES.get(row["certainty"], "unknown"),
            "words": range_words(row["start"], row["end"], row["certainty"]),
            "who": who(row),
            "means": list(meaning(row["topic"])),
        }
    return rows


def ledger_rows(facts: Facts) -> Rows:
    """Totals, and what is missing in the answer."""
    ledger = facts.ledger
    return {} if ledger is None else {"ledger": totals(ledger)}


def totals(ledger: Ledger) -> dict[str, Any]:
    every = entries(ledger.losses)
    seen = sum(acknowledgement(entry, ledger.acknowledged) is not None for entry in every)
    return {
        "entries": len(every),
        "acknowledged": seen,
        "exactly_lost_records": exactly_lost(ledger.losses),
        "missing_copies": missing_copies(ledger.losses),
        "gaps": gaps(ledger),
    }


def gaps(ledger: Ledger) -> list[str]:
    """Why there may be more entries than are shown."""
    found = [f"Broker {node} was not asked: it {why}." for node, why in ledger.silent.items()]
    found += [f"The ledger in {path} of broker {node} was not read: it is offline." for node, path in ledger.unread]
    if ledger.left_out:
        found.append(f"{ledger.left_out} older entries are not listed.")
    return found


LOSSES = View(
    "losses",
    "Losses",
    channels=(Channel("losses", ("ledger",), loss_rows), Channel("ledger", ("ledger",), ledger_rows)),
    changes={"acknowledgement": ACKNOWLEDGEMENT},
)
