"""A node with a real image, and how handlers are asked there."""

from typing import Any

from strandline.base.effects import Caller, Effect, Endpoint, Received, Reply, ReplyTo
from strandline.base.ids import (
    BrokerEpoch,
    NodeId,
    Uuid,
)
from strandline.base.time import Instant
from strandline.broker.suspects import GLANCE_MS, Suspects
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.image import (
    Broker,
    Image,
    Partition,
    Topic,
)
from strandline.wire.codec import decode_all, encode_bytes

NOW = Instant(0)
LATER = Instant(GLANCE_MS)
ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


class Settings:
    def __init__(self) -> None:
        self.explicit: dict[str, Any] = {}
        self.has_authorizer = True
        self.of_listeners: dict[str, dict[str, Any]] = {}
        self.listener_limits: dict[str, dict[str, int]] = {}

    def integer(self, name: str) -> int:
        value = self.explicit.get(name, NODE_CONFIGS[name].default)
        assert isinstance(value, int)
        return value

    def boolean(self, name: str) -> bool:
        return bool(self.integer(name))


class FakeNode:
    """The questions that the answers put to a node, answered from a real image."""

    def __init__(self) -> None:
        self.image = Image()
        self.me = ONE
        self.cluster_id = "cluster"
        self.active_controller = ONE
        self.config = Settings()
        self.voters = {NodeId(9): Endpoint("c9", 9093)}
        self.broker = None
        self.created: list[str] = []
        self.applied_end = 7
        for node in (ONE, TWO, THREE):
            self.image.put_broker(
                Broker(
                    node, Uuid(bytes(16)), BrokerEpoch(5), {"PLAINTEXT": Endpoint(f"b{node}", 9092)}, fenced=node == 3
                )
            )

    def topic(self, name: str, topic_id: Uuid, partitions: int, leader: NodeId = ONE) -> None:
        found = Partition((leader, THREE), (A, A), (leader,), leader)
        self.image.topics[topic_id] = Topic(name, topic_id, dict.fromkeys(range(partitions), found))
        self.image.topic_ids[name] = topic_id

    def is_controller_listener(self, listener: str) -> bool:
        return listener == "CONTROLLER"

    def create_missing_topics(self, names: list[str], now: Instant, asked: Received | None = None) -> list[Effect]:
        self.created += names
        return []


class Parts:
    """Of a broker, what holds answers about topics."""

    def __init__(self) -> None:
        self.suspects = Suspects()


def ask(module: Any, node: FakeNode, message: Any, version: int, listener: str = "PLAINTEXT") -> Any:
    """The answer, as the asker would read it from the wire."""
    to = ReplyTo(1, 0, 0, type(message).api_key, version)
    (reply,) = module.answer(node, Received(to, Caller("app", "10.0.0.1", listener), message), NOW)
    assert isinstance(reply, Reply)
    return decode_all(type(reply.message), version, encode_bytes(reply.message, version))
