"""Real processes: what a killed node may have lost is in its ledger, on its disk, and told by whoever is asked."""

import json
import time
from pathlib import Path
from typing import Any

from tests.cluster.commanding import strandline
from tests.cluster.driving import until

from strandline.client.ask import ask
from strandline.log.evidence.wholeness import FILE as WHOLE
from strandline.metadata.losses import AT_MOST, NO_END
from strandline.replica.hosting.ledger import FILE
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, Loss
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoRequest, PartitionLogInfo
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic


def asked(node: NodeProcess, message: Any, version: int = 0) -> Any:
    return ask(HOST, node.port, message, version)


def produce(node: NodeProcess, values: int) -> int:
    """Returns the error of the partition."""
    batch = build([(int(time.time() * 1000), None, b"v", ())] * values)
    data = PartitionProduceData(index=0, records=memoryview(bytearray(batch)))
    topic = TopicProduceData(name="t", partition_data=(data,))
    answer = asked(node, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(topic,)), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def log_of(node: NodeProcess) -> PartitionLogInfo:
    answer = asked(node, GetReplicaLogInfoRequest(broker_id=node.node_id, topic_partitions=None))
    assert answer.broker_epoch >= 0
    ((row,),) = [topic.partition_log_info for topic in answer.topic_partition_log_info_list]
    assert isinstance(row, PartitionLogInfo)
    return row


def losses_of(node: NodeProcess) -> list[Loss]:
    answer = asked(node, DescribeLossesRequest())
    assert answer.node_id == node.node_id
    return list(answer.losses)


def start_in_doubt(node: NodeProcess) -> None:
    """What its system had not made durable is there, and nobody says so."""
    (node.data_path / WHOLE).unlink()
    node.start()
    node.wait_listening()


def test_after_a_kill_of_all_nodes_the_ledger_is_empty_and_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 3) as cluster:
        node = cluster.nodes[0]
        for name, partitions in (("t", 1), ("empty", 20)):
            topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=3)
            asked(node, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)

        def write() -> bool:
            return any(produce(one, 3) == 0 for one in cluster.nodes)

        def ends() -> list[int]:
            return [row.log_end_offset for row in logs_of(cluster, "t")]

        for acknowledged in (3, 6):
            until(write)
            cluster.kill()
            cluster.start()
            # A replica that left the ISR when its broker was killed copies from the leader what it lacks; one without a
            # role has no row yet, or one that is refused.
            until(lambda acknowledged=acknowledged: ends() == [acknowledged] * 3)
            until(lambda: all(row.current_leader_epoch > 0 for row in logs_of(cluster, "empty")))
            assert losses_command(node) == (0, "nothing was lost (3 of 3 brokers asked)\n")
        until(lambda: [row.high_watermark for row in logs_of(cluster, "t")] == [6] * 3)


def logs_of(cluster: LocalCluster, topic: str) -> list[PartitionLogInfo]:
    """What each broker says of each partition of the topic that it has."""
    (found,) = asked(cluster.nodes[0], MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 12).topics
    rows = []
    for node in cluster.nodes:
        answer = asked(node, GetReplicaLogInfoRequest(broker_id=node.node_id, topic_partitions=None))
        for info in answer.topic_partition_log_info_list:
            if info.topic_id == found.topic_id:
                rows += info.partition_log_info
    return rows


def test_a_node_that_was_killed_and_is_in_doubt_says_what_it_may_have_lost(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1) as cluster:
        (node,) = cluster.nodes
        asked(node, CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),)), 7)
        until(lambda: produce(node, 3) == 0)
        reported = log_of(node)
        assert (reported.log_end_offset, reported.high_watermark, reported.last_written_leader_epoch) == (3, 3, 0)
        assert losses_of(node) == []
        keys = {row.api_key for row in asked(node, ApiVersionsRequest(), 0).api_keys}
        assert keys
        assert max(keys) < 1000, "APIs of our own are told to nobody"

        node.kill()
        start_in_doubt(node)
        until(lambda: produce(node, 1) == 0)
        assert log_of(node).recovered_uncleanly
        replica = [loss for loss in losses_of(node) if loss.where == "replica"]
        assert [(loss.topic, loss.partition, loss.start, loss.end, loss.certainty) for loss in replica] == [
            ("t", 0, 3, NO_END, AT_MOST)
        ]
        lines = (node.data_path / FILE).read_text().splitlines()
        assert json.loads(lines[1])["start"] == 3


def losses_command(node: NodeProcess, *flags: str) -> tuple[int, str]:
    done = strandline("losses", "--bootstrap-server", node.address, *flags)
    return done.returncode, done.stdout


def test_what_an_operator_has_seen_stays_hidden_until_it_happens_again(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1) as cluster:
        (node,) = cluster.nodes
        asked(node, CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),)), 7)
        until(lambda: produce(node, 3) == 0)

        def die() -> None:
            node.kill()
            start_in_doubt(node)
            until(lambda: log_of(node).log_end_offset == 3)
            until(lambda: losses_command(node)[0] == 2)

        die()
        status, said = losses_command(node, "--acknowledge")
        assert (status, said.splitlines()[-1]) == (0, "1 entry is acknowledged now")
        assert losses_command(node)[0] == 0
        node.terminate()
        assert node.wait_stopped() == 0
        node.start()
        node.wait_listening()
        until(lambda: log_of(node).log_end_offset == 3)
        assert losses_command(node) == (
            0,
            "nothing else was lost; not shown (--all): 1 acknowledged entry (1 of 1 brokers asked)\n",
        )
        (row,) = json.loads(losses_command(node, "--json")[1])["losses"]
        assert row["acknowledged"]
        assert "at 127.0.0.1" in row["acknowledged_by"]
        die()
        status, said = losses_command(node)
        assert (status, len(said.splitlines())) == (2, 2)
        assert "(2 times, last at" in said
