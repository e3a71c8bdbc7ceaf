"""`strandline bench`: throughput and latency of a Kafka-compatible cluster, or of two in alternation."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import msgspec
from confluent_kafka import KafkaException
from cyclopts import App, Parameter
from rich.console import Console

from strandline.bench.load import PERCENTILES, Latency, LoadConfig, Measured, measure, median_ratio
from strandline.bench.usage import usage
from strandline.cli.app import command
from strandline.cli.connect import HERE, Cluster, Json, OfCluster, check_at_least, check_positive, fail, misuse
from strandline.cli.show import Column, Fitted
from strandline.client.admin.topics import topic_names
from strandline.client.librdkafka import why

WIDTH = 120
DROPS = {95: 4, 50: 3, 99.9: 2}  # percentiles that a narrow terminal does without first

app = App(name="bench", help="Measure throughput and latency, old reads, failovers, starts, many partitions.")
command(app, "connections", "strandline.cli.lab.connecting:connections", "Measure handshakes and logins a second.")
command(app, "cold", "strandline.cli.lab.cold:cold", "Measure whether a reader of old records hurts a producer.")
command(app, "failover", "strandline.cli.lab.interruption:failover", "Measure how long writes stand still.")
command(app, "start", "strandline.cli.lab.interruption:start", "Measure how long a cluster takes to start.")
command(app, "requests", "strandline.cli.lab.requests:requests", "Measure small requests a second.")
command(app, "transactions", "strandline.cli.lab.transacting:transactions", "Measure commits a second.")
command(app, "scale", "strandline.cli.lab.scale:scale", "Measure what thousands of partitions cost.")


@app.default
def bench(
    *,
    cluster: OfCluster = HERE,
    peer: str | None = None,
    peer_command_config: Path | None = None,
    record_size: int = 1024,
    acks: str = "all",
    linger_ms: float = 5,
    batch_bytes: int = 16384,
    partitions: int = 1,
    replication_factor: int = 3,
    rate: int = 0,
    seconds: float = 10,
    warmup: float = 3,
    rounds: int = 1,
    consume: Annotated[bool, Parameter(negative="")] = False,
    raw: Annotated[bool, Parameter(negative="")] = False,
    pids: str = "",
    json_output: Json = False,
) -> None:
    """Write records as fast as the cluster takes them, or at a rate; show throughput and latency.

    Parameters
    ----------
    peer
        another cluster, host:port: both are measured in turn, and compared
    peer_command_config
        the properties file for TLS and SASL with the other cluster
    record_size
        size of a record's value in bytes
    acks
        0, 1 or all
    linger_ms
        how long the producer waits for a batch to fill
    batch_bytes
        largest size of a batch in bytes
    partitions
        number of partitions of the topic that the bench creates
    replication_factor
        number of replicas of each partition
    rate
        records a second; 0: as many as possible
    seconds
        duration of one measurement, after the warm-up
    warmup
        seconds of warm-up before it, which do not count
    rounds
        number of measurements of each cluster
    consume
        read too: measures end-to-end latency with a rate, read throughput without one
    raw
        read with a client that decodes nothing, in a process of its own: what the cluster can do, not librdkafka
    pids
        process ids on this machine, separated by commas, whose processor time and memory are shown
    """
    check_at_least(1, rounds=rounds)
    load = (record_size, acks, linger_ms, batch_bytes, partitions, replication_factor, rate, seconds, warmup)
    config = LoadConfig(*load, consume, raw, process_ids(pids))
    check(config)
    clusters = in_turn(cluster, peer, peer_command_config)
    for one in clusters:
        topic_names(one.config)  # ends the command if nobody answers
    console = Console(stderr=json_output)
    results = measure_in_turn(clusters, config, rounds, console)
    if json_output:
        print(json.dumps(as_json(config, results, cluster.bootstrap, peer)))
    else:
        show(console, results, cluster.bootstrap, peer)
    errors = sum(m.errors for measured in results.values() for m in measured)
    if errors:
        fail(f"{errors} records were not acknowledged", "the figures are of those that were: look into the nodes' logs")


def check(config: LoadConfig) -> None:
    check_at_least(8, record_size=config.record_size)
    check_at_least(1, partitions=config.partitions)
    check_positive(seconds=config.seconds)
    if config.raw and (config.rate or not config.consume):
        misuse("--raw measures the throughput of reads", "--raw needs --consume, and no --rate")


def in_turn(cluster: Cluster, peer: str | None, peer_command_config: Path | None) -> list[Cluster]:
    """What is measured in each round."""
    return [cluster] if peer is None else [cluster, Cluster(peer, peer_command_config)]


def ratio_in_turn(rates: Sequence[float]) -> float | None:
    """The first cluster's to the peer's, the median over the rounds; None if the peer did nothing in one."""
    pairs = list(zip(rates[::2], rates[1::2], strict=True))
    return median(ours / theirs for ours, theirs in pairs) if all(theirs for _, theirs in pairs) else None


def wide(console: Console) -> Console:
    """A pipe has no width of its own."""
    return console if console.is_terminal else Console(width=WIDTH)


def measure_in_turn(
    clusters: list[Cluster], config: LoadConfig, rounds: int, console: Console
) -> dict[str, list[Measured]]:
    results: dict[str, list[Measured]] = {cluster.bootstrap: [] for cluster in clusters}
    try:
        for number in range(rounds):
            for cluster in clusters:
                with console.status(
                    f"round {number + 1} of {rounds}: {cluster.bootstrap} for {config.warmup_s + config.seconds:.0f} s"
                ):
                    results[cluster.bootstrap].append(measure(cluster.config, config))
    except KafkaException as error:
        fail(why(error), f"look into the logs of the nodes of {cluster.bootstrap}")
    except FileNotFoundError as error:
        fail(f"a process of --pids has ended: {error.filename} does not exist", "name processes that run until the end")
    return results


def show(console: Console, results: dict[str, list[Measured]], bootstrap: str, peer: str | None) -> None:
    console = wide(console)
    console.print(table_of([m for measured in results.values() for m in measured]))
    for m in (m for measured in results.values() for m in measured):
        for used in m.processes:
            console.print(f"{m.bootstrap}, pid {used.pid}: {used.cpu_s:.2f} s of processor, {used.resident_mb:.0f} MB")
    if peer is not None:
        console.print(f"ratio {bootstrap} / {peer}: {median_ratio(results[bootstrap], results[peer]):.2f}")


def process_ids(text: str) -> tuple[int, ...]:
    """Checked before anything is measured: a wrong one should not cost a run."""
    try:
        pids = tuple(int(pid) for pid in text.split(",") if pid)
        for pid in pids:
            usage(pid)
    except ValueError:
        misuse(f"--pids needs numbers separated by commas, not '{text}'", "`strandline up` shows the ids of its nodes")
    except OSError as error:
        misuse(f"no such process: {error.filename} does not exist", "--pids needs Linux, and processes that run")
    return pids


def as_json(config: LoadConfig, results: dict[str, list[Measured]], bootstrap: str, peer: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "config": msgspec.to_builtins(config),
        "percentiles": PERCENTILES,
        "results": [msgspec.to_builtins(m) for measured in results.values() for m in measured],
    }
    if peer is not None:
        shown["ratio"] = median_ratio(results[bootstrap], results[peer])
    return shown


def table_of(results: list[Measured]) -> Fitted:
    table = Fitted(
        Column("cluster"),
        Column("MB/s", "right"),
        Column("records/s", "right", drops=5),
        Column("errors", "right"),
        Column("read MB/s", "right", drops=6),
        Column("latency", "right"),
        *(Column(f"p{p:g}", "right", drops=DROPS.get(p, 1)) for p in PERCENTILES),
        Column("max ms", "right"),
    )
    for m in results:
        read = "" if m.read_mb_s is None else f"{m.read_mb_s:.1f}"
        first = [m.bootstrap, f"{m.write_mb_s:.1f}", f"{m.records_s:,.0f}", str(m.errors), read]
        table.add_row(*first, "produce", *cells(m.produce))
        if m.end_to_end is not None:
            table.add_row("", "", "", "", "", "end to end", *cells(m.end_to_end))
    return table


def cells(latency: Latency | None) -> list[str]:
    values = () if latency is None else (*latency.percentiles, latency.max)
    return [f"{value:.2f}" for value in values]
