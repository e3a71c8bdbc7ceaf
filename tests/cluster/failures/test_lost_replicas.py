"""Real processes: the last broker in sync loses files while it is down, and nothing that was acknowledged is lost."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.cluster.driving import read_all, until
from tests.cluster.failures.test_losses import asked, losses_of

from strandline.metadata.registrations import RECOVERED
from strandline.testing.local_cluster import LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)

COUNT = 100


def truncated(folder: Path) -> None:
    segment = folder / "00000000000000000000.log"
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size // 2)


def deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def write(node: NodeProcess) -> None:
    for number in range(COUNT):
        batch = build([(1_700_000_000_000, None, b"%d" % number, ())])
        data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
        topic = TopicProduceData(name="t", partition_data=(data,))
        answer = asked(node, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(topic,)), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def described(node: NodeProcess) -> DescribeTopicPartitionsResponsePartition:
    """A node may hear of the topic some time after it was created."""

    def partitions() -> Sequence[DescribeTopicPartitionsResponsePartition]:
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))
        found: DescribeTopicPartitionsResponse = asked(node, request)
        return found.topics[0].partitions

    (row,) = until(partitions)
    return row


def reported_losses(node: NodeProcess) -> list[tuple[str, int]]:
    """Which entries of the loss ledger are of the topic, and whom they are about."""
    return [(loss.where, loss.replica) for loss in losses_of(node) if loss.topic == "t" and loss.where != "replica"]


@pytest.mark.parametrize("damage", [truncated, deleted])
def test_what_the_last_broker_in_sync_lost_the_others_have(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    with LocalCluster(tmp_path, 3, properties={"min.insync.replicas": "2"}) as cluster:
        one = cluster.nodes[0]
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
        asked(one, CreateTopicsRequest(topics=(topic,)), 7)
        until(lambda: len(described(one).isr_nodes) == 3)
        leader = cluster.node(until(lambda: described(one).leader_id))
        second, third = (node for node in cluster.nodes if node is not leader)
        write(leader)
        for node in (third, second, leader):
            node.terminate()
            node.wait_stopped()
        damage(leader.data_path / "t-0")
        for node in (leader, third):
            node.start()
        third.wait_listening()
        until(lambda: reported_losses(third))
        assert (described(third).leader_id, described(third).eligible_leader_replicas) == (-1, (second.node_id,))
        second.start()
        until(lambda: len(described(third).isr_nodes) == 3)
        assert described(third).leader_recovery_state == RECOVERED
        assert [int(value) for value in read_all(cluster, "t")] == list(range(COUNT))
        assert reported_losses(third) == [("withdrawn", leader.node_id)]
