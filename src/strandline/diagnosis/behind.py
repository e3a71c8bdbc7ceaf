"""What replicas out of sync lack, as JSON and in words; and the moves that wait for them."""

from collections.abc import Iterable, Mapping
from typing import Any

from strandline.client.admin.behind import Behind
from strandline.client.admin.replicas.reassignments import Move
from strandline.diagnosis.sizes import readable


def of_replicas(reported: Mapping[int, Behind] | str, replicas: Iterable[int]) -> list[Behind]:
    """Those of `replicas` that are out of sync."""
    if isinstance(reported, str):
        return [Behind(node, why=reported) for node in replicas]
    return [reported[node] for node in replicas if node in reported]


def as_json(behind: Behind) -> dict[str, Any]:
    row: dict[str, Any] = {"replica": behind.replica, "records": behind.records, "bytes": behind.size_bytes}
    return row if behind.records is not None else {**row, "why": behind.why}


def from_json(row: dict[str, Any]) -> Behind:
    return Behind(row["replica"], row["records"], row["bytes"], row.get("why", ""))


def words(behind: Behind) -> str:
    if behind.records is None:
        return f"{behind.replica} by an unknown number ({behind.why})"
    size = "" if behind.size_bytes is None else f", {readable(behind.size_bytes)}"
    return f"{behind.replica} by {behind.records} record{'' if behind.records == 1 else 's'}{size}"


def move_json(move: Move) -> dict[str, Any]:
    row = move.row
    staying = [node for node in row.replicas if node not in row.removing_replicas]
    return {
        "topic": move.at.topic,
        "partition": move.at.partition,
        "replicas": [node for node in row.replicas if node not in row.adding_replicas],
        "adding": list(row.adding_replicas),
        "removing": list(row.removing_replicas),
        "waits_for": row.waits_for,
        "behind": [as_json(behind) for behind in of_replicas(move.behind, staying)],
    }
