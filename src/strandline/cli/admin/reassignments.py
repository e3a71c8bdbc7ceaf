"""`strandline reassignments`: give partitions other replicas, see what still moves and why, cancel."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from strandline.cli.admin.partitions_file import format_assignment, read_partitions
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.admin.behind import METADATA_VERSION
from strandline.client.admin.partitions import Place
from strandline.client.admin.replicas.reassignments import alter_moves
from strandline.client.admin.replicas.reassignments import list_moves as moves_now
from strandline.client.ask import Servers, ask_any
from strandline.client.errors import refused
from strandline.diagnosis.behind import from_json, move_json, words
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

app = App(name="reassignments", help="Move partitions to other brokers; list and cancel moves.")


@app.command(name="list")
def list_moves(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """List partitions that are being reassigned, what each waits for, and how far its new replicas are behind.

    The leader counts how far a replica is behind at its last fetch, in offsets and in bytes of the leader's log.
    """
    rows = [move_json(move) for move in moves_now(cluster.config)]
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
            raise refused(described.error_code, f"topic '{described.name}'")
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
    wanted = {Place(row["topic"], row["partition"]): row["replicas"] for row in rows}
    results = alter_moves(bootstrap, wanted)
    for at, why in results.items():
        if why is None:
            print(f"{at} {done}{'' if wanted[at] is None else f' {wanted[at]}'}")
    failed = [f"{at}: {why}" for at, why in results.items() if why is not None]
    if failed:
        fail("; ".join(failed), "`strandline reassignments list` shows what moves")


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
