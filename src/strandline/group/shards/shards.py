"""Which groups are this broker's: those of the `__consumer_offsets` partitions that it leads and has loaded."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, LeaderEpoch
from strandline.base.time import NEVER, Instant, after
from strandline.base.timers import Timers
from strandline.coordination.internal_log import Done, InternalLog
from strandline.coordination.shards import PAUSE_MS, Shards
from strandline.group.classic.group import Group, State
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import batch_of
from strandline.group.shards.shard import Shard, group_record
from strandline.wire.messages.groups.group_records import GroupKey, GroupValue

SESSIONS_MAX = 2_000  # of members, that begin or end in one step because a partition has another leader
Records = Sequence[tuple[GroupKey, GroupValue | None]]  # None: a tombstone


class GroupShards(Shards[Shard]):
    key_error = ErrorCode.INVALID_GROUP_ID

    def __init__(self, config: GroupConfig, log: InternalLog) -> None:
        super().__init__(OFFSETS_TOPIC, log, self.begin_shard)
        self.config = config
        self.timers = Timers()  # of all groups and their members
        self.dead: deque[Group | ConsumerGroup] = deque()  # given up, and not dissolved yet
        self.unused: deque[dict[Any, Any]] = deque()  # memory is freed in steps, too
        self.silent: deque[Shard] = deque()  # with groups whose members' sessions have not begun
        # Of consumer groups. Whoever serves them knows better.
        self.session_ms: Callable[[str], int] = lambda group_id: config.consumer_session_timeout_ms
        self.consumers_due: Callable[[Shard, Instant], list[Effect]] = lambda shard, now: []

    def begin_shard(self, partition: int, leader_epoch: LeaderEpoch) -> Shard:
        return Shard(partition, leader_epoch, self.config, self.timers, self.persist_if_emptied, self.consumers_due)

    def begin_sessions(self, new: Sequence[Shard], now: Instant) -> None:
        """In steps: the members of what is `new` here, and of what was before."""
        for shard in new:
            shard.begin_rebalances(now)
            self.unused.append(shard.keys)
            shard.keys = {}
        self.silent.extend(shard for shard in new if shard.silent)
        left = SESSIONS_MAX
        while self.silent and left > 0:
            shard = self.silent[0]
            if self.loaded.get(shard.partition) is shard:
                left -= shard.begin_sessions(left, now, self.session_ms)
            if left > 0:
                self.silent.popleft()
        if self.silent or self.unused:
            self.next_load = min(self.next_load, after(now, PAUSE_MS))

    def give_up(self, gone: Iterable[Shard], now: Instant) -> list[Effect]:
        """In steps: the members of what is `gone`, and of what was before, are sent away."""
        for shard in gone:
            assert self.loaded.get(shard.partition) is not shard, "nobody asks it any more"
            shard.timers.end()
            for group in shard.groups.values():
                if isinstance(group, Group):  # what waits in others waits for a write, which has failed
                    group.give_up()
                self.dead.append(group)
            self.unused += shard.offsets, shard.keys
            shard.groups = {}  # each is freed when it is dissolved
        effects: list[Effect] = []
        left = SESSIONS_MAX
        while self.dead and left > 0:
            group = self.dead.popleft()
            left -= 1 + len(group.members)
            if isinstance(group, Group):
                effects += group.dissolve(ErrorCode.NOT_COORDINATOR)
        while self.unused and left > 0:
            if self.unused[0]:
                left -= 1 + len(self.unused[0].popitem()[1]) // 10
            else:
                self.unused.popleft()
        if self.dead or self.unused:
            self.next_load = min(self.next_load, after(now, PAUSE_MS))
        return effects

    def transaction_ended(self, partition: int, producer_id: int, offset: int, *, commits: bool) -> None:
        """A marker at `offset` is committed. It counts once, in what is read or behind it."""
        shard, loading = self.loaded.get(partition), self.loading.get(partition)
        if shard is not None:
            shard.marker_committed(producer_id, offset, commits=commits)
        elif loading is not None and loading.reader is not None and offset >= loading.reader.end:
            loading.shard.late.append((producer_id, commits))

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

    def persist_if_emptied(self, shard: Shard, group: Group, now: Instant) -> list[Effect]:
        """The last member is gone: the next coordinator must not wait for it."""
        assert shard.groups.get(group.group_id) in (group, None)
        if group.state is State.EMPTY and group.generation > 0 and group.since == now:
            return self.write(shard, [group_record(group)], now, lambda error, base, at: [])
        return []

    def groups(self) -> list[tuple[Shard, Group | ConsumerGroup]]:
        return [(shard, group) for shard in self.loaded.values() for group in shard.groups.values()]

    def all_groups(self) -> list[tuple[Shard, Group]]:
        """Of the classic protocol."""
        return [(shard, group) for shard, group in self.groups() if isinstance(group, Group)]

    def check(self) -> None:
        super().check()
        assert not (self.silent or self.dead or self.unused) or self.next_load != NEVER, "all is done some time"
        for shard in self.loaded.values():
            shard.pending.check()
            assert all(count > 0 for count in shard.committing.values())
            assert all(shard.offsets.values()), "a group without offsets is forgotten"
            assert all(group.group_id == group_id for group_id, group in shard.groups.items())
            consumers = {
                group_id: group for group_id, group in shard.groups.items() if isinstance(group, ConsumerGroup)
            }
            if not shard.silent:
                shard.timers.check(consumers)
            for proof in shard.proofs.values():
                proof.check()
                assert not proof.is_complete, "it is forgotten"
        for _, group in self.groups():
            assert not isinstance(group, Group) or group.state is not State.DEAD, "it is coordinated here"
            group.check()
