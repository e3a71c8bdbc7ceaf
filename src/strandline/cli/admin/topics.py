"""`strandline topics`: create, list, describe, delete."""

import json
from typing import Annotated, Any

from cyclopts import App, Parameter

from strandline.cli.connect import HERE, Json, OfCluster, fail, misuse
from strandline.cli.show import Column, Fitted, show_rows
from strandline.client.admin.partitions import PartitionState, describe_partitions
from strandline.client.admin.topics import create_topic, delete_topics, topic_names
from strandline.diagnosis.partitions import as_json, numbers

app = App(name="topics", help="Create, list, describe and delete topics.")


@app.command
def create(
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    config: Annotated[list[str] | None, Parameter(help="KEY=VALUE; may be repeated", negative="")] = None,
    cluster: OfCluster = HERE,
) -> None:
    """Create a topic. Defaults come from the cluster.

    Parameters
    ----------
    name
        the topic's name
    partitions
        number of partitions; -1: the cluster's default
    replication_factor
        number of replicas of each partition; -1: the cluster's default
    """
    settings = dict(key_value(entry, "--config") for entry in config or [])
    create_topic(cluster.config, name, partitions, replication_factor, settings)
    print(f"created topic {name}")


@app.command(name="list")
def list_topics(*, cluster: OfCluster = HERE, json_output: Json = False) -> None:
    """Print the names of all topics, one a line."""
    names = topic_names(cluster.config)
    print(json.dumps(names) if json_output else "\n".join(names))


def filter_of(name: str, help_text: str) -> Parameter:
    return Parameter(name=(f"--{name}", f"--{name}-partitions"), negative="", help=help_text)


@app.command
def describe(
    name: str | None = None,
    *,
    unavailable: Annotated[bool, filter_of("unavailable", "show only partitions without a live leader")] = False,
    under_min_isr: Annotated[
        bool, filter_of("under-min-isr", "show only partitions below min.insync.replicas")
    ] = False,
    at_min_isr: Annotated[bool, filter_of("at-min-isr", "show only partitions at min.insync.replicas")] = False,
    under_replicated: Annotated[
        bool, filter_of("under-replicated", "show only partitions with out-of-sync replicas")
    ] = False,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show partitions: leader, replicas, ISR and ELR. Several filters show what matches any of them.

    Parameters
    ----------
    name
        the topic; all topics if it is omitted
    """
    states = describe_partitions(cluster.config, [] if name is None else [name])
    if (under_min_isr or at_min_isr) and any(state.min_isr < 0 for state in states):
        fail(
            "this cluster does not report its effective min.insync.replicas: it is not Strandline",
            "leave --under-min-isr-partitions and --at-min-isr-partitions out",
        )
    filters = (unavailable, under_min_isr, at_min_isr, under_replicated)
    shown = [state for state in states if not any(filters) or is_shown(state, *filters)]
    show_rows([as_json(state) for state in shown], json_output, table_of, line_of)


def is_shown(
    state: PartitionState, unavailable: bool, under_min_isr: bool, at_min_isr: bool, under_replicated: bool
) -> bool:
    """Kafka's meanings, but for min ISR: here it is what of it counts, and never more than there are replicas (T44)."""
    return (
        (unavailable and state.is_unavailable)
        or (under_min_isr and state.is_under_min_isr)
        or (at_min_isr and state.is_at_min_isr)
        or (under_replicated and len(state.isr) < len(state.replicas) - len(state.adding))
    )


@app.command
def delete(names: list[str], /, *, cluster: OfCluster = HERE) -> None:
    """Delete topics and all their records."""
    refusals = delete_topics(cluster.config, names)
    for name, why in refusals.items():
        if why is None:
            print(f"deleted topic {name}")
    failed = [f"{name}: {why}" for name, why in refusals.items() if why is not None]
    if failed:
        fail("; ".join(failed), "`strandline topics list` names the topics that are left")


def key_value(entry: str, option: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not equals:
        misuse(f"{option} needs KEY=VALUE, not '{entry}'")
    return key, value


def line_of(row: dict[str, Any]) -> str:
    """As kafka-topics.sh has it; unlike a table it is never cut to a width, so a pipe gets whole names."""
    replicas, isr, elr, known = (numbers(row[key]) for key in ("replicas", "isr", "elr", "last_known_elr"))
    where = f"Topic: {row['topic']}\tPartition: {row['partition']}\tLeader: {node_or_none(row['leader'])}"
    sets = f"Replicas: {replicas}\tIsr: {isr}\tMinIsr: {row['effective_min_isr']}\tElr: {elr}\tLastKnownElr: {known}"
    last = f"LastKnownLeader: {node_or_none(row['last_known_leader'])}"
    return f"{where}\t{sets}\t{last}\tLeaderRecoveryState: {row['leader_recovery_state']}"


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    lists = ("replicas", "isr", "elr", "last known elr")
    table = Fitted(
        Column("topic"),
        Column("partition", "right"),
        Column("leader", "right"),
        Column("replicas"),
        Column("isr"),
        Column("min isr", "right", drops=1),
        Column("elr", drops=2),
        Column("last known elr", drops=3),
        Column("led last", "right", drops=4),
    )
    for row in rows:
        short = set(row["isr"]) < set(row["replicas"])
        style = "red" if row["leader"] < 0 else "yellow" if short else ""
        replicas, isr, elr, known = (numbers(row[key.replace(" ", "_")]) for key in lists)
        leader = node_or_none(row["leader"])
        if row["leader_recovery_state"] != "recovered":
            leader, style = f"{leader} ({row['leader_recovery_state']})", "red"
        last = str(row["last_known_leader"]) if row["last_known_leader"] >= 0 else ""
        cells = (leader, replicas, isr, str(row["effective_min_isr"]), elr, known, last)
        table.add_row(row["topic"], str(row["partition"]), *cells, style=style)
    return table


def node_or_none(node: int) -> str:
    return str(node) if node >= 0 else "none"
