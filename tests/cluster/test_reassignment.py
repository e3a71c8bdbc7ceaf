"""A partition moves to another node under load, by the commands that operators use."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.cluster.driving import admin_of, flowing, leads, partition_of, read_all, until

from strandline.server.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def run(cluster: LocalCluster, *arguments: str) -> str:
    command = [sys.executable, "-m", "strandline", *arguments, "--bootstrap-server", cluster.bootstrap]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def moving(cluster: LocalCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(cluster, "reassignments", "list", "--json"))
    return found


def replicas(cluster: LocalCluster) -> list[int]:
    told = partition_of(cluster, "t")
    return list(told.replica_nodes) if told else []


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
    told = until(lambda: (p := partition_of(cluster, "t")) is not None and len(p.isr_nodes) == 3 and p)
    assert told.leader_id != first
    results = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 0)]).result(15)
    assert [error for error in results.values() if error is not None] == []
    until(lambda: leads(cluster, "t") == first)
    said = run(cluster, "leader-election", "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert said == "t-0: has the leader that it should have\n"
