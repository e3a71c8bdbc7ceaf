"""`strandline bench requests`: small Produce requests a second, and what each costs, of one cluster or two in turn."""

import json
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from strandline.bench.load import PERCENTILES
from strandline.bench.requests import RequestsConfig, RequestsMeasured, measure_requests
from strandline.cli.connect import HERE, Json, OfCluster, check_at_least, check_positive, fail
from strandline.cli.lab.bench import cells, in_turn, process_ids, ratio_in_turn, wide
from strandline.cli.show import Column, Fitted


def requests(
    *,
    cluster: OfCluster = HERE,
    peer: str | None = None,
    peer_command_config: Path | None = None,
    record_size: int = 100,
    partitions: int = 6,
    replication_factor: int = 3,
    connections: int = 6,
    in_flight: int = 5,
    seconds: float = 5,
    warmup: float = 2,
    rounds: int = 1,
    pids: str = "",
    json_output: Json = False,
) -> None:
    """Write one record with each Produce request (acks=all), several requests ahead of their answers.

    Parameters
    ----------
    peer
        another cluster, host:port: both are measured in turn, and compared
    peer_command_config
        the properties file for TLS and SASL with the other cluster
    record_size
        size of a record's value in bytes
    partitions
        number of partitions of the topic that the bench creates
    replication_factor
        number of replicas of each partition
    connections
        number of connections; they write to the partitions in turn
    in_flight
        number of requests that each connection sends ahead of their answers
    seconds
        duration of one measurement, after the warm-up
    warmup
        seconds of warm-up before it, which do not count
    rounds
        number of measurements of each cluster
    pids
        process ids on this machine, separated by commas, whose processor time is shown for each request
    """
    check_at_least(1, record_size=record_size, partitions=partitions, replication_factor=replication_factor)
    check_at_least(1, connections=connections, in_flight=in_flight, rounds=rounds)
    check_positive(seconds=seconds)
    processes = process_ids(pids)
    config = RequestsConfig(
        record_size, partitions, replication_factor, connections, in_flight, seconds, warmup, processes
    )
    clusters = in_turn(cluster, peer, peer_command_config)
    try:
        measured = [measure_requests(one.config, config) for _ in range(rounds) for one in clusters]
    except OSError as error:
        fail(f"a connection ended: {error}", "the log of the broker may say why")
    ratio = None if peer is None else ratio_in_turn([one.per_second for one in measured])
    if json_output:
        print(json.dumps(as_json(measured, ratio)))
    else:
        show(measured, ratio)


def as_json(measured: list[RequestsMeasured], ratio: float | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"percentiles": PERCENTILES, "results": [msgspec.to_builtins(one) for one in measured]}
    return shown if ratio is None else shown | {"ratio": ratio}


def show(measured: list[RequestsMeasured], ratio: float | None) -> None:
    console = wide(Console())
    table = Fitted(
        Column("cluster"),
        Column("requests/s", "right"),
        *(Column(f"p{p:g}", "right") for p in PERCENTILES),
        Column("max ms", "right"),
    )
    for one in measured:
        table.add_row(one.bootstrap, f"{one.per_second:,.0f}", *cells(one.latency))
    console.print(table)
    for one in measured:
        for used in one.processes:
            each = f"{1e6 * used.cpu_s / one.requests:.0f} µs" if one.requests else "none"
            console.print(f"{one.bootstrap}, pid {used.pid}: {used.cpu_s:.2f} s of processor, {each} for each request")
    if ratio is not None:
        console.print(f"ratio of the first to the second: {ratio:.2f}")
