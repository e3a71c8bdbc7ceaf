"""What the nodes of a relayed cluster say of it: who leads and coordinates, and what is not as it should be.

Each node is asked directly, so that no fault of the network is in the way; one that cannot answer is not asked. Of
several answers the newest counts.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC
from strandline.client.admin.partitions import PartitionState, describe_partitions, existing_partitions
from strandline.client.ask import ask, config_of
from strandline.client.config import ClientConfig
from strandline.client.errors import AuthenticationFailed, StrandlineError
from strandline.coordination.partitioning import partition_for
from strandline.testing.local_cluster import HOST
from strandline.testing.relayed_cluster import RelayedCluster, RelayedNode
from strandline.wire.frame import Malformed
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.messages.topics.metadata import MetadataRequest

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
QUORUM = DescribeQuorumRequest(topics=(TopicData(METADATA_TOPIC, (PartitionData(partition_index=0),)),))
PATIENCE_S = 60.0  # on a machine that has other things to do
LOOKS_S = 0.02
ANSWER_S = 2.0
NO_ANSWER = (OSError, StrandlineError, Malformed)


class NotSo(AssertionError):
    """What was waited for did not come; the message says what is missing."""


def until(why_not: Callable[[], str], within_s: float = PATIENCE_S) -> None:
    """Wait until `why_not` returns nothing. Raises NotSo with what it returned last."""
    end = time.monotonic() + within_s
    while why := why_not():
        if time.monotonic() > end:
            raise NotSo(f"not so within {within_s:g} s: {why}")
        time.sleep(LOOKS_S)


def config_at(node: RelayedNode) -> ClientConfig:
    return config_of(node.direct_address, node.client)


def anybody(cluster: RelayedCluster) -> ClientConfig:
    """Nodes that can answer, in the order in which they are asked."""
    nodes = [node for node in cluster.relayed if node.answers]
    if not nodes:
        raise NotSo("no node runs")
    return config_of(",".join(node.direct_address for node in nodes), cluster.client)


def answers(cluster: RelayedCluster, message: Any, version: int) -> Iterator[tuple[RelayedNode, Any]]:
    """Of each node that gives one."""
    for node in cluster.relayed:
        if node.answers:
            try:
                yield node, ask(HOST, node.port, message, version, ANSWER_S, config_at(node))
            except NO_ANSWER:
                continue


def partition_states(
    cluster: RelayedCluster, topics: Sequence[str], asked: Sequence[RelayedNode] = ()
) -> dict[tuple[str, int], PartitionState]:
    """By topic and partition, as the node says that has the newest metadata of each. `asked`: all nodes by default."""
    found: dict[tuple[str, int], PartitionState] = {}
    for node in asked or cluster.relayed:
        if not node.answers:
            continue
        try:
            states = existing_partitions(config_at(node), topics)
        except NO_ANSWER:
            continue
        for state in states:
            known = found.get(state.at)
            if known is None or known.partition_epoch < state.partition_epoch:
                found[state.at] = state
    return found


def partition_state(cluster: RelayedCluster, topic: str, partition: int) -> PartitionState | None:
    return partition_states(cluster, [topic]).get((topic, partition))


def leader_of(cluster: RelayedCluster, topic: str, partition: int) -> int:
    """0: nobody leads, or there is no such partition."""
    state = partition_state(cluster, topic, partition)
    return 0 if state is None else max(state.leader, 0)


def coordinating_partition(cluster: RelayedCluster, key: str, topic: str = OFFSETS_TOPIC) -> int:
    """The partition whose leader coordinates this group, or transactional id. Raises NotSo if the topic is not there:
    the first member, or producer, creates it."""
    count = len(partition_states(cluster, [topic]))
    if not count:
        raise NotSo(f"nothing coordinates '{key}' yet, since there is no topic {topic}")
    return partition_for(key, count)


def active_controller(cluster: RelayedCluster) -> int:
    """0: no node says so."""
    for node, answer in answers(cluster, QUORUM, 1):
        rows = [row for topic in answer.topics for row in topic.partitions if not answer.error_code]
        if any(row.leader_id == node.node_id and row.error_code == ErrorCode.NONE for row in rows):
            return node.node_id
    return 0


def live_brokers(asked: RelayedNode) -> set[int]:
    """Those that are not fenced, as this node knows. Raises OSError."""
    answer = ask(HOST, asked.port, MetadataRequest(topics=()), 12, ANSWER_S, config_at(asked))
    return {row.node_id for row in answer.brokers}


def is_fenced(cluster: RelayedCluster, node: RelayedNode) -> bool:
    """Does each of the others that answer say so?"""
    others = [other for other in cluster.relayed if other is not node and other.answers]
    try:
        return bool(others) and all(node.node_id not in live_brokers(other) for other in others)
    except NO_ANSWER:
        return False


def why_not_healthy(cluster: RelayedCluster) -> str:
    """Empty: every node runs, knows all others, and says that every partition has a leader and all replicas in sync;
    and there is an active controller."""
    everybody = {node.node_id for node in cluster.relayed}
    for node in cluster.relayed:
        if not node.answers:
            return f"node {node.node_id} {'is paused' if node.running else 'does not run'}"
        try:
            missing = everybody - live_brokers(node)
            if missing:
                return f"node {node.node_id} does not see {', '.join(f'node {other}' for other in sorted(missing))}"
            why = why_not_in_sync(node)
        except AuthenticationFailed:
            return f"node {node.node_id} does not know the cluster's users yet"
        except NO_ANSWER as error:
            return f"node {node.node_id} does not answer: {error}"
        if why:
            return f"node {node.node_id} says: {why}"
    return "" if active_controller(cluster) else "there is no active controller"


def why_not_in_sync(node: RelayedNode) -> str:
    for state in describe_partitions(config_at(node)):
        if state.leader < 0 or state.leader in state.offline:
            return f"nobody leads {state.at}"
        if len(state.isr) < len(state.replicas):
            return f"{state.at} has in sync {list(state.isr)} of {list(state.replicas)}"
    return ""
