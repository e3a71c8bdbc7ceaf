"""How far and how large the logs of all partitions are, and how fast they grow."""

from collections.abc import Iterable, Mapping

from strandline.base.value import Value
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replicas.ends import high_watermarks
from strandline.client.admin.replicas.sizes import ReplicaSize, replica_sizes
from strandline.client.brokers import BrokerAt
from strandline.console.asking.series import Points, growth, with_points


class LogEnds(Value, frozen=True):
    """High watermarks; records per second, of partitions as they are, and of topics over time."""

    time_ms: int = 0
    offsets: Mapping[Place, int] = {}
    rates: Mapping[Place, float] = {}
    topics: Mapping[str, Points] = {}


class Sizes(Value, frozen=True):
    """`largest`: the size of the largest replica of each partition; `rates`: bytes per second by which it grows."""

    time_ms: int = 0
    replicas: Mapping[Place, tuple[ReplicaSize, ...]] = {}
    silent: Mapping[int, str] = {}
    largest: Mapping[Place, int] = {}
    rates: Mapping[Place, float] = {}


def ask_ends(
    brokers: Mapping[int, BrokerAt], states: Iterable[PartitionState], before: LogEnds, now_ms: int
) -> LogEnds:
    return with_ends(before, now_ms, high_watermarks(brokers, states))


def with_ends(before: LogEnds, now_ms: int, offsets: Mapping[Place, int]) -> LogEnds:
    rates = growth(before.time_ms, before.offsets, now_ms, offsets)
    by_topic: dict[str, float] = {}
    for at, rate in rates.items():
        by_topic[at.topic] = by_topic.get(at.topic, 0) + rate
    return LogEnds(now_ms, offsets, rates, with_points(before.topics, now_ms, by_topic))


def ask_sizes(brokers: Mapping[int, BrokerAt], before: Sizes, now_ms: int) -> Sizes:
    replicas, silent = replica_sizes(brokers)
    return with_sizes(before, now_ms, replicas, silent)


def with_sizes(
    before: Sizes, now_ms: int, replicas: Mapping[Place, tuple[ReplicaSize, ...]], silent: Mapping[int, str]
) -> Sizes:
    largest = {
        at: max((row.size_bytes for row in rows if not row.is_future), default=0) for at, rows in replicas.items()
    }
    return Sizes(now_ms, replicas, silent, largest, growth(before.time_ms, before.largest, now_ms, largest))
