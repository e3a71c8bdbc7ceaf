"""`strandline reassignments`: give partitions other replicas, see what still moves and why, cancel."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.admin.partitions_file import by_topic, format_assignment, read_partitions
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.admin.behind import METADATA_VERSION, Behind, out_of_sync
from strandline.client.ask import Servers, ask_any
from strandline.diagnosis.behind import as_json, from_json, of_replicas, words
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
)
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

app = App(name="reassignments", help="Move partitions to other brokers; list and cancel moves.")


@app.command(name="list")
def list_moves(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """List partitions that are being reassigned, what each waits for, and how far its new replicas are behind.

    The leader counts how far a replica is behind at its last fetch, in offsets and in bytes of the leader's log.
    """
    answer = ask_any(cluster.config, ListPartitionReassignmentsRequest(), 0)
    moves = [(topic.name, row) for topic in answer.topics for row in topic.partitions]
    reported = out_of_sync(cluster.config, [(name, row.partition_index) for name, row in moves]) if moves else {}
    rows = [row_of(name, move, reported[name, move.partition_index]) for name, move in moves]
    if rows or json_output:
        show_rows(rows, json_output, table_of, line_of)
    else:
        print("no partition is being reassigned")


@app.command
def current(
    *,
    topic: Annotated[list[str] | None, Parameter(help="only this topic; may be repeated", negative="")] = None,
    cluster: OfCluster = HERE,
) -> None:
    """Print the replicas of all partitions as a file for `execute`. Save it before a move: it is the way back.

    For a partition that is being reassigned, it has the replicas of before the move.
    """
    moves = ask_any(cluster.config, ListPartitionReassignmentsRequest(), 0).topics
    adding = {(of.name, row.partition_index): row.adding_replicas for of in moves for row in of.partitions}
    wanted = None if topic is None else tuple(MetadataRequestTopic(name=name) for name in topic)
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    found: dict[tuple[str, int], list[int]] = {}
    for described in ask_any(cluster.config, request, METADATA_VERSION).topics:
        if described.error_code:
            fail(f"topic '{described.name}': {ErrorCode(described.error_code).name}")
        for row in described.partitions:
            place = (described.name, row.partition_index)
            found[place] = [node for node in row.replica_nodes if node not in adding.get(place, ())]
    print(format_assignment(found))


@app.command
def execute(reassignment_json_file: Path, /, *, cluster: OfCluster = HERE) -> None:
    """Start the moves in a file of kafka-reassign-partitions.

    Parameters
    ----------
    reassignment_json_file
        {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2, 3]}]}
    """
    rows = read_partitions(reassignment_json_file, with_replicas=True)
    alter(cluster.config, rows, "moves to")


@app.command
def cancel(reassignment_json_file: Path, /, *, cluster: OfCluster = HERE) -> None:
    """Cancel the moves of the partitions in a file: they keep the replicas of before.

    Parameters
    ----------
    reassignment_json_file
        {"partitions": [{"topic": "t", "partition": 0}]}
    """
    rows = [{**row, "replicas": None} for row in read_partitions(reassignment_json_file)]
    alter(cluster.config, rows, "does not move any more")


def alter(bootstrap: Servers, rows: list[dict[str, Any]], done: str) -> None:
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


def row_of(topic: str, move: OngoingPartitionReassignment, reported: dict[int, Behind] | str) -> dict[str, Any]:
    staying = [node for node in move.replicas if node not in move.removing_replicas]
    return {
        "topic": topic,
        "partition": move.partition_index,
        "replicas": [node for node in move.replicas if node not in move.adding_replicas],
        "adding": list(move.adding_replicas),
        "removing": list(move.removing_replicas),
        "waits_for": move.waits_for,
        "behind": [as_json(behind) for behind in of_replicas(reported, staying)],
    }


def line_of(row: dict[str, Any]) -> str:
    numbers = "\t".join(
        f"{key.capitalize()}: {','.join(map(str, row[key]))}" for key in ("replicas", "adding", "removing")
    )
    waits = f"Waits for: {row['waits_for']}\tBehind: {lacks(row)}"
    return f"Topic: {row['topic']}\tPartition: {row['partition']}\t{numbers}\t{waits}"


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    table = Fitted(
        Column("topic"),
        Column("partition", "right"),
        Column("had", drops=2),
        Column("adding"),
        Column("removing", drops=1),
        Column("waits for", is_text=True),
        Column("behind", is_text=True),
    )
    for row in rows:
        lists = [", ".join(map(str, row[key])) for key in ("replicas", "adding", "removing")]
        table.add_row(row["topic"], str(row["partition"]), *lists, row["waits_for"] or "", lacks(row))
    return table


def lacks(row: dict[str, Any]) -> str:
    return "; ".join(words(from_json(behind)) for behind in row["behind"])
