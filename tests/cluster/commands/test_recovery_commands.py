"""A partition loses its leader, and the commands say why, what it costs to go on, and afterwards what it has cost.

Broker 3 falls out of sync while 2 goes on alone; then 2 is killed and 3 returns. So 3 lacks what only 2 had.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from tests.cluster.commanding import strandline
from tests.cluster.driving import QUICK, admin_of, isr_of, leads, partition_of, quiet, until

from strandline.diagnosis import explaining
from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

BOTH, ALONE = 10, 5  # records that both replicas have, and that broker 2 alone has
AT = ("--topic", "t", "--partition", "0")
TYPE = "--election-type"


class Commands:
    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    def run(self, *arguments: str, status: int | None = 0, terminal: int | None = None) -> tuple[str, str]:
        arguments = (*arguments, "--bootstrap-server", self.cluster.bootstrap)
        done = strandline(*arguments) if terminal is None else at_terminal(terminal, *arguments)
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done.stdout, done.stderr

    def lines(self, *arguments: str, status: int = 0) -> list[str]:
        return self.run(*arguments, status=status)[0].splitlines()

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", status=status)[0])


def at_terminal(terminal: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "strandline", *arguments]
    return subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=90, check=False)


def produce(cluster: LocalCluster, count: int) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    for number in range(count):
        producer.produce("t", b"%d" % number, partition=0)
    assert producer.flush(20) == 0


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    """Topic t on brokers 2 and 3, where one in sync is enough; h on all."""
    monkeypatch.setattr(explaining, "WATCHED_S", 1)  # for how long a follower is watched that may be stuck
    properties = {**QUICK, "replica.high.watermark.checkpoint.interval.ms": "100"}
    with LocalCluster(tmp_path / "cluster", 3, properties=properties) as cluster:
        alone = NewTopic("t", 1, replica_assignment=[[2, 3]], config={"min.insync.replicas": "1"})
        admin = admin_of(cluster)  # kept by name: it answers its futures only while it lives
        for future in admin.create_topics([alone, NewTopic("h", 2, 3)]).values():
            future.result(15)
        until(lambda: leads(cluster, "t") == 2 and leads(cluster, "h", 0) and leads(cluster, "h", 1))
        yield Commands(cluster)


def lose_the_leader(cluster: LocalCluster) -> None:
    produce(cluster, BOTH)
    cluster.node(3).pause()
    time.sleep(1)  # its Fetch has been answered: else the answer, with the next records, waits in its socket
    produce(cluster, ALONE)  # which falls behind by them, and is out of sync long before its session ends
    until(lambda: isr_of(cluster, "t") == {2})
    checkpoint = cluster.node(2).data_path / "replication-offset-checkpoint"
    until(lambda: f"t 0 {BOTH + ALONE}\n" in checkpoint.read_text())
    cluster.node(2).kill()
    cluster.node(3).resume()

    def is_lost() -> bool:
        partition = partition_of(cluster, "t")
        return partition is not None and partition.leader_id < 0 and tuple(partition.offline_replicas) == (2,)

    until(is_lost, 40)


def test_a_partition_without_a_leader_is_described_explained_led_by_hand_and_its_losses_are_listed(
    commands: Commands, tmp_path: Path
) -> None:
    cluster = commands.cluster
    nothing_is_wrong(commands)
    lose_the_leader(cluster)
    it_is_described(commands)
    it_is_explained(commands)
    elections_are_planned(commands, tmp_path)
    nobody_is_elected_without_consent(commands)

    said, _ = commands.run("leader-election", TYPE, "designation", *AT, "--designated-leader", "3", "--yes")
    *_, elected, ledger = said.splitlines()
    assert elected == "t-0: broker 3 was elected, and leads in epoch 2"
    assert "at most what was committed from offset 10 on; broker 3 was elected, epoch 1 to 2; designation" in ledger
    again = commands.lines("leader-election", TYPE, "longest_log_aggressive", *AT, "--yes")
    assert again == ["t-0: nothing to do, broker 3 leads"]

    report = commands.json("losses", "t", status=3)
    assert [row["broker"] for row in report["not_asked"]] == [2]
    cluster.node(2).start()
    until(lambda: isr_of(cluster, "t") == {2, 3}, 40)
    report = commands.json("losses", "t:0", status=2)
    assert (report["not_asked"], report["exactly_lost_records"]) == ([], ALONE)
    first, *_, last = report["losses"]
    assert (first["where"], first["replica"], first["start"], first["end"], first["certainty"]) == (
        "metadata",
        3,
        BOTH,
        -1,
        1,
    )
    assert (last["where"], last["broker"], last["start"], last["end"], last["certainty"]) == (
        "replica",
        2,
        BOTH,
        BOTH + ALONE,
        2,
    )
    assert commands.lines("losses", "h") == ["nothing was lost (3 of 3 brokers asked)"]
    healthy, entries = commands.lines("explain", "t:0")
    assert healthy == "t-0: healthy: broker 3 leads, 2,3 in sync"
    assert entries.startswith("  the loss ledger has")


def nothing_is_wrong(commands: Commands) -> None:
    assert commands.lines("losses") == ["nothing was lost (3 of 3 brokers asked)"]
    assert all("healthy" in line for line in commands.lines("explain", "h"))
    assert commands.lines("topics", "describe", "--unavailable", "--under-min-isr") == [""]
    with_t = commands.json("topics", "describe", "t")
    assert [(row["leader"], row["elr"], row["last_known_leader"]) for row in with_t] == [(2, [], -1)]
    at_min = commands.json("topics", "describe", "--at-min-isr")
    assert at_min == [], "two in sync where one is wanted, three where two are"
    said, _ = commands.run("leader-election", TYPE, "longest_log_balanced", "--all-topic-partitions", "--yes")
    assert said == "every partition has a leader: there is nothing to do\n"
    assert commands.run("losses", "none", status=1)[1].startswith("error: none does not exist")


def it_is_described(commands: Commands) -> None:
    for filters in (("--unavailable",), ("--under-min-isr-partitions", "--at-min-isr")):
        (line,) = (row for row in commands.lines("topics", "describe", *filters) if "Topic: t\t" in row)
        fields = dict(field.split(": ", 1) for field in line.split("\t"))
        shown = (fields["Leader"], fields["Isr"], fields["Elr"], fields["LastKnownElr"], fields["LastKnownLeader"])
        assert shown == ("none", "", "2", "", "2")


def it_is_explained(commands: Commands) -> None:
    (report,) = commands.json("explain", "t", status=2)
    (finding,) = report["findings"]
    assert (finding["what"], finding["waits_for"]) == ("nobody leads", "broker 2 to return")
    assert [(row["replica"], row.get("end_offset")) for row in report["logs"]] == [(2, None), (3, BOTH)]
    start, elect = finding["ways"]
    assert start["command"] == "strandline node --config FILE_OF_NODE_2"
    assert elect["costs"] == "at most what was committed from offset 10 on"
    assert elect["command"].startswith("strandline leader-election --election-type longest_log_aggressive --topic t")
    text = "\n".join(commands.lines("explain", "t:0", status=2))
    assert "data: broker 3: end offset 10, last epoch 0, high watermark 10" in text


def elections_are_planned(commands: Commands, folder: Path) -> None:
    balanced = commands.lines("leader-election", TYPE, "longest_log_balanced", *AT, "--dry-run")
    assert balanced[0] == ("t-0: nobody would lead: LastKnownElr is empty, and broker 2 may return, still eligible")
    for kind in ("longest_log_aggressive", "longest_log_agressive"):
        lines = commands.lines("leader-election", TYPE, kind, "--all-topic-partitions", "--dry-run")
        assert lines[0] == "t-0: broker 3 would lead: of the replicas that answered, 1 of 2, it has the longest log"
        assert lines[-2].startswith("  not asked: broker 2 does not run")
        assert lines[-1] == "  lost: at most what was committed from offset 10 on"
    path = folder / "leaders.json"
    rows = [{"topic": "t", "partition": 0, "designatedLeader": 3}, {"topic": "h", "partition": 0, "desiredLeader": 1}]
    path.write_text(json.dumps({"partitions": rows}))
    options = (TYPE, "designation", "--path-to-json-file", str(path), "--dry-run")
    lost, led = commands.json("leader-election", *options)["plan"]
    assert (lost["outcome"], lost["candidate"], lost["loss"]["start"]) == ("unclean", 3, BOTH)
    assert led["outcome"] == "not_needed"


def nobody_is_elected_without_consent(commands: Commands) -> None:
    said, complaint = commands.run("leader-election", TYPE, "unclean", *AT, status=2)
    assert "t-0: broker 3 would lead" in said
    assert "confirm it with --yes" in complaint
    terminal, other_end = os.openpty()
    os.write(terminal, b"n\n")
    said, complaint = commands.run("leader-election", TYPE, "longest_log_aggressive", *AT, status=1, terminal=other_end)
    assert "Go on? [y/N]" in said
    assert complaint == "error: no leader was elected, since you did not confirm it\n  answer y, or add --yes\n"
    os.close(terminal)
    os.close(other_end)
    assert leads(commands.cluster, "t") == 0


def test_a_partition_below_min_isr_is_explained_until_its_broker_is_back(commands: Commands) -> None:
    cluster = commands.cluster
    cluster.node(3).kill()
    until(lambda: isr_of(cluster, "t") == {2})
    commands.run("configs", "alter", "--entity-type=topics", "--entity-name=t", "--add-config=min.insync.replicas=2")
    (report,) = commands.json("explain", "t:0", status=2)
    (finding,) = report["findings"]
    assert (finding["what"], finding["waits_for"]) == ("under min ISR", "replica 3 to be in sync")
    assert [way["command"].split()[1] for way in finding["ways"]] == ["node", "configs"]
    assert [row["topic"] for row in commands.json("topics", "describe", "--under-min-isr")] == ["t"]
    cluster.node(3).start()
    until(lambda: isr_of(cluster, "t") == {2, 3}, 40)
    assert commands.lines("explain", "t:0") == ["t-0: healthy: broker 2 leads, 2,3 in sync"]
    for node in (1, 3):
        cluster.node(node).kill()
    until(lambda: "t-0: without a controller" in commands.run("explain", "t:0", status=None)[0], 40)
