"""`strandline bench failover` and `strandline bench start`: how long nobody can write."""

import json

import msgspec

from strandline.bench.interruption import Interrupted, Started
from strandline.bench.interruption import failover as measure_failover
from strandline.bench.interruption import start as measure_start
from strandline.bench.shell import CommandFailed
from strandline.cli.connect import HERE, Json, OfCluster, check_at_least, check_positive, fail


def failover(
    kill: str,
    *,
    cluster: OfCluster = HERE,
    rate: int = 500,
    seconds: float = 20,
    replication_factor: int = 3,
    json_output: Json = False,
) -> None:
    """Write at a rate, kill the leader, and show the longest time without an acknowledgement.

    Parameters
    ----------
    kill
        shell command that kills a node's process; {id} is the leader's node id
    rate
        records a second
    seconds
        how long to write after the kill
    replication_factor
        number of replicas of the topic that the bench creates
    """
    check_at_least(1, rate=rate, replication_factor=replication_factor)
    check_positive(seconds=seconds)
    try:
        measured = measure_failover(cluster.config, kill, rate, seconds, replication_factor)
    except CommandFailed as why:
        fail(f"the kill command failed: {why}", "{id} in it stands for the id of the node that is killed")
    print(json.dumps(msgspec.to_builtins(measured)) if json_output else text_of_failover(measured))


def text_of_failover(measured: Interrupted) -> str:
    return (
        f"{measured.bootstrap}: no acknowledgement for {measured.gap_s:.2f} s after node {measured.leader} was killed, "
        f"from {measured.began_s:+.2f} s on; {measured.acknowledged} of {measured.sent} records were acknowledged"
    )


def start(
    command: str,
    *,
    stop: str = "",
    cluster: OfCluster = HERE,
    replication_factor: int = 3,
    limit: float = 120,
    json_output: Json = False,
) -> None:
    """Start a cluster and show how long it takes until it has acknowledged a record of a new topic.

    Parameters
    ----------
    command
        shell command that starts the cluster
    stop
        shell command that stops it; without one the processes of --command get SIGTERM
    replication_factor
        number of replicas of the topic that the bench creates
    limit
        seconds after which the bench gives up
    """
    check_at_least(1, replication_factor=replication_factor)
    check_positive(limit=limit)
    measured = measure_start(cluster.config, command, stop, replication_factor, limit)
    print(json.dumps(msgspec.to_builtins(measured)) if json_output else text_of_start(measured))


def text_of_start(measured: Started) -> str:
    return f"{measured.bootstrap}: {measured.seconds:.2f} s from the command to the first acknowledged record"
