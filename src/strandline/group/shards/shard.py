"""The groups of one partition of `__consumer_offsets`, as its leader holds them in memory.

Invariant: `offsets`, `pending` and the stable groups are what the partition's committed records say, in order.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

from strandline.base.effects import Effect
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.base.timers import Deadline, Timers
from strandline.coordination.internal_log import Replayed
from strandline.group.classic.group import Group, State
from strandline.group.classic.member import Member
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.timers import Timers as ConsumerTimers
from strandline.group.offsets.offsets import Offsets, restored_offset
from strandline.group.offsets.pending import Key, Pending
from strandline.group.shards.proving import Proof
from strandline.wire.batch import NO_PRODUCER_ID
from strandline.wire.compress import Corrupt
from strandline.wire.messages.consumer_groups.records import (
    ConsumerGroupKey,
    ConsumerGroupMetadataKey,
)
from strandline.wire.messages.groups.group_records import (
    GroupKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from strandline.wire.record import Row

MEMBER_BYTES = 512  # to restore a member costs as much as to read so many bytes

# A generation is a 32-bit number, and grows by one with each rebalance. None comes so far by counting, and behind this
# there is room for a million rebalances.
GENERATION_END = (1 << 31) - (1 << 20)


class Shard:
    def __init__(
        self,
        partition: int,
        leader_epoch: LeaderEpoch,
        config: GroupConfig,
        timers: Timers,
        expired: Callable[["Shard", Group, Instant], list[Effect]] = lambda shard, group, now: [],
        consumers_due: Callable[["Shard", Instant], list[Effect]] = lambda shard, now: [],
    ) -> None:
        """`expired`: time has changed a classic group. `consumers_due`: look what is due in `timers`, and set them."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.config = config
        self.shared_timers = timers
        self.expired = partial(expired, self)
        self.groups: dict[str, Group | ConsumerGroup] = {}  # of both protocols
        self.offsets: dict[str, Offsets] = {}
        self.pending = Pending()
        self.committing: Counter[Key] = Counter()  # commits under way, but for those in transactions
        self.unreadable = 0  # records that a reader skipped
        self.end = 0  # of what was read: a marker below it was seen there
        self.keys: dict[bytes, tuple[str, tuple[str, int]]] = {}  # decoded, while the log is read
        self.records: dict[str, GroupMetadataValue] = {}  # the last one of each classic group, until it is restored
        self.late: list[tuple[int, bool]] = []  # transactions that ended behind what is read, and before it is
        self.silent: deque[Group | ConsumerGroup] = deque()  # restored, and no session has begun
        self.rejoining: list[Group] = []  # of these: a rebalance begins with whoever serves them
        # Not replicated, and of consumer groups alone:
        self.timers = ConsumerTimers(Deadline(timers, partial(consumers_due, self)))
        self.proofs: dict[str, Proof] = {}  # of groups with records that are not committed
        self.is_proven = False  # all that was loaded is committed

    # --- loading

    def replay(self, batches: Sequence[Replayed]) -> None:
        for batch in batches:
            if batch.marker is not None:  # guard: loaded-markers-decide-nothing
                self.transaction_ended(batch.producer_id, commits=batch.marker.commits)
            for row in batch.rows:
                try:
                    where = self.keys.get(row[1]) if row[1] is not None else None
                    if where is None:
                        self.replay_first(row, batch.producer_id)
                    else:
                        self.replay_offset(where, row, batch.producer_id)
                except Corrupt:
                    self.unreadable += 1

    def replay_first(self, row: Row, producer_id: int) -> None:
        """A record whose key was not seen yet, or is not an offset's."""
        key = decode_key(row[1])
        if isinstance(key, OffsetCommitKey):
            assert row[1] is not None
            where = self.keys[row[1]] = key.group, (key.topic, key.partition)
            self.replay_offset(where, row, producer_id)
        elif key is not None:
            self.replay_group(key, decode_value(key, row[2]), producer_id)

    def replay_offset(self, where: tuple[str, tuple[str, int]], row: Row, producer_id: int) -> None:
        record_offset, _, value = row
        group_id, at = where
        if value is not None:
            committed = restored_offset(value, record_offset)
            if producer_id == NO_PRODUCER_ID:
                offsets = self.offsets.get(group_id)
                if offsets is None:
                    offsets = self.offsets[group_id] = {}
                offsets[at] = committed
            else:
                # guard: pending-offsets-die-with-their-coordinator
                self.pending.add(producer_id, (group_id, *at), committed)
        elif producer_id == NO_PRODUCER_ID:
            self.forget_offset(group_id, at, record_offset)
        else:
            self.unreadable += 1  # in a transaction offsets are only committed

    def replay_group(self, key: GroupKey, value: GroupValue | None, producer_id: int) -> None:
        """A record of the group itself. A classic group is restored when all is read, since the last record counts. A
        consumer group follows its records one by one."""
        is_alone = producer_id == NO_PRODUCER_ID
        match key, value:
            case GroupMetadataKey(), GroupMetadataValue() if (
                is_alone and can_be(value) and self.may_be_classic(key.group)
            ):
                self.groups.pop(key.group, None)  # an empty one of the consumer protocol
                self.records.pop(key.group, None)
                self.records[key.group] = value
            case GroupMetadataKey(), None if is_alone:
                self.records.pop(key.group, None)
            case (OffsetCommitKey(), _) | (GroupMetadataKey(), _):
                self.unreadable += 1  # or it is in a transaction, where only offsets are committed
            case _ if is_alone and self.apply_consumer(key, value):
                pass
            case _:
                self.unreadable += 1

    def complete(self, limit: int, now: Instant) -> int:
        """All is read: restore groups, and count what ended meanwhile. No session begins before `begin_sessions`."""
        if not self.silent:
            self.silent.extend(self.groups.values())  # of the consumer protocol: they are what their records said
        done = 0
        while self.records and done < limit:
            group_id = next(iter(self.records))
            value = self.records.pop(group_id)
            group = self.groups[group_id] = restored(self.new_group(group_id, now), value, now)
            self.silent.append(group)
            if must_rejoin(value):
                self.rejoining.append(group)
            done += MEMBER_BYTES * (1 + len(value.members))
            assert can_be(value), "others are skipped when they are read"
        if done < limit:
            for producer_id, commits in self.late:
                self.transaction_ended(producer_id, commits=commits)
            self.late = []
            assert not self.records, "all groups are restored before transactions end"
        return done

    def begin_sessions(self, limit: int, now: Instant, session_ms: Callable[[str], int]) -> int:
        """The groups' members have a whole session from now on. `session_ms`: of a consumer group's members. Returns
        of how many it was begun: less than `limit` if nobody is left."""
        done = 0
        while self.silent and done < limit:
            group = self.silent.popleft()
            done += 1 + len(group.members)
            if self.groups.get(group.group_id) is group:
                if isinstance(group, ConsumerGroup):
                    self.timers.begin(group, session_ms(group.group_id), now)
                    group.note(now)
                else:
                    group.begin_sessions(now)
        return done

    def begin_rebalances(self, now: Instant) -> None:
        """Call when this broker begins to serve the groups, before anybody speaks to them."""
        for group in self.rejoining:
            group.prepare_rebalance(now)
        self.rejoining = []

    def begin_classic(self, group_id: str, value: GroupMetadataValue, now: Instant) -> Group:
        """The group comes in the place of a consumer group: its record is in the log."""
        assert can_be(value), "what is written can be read"
        group = self.groups[group_id] = restored(self.new_group(group_id, now), value, now)
        group.begin_sessions(now)
        if must_rejoin(value):
            group.prepare_rebalance(now)
        return group

    def new_group(self, group_id: str, now: Instant) -> Group:
        return Group(group_id, self.config, now, self.shared_timers, self.expired)

    # --- offsets

    def forget_offset(self, group_id: str, at: tuple[str, int], record_offset: int) -> None:
        """There is a tombstone at `record_offset`."""
        self.pending.forget((group_id, *at), record_offset)
        assert record_offset >= 0, "a tombstone is in the log"
        offsets = self.offsets.get(group_id, {})
        offsets.pop(at, None)
        if not offsets:
            self.offsets.pop(group_id, None)

    def marker_committed(self, producer_id: int, offset: int, *, commits: bool) -> None:
        """It may lie in what is, or was, read: then it counts there."""
        assert offset >= 0 and producer_id >= 0, "a marker is in the log, and of a producer"
        if offset >= self.end:
            self.transaction_ended(producer_id, commits=commits)

    def transaction_ended(self, producer_id: int, *, commits: bool) -> None:
        """Its marker is committed."""
        for (group_id, topic, partition), committed in self.pending.end(producer_id).items():
            if commits:  # guard: aborted-offsets-count
                offsets = self.offsets.setdefault(group_id, {})
                there = offsets.get((topic, partition))
                assert committed.record_offset >= 0, "an offset is pending once its record is written"
                if there is None or there.record_offset < committed.record_offset:
                    offsets[topic, partition] = committed

    # --- groups of both protocols

    def classic(self, group_id: str) -> Group | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, Group) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def end_classic(self, group_id: str) -> None:
        """The group is gone from memory, so that whoever joins now founds a new one."""
        group = self.classic(group_id)
        assert group is not None and not group.members, "its members would be unknown"
        del self.groups[group_id]
        group.forget_time()

    def may_be_classic(self, group_id: str) -> bool:
        """A group changes its protocol when it is empty."""
        group = self.consumer(group_id)
        return group is None or not group.members

    def apply_consumer(self, key: ConsumerGroupKey, value: GroupValue | None) -> bool:
        """Replay a record of a consumer group. Tombstones of what is not there are ignored. False: it was skipped."""
        assert not isinstance(key, OffsetCommitKey | GroupMetadataKey), "of a consumer group"
        assert not isinstance(value, OffsetCommitValue | GroupMetadataValue), "the key's value"
        known = self.groups.get(key.group)
        if isinstance(known, ConsumerGroup):
            if isinstance(key, ConsumerGroupMetadataKey) and value is None:
                del self.groups[key.group]
                return True
            return known.apply(key, value)
        if value is None:
            return True
        classic = self.records.get(key.group) if known is None else known
        if not key.group or (classic is not None and classic.members):
            return False
        group = ConsumerGroup(key.group)
        is_applied = group.apply(key, value)
        if is_applied:
            self.records.pop(key.group, None)
            self.groups[key.group] = group
        return is_applied

    def knows(self, group_id: str) -> bool:
        return group_id in self.groups or group_id in self.offsets or group_id in self.pending.groups

    def simple_groups(self) -> list[str]:
        """Groups that only ever committed offsets, or are about to."""
        return [one for one in dict.fromkeys([*self.offsets, *self.pending.groups]) if one not in self.groups]

    def is_changing(self, key: Key) -> bool:
        """Would a tombstone take away more than what it is about?"""
        return self.committing[key] > 0 or self.pending.is_unstable(key)

    def group(self, group_id: str, now: Instant) -> Group:
        """The classic group, made on first sight."""
        found = self.groups.get(group_id)
        assert group_id, "refused before"
        if found is None:
            found = self.groups[group_id] = self.new_group(group_id, now)
        assert isinstance(found, Group), "refused before"
        return found


def can_be(value: GroupMetadataValue) -> bool:
    """Is there a group like this? A client that calls itself Kafka's tool may write any record."""
    if 0 <= value.generation < GENERATION_END:
        ids = [member.member_id for member in value.members]
        instances = [member.group_instance_id for member in value.members if member.group_instance_id is not None]
        is_distinct = len(set(ids)) == len(ids) and len(set(instances)) == len(instances)
        has_begun = value.generation > 0 and value.protocol is not None
        return not ids or (is_distinct and "" not in ids and has_begun)
    return False


def must_rejoin(value: GroupMetadataValue) -> bool:
    """It was a consumer group, and its members have not joined again yet."""
    return bool(value.members) and value.leader is None


def restored(group: Group, value: GroupMetadataValue, now: Instant) -> Group:
    """The group as its record has it. It was made for that."""
    assert value.generation >= 0 and not group.members
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    members = []
    for saved in value.members:
        member = Member(
            saved.member_id,
            instance_id=saved.group_instance_id,
            client_id=saved.client_id,
            client_host=saved.client_host,
            session_timeout_ms=saved.session_timeout,
            rebalance_timeout_ms=saved.rebalance_timeout if saved.rebalance_timeout >= 0 else saved.session_timeout,
            protocols={value.protocol or "": bytes(saved.subscription)},
        )
        member.assignment = bytes(saved.assignment)
        members.append(member)
    since = Instant(value.current_state_timestamp) if value.current_state_timestamp >= 0 else now
    group.restore(members, value.leader, since)
    assert group.generation < GENERATION_END, "else the record is not read"
    return group


def group_record(group: Group) -> tuple[GroupKey, GroupValue]:
    """The group as a record, with the assignments of its members."""
    assert group.state is not State.DEAD, "another broker writes it"
    return (
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            current_state_timestamp=group.since,
            members=tuple(
                MemberMetadata(
                    member_id=m.member_id,
                    group_instance_id=m.instance_id,
                    client_id=m.client_id,
                    client_host=m.client_host,
                    rebalance_timeout=m.rebalance_timeout_ms,
                    session_timeout=m.session_timeout_ms,
                    subscription=m.protocols.get(group.protocol or "", b""),
                    assignment=m.assignment,
                )
                for m in group.members.values()
            ),
        ),
    )
