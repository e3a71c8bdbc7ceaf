"""Groups of real consumers that do not make progress, and what `strandline explain --group` says of each."""

import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from tests.cluster.clients.test_transactions import producer_of, write
from tests.cluster.commands.test_group_commands import RECORDS, committed, consuming, filled
from tests.cluster.commands.test_recovery_commands import Commands
from tests.cluster.driving import create, quiet, until, until_is

from strandline.client.admin.groups.offsets import delete_offsets
from strandline.client.admin.partitions import Place
from strandline.client.brokers import brokers_of
from strandline.diagnosis.groups import gathering
from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


@pytest.fixture
def commands(shared_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setattr(gathering, "WATCHED_S", 1)  # these consumers commit ten times a second, or not at all
    return Commands(shared_cluster)


def explained(commands: Commands, group: str, status: int | None = 0) -> str:
    return commands.run("explain", "--group", group, status=status)[0]


def consumer_of(commands: Commands, group: str, **settings: Any) -> Consumer:
    given = {"auto_offset_reset": "earliest", "session_timeout_ms": 6000, "client_id": "slow", **settings}
    return Consumer(quiet(commands.cluster.bootstrap, group_id=group, **given))


def assigned(consumer: Consumer, topic: str) -> Consumer:
    consumer.subscribe([topic])
    until(lambda: (consumer.poll(0.1), consumer.assignment())[1])
    return consumer


def test_a_group_that_has_read_everything_is_healthy_and_empty_without_members(commands: Commands) -> None:
    name = filled(commands)
    with consuming(commands, name, name):
        until_is({0: RECORDS, 1: RECORDS}, lambda: committed(commands, name))
        said = explained(commands, name)
        assert said.startswith(f"group {name}: healthy: Stable for ") and "1 member with 2 partitions, lag 0" in said
    said = until(lambda: "no members" in (said := explained(commands, name)) and said)
    assert "(client app at 127.0.0.1) left" in said and "there is nothing to do" in said
    producer = Producer(quiet(commands.cluster.bootstrap))
    producer.produce(name, b"late", partition=0)
    assert producer.flush(20) == 0
    assert "it is 1 offset behind, and nobody reads" in explained(commands, name, status=2)


def test_a_rebalance_names_the_member_that_it_waits_for(commands: Commands) -> None:
    """Its poll loop stands still while its heartbeats go on."""
    name = filled(commands)
    slow = assigned(consumer_of(commands, name, max_poll_interval_ms=60_000), name)
    (member,) = commands.json("groups", "members", "--group", name)
    other = consumer_of(commands, name, client_id="other")
    other.subscribe([name])
    other.poll(0.1)
    said = until(lambda: "its members join" in (said := explained(commands, name)) and said)
    assert f"waits for: {member['member_id']} (client slow at 127.0.0.1) to rejoin, for at most" in said
    assert "1 member joined" in said and "may take 60 s (max.poll.interval.ms)" in said
    slow.close()
    other.close()


def test_a_member_that_reads_and_does_not_commit_is_named(commands: Commands) -> None:
    name = filled(commands)
    slow = assigned(consumer_of(commands, name, enable_auto_commit=False), name)
    found = commands.json("explain", "--group", name, status=2)[0]
    (finding,) = found["findings"]
    assert finding["what"].startswith("slow-") or "(client slow" in finding["what"]
    assert "committed nothing within 6 s" in finding["what"]
    assert f"{name}-0: {RECORDS} offsets to read, no offset committed" in finding["why"]
    assert found["committed_within_s"] == []
    slow.close()


def test_a_member_that_was_killed_is_remembered(commands: Commands) -> None:
    name = filled(commands)
    settings = {"bootstrap.servers": commands.cluster.bootstrap, "group.id": name, "session.timeout.ms": 2000}
    code = f"from confluent_kafka import Consumer; c = Consumer({settings}); c.subscribe([{name!r}]); c.poll(60)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        until(lambda: name in str(commands.json("groups", "list", "--state", "Stable")))
        process.kill()
    with consuming(commands, name, name):
        said = until(lambda: "dropped out" in (said := explained(commands, name, status=None)) and said)
        assert "1 member dropped out within 10 min" in said
        assert "(client rdkafka at 127.0.0.1) sent no heartbeat for 2000 ms (session.timeout.ms)" in said


def test_a_static_member_of_the_consumer_protocol_is_waited_for(commands: Commands) -> None:
    name = filled(commands)
    settings = quiet(commands.cluster.bootstrap, group_id=name, group_protocol="consumer", group_instance_id="i")
    static = Consumer(settings)
    assigned(static, name)
    static.close()
    said = explained(commands, name)
    assert "instance i) has left, and will be back" in said
    assert f"why: {name}-0, {name}-1 wait for it, and nobody reads" in said
    assert "waits for: a consumer with group.instance.id=i, or the end of its session in " in said


def test_a_transaction_that_holds_a_group_back_is_named(commands: Commands) -> None:
    name = f"g-{uuid4().hex[:8]}"
    create(commands.cluster, name, 3)
    producer = producer_of(commands.cluster, name)
    producer.begin_transaction()
    write(producer, name, "a")
    assert producer.flush(20) == 0
    producer.commit_transaction(20)
    with consuming(commands, name, name):
        until(lambda: len(committed(commands, name)) == 3)
        producer.begin_transaction()
        write(producer, name, "b")
        assert producer.flush(20) == 0
        said = explained(commands, name)
        assert f"{name}-0: a transaction of producer" in said and "holds the last stable offset" in said
        assert f"transactional id '{name}': Ongoing since" in said
        producer.commit_transaction(20)


def test_a_member_of_the_consumer_protocol_that_does_not_revoke_is_named(commands: Commands) -> None:
    name, options = filled(commands), {"group.protocol": "consumer", "max.poll.interval.ms": 60_000}
    settings = quiet(commands.cluster.bootstrap, group_id=name, auto_offset_reset="earliest")
    one, two = (Consumer(settings | options | {"client.id": client}) for client in ("one", "two"))
    one.subscribe([name])
    until(lambda: (one.poll(0.1), len(one.assignment()) == 2)[1])
    two.subscribe([name])
    until(lambda: (two.poll(0.1), len(commands.json("groups", "members", "--group", name)) == 2)[1])
    rows = {row["client_id"]: row for row in commands.json("groups", "members", "--group", name)}
    (moving,) = rows["two"]["target"]
    said = until(lambda: moving in (said := explained(commands, name)) and said)
    assert f"partitions are on their way: {moving}" in said
    assert f"waits for: {rows['one']['member_id']} (client one at 127.0.0.1) to poll, and to revoke" in said
    (group,) = commands.json("groups", "describe", "--group", name)
    assert (group["type"], group["epoch"]) == ("consumer", 2)
    coordinator = brokers_of(commands.cluster.bootstrap)[group["coordinator"]]
    assert delete_offsets(coordinator, name, [Place(name, 0)]) == {Place(name, 0): "GROUP_SUBSCRIBED_TO_TOPIC"}
    one.close()
    two.close()


def test_what_is_no_group_is_an_error_with_advice(commands: Commands) -> None:
    assert "does not exist" in commands.run("explain", "--group", "nobody", status=1)[1]
    assert "--group GROUP" in commands.run("explain", status=2)[1]
    assert "--group GROUP" in commands.run("explain", "t", "--group", "g", status=2)[1]
