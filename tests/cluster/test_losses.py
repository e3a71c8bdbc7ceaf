"""Real processes: what a killed node may have lost is in its ledger, on its disk, and told by whoever is asked."""

import json
import time
from pathlib import Path
from typing import Any

from tests.cluster.driving import until

from strandline.metadata.losses import AT_MOST, NO_END
from strandline.replica.ledger import FILE
from strandline.server.ask import ask
from strandline.server.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.describe_losses import DescribeLossesRequest, Loss
from strandline.wire.messages.get_replica_log_info import GetReplicaLogInfoRequest, PartitionLogInfo
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


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


def test_a_node_that_was_killed_says_what_it_may_have_lost(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1) as cluster:
        (node,) = cluster.nodes
        asked(node, CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),)), 7)
        until(lambda: produce(node, 3) == 0)
        told = log_of(node)
        assert (told.log_end_offset, told.high_watermark, told.last_written_leader_epoch) == (3, 3, 0)
        assert losses_of(node) == []
        keys = {row.api_key for row in asked(node, ApiVersionsRequest(), 0).api_keys}
        assert keys
        assert max(keys) < 1000, "APIs of our own are told to nobody"

        node.kill()
        node.start()
        node.wait_listening()
        until(lambda: produce(node, 1) == 0)
        assert log_of(node).recovered_uncleanly
        replica = [loss for loss in losses_of(node) if loss.where == "replica"]
        assert [(loss.topic, loss.partition, loss.start, loss.end, loss.certainty) for loss in replica] == [
            ("t", 0, 3, NO_END, AT_MOST)
        ]
        lines = (node.data_path / FILE).read_text().splitlines()
        assert json.loads(lines[1])["start"] == 3
