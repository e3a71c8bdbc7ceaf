"""Which partition of an internal topic keeps a group or a transactional id, computed as every Kafka broker computes it;
and which broker coordinates it therefore.

Java's String.hashCode over UTF-16 units, its absolute value, modulo the number of partitions. The absolute value is
Kafka's `Utils.abs`, where the smallest integer, which has none, counts as 0.
"""

from collections.abc import Sequence
from functools import cache
from operator import mul
from struct import unpack

from strandline.base.ids import NOBODY, NodeId
from strandline.metadata.image import Image

TEXT_BYTES_MAX = 0x7FFF  # of a text in records of the internal topics; newer requests can have longer ones


def is_too_long(text: str) -> bool:
    """Can no record of an internal topic have this text?"""
    return 4 * len(text) > TEXT_BYTES_MAX and len(text.encode()) > TEXT_BYTES_MAX


def coordinator_of(key: str, topic_name: str, image: Image) -> NodeId:
    """The leader of the partition that keeps `key`. NOBODY: there is none, or it is fenced, or no record can have such
    a key."""
    topic = image.topic_named(topic_name)
    if topic is None or not topic.partitions or is_too_long(key):
        return NOBODY
    partition = topic.partitions.get(partition_for(key, len(topic.partitions)))
    broker = None if partition is None else image.brokers.get(partition.leader)
    return NOBODY if broker is None or broker.fenced else broker.node_id


def partition_for(key: str, partitions: int) -> int:
    assert partitions > 0
    units = key.encode("utf-16-be")
    code = hash_of(unpack(f">{len(units) // 2}H", units)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    assert -(1 << 31) <= signed < 1 << 31
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def hash_of(units: Sequence[int]) -> int:
    """A polynomial in 31, of which the lower 32 bits count. A request may name thousands of long keys."""
    assert len(units) < len(powers()), "longer keys are refused"
    return sum(map(mul, reversed(units), powers()))


@cache
def powers() -> tuple[int, ...]:
    found = [1]
    while len(found) <= TEXT_BYTES_MAX:
        found.append(31 * found[-1] & 0xFFFFFFFF)
    return tuple(found)
