"""Moves of partitions to other brokers: what each waits for, and how far its new replicas are."""

from strandline.client.admin.behind import Behind
from strandline.client.admin.replicas.reassignments import Move
from strandline.console.changes.cancelling import CANCEL
from strandline.console.facts import Facts
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, View
from strandline.diagnosis.behind import from_json, move_json, words


def move_rows(facts: Facts) -> Rows:
    rows: dict[str, Json] = {}
    for move in facts.moves or ():
        row = move_json(move)
        rows[f"{move.at.topic}:{move.at.partition}"] = {
            **row,
            "behind_words": [words(from_json(one)) for one in row["behind"]],
            "progress": progress(move, facts.sizes.largest.get(move.at)),
        }
    return rows


def progress(move: Move, size_bytes: int | None) -> float | None:
    """Which part of their data all added replicas have, from 0 to 1. None: it is not known. A replica that is in sync
    is not named as one that is behind."""
    if isinstance(move.behind, str) or not size_bytes:
        return None
    adding = move.row.adding_replicas
    lacking = [move.behind.get(node, Behind(node, 0, 0)).size_bytes for node in adding]
    if not adding or any(size is None for size in lacking):
        return None
    missing = sum(min(size, size_bytes) for size in lacking if size is not None)
    return round(1 - missing / (size_bytes * len(adding)), 3)


REASSIGNMENTS = View(
    "reassignments",
    "Reassignments",
    channels=(Channel("moves", ("moves", "sizes"), move_rows),),
    changes={"cancel-move": CANCEL},
)
