"""Faults of the network between nodes, and between nodes and clients."""

from strandline.client.cluster import Cluster as Client
from strandline.testing.faults.fault import Fault
from strandline.testing.health import NotSo, config_at, partition_state, until
from strandline.testing.relayed_cluster import RelayedCluster, RelayedNode
from strandline.testing.relays import CLIENTS, Way
from strandline.wire.batch import build


def isolate(cluster: RelayedCluster, node: RelayedNode, *, clients: bool) -> Fault:
    others = [other.node_id for other in cluster.relayed if other is not node]
    return cut(
        cluster,
        f"node {node.node_id} is isolated",
        *(Way(*ends) for other in others + [CLIENTS] * clients for ends in both(node.node_id, other)),
    )


def cut(cluster: RelayedCluster, what: str, *ways: Way) -> Fault:
    cluster.wires.cut(*ways)
    return Fault(what, lambda: cluster.wires.mend(*ways))


def slow(cluster: RelayedCluster, node: RelayedNode, delay_s: float) -> Fault:
    """All that it sends, to nodes and clients."""
    others = [other.node_id for other in cluster.relayed if other is not node]
    ways = [Way(node.node_id, other) for other in (*others, CLIENTS)]
    cluster.wires.slow(delay_s, *ways)
    return Fault(f"node {node.node_id} is slow", lambda: cluster.wires.mend(*ways))


def shrink_isr(cluster: RelayedCluster, topic: str, partition: int, to: int, record: bytes | None) -> Fault:
    """Followers do not reach the leader's log until so many replicas are in sync. All else goes on."""
    state = partition_state(cluster, topic, partition)
    if state is None or state.leader < 0:
        raise NotSo(f"nobody leads {topic}-{partition}")
    assert 1 <= to <= len(state.replicas), "the leader stays in sync"
    leader = cluster.node(state.leader)
    followers = [node_id for node_id in state.isr if node_id != state.leader][to - 1 :]
    ways = [Way(*ends, leader.port) for follower in followers for ends in both(follower, state.leader)]
    fault = cut(cluster, f"{topic}-{partition} has {to} in sync", *ways)

    def why_not() -> str:
        now = partition_state(cluster, topic, partition)
        return "" if now is not None and len(now.isr) <= to else f"{topic}-{partition} has more than {to} in sync"

    try:
        if record is not None and followers:
            with Client(config_at(leader)) as client:
                client.produce(topic, partition, build([(0, None, record, ())]), acks=1)
            until(why_not)
    except BaseException:
        fault.end()
        raise
    return fault


def both(a: int, b: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (a, b), (b, a)
