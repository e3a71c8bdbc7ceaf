"""`strandline bench cold`: does a reader of old records hurt a producer, on one cluster or on two in turn?"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.status import Status

from strandline.bench.cold import ColdConfig, ColdMeasured, measure_cold
from strandline.bench.load import PERCENTILES
from strandline.bench.shell import CommandFailed
from strandline.cli.connect import HERE, Json, OfCluster, check_at_least, check_positive, fail
from strandline.cli.lab.bench import cells, in_turn, wide
from strandline.cli.show import Column, Fitted

DROP = "sync; echo 1 > /proc/sys/vm/drop_caches"


def cold(
    *,
    cluster: OfCluster = HERE,
    peer: str | None = None,
    peer_command_config: Path | None = None,
    megabytes: int = 1500,
    rate: int = 500,
    seconds: float = 8,
    replication_factor: int = 3,
    drop: str = DROP,
    rounds: int = 1,
    json_output: Json = False,
) -> None:
    """Write records, drop the page cache, and read them again beside a producer whose latency is measured.

    Parameters
    ----------
    peer
        another cluster, host:port: both are measured in turn
    peer_command_config
        the properties file for TLS and SASL with the other cluster
    megabytes
        size of what becomes old
    rate
        records a second of the producer
    seconds
        duration of each measurement: without the reader, and with it
    replication_factor
        number of replicas of what the producer writes to
    drop
        shell command that empties the page cache; this one needs root
    rounds
        number of measurements of each cluster
    """
    check_at_least(1, megabytes=megabytes, rate=rate, replication_factor=replication_factor, rounds=rounds)
    check_positive(seconds=seconds)
    config = ColdConfig(megabytes, rate, seconds, replication_factor, drop)
    clusters = in_turn(cluster, peer, peer_command_config)
    console = Console(stderr=json_output)
    measured: list[ColdMeasured] = []
    try:
        with console.status("") as status:
            for number in range(rounds):
                for one in clusters:
                    where = f"round {number + 1} of {rounds}, {one.bootstrap}: "
                    say = partial(note, status, where)
                    measured.append(measure_cold(one.config, config, say))
    except CommandFailed as why:
        fail(f"the page cache was not dropped: {why}", "run it as root, or name another command with --drop")
    except TimeoutError as why:
        fail(str(why), "look into the logs of the nodes")
    if json_output:
        print(json.dumps(as_json(measured)))
    else:
        wide(console).print(table_of(measured))


def note(status: Status, where: str, what: str) -> None:
    status.update(where + what)


def as_json(measured: list[ColdMeasured]) -> dict[str, Any]:
    return {"percentiles": PERCENTILES, "results": [msgspec.to_builtins(one) for one in measured]}


def table_of(measured: list[ColdMeasured]) -> Fitted:
    table = Fitted(
        Column("cluster"),
        Column("reader"),
        Column("read MB/s", "right"),
        *(Column(f"p{p:g}", "right") for p in PERCENTILES),
        Column("max ms", "right"),
    )
    for one in measured:
        table.add_row(one.bootstrap, "none", "", *cells(one.before))
        table.add_row(one.bootstrap, "of old records", f"{one.read_mb_s:.0f}", *cells(one.meanwhile))
    return table
