"""Files that name partitions, in the form of Kafka's own tools: {"partitions": [{"topic": "t", "partition": 0, …}]}.

Those of elections may name a leader for each: "designatedLeader", or "desiredLeader" (KIP-966 has both names).
Those of kafka-reassign-partitions also say a version, which is 1, and may name a log directory for each replica. Only
"any" is taken there: `strandline log-dirs move` is for the others.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from strandline.cli.connect import misuse

VERSION = 1
FORM = "`strandline reassignments current` prints a file of this form"
ANY = "any"
DESIGNATED = ("designatedLeader", "desiredLeader")


def read_partitions(path: Path, *, with_replicas: bool = False) -> list[dict[str, Any]]:
    """Ends the command if the file is not of this form."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        misuse(f"{path} cannot be read: {error.strerror}", FORM)
    except ValueError as error:
        misuse(f"{path} is not valid JSON: {error}", FORM)
    rows = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        misuse(f'{path} needs {{"partitions": [{{"topic": …, "partition": …}}]}}', FORM)
    for row in rows:
        if not (isinstance(row, dict) and isinstance(row.get("topic"), str) and isinstance(row.get("partition"), int)):
            misuse(f"{path}: {row!r} does not name a topic and a partition", FORM)
        wrong = why_no_assignment(row) if with_replicas else None
        if wrong is not None:
            misuse(f"{path}: {row['topic']}-{row['partition']} {wrong}", FORM)
    if content.get("version", VERSION) != VERSION:
        misuse(f"{path}: version {content['version']} is not known", f'write "version": {VERSION}')
    for (topic, partition), count in Counter((row["topic"], row["partition"]) for row in rows).items():
        if count > 1:
            misuse(f"{path}: {topic}-{partition} is named twice", "leave one row out")
    return rows


def designated_leader(path: Path, row: dict[str, Any]) -> int | None:
    """The broker that a row names, by either name. Ends the command if that is not a broker id, or two."""
    named = [row[key] for key in DESIGNATED if key in row]
    if any(type(node) is not int or node < 0 for node in named) or len(set(named)) > 1:
        leaders = " and ".join(map(repr, named))
        misuse(f"{path}: {row['topic']}-{row['partition']} names {leaders} to lead", "name one broker's id")
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
