"""Three machines of two shards each: real processes, laid out and run by the commands."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from confluent_kafka import Producer
from tests.cluster.commanding import strandline
from tests.cluster.commands.test_up import port_of_many
from tests.cluster.driving import QUICK, quiet, until, until_is

from strandline.client.admin.topics import create_topic, live_brokers
from strandline.client.ask import config_of
from strandline.client.cluster import Cluster
from strandline.client.errors import StrandlineError
from strandline.testing.local_cluster import HOST

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
MACHINES = (10, 20, 30)


class Machines(NamedTuple):
    bootstrap: str
    by_id: dict[int, subprocess.Popen[bytes]]  # of the first shard


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    first = port_of_many(16)
    ports = {base: first + 2 * number for number, base in enumerate(MACHINES)}  # a shard is ten further
    voters = ",".join(f"{base}@{HOST}:{port + 1}" for base, port in ports.items())
    with ExitStack() as running:
        found = {}
        for base, port in ports.items():
            config = tmp_path / f"machine-{base}.properties"
            properties = QUICK | {
                "process.roles": "broker,controller",
                "node.id": str(base),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{port + 1}",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(tmp_path / f"data-{base}"),
            }
            config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
            secret = ("--cluster-secret", str(tmp_path / "secret"))
            done = strandline(
                "format", "--config", str(config), "--cluster-id", "QUJDREVGR0hJSktMTU5PUA", "--shards", "2", *secret
            )
            assert done.returncode == 0, done.stderr
            folder = config.with_suffix(".d")
            assert f"node --config {folder}` runs the 2 shards" in done.stdout
            command = [sys.executable, "-m", "strandline", "node", "--config", str(folder)]
            output = running.enter_context((tmp_path / f"{base}.log").open("wb"))
            found[base] = subprocess.Popen(command, stdout=output, stderr=output)
            running.callback(found[base].wait)
            running.callback(found[base].kill)  # its shards notice, and shut down
        yield Machines(f"{HOST}:{first}", found)


def test_replicas_are_on_three_machines_and_each_of_them_stops_and_comes_back_as_one(
    machines: Machines,
) -> None:
    bootstrap, by_id = machines

    def brokers() -> set[int]:
        with suppress(StrandlineError):  # nobody listens yet
            return set(live_brokers(bootstrap))
        return set()

    until_is({10, 11, 20, 21, 30, 31}, brokers)
    create_topic(bootstrap, "t", 12, 3)
    with Cluster(config_of(bootstrap)) as cluster:
        replicas = [partition.replicas for partition in cluster.view("t").partitions.values()]
    assert len(replicas) == 12
    for brokers_of in replicas:
        assert {broker // 10 * 10 for broker in brokers_of} == set(MACHINES), "never two on one machine"
    assert {broker for brokers_of in replicas for broker in brokers_of} == {10, 11, 20, 21, 30, 31}

    shards = psutil.Process(by_id[20].pid).children()
    assert len(shards) == 2
    shards[1].kill()
    until(lambda: {shard.pid for shard in psutil.Process(by_id[20].pid).children()} - {shard.pid for shard in shards})
    until_is({10, 11, 20, 21, 30, 31}, brokers)

    by_id[30].send_signal(signal.SIGTERM)
    assert by_id[30].wait(30) == 0, "both shut down in order"
    producer = Producer(quiet(bootstrap, acks="all"))
    for partition in range(12):
        producer.produce("t", b"x", partition=partition)
    assert producer.flush(30) == 0, "each partition has two replicas left"
