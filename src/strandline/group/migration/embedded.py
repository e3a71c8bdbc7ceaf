"""The embedded consumer protocol in the coordinator's terms: partitions by topic id."""

from collections.abc import Iterable

from strandline.base.ids import Uuid
from strandline.group.consumer.member import Partitions
from strandline.metadata.image import Image
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_embedded,
)


def by_id(rows: Iterable[TopicPartition], image: Image) -> Partitions:
    """A topic that does not exist (any more) is left out: nobody can be assigned its partitions."""
    found: dict[Uuid, frozenset[int]] = {}
    for row in rows:
        topic_id = image.topic_ids.get(row.topic)
        partitions = frozenset(p for p in row.partitions if p >= 0)
        if topic_id is not None and partitions:
            found[topic_id] = found.get(topic_id, frozenset()) | partitions
    return found


def embedded_assignment(partitions: Iterable[tuple[Uuid, int]], image: Image, version: int) -> bytes:
    """`version`: that of the member's own subscription, which it certainly reads."""
    found: dict[str, list[int]] = {}
    for topic_id, partition in partitions:
        if topic_id in image.topics:
            found.setdefault(image.topics[topic_id].name, []).append(partition)
    rows = tuple(TopicPartition(topic=name, partitions=tuple(sorted(them))) for name, them in sorted(found.items()))
    return encode_embedded(ConsumerProtocolAssignment(assigned_partitions=rows), version)
