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

TOMBSTONES_MAX = 10_000  # in one batch


class Retention:
    def __init__(self, config: GroupConfig, shards: GroupShards, topics: Topics) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics
        self.next_check: Instant = NEVER

    def begin(self, now: Instant) -> None:
        """There is something to look after from now on."""
        if self.next_check == NEVER:
            self.next_check = after(now, self.config.offsets_retention_check_ms)
        assert self.next_check != NEVER

    def expire(self, now: Instant) -> list[Effect]:
        if self.next_check > now:
            return []
        self.next_check = after(now, self.config.offsets_retention_check_ms)
        effects: list[Effect] = []
        for shard in self.shards.loaded.values():
            effects += self.forget_outdated(shard, now)
            effects += self.forget_old(shard, now)
        return effects

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
            del shard.groups[group_id]
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
            is_refused = base_offset < 0
            for at, (key, value) in enumerate(tombstones):
                if error is ErrorCode.NONE and isinstance(key, OffsetCommitKey):
                    shard.apply(key, value, base_offset + at, now)
            return then(error)

        effects = self.shards.write(shard, tombstones, now, done)
        for group_id in [] if is_refused else ended:
            del shard.groups[group_id]
        return effects

    def forget_outdated(self, shard: Shard, now: Instant) -> list[Effect]:
        """Offsets of topics that are deleted. What fails, is just being committed, or is pending in a transaction, is
        found at a later look."""
        tombstones: list[tuple[GroupKey, GroupValue | None]] = []
        for group_id, offsets in shard.offsets.items():
            gone = [at for at in self.topics.outdated(offsets) if not shard.is_changing((group_id, *at))]
            tombstones += self.tombstones(shard, group_id, gone, with_group=False)
        effects: list[Effect] = []
        for begin in range(0, len(tombstones), TOMBSTONES_MAX):
            part = tombstones[begin : begin + TOMBSTONES_MAX]
            assert 0 < len(part) <= TOMBSTONES_MAX
            effects += self.forget(shard, part, now, lambda error: [])
        return effects

    def forget_old(self, shard: Shard, now: Instant) -> list[Effect]:
        """Empty groups lose the offsets whose time is up, and with the last of them themselves."""
        tombstones: list[tuple[GroupKey, GroupValue | None]] = []
        for group_id in list(dict.fromkeys([*shard.offsets, *shard.groups])):
            group = shard.groups.get(group_id)
            if isinstance(group, Group) and (group.members or group.pending):
                continue
            offsets = shard.offsets.get(group_id, {})
            # As in Kafka, offsets of a consumer group count from their commits, and while it has members for as long as
            # one of them is subscribed to their topic.
            empty_since = group.since if isinstance(group, Group) else Instant(0)
            old = expired(offsets, empty_since, self.config.offsets_retention_ms, now)
            if isinstance(group, ConsumerGroup):
                old = [at for at in old if not group.is_subscribed_to(at[0])]
            if any(shard.committing[(group_id, *at)] for at in old):
                continue  # a tombstone would come after the commit in the log, and take that away
            gone = [at for at in old if not shard.pending.is_unstable((group_id, *at))]  # the same
            is_empty = group is None or not group.members
            is_over = is_empty and len(gone) == len(offsets) and group_id not in shard.pending.groups
            tombstones += self.tombstones(shard, group_id, gone, with_group=is_over)
        return self.forget(shard, tombstones, now, lambda error: []) if tombstones else []
