"""`strandline reassignments`: give partitions other replicas, see what still moves and why, cancel."""

from pathlib import Path
from typing import Any

from cyclopts import App
from rich import box
from rich.table import Table

from strandline.base.errors import ErrorCode
from strandline.cli.cluster import ask_any
from strandline.cli.connect import DEFAULT_BOOTSTRAP, Bootstrap, Json, fail
from strandline.cli.partitions_file import by_topic, read_partitions
from strandline.cli.show import show_rows
from strandline.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

app = App(name="reassignments", help="Give partitions other replicas, see what still moves, cancel.")


@app.command(name="list")
def list_moves(*, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, json_output: Json = False) -> None:
    """Partitions that move to other replicas, and what each waits for."""
    answer = ask_any(bootstrap, ListPartitionReassignmentsRequest(), 0)
    rows = [
        {
            "topic": topic.name,
            "partition": row.partition_index,
            "replicas": [node for node in row.replicas if node not in row.adding_replicas],
            "adding": list(row.adding_replicas),
            "removing": list(row.removing_replicas),
            "waits_for": row.waits_for,
        }
        for topic in answer.topics
        for row in topic.partitions
    ]
    if rows or json_output:
        show_rows(rows, json_output, table_of, line_of)
    else:
        print("no partition is being reassigned")


@app.command
def execute(reassignment_json_file: Path, /, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Begin the moves that a file names, in the form of kafka-reassign-partitions.

    Parameters
    ----------
    reassignment_json_file
        {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2, 3]}]}
    """
    rows = read_partitions(reassignment_json_file, with_replicas=True)
    alter(bootstrap, rows, "moves to")


@app.command
def cancel(reassignment_json_file: Path, /, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Cancel moves: the partitions that a file names keep the replicas that they had before.

    Parameters
    ----------
    reassignment_json_file
        {"partitions": [{"topic": "t", "partition": 0}]}
    """
    rows = [{**row, "replicas": None} for row in read_partitions(reassignment_json_file)]
    alter(bootstrap, rows, "does not move any more")


def alter(bootstrap: str, rows: list[dict[str, Any]], done: str) -> None:
    topics = tuple(
        ReassignableTopic(
            name=name,
            partitions=tuple(
                ReassignablePartition(
                    partition_index=row["partition"],
                    replicas=None if row["replicas"] is None else tuple(row["replicas"]),
                )
                for row in group
            ),
        )
        for name, group in by_topic(rows).items()
    )
    answer = ask_any(bootstrap, AlterPartitionReassignmentsRequest(topics=topics), 1)
    wanted = {(row["topic"], row["partition"]): row["replicas"] for row in rows}
    failed = []
    for topic in answer.responses:
        for result in topic.partitions:
            name = f"{topic.name}-{result.partition_index}"
            if result.error_code:
                failed.append(f"{name}: {result.error_message or ErrorCode(result.error_code).name}")
                continue
            replicas = wanted[topic.name, result.partition_index]
            print(f"{name} {done}{'' if replicas is None else f' {replicas}'}")
    if failed:
        fail("; ".join(failed), "`strandline reassignments list` shows what moves")


def line_of(row: dict[str, Any]) -> str:
    numbers = "\t".join(
        f"{key.capitalize()}: {','.join(map(str, row[key]))}" for key in ("replicas", "adding", "removing")
    )
    return f"Topic: {row['topic']}\tPartition: {row['partition']}\t{numbers}\tWaits for: {row['waits_for']}"


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table("topic", "partition", "had", "adding", "removing", "waits for", box=box.SIMPLE)
    for row in rows:
        lists = [", ".join(map(str, row[key])) for key in ("replicas", "adding", "removing")]
        table.add_row(row["topic"], str(row["partition"]), *lists, row["waits_for"] or "")
    return table
