"""An operator finds the transaction that readers wait for: one that its coordinator ends, and one that nobody ends.

Partitions are not verified here, as in logs that come from older clusters; so a stranger's batch begins a transaction
that no coordinator knows.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cluster.clients.test_transactions import producer_of, read, write
from tests.cluster.commands.test_recovery_commands import Commands
from tests.cluster.driving import QUICK, create, leads, until

from strandline.base.errors import ErrorCode
from strandline.client import brokers
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.batch import build
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.cluster

STRANGER = 4_242  # a producer id that nobody gave out
NOW = ("--max-transaction-timeout", "0")
UNVERIFIED = {
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": "5",
    "broker.session.timeout.ms": "60000",  # one that is paused stays a leader
}


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with LocalCluster(tmp_path / "cluster", 3, properties={**QUICK, **UNVERIFIED}) as cluster:
        create(cluster, "t", 3)
        yield Commands(cluster)


def leave_open(cluster: LocalCluster, partition: int) -> None:
    now = int(time.time() * 1000)
    batch = build(
        [(now, None, b"stranger", ())], producer_id=STRANGER, producer_epoch=0, base_sequence=0, transactional=True
    )
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=partition, records=batch),))
    request = ProduceRequest(transactional_id="stranger", acks=-1, timeout_ms=5_000, topic_data=(data,))
    leader = cluster.node(leads(cluster, "t", partition))
    (answer,) = ask(HOST, leader.port, request, 11).responses[0].partition_responses
    assert answer.error_code == ErrorCode.NONE


def opened(cluster: LocalCluster) -> Producer:
    producer = producer_of(cluster, "worker")
    producer.begin_transaction()
    write(producer, "t", "a")
    assert producer.flush(20) == 0
    return producer


def test_a_transaction_that_its_coordinator_knows_is_shown_and_left_alone(commands: Commands) -> None:
    producer = opened(commands.cluster)
    (listed,) = commands.json("transactions", "list", "--state", "Ongoing")
    assert (listed["transactional_id"], listed["state"]) == ("worker", "Ongoing")
    for option, value, count in (
        ("--transactional-id-pattern", "w.*r", 1),
        ("--transactional-id-pattern", "other", 0),
        ("--producer-id", str(listed["producer_id"]), 1),
        ("--producer-id", "77", 0),
        ("--running-longer-than-ms", "3600000", 0),
        ("--state", "CompleteCommit", 0),
    ):
        assert len(commands.json("transactions", "list", option, value)) == count, (option, value)
    (described,) = commands.json("transactions", "describe", "--transactional-id", "worker")
    assert described["partitions"] == ["t-0", "t-1", "t-2"]
    assert (described["producer_id"], described["coordinator"]) == (listed["producer_id"], listed["coordinator"])
    assert described["duration_ms"] >= 0
    where = ("--topic", "t", "--partition", "1")
    (known,) = commands.json("transactions", "producers", *where)
    assert (known["producer_id"], known["start_offset"]) == (listed["producer_id"], 0)
    follower = next(node for node in (1, 2, 3) if node != leads(commands.cluster, "t", 1))
    assert commands.json("transactions", "describe-producers", *where, "--broker-id", str(follower)) == [known]
    assert commands.json("transactions", "find-hanging", *NOW) == []
    error = commands.run("transactions", "abort", *where, "--start-offset", "0", status=1)[1]
    assert "it does not hang" in error and "describe --transactional-id worker" in error
    explained = "\n".join(commands.lines("explain", "t:1"))
    assert f"a transaction of producer {known['producer_id']} holds the last stable offset at 0" in explained
    assert "transactional id 'worker': Ongoing since" in explained and "there is nothing to do" in explained
    producer.commit_transaction(20)
    until(lambda: len(read(commands.cluster, "t")) == 3)
    assert "healthy" in commands.lines("explain", "t:1")[0]
    assert commands.json("transactions", "describe", "--transactional-id", "worker")[0]["started_at_ms"] is None


def test_a_transaction_that_nobody_is_going_to_end_is_found_and_aborted(commands: Commands) -> None:
    cluster = commands.cluster
    leave_open(cluster, 0)
    leave_open(cluster, 2)
    opened(cluster).commit_transaction(20)
    assert read(cluster, "t") == [(1, "a")], "readers of the others wait"
    assert commands.json("transactions", "find-hanging") == [], "it is not older than any timeout"
    found = commands.json("transactions", "find-hanging", *NOW, status=2)
    assert [(row["topic"], row["partition"], row["producer_id"], row["start_offset"]) for row in found] == [
        ("t", 0, STRANGER, 0),
        ("t", 2, STRANGER, 0),
    ]
    (held,) = commands.json("explain", "t:0", status=2)
    assert held["held_by"]["is_hanging"]
    (way,) = held["findings"][0]["ways"]
    assert way["command"].startswith("strandline transactions abort --topic t --partition 0 --start-offset 0")
    commands.run("transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
    assert until(lambda: read(cluster, "t")) == [(0, "a"), (1, "a")]
    commands.run("transactions", "abort", "--topic", "t", "--partition", "2", "--producer-id", str(STRANGER))
    until(lambda: read(cluster, "t") == [(0, "a"), (1, "a"), (2, "a")])
    assert commands.lines("transactions", "find-hanging", *NOW) == []
    error = commands.run("transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", "0", status=1)[
        1
    ]
    assert "no transaction at offset 0 is open in t-0" in error


def test_what_is_not_known_is_not_called_hanging(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that is down may know it."""
    monkeypatch.setattr(brokers, "TIMEOUT_S", 1.0)
    cluster = commands.cluster
    opened(cluster)
    (described,) = commands.json("transactions", "describe", "--transactional-id", "worker")
    coordinator = cluster.node(described["coordinator"])
    other = next(node for node in cluster.nodes if node is not coordinator)
    asking: Any = SimpleNamespace(bootstrap=f"{HOST}:{other.port}")
    coordinator.pause()
    rows, errors = Commands(asking).run("transactions", "find-hanging", *NOW, "--json", status=3)
    assert rows == "[]\n"
    assert f"broker {coordinator.node_id} does not answer" in errors
    coordinator.resume()
    until(lambda: commands.run("transactions", "find-hanging", *NOW, "--json", status=None) == ("[]\n", ""))
