"""Which partition of an internal topic keeps a group or a transactional id, computed as every Kafka broker computes it;
and which broker coordinates it therefore.

Java's String.hashCode over UTF-16 units, its absolute value, modulo the number of partitions. The absolute value is
Kafka's `Utils.abs`, where the smallest integer, which has none, counts as 0.
"""

from strandline.base.ids import NOBODY, NodeId
from strandline.metadata.image import Image


def coordinator_of(key: str, topic_name: str, image: Image) -> NodeId:
    """The leader of the partition that keeps `key`. NOBODY: there is none, or it is fenced."""
    topic = image.topic_named(topic_name)
    if topic is None or not topic.partitions:
        return NOBODY
    partition = topic.partitions.get(partition_for(key, len(topic.partitions)))
    broker = None if partition is None else image.brokers.get(partition.leader)
    return NOBODY if broker is None or broker.fenced else broker.node_id


def partition_for(key: str, partitions: int) -> int:
    assert partitions > 0
    code = 0
    units = key.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    assert -(1 << 31) <= signed < 1 << 31
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
