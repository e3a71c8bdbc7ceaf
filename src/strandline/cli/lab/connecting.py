"""`strandline bench connections`: how many handshakes and logins a second a cluster takes, or two in alternation."""

import json
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from strandline.bench.connecting import Connected, measure_connections
from strandline.bench.load import PERCENTILES
from strandline.cli.connect import HERE, Json, OfCluster, check_at_least, check_positive, fail
from strandline.cli.lab.bench import cells, in_turn, process_ids, ratio_in_turn
from strandline.cli.show import Column, Fitted

Rounds = list[tuple[str, Connected]]  # the cluster, and what was measured


def connections(
    *,
    cluster: OfCluster = HERE,
    peer: str | None = None,
    peer_command_config: Path | None = None,
    seconds: float = 5,
    threads: int = 4,
    rounds: int = 1,
    pids: str = "",
    json_output: Json = False,
) -> None:
    """Open connections one after another, with TLS and SASL as --command-config says, and ask each one thing.

    Parameters
    ----------
    peer
        another cluster, host:port: both are measured in turn, and compared
    peer_command_config
        the properties file for TLS and SASL with the other cluster
    seconds
        duration of one measurement
    threads
        number of connections that are opened at a time
    rounds
        number of measurements of each cluster
    pids
        process ids on this machine, separated by commas, whose processor time is shown for each connection
    """
    check_at_least(1, threads=threads, rounds=rounds)
    check_positive(seconds=seconds)
    processes = process_ids(pids)
    clusters = in_turn(cluster, peer, peer_command_config)
    measured = [
        (one.bootstrap, measure_connections(one.config, seconds, threads, processes))
        for _ in range(rounds)
        for one in clusters
    ]
    if json_output:
        print(json.dumps(as_json(measured, peer)))
    else:
        show(measured, cluster.bootstrap, peer)
    for bootstrap, one in measured:
        if one.errors:
            fail(
                f"{bootstrap}: {len(one.errors)} of {threads} threads could not connect: {one.errors[0]}",
                "`strandline topics list` with the same options shows whether one connection works",
            )


def ratio_of(measured: Rounds) -> float | None:
    return ratio_in_turn([one.per_second for _, one in measured])


def as_json(measured: Rounds, peer: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "percentiles": PERCENTILES,
        "results": [{"bootstrap": name, **msgspec.to_builtins(one)} for name, one in measured],
    }
    return shown if peer is None else shown | {"ratio": ratio_of(measured)}


def show(measured: Rounds, bootstrap: str, peer: str | None) -> None:
    console = Console()
    table = Fitted(
        Column("cluster"),
        Column("connections/s", "right"),
        *(Column(f"p{p:g}", "right") for p in PERCENTILES),
        Column("max ms", "right"),
    )
    for name, one in measured:
        table.add_row(name, f"{one.per_second:.0f}", *cells(one.latency))
    console.print(table)
    for name, one in measured:
        for used in one.processes:
            each = f"{1000 * used.cpu_s / one.count:.2f} ms" if one.count else "none"
            console.print(f"{name}, pid {used.pid}: {used.cpu_s:.2f} s of processor, {each} for each connection")
    ratio = None if peer is None else ratio_of(measured)
    if ratio is not None:
        console.print(f"ratio {bootstrap} / {peer}: {ratio:.2f}")
