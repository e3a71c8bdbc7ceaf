"""Files that name partitions, in the form of Kafka's own tools: {"partitions": [{"topic": "t", "partition": 0, …}]}.

Those of elections may name a leader for each: "designatedLeader", or "desiredLeader" (KIP-966 has both names).
Those of kafka-reassign-partitions also say a version, which is 1, and may name a log directory for each replica. Only
"any" is taken there: `strandline log-dirs move` is for the others.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from strandline.cli.connect import fail

VERSION = 1
ANY = "any"
DESIGNATED = ("designatedLeader", "desiredLeader")


def read_partitions(path: Path, *, with_replicas: bool = False) -> list[dict[str, Any]]:
    """Ends the command if the file is not of this form."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}", status=2)
    except ValueError as error:
        fail(f"{path} is not valid JSON: {error}", status=2)
    rows = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        fail(f'{path} needs {{"partitions": [{{"topic": …, "partition": …}}]}}', status=2)
    for row in rows:
        if not (isinstance(row, dict) and isinstance(row.get("topic"), str) and isinstance(row.get("partition"), int)):
            fail(f"{path}: {row!r} names no topic and partition", status=2)
        wrong = why_no_assignment(row) if with_replicas else None
        if wrong is not None:
            fail(f"{path}: {row['topic']}-{row['partition']} {wrong}", status=2)
    if content.get("version", VERSION) != VERSION:
        fail(f"{path}: version {content['version']} is not known, only {VERSION} is", status=2)
    for (topic, partition), count in Counter((row["topic"], row["partition"]) for row in rows).items():
        if count > 1:
            fail(f"{path}: {topic}-{partition} is named twice", status=2)
    return rows


def designated_leader(path: Path, row: dict[str, Any]) -> int | None:
    """The broker that a row names, by either name. Ends the command if that is not a broker id, or two."""
    named = [row[key] for key in DESIGNATED if key in row]
    if any(type(node) is not int or node < 0 for node in named) or len(set(named)) > 1:
        fail(f"{path}: {row['topic']}-{row['partition']} names {' and '.join(map(repr, named))} to lead", status=2)
    return named[0] if named else None


def why_no_assignment(row: dict[str, Any]) -> str | None:
    """What is wrong with the replicas that a row names? None: nothing."""
    replicas, log_dirs = row.get("replicas"), row.get("log_dirs")
    if not (isinstance(replicas, list) and replicas and all(isinstance(node, int) for node in replicas)):
        return 'has no "replicas", a list of broker ids'
    if len(set(replicas)) < len(replicas):
        return f"has a replica twice in {replicas}"
    if log_dirs is None:
        return None
    if not isinstance(log_dirs, list) or len(log_dirs) != len(replicas):
        return f"has {len(replicas)} replicas, but other than as many log directories"
    if any(log_dir != ANY for log_dir in log_dirs):
        return f'names log directories other than "{ANY}": move within a broker with `strandline log-dirs move`'
    return None


def format_assignment(assignment: dict[tuple[str, int], list[int]]) -> str:
    """The text of a file for `read_partitions`, as kafka-reassign-partitions prints what there is."""
    rows = [
        {"topic": topic, "partition": partition, "replicas": replicas, "log_dirs": [ANY] * len(replicas)}
        for (topic, partition), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": VERSION, "partitions": rows}, separators=(",", ":"))


def by_topic(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        topics.setdefault(row["topic"], []).append(row)
    return topics
