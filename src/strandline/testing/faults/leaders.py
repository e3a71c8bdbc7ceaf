"""Another leader of a partition, and another coordinator of a group: the leader of its partition of offsets."""

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask_any
from strandline.testing.faults.fault import Fault
from strandline.testing.health import NotSo, anybody, leader_of, partition_state, until
from strandline.testing.relayed_cluster import RelayedCluster
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.elect_leaders import PREFERRED, ElectLeadersRequest, TopicPartitions


def move_leader(cluster: RelayedCluster, topic: str, partition: int, to: int | None) -> Fault:
    """To this node, or to the next one in sync. Raises NotSo if it is not in sync."""
    state = partition_state(cluster, topic, partition)
    if state is None or state.leader < 0:
        raise NotSo(f"nobody leads {topic}-{partition}")
    before = state.leader
    others = [node for node in state.isr if node != before]
    target = to if to is not None else next(iter(others), None)
    if target is None or target not in state.isr:
        raise NotSo(f"{topic}-{partition} cannot be led by node {target}: in sync are {list(state.isr)}")
    prefer(cluster, topic, partition, target)
    return Fault(f"{topic}-{partition} is led by node {target}", lambda: prefer(cluster, topic, partition, before))


def prefer(cluster: RelayedCluster, topic: str, partition: int, leader: int) -> None:
    """Put the node first among the replicas, and elect the preferred leader."""
    state = partition_state(cluster, topic, partition)
    if state is None or state.leader == leader:
        return
    order = (leader, *(node for node in state.replicas if node != leader))
    row = ReassignablePartition(partition_index=partition, replicas=order)
    ask_any(
        anybody(cluster),
        AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=topic, partitions=(row,)),)),
        0,
    )
    asked = ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=(TopicPartitions(topic=topic, partitions=(partition,)),)
    )

    def why_not() -> str:
        if leader_of(cluster, topic, partition) == leader:
            return ""
        answer = ask_any(anybody(cluster), asked, 2)
        (result,) = answer.replica_election_results[0].partition_result
        if result.error_code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
            return f"{topic}-{partition} has not the leader {leader} yet"
        return f"{topic}-{partition} does not elect node {leader}: {result.error_message}"

    until(why_not)
