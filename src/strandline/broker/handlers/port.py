"""What a handler may ask of its node. A handler sees nothing else, so that the node may know all handlers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from strandline.base.effects import Effect, Endpoint, Received
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.broker.broker import Broker
from strandline.broker.config import NodeConfig
from strandline.broker.faults.quarantine import Quarantined
from strandline.metadata.image import Image


class NodePort(Protocol):
    @property
    def me(self) -> NodeId: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def config(self) -> NodeConfig: ...

    @property
    def voters(self) -> Mapping[NodeId, Endpoint]: ...

    @property
    def broker(self) -> Broker | None: ...

    @property
    def image(self) -> Image:
        """Committed metadata, as far as this node has applied it."""

    @property
    def applied_end(self) -> int:
        """The offset behind the last metadata record in the image."""

    @property
    def active_controller(self) -> NodeId:
        """Who leads the quorum, as far as this node knows; `NOBODY` if nobody."""

    def is_controller_listener(self, listener: str) -> bool: ...

    def quarantine_requests(self, requests: tuple[Quarantined, ...]) -> None: ...

    def create_missing_topics(
        self, names: Sequence[str], now: Instant, asked: Received | None = None
    ) -> list[Effect]: ...


def broker_of(node: NodePort) -> Broker:
    assert node.broker is not None, "a node without the broker role has no broker listener"
    return node.broker
