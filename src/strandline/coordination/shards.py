"""Which partitions of an internal topic a coordinator serves: those that this broker leads and has loaded.

A partition with damage that another replica may repair is not loaded before: what is missing in it would be answered as
if it had never been written.

Invariants (executed by `check`): there is a shard for exactly the partitions of the topic that this broker leads and
has loaded; none is loaded and damaged.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, Uuid
from strandline.base.time import NEVER, Instant, after
from strandline.coordination.internal_log import InternalLog
from strandline.coordination.partitioning import is_too_long, partition_for
from strandline.metadata.image import Delta, Image

LOAD_AGAIN_MS = 1_000


class Loaded(Protocol):
    """What one partition says, as its leader holds it in memory."""

    @property
    def partition(self) -> int: ...

    @property
    def leader_epoch(self) -> LeaderEpoch: ...


S = TypeVar("S", bound=Loaded)


class Shards(Generic[S]):
    key_error = ErrorCode.INVALID_REQUEST  # for a key that no record can have

    def __init__(self, topic: str, log: InternalLog, load: Callable[[int, LeaderEpoch, Instant], S]) -> None:
        """`load` reads a partition that this broker has begun to lead."""
        self.topic = topic
        self.log = log
        self.load = load
        self.partitions = 0  # of the topic; 0 until it exists
        self.topic_id: Uuid | None = None
        self.is_renewed = False  # the topic is another one of the same name, whose epochs begin anew
        self.loaded: dict[int, S] = {}
        self.damaged: set[int] = set()  # partitions that this broker leads and cannot load yet
        self.next_load: Instant = NEVER

    def is_touched(self, image: Image, delta: Delta) -> bool:
        """May `delta` have changed what this broker leads of the topic? Notes how many partitions the topic has."""
        topic = image.topic_named(self.topic)
        self.partitions = 0 if topic is None else len(topic.partitions)
        known, self.topic_id = self.topic_id, None if topic is None else topic.topic_id
        self.is_renewed |= known is not None and known != self.topic_id
        if topic is None:
            return bool(self.loaded or self.damaged)
        ids = {at.topic_id for at in delta.partitions}
        return delta.reloaded or topic.topic_id in ids or not ids.isdisjoint(delta.topics)

    def follow_leadership(self, now: Instant) -> tuple[list[S], list[S]]:
        """Give up what this broker leads no longer, load what it leads, and return both: what is gone, what is new."""
        led = {p: epoch for p in range(self.partitions) if (epoch := self.log.leads(self.topic, p)) is not None}
        known = {} if self.is_renewed else led
        gone = [shard for partition, shard in self.loaded.items() if known.get(partition) != shard.leader_epoch]
        self.is_renewed = False
        for shard in gone:
            del self.loaded[shard.partition]
        missing = [partition for partition in led if partition not in self.loaded]
        self.damaged = {partition for partition in missing if not self.is_loadable(partition, now)}
        self.next_load = self.again_at(now) if self.damaged else NEVER
        assert not self.damaged & self.loaded.keys()
        new = [self.load(partition, led[partition], now) for partition in missing if partition not in self.damaged]
        assert all(shard.partition in missing and shard.leader_epoch == led[shard.partition] for shard in new)
        self.loaded |= {shard.partition: shard for shard in new}
        assert self.loaded.keys() | self.damaged == led.keys()
        assert self.next_load > now, "a driver would look again at once, for ever"
        return gone, new

    def is_loadable(self, partition: int, now: Instant) -> bool:
        return self.log.is_whole(self.topic, partition, now)

    def again_at(self, now: Instant) -> Instant:
        """When to look again at what could not be loaded."""
        return after(now, LOAD_AGAIN_MS)

    def of(self, key: str) -> S | ErrorCode:
        """The shard that keeps `key`: a group's id, or a transactional id."""
        if self.partitions == 0:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if is_too_long(key):
            return self.key_error
        partition = partition_for(key, self.partitions)
        assert 0 <= partition < self.partitions
        if partition in self.damaged:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self.loaded.get(partition, ErrorCode.NOT_COORDINATOR)

    def check(self) -> None:
        assert not self.loaded.keys() & self.damaged
        assert bool(self.damaged) == (self.next_load != NEVER)
        assert all(shard.partition == partition for partition, shard in self.loaded.items())
        assert all(0 <= partition < self.partitions for partition in self.loaded.keys() | self.damaged)
