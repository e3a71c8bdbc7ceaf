"""Ids, one type each, and the text form of Kafka's uuids."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)  # a broker's or a controller's node.id; -1 is nobody
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
PartitionEpoch = NewType("PartitionEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
Uuid = NewType("Uuid", bytes)  # 16 raw bytes

NOBODY = NodeId(-1)
OFFSET_MAX = Offset((1 << 62) - 1)  # no log comes so far; beyond it an offset is nonsense, and sums need not be feared
assert OFFSET_MAX + (1 << 31) < 1 << 63, "a batch that begins there ends at a number of 64 bits"
ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)


class TopicPartition(NamedTuple):
    """A partition by its topic's name, as logs, clients and people know it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """Their numbers by topic, as requests name them; both in the order in which they come."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return {topic: tuple(found) for topic, found in topics.items()}


class TopicIdPartition(NamedTuple):
    """A partition by its topic's id, as the metadata log knows it."""

    topic_id: Uuid
    partition: int


def uuid_text(raw: bytes) -> str:
    """Kafka's text form: base64url without padding, 22 characters."""
    assert len(raw) == 16
    return urlsafe_b64encode(raw).decode().rstrip("=")


def parse_uuid(text: str) -> Uuid:
    """The inverse of `uuid_text`. Raises ValueError if `text` is not 22 base64url characters."""
    raw = urlsafe_b64decode(text + "==")
    if len(raw) != 16 or len(text) != 22:
        raise ValueError(f"not a Kafka uuid: {text!r}")
    return Uuid(raw)
