"""`strandline bench connections`: how many handshakes and logins a second a cluster takes."""

import json

import msgspec
from rich.console import Console

from strandline.bench.connecting import Connected, measure_connections
from strandline.bench.load import PERCENTILES
from strandline.cli.connect import HERE, Json, OfCluster, fail
from strandline.cli.lab.bench import cells, process_ids
from strandline.cli.show import Column, Fitted


def connections(
    *,
    seconds: float = 5,
    threads: int = 4,
    pids: str = "",
    cluster: OfCluster = HERE,
    json_output: Json = False,
) -> None:
    """Open connections one after another, with TLS and SASL as --command-config says, and ask each one thing.

    Parameters
    ----------
    seconds
        duration of the measurement
    threads
        number of connections that are opened at a time
    pids
        process ids on this machine, separated by commas, whose processor time is shown for each connection
    """
    if seconds <= 0 or threads < 1:
        fail("seconds and threads must be positive", status=2)
    measured = measure_connections(cluster.config, seconds, threads, process_ids(pids))
    if json_output:
        print(json.dumps(msgspec.to_builtins(measured)))
    else:
        show(measured, cluster.bootstrap)
    if measured.errors:
        fail(f"{len(measured.errors)} of {threads} threads could not connect: {measured.errors[0]}")


def show(measured: Connected, bootstrap: str) -> None:
    console = Console()
    table = Fitted(
        Column("cluster"),
        Column("connections/s", "right"),
        *(Column(f"p{p:g}", "right") for p in PERCENTILES),
        Column("max ms", "right"),
    )
    table.add_row(bootstrap, f"{measured.per_second:.0f}", *cells(measured.latency))
    console.print(table)
    for used in measured.processes:
        each = f"{1000 * used.cpu_s / measured.count:.2f} ms" if measured.count else "none"
        console.print(f"pid {used.pid}: {used.cpu_s:.2f} s of processor, {each} for each connection")
