"""A move that runs is slowed down and let go again by the rates of KIP-73: between brokers, and between directories.

What is compared are bytes moved in spans of one length, and bytes a second; no time is asserted, since machines differ.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from tests.cluster.commanding import strandline
from tests.cluster.disks.test_directories import Jbod
from tests.cluster.driving import QUICK, admin_of, leads, partition_of, quiet, read_all, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

RECORD = 20_000
RECORDS = 1_000
FIRST = 500_000  # bytes a second, to begin with
SLOW = 20_000
SPAN_S = 2.0
# A rate is known to be exceeded only after a fetch: with small ones, little goes beyond it.
SMALL = {"replica.fetch.max.bytes": "65536", "replica.fetch.response.max.bytes": "65536"}


@pytest.fixture
def jbod(tmp_path: Path) -> Iterator[Jbod]:
    with Jbod(tmp_path / "cluster", 3, properties=QUICK | SMALL) as cluster:
        yield cluster


def run(cluster: LocalCluster, *arguments: str) -> None:
    done = strandline(*arguments, "--bootstrap-server", cluster.bootstrap)
    assert done.returncode == 0, done.stderr


def filled(cluster: LocalCluster, *replicas: int) -> None:
    admin = admin_of(cluster)
    [made] = admin.create_topics([NewTopic("t", 1, replica_assignment=[list(replicas)])]).values()
    made.result(15)
    until(lambda: leads(cluster, "t") == replicas[0])
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, compression_type="none"))
    for _ in range(RECORDS):
        producer.produce("t", os.urandom(RECORD))
    assert producer.flush(60) == 0


def set_rate(cluster: LocalCluster, key: str, rate: int) -> None:
    run(cluster, "configs", "alter", "--entity-type=brokers", "--entity-default", "--add-config", f"{key}={rate}")


def size_of(folders: list[Path]) -> int:
    """Bytes of all segments; files and folders may vanish meanwhile, when a move ends."""
    size = 0
    for folder in folders:
        for path in folder.glob("*.log"):
            try:
                size += path.stat().st_size
            except FileNotFoundError:
                continue
    return size


def slowed_and_let_go(cluster: LocalCluster, key: str, begin: Callable[[], None], moved: Callable[[], int]) -> None:
    whole = RECORD * RECORDS
    set_rate(cluster, key, FIRST)
    begin()
    until(moved)
    before = moved()
    until(lambda: moved() > before, 60)  # what went at once may have used up the rate for a while
    time.sleep(SPAN_S)
    at_first = moved() - before
    set_rate(cluster, key, SLOW)
    before = moved()
    assert before < whole // 2, "the first rate held it back"
    began = time.monotonic()
    time.sleep(SPAN_S)
    slowly = moved() - before
    assert slowly < at_first / 4, "lowered: it moves, if at all, slowly"
    slow_rate = (slowly + 1) / (time.monotonic() - began)
    before, began = moved(), time.monotonic()
    set_rate(cluster, key, 1 << 40)
    until(lambda: moved() >= whole, 60)
    assert (whole - before) / (time.monotonic() - began) > 4 * slow_rate, "raised: it goes on at once"


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_reassignment_is_slowed_and_let_go_while_it_runs(jbod: Jbod, side: str, tmp_path: Path) -> None:
    filled(jbod, 1, 2)
    throttled = f"{side}.replication.throttled.replicas=*"
    run(jbod, "configs", "alter", "--entity-type=topics", "--entity-name=t", "--add-config", throttled)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 3]}]}))
    folders = [directory / "t-0" for directory in jbod.directories(jbod.node(3))]
    slowed_and_let_go(
        jbod,
        f"{side}.replication.throttled.rate",
        lambda: run(jbod, "reassignments", "execute", str(plan)),
        lambda: size_of(folders),
    )
    until(lambda: (partition := partition_of(jbod, "t")) is not None and partition.replica_nodes == (1, 3))
    assert len(read_all(jbod, "t")) == RECORDS


def test_a_move_between_directories_is_slowed_and_let_go_while_it_runs(jbod: Jbod) -> None:
    filled(jbod, 1, 2)
    home = next(path for path in jbod.directories(jbod.node(1)) if (path / "t-0").exists())
    other = next(path for path in jbod.directories(jbod.node(1)) if path != home)
    move = ("log-dirs", "move", "--broker=1", "--topic=t", "--partition=0", f"--to={other}")
    slowed_and_let_go(
        jbod,
        "replica.alter.log.dirs.io.max.bytes.per.second",
        lambda: run(jbod, *move),
        lambda: size_of([*other.glob("t-0*")]),
    )
    until(lambda: not (home / "t-0").exists())
    assert (other / "t-0").exists()
    assert len(read_all(jbod, "t")) == RECORDS
