"""When committed offsets, and groups, are forgotten: their time is up, their topic is gone, or somebody deletes them.

Invariant: what is forgotten goes when its tombstone is committed, in the log's order with commits that are under way.
"""

from collections.abc import Callable, Iterable

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.time import NEVER, Instant, after
from strandline.group.classic.group import Group
from strandline.group.config import GroupConfig
from strandline.group.consumer.ending import group_tombstones
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import expired
from strandline.group.offsets.topics import Topics
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards, Records
from strandline.wire.messages.consumer_groups.records import ConsumerGroupMetadataKey
from strandline.wire.messages.groups.group_records import GroupKey, GroupMetadataKey, GroupValue, OffsetCommitKey

STEP_OFFSETS = 2_000  # so many are looked at in one step
LOOK_OFFSETS = 5  # to look at a group costs as much as to look at so many offsets
PAUSE_MS = 1  # between two steps, for everything else


class Sweep:
    """A look at each group of a shard. A list of 100,000 names takes a millisecond; to merge two would take fifty."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.groups: list[str] = []  # that are still to be looked at
        self.with_old = False  # also for offsets whose time is up
        self.again: bool | None = None  # there is another one after this: is that `with_old`?

    def begin(self, *, with_old: bool) -> None:
        """All groups are to be looked at from now on, also those that this sweep has come to already."""
        self.again = with_old or self.again is True
        if not self.groups:
            self.go_round()

    def go_round(self) -> None:
        assert self.again is not None and not self.groups
        only_groups = (name for name in self.shard.groups if name not in self.shard.offsets)
        self.groups = [*self.shard.offsets, *only_groups]
        self.with_old, self.again = self.again, None


class Retention:
    def __init__(self, config: GroupConfig, shards: GroupShards, topics: Topics) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics
        self.next_check: Instant = NEVER
        self.next_step: Instant = NEVER
        self.sweeps: dict[Shard, Sweep] = {}

    def begin(self, now: Instant) -> None:
        """There is something to look after from now on."""
        if self.next_check == NEVER:
            self.next_check = after(now, self.config.offsets_retention_check_ms)
        assert self.next_check != NEVER

    def expire(self, now: Instant) -> list[Effect]:
        if self.next_check <= now:
            self.next_check = after(now, self.config.offsets_retention_check_ms)
            for shard in self.shards.loaded.values():
                self.sweep(shard, with_old=True)
            self.next_step = now
            assert self.next_check > now, "it is looked at again, later"
        return self.go_on(now) if self.next_step <= now else []

    def sweep(self, shard: Shard, *, with_old: bool = False) -> None:
        """Look through all groups of a shard, in the next steps. Call `go_on` for the first one."""
        if shard not in self.sweeps:
            self.sweeps[shard] = Sweep(shard)
        self.sweeps[shard].begin(with_old=with_old)

    def go_on(self, now: Instant) -> list[Effect]:
        """One step."""
        effects: list[Effect] = []
        left = STEP_OFFSETS
        while self.sweeps and left > 0:
            shard, sweep = next(iter(self.sweeps.items()))
            is_led = self.shards.loaded.get(shard.partition) is shard
            tombstones: list[tuple[GroupKey, GroupValue | None]] = []
            again: list[str] = []
            while is_led and sweep.groups and left > 0:
                group_id = sweep.groups.pop()
                left -= LOOK_OFFSETS + len(shard.offsets.get(group_id, ()))
                outdated = self.outdated_of(shard, group_id)
                found = outdated or (self.old_of(shard, group_id, now) if sweep.with_old else [])
                tombstones += found
                if len(found) >= STEP_OFFSETS or (outdated and sweep.with_old):
                    again.append(group_id)
            if tombstones:
                effects += self.forget_part(shard, tombstones, again, now, with_old=sweep.with_old)
            if not is_led or (left > 0 and sweep.again is None):
                del self.sweeps[shard]
            elif left > 0:
                sweep.go_round()
        self.next_step = after(now, PAUSE_MS) if self.sweeps else NEVER
        return effects

    def forget_part(
        self, shard: Shard, tombstones: Records, again: list[str], now: Instant, *, with_old: bool
    ) -> list[Effect]:
        """Groups that may have more to lose are looked at `again` when this is written."""

        def then(error: ErrorCode) -> list[Effect]:
            if again and error is ErrorCode.NONE:
                sweep = self.sweeps.setdefault(shard, Sweep(shard))
                sweep.groups += again
                sweep.with_old |= with_old
                self.next_step = min(self.next_step, after(now, PAUSE_MS))
            return []

        return self.forget(shard, tombstones, now, then)

    def tombstones(
        self, shard: Shard, group_id: str, offsets: Iterable[tuple[str, int]], *, with_group: bool
    ) -> Records:
        """A classic group itself is gone from memory at once, so that whoever joins now founds a new one."""
        group = shard.groups.get(group_id)
        assert not (with_group and group is not None and group.members), "its members would be unknown"
        records: list[tuple[GroupKey, GroupValue | None]] = [
            (OffsetCommitKey(group=group_id, topic=topic, partition=p), None) for topic, p in offsets
        ]
        if with_group and isinstance(group, ConsumerGroup):
            records += group_tombstones(group)
        elif with_group and group is not None:
            shard.end_classic(group_id)
            records.append((GroupMetadataKey(group=group_id), None))
        return records

    def forget(
        self, shard: Shard, tombstones: Records, now: Instant, then: Callable[[ErrorCode], list[Effect]]
    ) -> list[Effect]:
        """Offsets go when their tombstones are committed, in the log's order with commits that are under way. Groups of
        the consumer protocol go when theirs are in the log."""
        assert all(value is None for _, value in tombstones)
        ended = [key.group for key, _ in tombstones if isinstance(key, ConsumerGroupMetadataKey)]

        is_refused = False

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            nonlocal is_refused
            assert base_offset >= 0 or error is not ErrorCode.NONE, "what is committed is in the log"
            is_refused = base_offset < 0
            for at, (key, _) in enumerate(tombstones):
                if error is ErrorCode.NONE and isinstance(key, OffsetCommitKey):
                    shard.forget_offset(key.group, (key.topic, key.partition), base_offset + at)
            return then(error)

        effects = self.shards.write(shard, tombstones, now, done)
        for group_id in [] if is_refused else ended:
            del shard.groups[group_id]
        return effects

    def outdated_of(self, shard: Shard, group_id: str) -> Records:
        """Offsets of topics that are deleted. What fails, is just being committed, or is pending in a transaction, is
        found at a later look."""
        outdated = self.topics.outdated(shard.offsets.get(group_id, {}))
        gone = [at for at in outdated if not shard.is_changing((group_id, *at))]
        return self.tombstones(shard, group_id, gone[:STEP_OFFSETS], with_group=False)

    def old_of(self, shard: Shard, group_id: str, now: Instant) -> Records:
        """Empty groups lose the offsets whose time is up, and with the last of them themselves."""
        group = shard.groups.get(group_id)
        if isinstance(group, Group) and (group.members or group.pending):
            return []
        offsets = shard.offsets.get(group_id, {})
        # As in Kafka, offsets of a consumer group count from their commits, and while it has members for as long as one
        # of them is subscribed to their topic.
        empty_since = group.since if isinstance(group, Group) else Instant(0)
        old = expired(offsets, empty_since, self.config.offsets_retention_ms, now)
        if old and isinstance(group, ConsumerGroup):
            subscribed = group.subscribed_topics()
            old = [at for at in old if at[0] not in subscribed]
        if any(shard.committing[(group_id, *at)] for at in old):
            return []  # a tombstone would come after the commit in the log, and take that away
        gone = [at for at in old if not shard.pending.is_unstable((group_id, *at))]  # the same
        is_empty = group is None or not group.members
        is_over = is_empty and len(gone) == len(offsets) <= STEP_OFFSETS and group_id not in shard.pending.groups
        return self.tombstones(shard, group_id, gone[:STEP_OFFSETS], with_group=is_over)
