"""Files that name partitions, in the form of Kafka's own tools: {"partitions": [{"topic": "t", "partition": 0, …}]}."""

import json
from pathlib import Path
from typing import Any

from strandline.cli.connect import fail


def read_partitions(path: Path, *, with_replicas: bool = False) -> list[dict[str, Any]]:
    """Ends the command if the file is not of this form."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}", status=2)
    rows = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        fail(f'{path} needs {{"partitions": [{{"topic": …, "partition": …}}]}}', status=2)
    for row in rows:
        if not (isinstance(row, dict) and isinstance(row.get("topic"), str) and isinstance(row.get("partition"), int)):
            fail(f"{path}: {row!r} names no topic and partition", status=2)
        replicas = row.get("replicas")
        if with_replicas and not (isinstance(replicas, list) and all(isinstance(node, int) for node in replicas)):
            fail(f'{path}: {row["topic"]}-{row["partition"]} has no "replicas", a list of broker ids', status=2)
    return rows


def by_topic(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        topics.setdefault(row["topic"], []).append(row)
    return topics
