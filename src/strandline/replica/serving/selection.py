"""From which replica a consumer should fetch (KIP-392): the closest one, if the leader knows that it has the offset.

Only the leader chooses, and only for consumers that say where they are (`client.rack`). It offers replicas that are in
the ISR and had the offset when they last fetched, on unfenced brokers that have the consumer's listener. A replica that
lags is never offered: the consumer would fall behind with it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from strandline.base.ids import NodeId
from strandline.metadata.configs.node_configs import REPLICA_SELECTORS
from strandline.metadata.image import Broker
from strandline.replica.hosting.leader import Leader

LEADER_ONLY, RACK_AWARE = REPLICA_SELECTORS


class ReplicaView(NamedTuple):
    """A replica that may be chosen. If two are equally close, the greater one is better."""

    log_end_offset: int
    last_caught_up: int
    node: NodeId
    rack: str | None


# Given a consumer's rack, the leader's, and what else there is. None: the leader.
Selector = Callable[[str, str | None, list[ReplicaView]], NodeId | None]


def select_in_rack(rack: str, leader_rack: str | None, others: list[ReplicaView]) -> NodeId | None:
    """The replica in the consumer's rack that has most; the leader if it is there, or if none is."""
    if leader_rack == rack:
        return None
    close = [view for view in others if view.rack == rack]
    return max(close, key=lambda view: view[:3]).node if close else None


SELECTORS: dict[str, Selector | None] = {"": None, LEADER_ONLY: None, RACK_AWARE: select_in_rack}


def preferred_read_replica(
    select: Selector, leader: Leader, brokers: Mapping[NodeId, Broker], *, offset: int, rack: str, listener: str
) -> NodeId | None:
    """None: the leader itself."""
    others: list[ReplicaView] = []
    for node, state in leader.followers.items():
        # guard: lagging-replica-offered
        if node in leader.isr.isr and state.log_start_offset <= offset <= state.log_end_offset:
            broker = brokers.get(node)
            if broker is not None and not broker.fenced and listener in broker.endpoints:
                others.append(ReplicaView(state.log_end_offset, state.last_caught_up, node, broker.rack))
    assert all(view.node != leader.cluster.me for view in others)
    own = brokers.get(leader.cluster.me)
    return select(rack, None if own is None else own.rack, others)
