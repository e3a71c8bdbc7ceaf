"""Which groups are this broker's: those of the `__consumer_offsets` partitions that it leads and has loaded."""

from collections.abc import Callable, Sequence

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, LeaderEpoch
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done, InternalLog
from strandline.coordination.shards import Shards
from strandline.group.classic.group import Group, State
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import batch_of
from strandline.group.shards.shard import Shard
from strandline.wire.messages.groups.group_records import GroupKey, GroupValue

Records = Sequence[tuple[GroupKey, GroupValue | None]]  # None: a tombstone


class GroupShards(Shards[Shard]):
    key_error = ErrorCode.INVALID_GROUP_ID

    def __init__(self, config: GroupConfig, log: InternalLog) -> None:
        super().__init__(OFFSETS_TOPIC, log, self.load_shard)
        self.config = config

    def load_shard(self, partition: int, leader_epoch: LeaderEpoch, now: Instant) -> Shard:
        shard = Shard(partition, leader_epoch, self.config)
        shard.load(self.log.replay(OFFSETS_TOPIC, partition), now)
        return shard

    def existing(self, group_id: str) -> tuple[Shard, Group] | ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self.of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.classic(group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else (shard, group)

    def write(
        self,
        shard: Shard,
        records: Records,
        now: Instant,
        done: Done,
    ) -> list[Effect]:
        assert records, "a batch has records"
        assert self.loaded.get(shard.partition) is shard, "another broker coordinates these groups"
        return self.log.append_internal(OFFSETS_TOPIC, shard.partition, batch_of(records, now), now, done)

    def write_through(
        self, shard: Shard, records: Records, now: Instant, then: Callable[[ErrorCode, Instant], list[Effect]]
    ) -> tuple[ErrorCode, list[Effect]]:
        """Write records that the memory follows as soon as they are in the log. An error: they are not, and `then` is
        not called. Else it is when they are committed, or when nobody will report that."""
        refused = ErrorCode.NONE
        is_asking = True

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            nonlocal refused
            if is_asking and base_offset < 0:
                assert error is not ErrorCode.NONE, "what is committed is in the log"
                refused = error
                return []
            return then(error, now)

        effects = self.write(shard, records, now, done)
        is_asking = False
        return refused, effects

    def groups(self) -> list[tuple[Shard, Group | ConsumerGroup]]:
        return [(shard, group) for shard in self.loaded.values() for group in shard.groups.values()]

    def all_groups(self) -> list[tuple[Shard, Group]]:
        """Of the classic protocol."""
        return [(shard, group) for shard, group in self.groups() if isinstance(group, Group)]

    def check(self) -> None:
        super().check()
        for shard in self.loaded.values():
            shard.pending.check()
            assert all(count > 0 for count in shard.committing.values())
            assert all(shard.offsets.values()), "a group without offsets is forgotten"
            assert all(group.group_id == group_id for group_id, group in shard.groups.items())
            consumers = {
                group_id: group for group_id, group in shard.groups.items() if isinstance(group, ConsumerGroup)
            }
            shard.timers.check(consumers)
            for proof in shard.proofs.values():
                proof.check()
                assert not proof.is_complete, "it is forgotten"
        for _, group in self.groups():
            assert not isinstance(group, Group) or group.state is not State.DEAD, "it is coordinated here"
            group.check()
