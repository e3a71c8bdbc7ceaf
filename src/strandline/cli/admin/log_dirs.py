"""`strandline log-dirs`: what lies in the brokers' log directories, what room there is, and moving logs about."""

import json
from typing import Annotated, Any

from cyclopts import App, Parameter

from strandline.base.errors import ErrorCode
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.show import Column, Fitted, draw
from strandline.client.admin.topics import live_brokers
from strandline.client.ask import Servers, ask
from strandline.client.brokers import BrokerAt, brokers_of
from strandline.client.errors import refused
from strandline.diagnosis.sizes import readable
from strandline.wire.frame import Malformed
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from strandline.wire.messages.cluster.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)

VERSION = 5
ALTER_VERSION = 2

app = App(name="log-dirs", help="Show log directories, and move replicas between them.")


@app.command
def describe(
    *,
    broker: Annotated[list[int] | None, Parameter(help="only this broker; may be repeated", negative="")] = None,
    topic: Annotated[list[str] | None, Parameter(help="only logs of this topic; may be repeated", negative="")] = None,
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Show the log directories of each broker: state, logs, size and free space.

    Exit status 1 if a broker does not answer or a directory is offline.
    """
    rows: list[dict[str, Any]] = []
    for node, at in chosen(cluster.config, broker).items():
        try:
            request = DescribeLogDirsRequest(topics=None)
            answer: DescribeLogDirsResponse = ask(at.host, at.port, request, VERSION, config=at.config)
        except (OSError, Malformed) as error:
            rows.append({"broker": node, "error": f"no answer: {error}"})
            continue
        if answer.error_code:
            raise refused(answer.error_code, f"the log directories of broker {node}")
        rows += [row_of(node, result, topic) for result in answer.results]
    if json_output:
        print(json.dumps(rows))
    else:
        draw(table_of(rows))
    if any(row["error"] for row in rows):
        raise SystemExit(1)


@app.command
def move(
    *,
    broker: int,
    topic: str,
    partition: list[int],
    to: Annotated[str, Parameter(help="one of this broker's log directories")],
    cluster: OfCluster = HERE,
) -> None:
    """Move a broker's replicas to another of its log directories. They go on leading and following meanwhile.

    The command starts the moves and returns; `log-dirs describe` shows those that are not finished.

    Parameters
    ----------
    broker
        the broker's id
    topic
        the topic
    partition
        a partition of it; may be repeated
    """
    wanted = AlterReplicaLogDirTopic(name=topic, partitions=tuple(partition))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=to, topics=(wanted,)),))
    at = chosen(cluster.config, [broker])[broker]
    try:
        answer: AlterReplicaLogDirsResponse = ask(at.host, at.port, request, ALTER_VERSION, config=at.config)
    except (OSError, Malformed) as error:
        fail(f"broker {broker} does not answer: {error}", "start it, or look into its log, and repeat the command")
    errors = [
        f"{result.topic_name}-{row.partition_index}: {ErrorCode(row.error_code).name}"
        for result in answer.results
        for row in result.partitions
        if row.error_code
    ]
    if errors:
        fail("; ".join(errors), "`strandline log-dirs describe` shows directories and what is in them")


def chosen(bootstrap: Servers, wanted: list[int] | None) -> dict[int, BrokerAt]:
    """These brokers, also if they are fenced, or all that are not."""
    brokers = live_brokers(bootstrap)
    if not brokers.keys() >= set(wanted or []):
        brokers |= brokers_of(bootstrap)
    unknown = [node for node in wanted or [] if node not in brokers]
    if unknown:
        fail(f"broker {unknown[0]} is not in this cluster", f"its brokers are {', '.join(map(str, sorted(brokers)))}")
    return {node: brokers[node] for node in sorted(wanted or brokers)}


def row_of(node: int, result: DescribeLogDirsResult, topics: list[str] | None) -> dict[str, Any]:
    error = ErrorCode(result.error_code)
    return {
        "broker": node,
        "log_dir": result.log_dir,
        "error": None if error is ErrorCode.NONE else error.name,
        "is_cordoned": result.is_cordoned,
        "total_bytes": result.total_bytes,
        "usable_bytes": result.usable_bytes,
        "partitions": [
            {
                "topic": topic.name,
                "partition": log.partition_index,
                "size_bytes": log.partition_size,
                "offset_lag": log.offset_lag,
                "is_future": log.is_future_key,
            }
            for topic in sorted(result.topics, key=lambda topic: topic.name)
            if topics is None or topic.name in topics
            for log in sorted(topic.partitions, key=lambda log: (log.partition_index, log.is_future_key))
        ],
    }


def table_of(rows: list[dict[str, Any]]) -> Fitted:
    table = Fitted(
        Column("broker", "right"),
        Column("log dir"),
        Column("state", is_text=True),
        Column("logs", "right", drops=2),
        Column("moving here", "right", drops=4),
        Column("size", "right", drops=1),
        Column("free", "right"),
        Column("of", "right", drops=3),
    )
    for row in rows:
        if "log_dir" not in row:
            table.add_row(str(row["broker"]), "", row["error"])
            continue
        logs = row["partitions"]
        table.add_row(
            str(row["broker"]),
            row["log_dir"],
            state_of(row),
            str(len(logs)),
            str(sum(log["is_future"] for log in logs)),
            readable(sum(log["size_bytes"] for log in logs)),
            readable(row["usable_bytes"]),
            readable(row["total_bytes"]),
        )
    return table


def state_of(row: dict[str, Any]) -> str:
    if row["error"] is not None:
        return f"offline ({row['error']})"
    return "online, cordoned" if row["is_cordoned"] else "online"
