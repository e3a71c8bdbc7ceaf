"""Which partitions of an internal topic a coordinator serves: those that this broker leads and has loaded.

A partition is loaded in steps, each of which reads a bounded part of its log. Several partitions take turns. What a
step has room for is loaded at once. A partition with damage that another replica may repair waits for the repair: what
is missing in it would be answered as if it had never been written.

Invariants (executed by `check`): each partition of the topic that this broker leads is loaded or loading, and no other
one; what is loading has a next step.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, Uuid
from strandline.base.time import NEVER, Instant, after
from strandline.coordination.internal_log import InternalLog, Reached, Reader, Replayed
from strandline.coordination.partitioning import is_too_long, partition_for
from strandline.metadata.image import Delta, Image

LOAD_AGAIN_MS = 1_000
COLD_AGAIN_MS = 10
PAUSE_MS = 1  # between two steps, for everything else
LOOK_BYTES = 2 << 10  # to look at a partition costs as much as to read so many bytes


class Loaded(Protocol):
    """What one partition says, as its leader holds it in memory. `end`: up to where its log is, or will be, read."""

    end: int

    @property
    def partition(self) -> int: ...

    @property
    def leader_epoch(self) -> LeaderEpoch: ...

    def replay(self, batches: Sequence[Replayed]) -> None:
        """What comes next in the log."""
        ...

    def complete(self, limit: int, now: Instant) -> int:
        """All is read: do what is left to do, in parts. Returns how much was done, as in bytes that are read: less than
        `limit` if nothing is left."""
        ...


S = TypeVar("S", bound=Loaded)


class Loading(Generic[S]):
    """How far a partition is loaded."""

    def __init__(self, shard: S) -> None:
        self.shard = shard
        self.reader: Reader | None = None
        self.is_read = False
        self.is_complete = False
        self.next: Instant = Instant(0)  # not before


class Shards(Generic[S]):
    key_error = ErrorCode.INVALID_REQUEST  # for a key that no record can have
    step_bytes = 64 << 10  # so much of the logs is read in one step

    def __init__(self, topic: str, log: InternalLog, begin: Callable[[int, LeaderEpoch], S]) -> None:
        """`begin` makes the empty shard of a partition that this broker has begun to lead."""
        self.topic = topic
        self.log = log
        self.begin = begin
        self.partitions = 0  # of the topic; 0 until it exists
        self.topic_id: Uuid | None = None
        self.is_renewed = False  # the topic is another one of the same name, whose epochs begin anew
        self.loaded: dict[int, S] = {}
        self.loading: dict[int, Loading[S]] = {}  # by whose turn it is
        self.next_load: Instant = NEVER

    def is_touched(self, image: Image, delta: Delta) -> bool:
        """May `delta` have changed what this broker leads of the topic? Notes how many partitions the topic has."""
        topic = image.topic_named(self.topic)
        self.partitions = 0 if topic is None else len(topic.partitions)
        known, self.topic_id = self.topic_id, None if topic is None else topic.topic_id
        self.is_renewed |= known is not None and known != self.topic_id
        if topic is None:
            return bool(self.loaded or self.loading)
        ids = {at.topic_id for at in delta.partitions}
        return delta.reloaded or topic.topic_id in ids or not ids.isdisjoint(delta.topics)

    def follow_leadership(self, now: Instant) -> tuple[list[S], list[S]]:
        """Give up what this broker leads no longer, begin to load what it leads, and return both: what is gone, and
        what is loaded already."""
        led = {p: epoch for p in range(self.partitions) if (epoch := self.log.leads(self.topic, p)) is not None}
        known = {} if self.is_renewed else led
        self.is_renewed = False
        gone = [shard for partition, shard in self.loaded.items() if known.get(partition) != shard.leader_epoch]
        for shard in gone:
            del self.loaded[shard.partition]
        self.loading = {p: one for p, one in self.loading.items() if known.get(p) == one.shard.leader_epoch}
        for partition, epoch in led.items():
            if partition not in self.loaded and partition not in self.loading:
                self.loading[partition] = Loading(self.begin(partition, epoch))
        for loading in self.loading.values():
            loading.next = Instant(0)
        new = self.go_on(now)
        assert self.loaded.keys() | self.loading.keys() == led.keys()
        return gone, new

    # --- loading

    def go_on(self, now: Instant) -> list[S]:
        """One step: returns what is loaded now."""
        left = self.step_bytes
        new: list[S] = []
        for partition, loading in [item for item in self.loading.items() if item[1].next <= now]:
            if left <= 0:
                break
            left -= LOOK_BYTES + self.go_on_with(partition, loading, left, now)
            del self.loading[partition]
            if loading.is_complete:
                self.loaded[partition] = loading.shard
                new.append(loading.shard)
            else:
                self.loading[partition] = loading  # behind all others
        first = min((loading.next for loading in self.loading.values()), default=NEVER)
        self.next_load = max(first, after(now, PAUSE_MS))
        assert self.next_load > now, "a driver would look again at once, for ever"
        return new

    def go_on_with(self, partition: int, loading: Loading[S], limit: int, now: Instant) -> int:
        """Returns how much was done."""
        assert limit > 0 and not loading.is_complete
        if loading.reader is None:
            if not self.is_loadable(partition):
                loading.next = self.again_at(now)
                return 0
            loading.reader = self.log.reader(self.topic, partition)
            loading.shard.end = loading.reader.end
        size = 0
        if not loading.is_read:
            part = loading.reader.read(limit, now)
            size = part.size
            loading.shard.replay(part.batches)
            loading.is_read = part.reached is Reached.END
            pause = {Reached.DAMAGE: LOAD_AGAIN_MS, Reached.COLD: COLD_AGAIN_MS}.get(part.reached)
            loading.next = Instant(0) if pause is None else after(now, pause)
        if loading.is_read and size < limit:
            rest = limit - size
            done = loading.shard.complete(rest, now)
            loading.is_complete = done < rest
            size += done
        return size

    def is_loadable(self, partition: int) -> bool:
        del partition
        return True

    def again_at(self, now: Instant) -> Instant:
        """When to look again at what is not loadable."""
        return after(now, LOAD_AGAIN_MS)

    def of(self, key: str) -> S | ErrorCode:
        """The shard that keeps `key`: a group's id, or a transactional id."""
        if self.partitions == 0:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if is_too_long(key):
            return self.key_error
        partition = partition_for(key, self.partitions)
        assert 0 <= partition < self.partitions
        if partition in self.loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self.loaded.get(partition, ErrorCode.NOT_COORDINATOR)

    def check(self) -> None:
        assert not self.loaded.keys() & self.loading.keys()
        assert not self.loading or self.next_load != NEVER, "a load goes on"
        shards = self.loaded | {partition: loading.shard for partition, loading in self.loading.items()}
        assert all(shard.partition == partition for partition, shard in shards.items())
        assert all(0 <= partition < self.partitions for partition in shards)
        assert not any(loading.is_complete for loading in self.loading.values())
