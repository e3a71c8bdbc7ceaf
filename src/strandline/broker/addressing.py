"""Where what a node says to others goes, and where requests wait that came before it may answer them."""

from collections.abc import Mapping
from typing import Protocol

from strandline.base.effects import Close, Effect, Endpoint, Received, Send, ToBroker, ToController
from strandline.base.ids import NodeId
from strandline.controller.partitions.manual import is_manual
from strandline.metadata.image import Broker, Image

EARLY_MAX = 10_000


class Known(Protocol):
    """What a node knows of the others."""

    @property
    def me(self) -> NodeId: ...

    @property
    def voters(self) -> Mapping[NodeId, Endpoint]: ...

    @property
    def image(self) -> Image: ...


def sent_to_controller(effect: ToController, leader: NodeId, at: Endpoint | None) -> Send | None:
    """To this leader of the quorum; None: nobody knows where it is."""
    if at is None:
        return None
    # Answers come in order, and an election by hand waits for replicas: heartbeats must not wait behind it.
    channel = "elections" if is_manual(effect.message, effect.version) else "controller"
    return Send(at, channel, effect.message, effect.version, effect.timeout_ms, effect.token, leader)


def sent_to_broker(effect: ToBroker, broker: Broker | None, listener: str) -> Send | None:
    """None: it is not alive, or does not listen there."""
    at = None if broker is None or broker.fenced else broker.endpoints.get(listener)
    if at is None:
        return None
    return Send(at, effect.channel, effect.message, effect.version, effect.timeout_ms, effect.token, effect.node)


def others(known: Known, listener: str) -> dict[NodeId, Endpoint]:
    """Where all other nodes listen to nodes, as far as this node knows. `listener`: that of brokers."""
    found = {node: at for node, at in known.voters.items() if node != known.me}
    for broker in known.image.brokers.values():
        at = broker.endpoints.get(listener)
        if broker.node_id != known.me and broker.node_id not in known.voters and at is not None:
            found[broker.node_id] = at
    return found


def hold(early: list[Received], event: Received) -> list[Effect]:
    """Until a broker is unfenced its image may be empty, and a client that sees that does not ask again soon."""
    if len(early) >= EARLY_MAX:
        return [Close(event.to.connection, "too many requests before this broker has joined the cluster")]
    early.append(event)
    assert len(early) <= EARLY_MAX
    return []
