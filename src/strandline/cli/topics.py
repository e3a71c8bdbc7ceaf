"""`strandline topics`: create, list, describe, delete."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic
from cyclopts import App, Parameter
from rich import box
from rich.table import Table

from strandline.cli.cluster import ask_any
from strandline.cli.connect import DEFAULT_BOOTSTRAP, TIMEOUT_S, Bootstrap, Json, admin, fail, why
from strandline.cli.show import show_rows
from strandline.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest

app = App(name="topics", help="Create, list, describe and delete topics.")


@app.command
def create(
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    config: Annotated[list[str] | None, Parameter(help="key=value, repeatable", negative="")] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a topic. Without numbers the cluster's defaults hold.

    Parameters
    ----------
    partitions
        how many partitions
    replication_factor
        how many replicas each of them has
    """
    settings = dict(key_value(entry, "--config") for entry in config or [])
    topic = NewTopic(name, partitions, replication_factor, config=settings)
    client = admin(bootstrap)  # kept by name: it answers its futures only while it lives
    finish(client.create_topics([topic], request_timeout=TIMEOUT_S), "created")


@app.command(name="list")
def list_topics(*, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, json_output: Json = False) -> None:
    """The names of all topics, one a line."""
    names = sorted(admin(bootstrap).list_topics(timeout=TIMEOUT_S).topics)
    print(json.dumps(names) if json_output else "\n".join(names))


@app.command
def describe(name: str | None = None, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, json_output: Json = False) -> None:
    """Partitions with their leaders, replicas and in-sync replicas.

    Parameters
    ----------
    name
        the topic; all if none is given
    """
    metadata = admin(bootstrap).list_topics(timeout=TIMEOUT_S)
    min_isr = effective_min_isr(bootstrap, sorted(metadata.topics) if name is None else [name])
    if name is not None and name not in metadata.topics:
        fail(f"topic '{name}' does not exist", "`strandline topics list` names those that do")
    shown = [topic for topic in sorted(metadata.topics) if name in (None, topic)]
    rows = [row for topic in shown for row in rows_of(metadata, topic, min_isr)]
    show_rows(rows, json_output, table_of, line_of)


@app.command
def delete(names: list[str], /, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete topics and all their records."""
    client = admin(bootstrap)
    finish(client.delete_topics(names, request_timeout=TIMEOUT_S), "deleted")


def key_value(entry: str, option: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not equals:
        fail(f"{option} wants key=value, not '{entry}'", status=2)
    return key, value


def finish(futures: dict[str, Any], done: str) -> None:
    """Wait for each topic's outcome; fail if one failed, after all have been reported."""
    failed = []
    for name, future in futures.items():
        try:
            future.result(TIMEOUT_S + 5)
            print(f"{done} topic {name}")
        except KafkaException as error:
            failed.append(f"{name}: {why(error)}")
        except TimeoutError:
            failed.append(f"{name}: no answer in time; it may still happen")
    if failed:
        fail("; ".join(failed))


def effective_min_isr(bootstrap: str, topics: list[str]) -> dict[tuple[str, int], int]:
    """What of min.insync.replicas counts, by partition: a topic with fewer replicas is not short of any."""
    found: dict[tuple[str, int], int] = {}
    wanted, cursor = tuple(TopicRequest(name=name) for name in topics), None
    while wanted:
        answer = ask_any(bootstrap, DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor), 0)
        for topic in answer.topics:
            found |= {(topic.name, p.partition_index): p.effective_min_isr for p in topic.partitions}
        if answer.next_cursor is None:
            break
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
    return found


def rows_of(metadata: Any, topic: str, min_isr: dict[tuple[str, int], int]) -> Iterable[dict[str, Any]]:
    partitions = metadata.topics[topic].partitions
    return [
        {
            "topic": topic,
            "partition": index,
            "leader": partitions[index].leader,
            "replicas": list(partitions[index].replicas),
            "isr": list(partitions[index].isrs),
            "effective_min_isr": min_isr.get((topic, index), -1),
        }
        for index in sorted(partitions)
    ]


def line_of(row: dict[str, Any]) -> str:
    """As kafka-topics.sh has it; unlike a table it is never cut to a width, so a pipe gets whole names."""
    leader = row["leader"] if row["leader"] >= 0 else "none"
    replicas, isr = (",".join(map(str, row[key])) for key in ("replicas", "isr"))
    where = f"Topic: {row['topic']}\tPartition: {row['partition']}\tLeader: {leader}"
    return f"{where}\tReplicas: {replicas}\tIsr: {isr}\tMinIsr: {row['effective_min_isr']}"


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("topic", "partition", "leader", "replicas", "isr", "min isr"):
        table.add_column(column, justify="left" if column in ("topic", "replicas", "isr") else "right")
    for row in rows:
        short = set(row["isr"]) < set(row["replicas"])
        style = "red" if row["leader"] < 0 else "yellow" if short else ""
        leader = str(row["leader"]) if row["leader"] >= 0 else "none"
        replicas, isr = (",".join(map(str, row[key])) for key in ("replicas", "isr"))
        cells = (row["topic"], str(row["partition"]), leader, replicas, isr, str(row["effective_min_isr"]))
        table.add_row(*cells, style=style)
    return table
