"""Which groups are this broker's: those of the `__consumer_offsets` partitions that it leads and has loaded.

A partition with damage that another replica may repair is not loaded before: what is missing in it would be answered as
if nobody had ever committed it.

Invariants (executed by `check`): there is a shard for exactly the partitions of `__consumer_offsets` that this broker
leads and has loaded; none is loaded and damaged.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, LeaderEpoch
from strandline.base.time import NEVER, Instant, after
from strandline.group.classic import Group, GroupConfig
from strandline.group.offsets import batch_of
from strandline.group.partitioning import partition_for
from strandline.group.shard import Shard
from strandline.wire.messages.groups.group_records import GroupKey, GroupValue
from strandline.wire.record import Record

LOAD_AGAIN_MS = 1_000
Done = Callable[[ErrorCode, int, Instant], list[Effect]]  # the last: when the write ended
Records = list[tuple[GroupKey, GroupValue | None]]  # None: a tombstone


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`, as the replicas of this broker offer them."""

    def append_internal(
        self, topic: str, partition: int, batch: bytearray, now: Instant, done: Done
    ) -> list[Effect]: ...

    def is_whole(self, topic: str, partition: int, now: Instant) -> bool:
        """Can all be read of a partition that this broker leads? If not, that is seen to: ask again later."""
        ...

    def records_internal(self, topic: str, partition: int) -> Iterable[Record]:
        """Every record of a partition that this broker leads, from the log's start to its end."""
        ...

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None: ...


class Shards:
    def __init__(self, config: GroupConfig, log: OffsetsLog) -> None:
        self.config = config
        self.log = log
        self.partitions = 0  # of __consumer_offsets; 0 until it exists
        self.loaded: dict[int, Shard] = {}
        self.damaged: set[int] = set()  # partitions that this broker leads and cannot load yet
        self.next_load: Instant = NEVER

    def follow_leadership(self, now: Instant) -> tuple[list[Effect], list[Shard]]:
        """Give up what this broker leads no longer, and load what it leads; returns also the shards that are new."""
        led = {p: epoch for p in range(self.partitions) if (epoch := self.log.leads(OFFSETS_TOPIC, p)) is not None}
        effects: list[Effect] = []
        for partition, shard in list(self.loaded.items()):
            if led.get(partition) != shard.leader_epoch:
                del self.loaded[partition]
                for group in shard.groups.values():
                    effects += group.dissolve(ErrorCode.NOT_COORDINATOR)
        missing = [partition for partition in led if partition not in self.loaded]
        self.damaged = {partition for partition in missing if not self.log.is_whole(OFFSETS_TOPIC, partition, now)}
        self.next_load = after(now, LOAD_AGAIN_MS) if self.damaged else NEVER
        assert not self.damaged & self.loaded.keys()
        new = []
        for partition, epoch in led.items():
            if partition not in self.loaded and partition not in self.damaged:
                shard = self.loaded[partition] = Shard(partition, epoch, self.config)
                shard.load(self.log.records_internal(OFFSETS_TOPIC, partition), now)
                new.append(shard)
        assert self.loaded.keys() | self.damaged == led.keys()
        return effects, new

    def of(self, group_id: str) -> Shard | ErrorCode:
        if self.partitions == 0:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = partition_for(group_id, self.partitions)
        assert 0 <= partition < self.partitions
        if partition in self.damaged:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self.loaded.get(partition, ErrorCode.NOT_COORDINATOR)

    def existing(self, group_id: str) -> tuple[Shard, Group] | ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self.of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else (shard, group)

    def write(
        self,
        shard: Shard,
        records: Records | list[tuple[GroupKey, GroupValue]],
        now: Instant,
        done: Done,
    ) -> list[Effect]:
        assert records, "a batch has records"
        return self.log.append_internal(OFFSETS_TOPIC, shard.partition, batch_of(records, now), now, done)

    def all_groups(self) -> list[tuple[Shard, Group]]:
        return [(shard, group) for shard in self.loaded.values() for group in shard.groups.values()]

    def check(self) -> None:
        assert not self.loaded.keys() & self.damaged
        assert bool(self.damaged) == (self.next_load != NEVER)
        assert all(shard.partition == partition for partition, shard in self.loaded.items())
        for _, group in self.all_groups():
            group.check()
