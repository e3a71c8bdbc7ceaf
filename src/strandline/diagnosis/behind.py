"""What replicas out of sync lack, as JSON and in words."""

from collections.abc import Iterable
from typing import Any

from strandline.client.admin.behind import Behind
from strandline.diagnosis.sizes import readable


def of_replicas(reported: dict[int, Behind] | str, replicas: Iterable[int]) -> list[Behind]:
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
