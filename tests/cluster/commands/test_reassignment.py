"""A partition moves to another node under load, by the commands that operators use."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.cluster.commanding import strandline
from tests.cluster.driving import admin_of, batches_on, flowing, leads, partition_of, quiet, read_all, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def run(cluster: LocalCluster, *arguments: str) -> str:
    done = strandline(*arguments, "--bootstrap-server", cluster.bootstrap)
    assert done.returncode == 0, done.stderr
    return done.stdout


def moving(cluster: LocalCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(cluster, "reassignments", "list", "--json"))
    return found


def replicas(cluster: LocalCluster) -> list[int]:
    partition = partition_of(cluster, "t")
    return list(partition.replica_nodes) if partition else []


def test_a_partition_moves_to_another_node_and_back(cluster: LocalCluster, tmp_path: Path) -> None:
    first, second, third = (node.node_id for node in cluster.nodes)
    admin = admin_of(cluster)
    [made] = admin.create_topics([NewTopic("t", 1, replica_assignment=[[first, second]])]).values()
    made.result(15)
    until(lambda: leads(cluster, "t") == first)
    plan = tmp_path / "plan.json"

    def move(*target: int) -> None:
        plan.write_text(
            json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": list(target)}]})
        )
        assert run(cluster, "reassignments", "execute", str(plan)) == f"t-0 moves to {list(target)}\n"

    with flowing(cluster, "t") as flow:
        move(third, second)
        until(lambda: replicas(cluster) == [third, second] and not moving(cluster))
        flow.progress(500)
        until(lambda: not (cluster.node(first).data_path / "t-0").exists())

        cluster.node(first).kill()  # then nobody copies, and the move waits
        move(first, second)
        [row] = moving(cluster)
        assert (row["adding"], row["removing"]) == ([first], [third])
        assert f"replica {first} is not in sync" in row["waits_for"]
        assert run(cluster, "reassignments", "cancel", str(plan)) == "t-0 does not move any more\n"
        assert moving(cluster) == []
        assert set(replicas(cluster)) == {third, second}
        flow.progress(500)
        cluster.node(first).start()
    assert set(flow.acked) <= set(read_all(cluster, "t"))


def place(cluster: LocalCluster, *nodes: int) -> None:
    """t-0 on these nodes, led by the first."""
    admin = admin_of(cluster)  # kept by name: it answers its futures only while it lives
    [made] = admin.create_topics([NewTopic("t", 1, replica_assignment=[list(nodes)])]).values()
    made.result(15)
    until(lambda: leads(cluster, "t") == nodes[0])


def behind(cluster: LocalCluster) -> list[tuple[int, int, int]]:
    """Replica, records and bytes of whom the one move waits for."""
    [row] = moving(cluster)
    return [(one["replica"], one["records"], one["bytes"]) for one in row["behind"]]


def set_rate(cluster: LocalCluster, change: str) -> None:
    run(cluster, "configs", "alter", "--entity-type", "brokers", "--entity-default", *change.split())


def test_a_big_move_under_a_throttle_says_what_is_missing_and_a_cancel_in_its_middle_loses_nothing(
    start_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = start_cluster(replica_fetch_max_bytes="20000", replica_fetch_response_max_bytes="20000")
    first, second, third = (node.node_id for node in cluster.nodes)
    place(cluster, first, second)
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, batch_num_messages=10))
    for number in range(4000):
        producer.produce("t", b"%d " % number + bytes(1000))
    assert producer.flush(30) == 0
    total = sum(map(len, batches_on(cluster.node(first), "t")))

    set_rate(cluster, "--add-config follower.replication.throttled.rate=100000")
    throttled = f"follower.replication.throttled.replicas=0:{third}"
    run(cluster, "configs", "alter", "--entity-type", "topics", "--entity-name", "t", "--add-config", throttled)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": [third, second]}]}))
    run(cluster, "reassignments", "execute", str(plan))
    [(node, records, size)] = until(lambda: (found := behind(cluster)) and found[0][1] is not None and found)
    assert node == third
    assert 1000 < records <= 4000
    assert size <= total  # what it lacks, in whole batches, and no more: all, if it has begun only now
    assert abs(size - records * total / 4000) < 20_000
    [(_, fewer, smaller)] = until(lambda: (found := behind(cluster))[0][1] < records and found[0][2] < size and found)
    assert 0 < fewer < records
    assert 0 < smaller < size
    said = run(cluster, "reassignments", "list")
    assert f"Waits for: replica {third} is not in sync" in said
    assert re.search(rf"\tBehind: {third} by \d+ records, \d\.\d MiB\n", said)

    with flowing(cluster, "t") as flow:
        cluster.node(third).pause()  # it asks for nothing; the log grows
        [(_, before, _)] = behind(cluster)
        flow.progress(500)
        until(lambda: behind(cluster)[0][1] >= before + 500)
        cluster.node(third).resume()
        assert moving(cluster)
        assert run(cluster, "reassignments", "cancel", str(plan)) == "t-0 does not move any more\n"
        assert moving(cluster) == []
        assert set(replicas(cluster)) == {first, second}
        until(lambda: not (cluster.node(third).data_path / "t-0").exists())
        flow.progress(500)
        set_rate(cluster, "--delete-config follower.replication.throttled.rate")
        run(cluster, "reassignments", "execute", str(plan))
        until(lambda: replicas(cluster) == [third, second] and not moving(cluster))
        flow.progress(500)
    read = read_all(cluster, "t")
    assert [int(value.split()[0]) for value in read[:4000]] == list(range(4000))
    assert read[4000:] == flow.acked
    until(lambda: batches_on(cluster.node(third), "t") == batches_on(cluster.node(second), "t"))


def test_what_there_is_can_be_saved_and_is_the_way_back(cluster: LocalCluster, tmp_path: Path) -> None:
    first, second, third = (node.node_id for node in cluster.nodes)
    place(cluster, first, second)
    text = run(cluster, "reassignments", "current", "--topic", "t")
    row = {"topic": "t", "partition": 0, "replicas": [first, second], "log_dirs": ["any", "any"]}
    assert json.loads(text) == {"version": 1, "partitions": [row]}
    way_back, plan = tmp_path / "way-back.json", tmp_path / "plan.json"
    way_back.write_text(text)
    assert run(cluster, "reassignments", "execute", str(way_back)) == f"t-0 moves to [{first}, {second}]\n"
    assert moving(cluster) == []  # it is there already
    plan.write_text(text.replace(f"[{first},{second}]", f"[{third},{first}]"))
    run(cluster, "reassignments", "execute", str(plan))
    until(lambda: replicas(cluster) == [third, first] and not moving(cluster))
    run(cluster, "reassignments", "execute", str(way_back))
    until(lambda: replicas(cluster) == [first, second] and not moving(cluster))
    assert run(cluster, "reassignments", "current", "--topic", "t") == text


def test_leaders_are_elected_at_an_operators_wish(cluster: LocalCluster) -> None:
    first, second, third = (node.node_id for node in cluster.nodes)
    admin = admin_of(cluster)
    [made] = admin.create_topics([NewTopic("t", 1, replica_assignment=[[first, second, third]])]).values()
    made.result(15)
    until(lambda: leads(cluster, "t") == first)
    cluster.node(first).terminate()
    cluster.node(first).wait_stopped()
    until(lambda: leads(cluster, "t") not in (0, first))
    cluster.node(first).start()
    partition = until(lambda: (p := partition_of(cluster, "t")) is not None and len(p.isr_nodes) == 3 and p)
    assert partition.leader_id != first
    results = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 0)]).result(15)
    assert [error for error in results.values() if error is not None] == []
    until(lambda: leads(cluster, "t") == first)
    said = run(cluster, "leader-election", "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert said == "t-0: already has the right leader\n"
