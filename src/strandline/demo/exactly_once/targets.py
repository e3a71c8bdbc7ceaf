"""Which node does what, so that a kill meets the one that matters: leaders and coordinators."""

from collections.abc import Iterator

from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.frame import Malformed
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

ASK_S = 1.0


def metadata(node: NodeProcess) -> MetadataResponse | None:
    try:
        answer: MetadataResponse = ask(HOST, node.port, MetadataRequest(topics=None), 12, timeout_s=ASK_S)
    except (OSError, Malformed):
        return None
    return answer


def is_whole(cluster: LocalCluster) -> bool:
    """Every node runs, and knows every partition with a leader and with all replicas in sync."""
    return all(node.running and is_whole_as_seen_by(node) for node in cluster.nodes)


def is_whole_as_seen_by(node: NodeProcess) -> bool:
    answer = metadata(node)
    if answer is None or not answer.topics:
        return False
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    return all(p.leader_id > 0 and len(p.isr_nodes) == len(p.replica_nodes) for p in partitions)


def leader(cluster: LocalCluster, topic: str, partition: int) -> NodeProcess | None:
    for answer in map(metadata, running(cluster)):
        for row in answer.topics if answer else ():
            for each in row.partitions if row.name == topic else ():
                if each.partition_index == partition and each.leader_id > 0:
                    return cluster.node(each.leader_id)
    return None


def coordinator(cluster: LocalCluster, key: str, kind: int) -> NodeProcess | None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    for node in running(cluster):
        try:
            (found,) = ask(HOST, node.port, request, 5, timeout_s=ASK_S).coordinators
        except (OSError, Malformed):
            continue
        if found.error_code == 0:
            return cluster.node(found.node_id)
    return None


def running(cluster: LocalCluster) -> Iterator[NodeProcess]:
    return (node for node in cluster.nodes if node.running)
