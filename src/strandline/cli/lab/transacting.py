"""`strandline bench transactions`: commits a second, and throughput in transactions, of one cluster or two in turn."""

import json
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import KafkaException
from rich.console import Console

from strandline.bench.transactions import Transacted, TransactionLoad, measure_transactions
from strandline.cli.connect import HERE, Json, OfCluster, check_at_least, check_positive, fail
from strandline.cli.lab.bench import in_turn, ratio_in_turn, wide
from strandline.cli.show import Column, Fitted
from strandline.client.librdkafka import why


def transactions(
    *,
    cluster: OfCluster = HERE,
    peer: str | None = None,
    peer_command_config: Path | None = None,
    producers: int = 1,
    hold_ms: int = 0,
    record_size: int = 100,
    batch_bytes: int = 16384,
    partitions: int = 1,
    replication_factor: int = 3,
    seconds: float = 5,
    rounds: int = 1,
    json_output: Json = False,
) -> None:
    """Commit transactions one after another with each producer; show commits a second and megabytes a second.

    Parameters
    ----------
    peer
        another cluster, host:port: both are measured in turn, and compared
    peer_command_config
        the properties file for TLS and SASL with the other cluster
    producers
        number of producers, each with an id of its own
    hold_ms
        how long each transaction writes, as fast as the cluster takes it; 0: it has one record
    record_size
        size of a record's value in bytes
    batch_bytes
        largest size of a batch in bytes
    partitions
        number of partitions of the topic that the bench creates
    replication_factor
        number of replicas of each partition
    seconds
        duration of one measurement
    rounds
        number of measurements of each cluster
    """
    load = TransactionLoad(producers, partitions, replication_factor, record_size, batch_bytes, hold_ms, seconds)
    check_at_least(1, producers=producers, partitions=partitions, replication_factor=replication_factor)
    check_at_least(1, record_size=record_size, batch_bytes=batch_bytes, rounds=rounds)
    check_at_least(0, hold_ms=hold_ms)
    check_positive(seconds=seconds)
    clusters = in_turn(cluster, peer, peer_command_config)
    try:
        measured = [measure_transactions(one.config, load) for _ in range(rounds) for one in clusters]
    except KafkaException as error:
        fail(why(error), "look into the logs of the nodes; `strandline transactions list` shows what is open")
    if json_output:
        print(json.dumps(as_json(measured, peer)))
    else:
        show(measured, peer)


def ratio_of(measured: list[Transacted]) -> float | None:
    """Of megabytes if transactions last, else of commits."""
    return ratio_in_turn([one.mb_s if one.hold_ms else one.commits_s for one in measured])


def as_json(measured: list[Transacted], peer: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"results": [msgspec.to_builtins(one) for one in measured]}
    return shown if peer is None else shown | {"ratio": ratio_of(measured)}


def show(measured: list[Transacted], peer: str | None) -> None:
    console = wide(Console())
    table = Fitted(
        Column("cluster"),
        Column("producers", "right"),
        Column("hold ms", "right"),
        Column("commits/s", "right"),
        Column("MB/s", "right"),
        Column("commit ms", "right"),
    )
    for one in measured:
        numbers = f"{one.commits_s:.0f}", f"{one.mb_s:.1f}", f"{one.commit_ms:.1f}"
        table.add_row(one.bootstrap, str(one.producers), str(one.hold_ms), *numbers)
    console.print(table)
    ratio = None if peer is None else ratio_of(measured)
    if ratio is not None:
        console.print(f"ratio {measured[0].bootstrap} / {peer}: {ratio:.2f}")
