"""What groups need to know of topics: which there are, how many partitions they have, and in which racks those are."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from strandline.base.ids import Uuid
from strandline.base.value import Value
from strandline.metadata.image import Delta, Image


class TopicFacts(Value, frozen=True):
    """`racks`: for each partition those of its replicas; empty if no broker says where it stands."""

    topic_id: Uuid
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


Facts = Mapping[str, TopicFacts]  # by the topic's name


def facts_of(image: Image, names: Iterable[str]) -> Facts:
    """Of those topics that there are."""
    racks = {node: broker.rack for node, broker in image.brokers.items() if broker.rack is not None}
    found: dict[str, TopicFacts] = {}
    for name in names:
        topic = image.topic_named(name)
        if topic is None:
            continue
        rows = [
            frozenset(racks[node] for node in topic.partitions[p].replicas if node in racks)
            for p in sorted(topic.partitions)
            if racks
        ]
        assert not rows or len(rows) == len(topic.partitions), "racks of each partition, or of none"
        found[name] = TopicFacts(topic.topic_id, len(topic.partitions), tuple(rows))
    return found


def ids_of(image: Image, names: Iterable[str]) -> frozenset[Uuid]:
    return frozenset(topic_id for name in names if (topic_id := image.topic_ids.get(name)) is not None)


def hash_of(facts: Facts) -> int:
    """A group must be assigned anew if this changes. A 64-bit number with a sign; 0: there is no topic, as in Kafka."""
    if not facts:
        return 0
    digest = blake2b(digest_size=8)
    for name, topic in sorted(facts.items()):
        racks = ";".join(",".join(sorted(them)) for them in topic.racks)
        # guard: hash-without-topic-ids
        digest.update(f"{name}\0{topic.topic_id.hex()}\0{topic.partitions}\0{racks}\0".encode())
    return int.from_bytes(digest.digest(), "big", signed=True)


def touched(image: Image, delta: Delta) -> frozenset[str] | None:
    """The topics of which `delta` may have changed the facts; None: of any. Whether topics have come or gone is in
    `delta.topics`."""
    if delta.reloaded or delta.brokers:
        return None
    ids = {*delta.topics, *(at.topic_id for at in delta.partitions)}
    was = {topic.name for topic in delta.topics.values() if topic is not None}
    return frozenset(was | {topic.name for topic_id in ids if (topic := image.topics.get(topic_id)) is not None})
