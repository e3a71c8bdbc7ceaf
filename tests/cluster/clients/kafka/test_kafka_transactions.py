"""Transactions of Kafka's own Java client, and Kafka's tools on what they leave: see `test_kafka_tools.py`."""

import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.cluster.clients.kafka.test_kafka_tools import Tools, java, rows, with_java
from tests.cluster.clients.test_transactions import in_sync, producer_of, read, write
from tests.cluster.driving import create, leads, quiet, until

from strandline.testing.local_cluster import LocalCluster
from strandline.txn.states import State

PORTION = 400  # records between two kills
STATES = [state for state in State if state is not State.DEAD]

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]


@with_java
def test_kafkas_dump_log_reads_decisions_markers_and_aborted_transactions(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    tools = Tools(cluster, tmp_path)
    create(cluster, "t", 3)
    producer = producer_of(cluster, "app")
    for value, commits in (("a", True), ("b", False), ("c", True)):
        producer.begin_transaction()
        write(producer, "t", value)
        assert producer.flush(20) == 0
        producer.commit_transaction(20) if commits else producer.abort_transaction(20)
    until(lambda: read(cluster, "t") == sorted((p, v) for p in range(3) for v in "ac"))
    node = cluster.node(1)
    node.terminate()
    assert node.wait_stopped() == 0

    def dumped(folder: str, pattern: str, *options: str) -> str:
        files = sorted(node.data_path.glob(f"{folder}/{pattern}"))
        assert files, pattern
        return tools.run("dump-log", "--files", ",".join(map(str, files)), *options)

    decisions = dumped("__transaction_state-*", "*.log", "--transaction-log-decoder")
    assert "transactionalId=app" in decisions or '"transactionalId":"app"' in decisions
    for state in STATES:
        assert f"state={state.named}" in decisions or f'"transactionStatus":{state.value}' in decisions, state.named
    records = dumped("t-0", "*.log", "--print-data-log")
    assert records.count("isControl: true") == 3
    assert (records.count("endTxnMarker: COMMIT"), records.count("endTxnMarker: ABORT")) == (2, 1)
    assert "isvalid: false" not in records
    aborted = dumped("t-0", "*.txnindex")
    assert aborted.count("firstOffset") == 1, aborted
    assert "producerId" in dumped("t-0", "*.snapshot")


@with_java
def test_kafkas_transactions_tool_shows_what_is_open(shared_cluster: LocalCluster, topic: str, tmp_path: Path) -> None:
    tools = Tools(shared_cluster, tmp_path)
    producer = producer_of(shared_cluster, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(20) == 0
    (listed,) = rows(tools("transactions", "list"), topic)
    assert listed.split()[-1] == "Ongoing"
    producer_id = listed.split()[-2]
    described = tools("transactions", "describe", "--transactional-id", topic)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    producers = tools("transactions", "describe-producers", "--topic", topic, "--partition", "0")
    assert [row.split()[0] for row in producers.splitlines()[1:]] == [producer_id]
    (hanging,) = [tools("transactions", "find-hanging", "--topic", topic)]
    assert topic not in hanging, "its coordinator knows it"
    producer.abort_transaction(20)


@with_java
def test_the_java_client_copies_each_record_once_while_its_nodes_are_killed(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """Some of its transactions it aborts itself. Leaders, a node after the other, and the client are killed while it
    copies; what it has not copied then it copies when it is started again."""
    create(cluster, "in")
    create(cluster, "out", 3)
    plain = Producer(quiet(cluster.bootstrap))
    sent = 0
    for victim in ("leader", "client", 1, 2, "leader", 3):
        for _ in range(PORTION):
            plain.produce("in", str(sent).encode(), partition=0)
            sent += 1
        assert plain.flush(30) == 0
        copy_while_killed(cluster, victim, tmp_path / "copied.txt")
    found = Counter(int(value) for _, value in read(cluster, "out"))
    assert [number for number in range(sent) if found[number] != 1] == []
    assert found.total() == sent


def copy_while_killed(cluster: LocalCluster, victim: str | int, output: Path) -> None:
    """The victim is killed as soon as something is copied. The copier ends by itself when all is copied."""
    command = java(
        "transactional-message-copier",
        *("--input-topic", "in", "--input-partition", "0", "--output-topic", "out"),
        *("--broker-list", cluster.bootstrap, "--transactional-id", "copier", "--consumer-group", "copiers"),
        *("--transaction-size", "10", "--transaction-timeout", "5000"),
        *("--enable-random-aborts", "--use-group-metadata"),
    )

    def start() -> subprocess.Popen[bytes]:
        with output.open("wb") as reported:
            return subprocess.Popen(command, stdout=reported, stderr=subprocess.DEVNULL)

    copier = start()
    try:
        until(lambda: "progress" in output.read_text() or copier.poll() is not None, 60)
        if victim == "client":
            copier.kill()
            copier.wait()
            copier = start()
        else:
            node = cluster.node(leads(cluster, "out", 0) if isinstance(victim, str) else victim)
            node.kill()
            time.sleep(0.5)
            node.start()
        deadline = time.monotonic() + 90
        while copier.poll() != 0:
            assert time.monotonic() < deadline, output.read_text()[-2_000:]
            if copier.poll() is not None:
                copier = start()  # it gives up after some errors
            time.sleep(0.05)
    finally:
        copier.kill()
        copier.wait()
    until(lambda: len(in_sync(cluster, "out")) == 9, 40)
