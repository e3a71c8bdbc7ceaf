"""The groups of one partition of `__consumer_offsets`, as its leader holds them in memory.

Invariant: `offsets`, `pending` and the stable groups are what the partition's committed records say, in order.
"""

from collections import Counter
from collections.abc import Iterable

from strandline.base.ids import LeaderEpoch, Uuid
from strandline.base.time import Instant
from strandline.coordination.internal_log import Replayed
from strandline.group.classic.group import Group, State
from strandline.group.classic.member import Member
from strandline.group.config import GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.timers import Timers
from strandline.group.offsets.offsets import CommittedOffset, Offsets
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

# A generation is a 32-bit number, and grows by one with each rebalance. None comes so far by counting, and behind this
# there is room for a million rebalances.
GENERATION_END = (1 << 31) - (1 << 20)


class Shard:
    def __init__(self, partition: int, leader_epoch: LeaderEpoch, config: GroupConfig) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.config = config
        self.groups: dict[str, Group | ConsumerGroup] = {}  # of both protocols
        self.offsets: dict[str, Offsets] = {}
        self.pending = Pending()
        self.committing: Counter[Key] = Counter()  # commits under way, but for those in transactions
        self.unreadable = 0  # records that a reader skipped
        # Not replicated, and of consumer groups alone:
        self.timers = Timers()
        self.proofs: dict[str, Proof] = {}  # of groups with records that are not committed
        self.is_proven = False  # all that was loaded is committed

    def load(self, rows: Iterable[Replayed], now: Instant) -> None:
        assert not self.groups and not self.offsets, "loaded once"
        for row in rows:
            record = row.record
            if row.marker is not None:  # guard: loaded-markers-decide-nothing
                self.transaction_ended(row.producer_id, commits=row.marker.commits)
            if record is None:
                continue
            try:
                key = decode_key(record.key)
                value = None if key is None else decode_value(key, record.value)
            except Corrupt:
                self.unreadable += 1
                continue
            if key is not None:
                self.apply(key, value, record.offset, now, row.producer_id)

    def apply(
        self,
        key: GroupKey,
        value: GroupValue | None,
        record_offset: int,
        now: Instant,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Replay one record. `producer_id`: in whose transaction it is."""
        is_alone = producer_id == NO_PRODUCER_ID
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue():
                committed = CommittedOffset(
                    value.offset,
                    value.leader_epoch,
                    value.metadata,
                    Instant(value.commit_timestamp),
                    Uuid(value.topic_id),
                    record_offset,
                )
                if is_alone:
                    self.offsets.setdefault(key.group, {})[(key.topic, key.partition)] = committed
                else:
                    # guard: pending-offsets-die-with-their-coordinator
                    self.pending.add(producer_id, (key.group, key.topic, key.partition), committed)
            case OffsetCommitKey(), None if is_alone:
                self.pending.forget((key.group, key.topic, key.partition), record_offset)
                offsets = self.offsets.get(key.group, {})
                offsets.pop((key.topic, key.partition), None)
                if not offsets:
                    self.offsets.pop(key.group, None)
            case GroupMetadataKey(), GroupMetadataValue() if (
                is_alone and can_be(value) and self.may_be_classic(key.group)
            ):
                self.groups[key.group] = restored(key.group, value, self.config, now)
            case GroupMetadataKey(), None if is_alone:
                if self.classic(key.group) is not None:
                    del self.groups[key.group]
            case (OffsetCommitKey(), _) | (GroupMetadataKey(), _):
                self.unreadable += 1  # or it is in a transaction, where only offsets are committed
            case _ if is_alone and self.apply_consumer(key, value):
                pass
            case _:
                self.unreadable += 1  # or it is in a transaction, where only offsets are committed

    def transaction_ended(self, producer_id: int, *, commits: bool) -> None:
        """Its marker is committed."""
        for (group_id, topic, partition), committed in self.pending.end(producer_id).items():
            if commits:  # guard: aborted-offsets-count
                offsets = self.offsets.setdefault(group_id, {})
                there = offsets.get((topic, partition))
                if there is None or there.record_offset < committed.record_offset:
                    offsets[topic, partition] = committed

    # --- groups of both protocols

    def classic(self, group_id: str) -> Group | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, Group) else None

    def consumer(self, group_id: str) -> ConsumerGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def may_be_classic(self, group_id: str) -> bool:
        """A group changes its protocol when it is empty."""
        group = self.consumer(group_id)
        return group is None or not group.members

    def apply_consumer(self, key: ConsumerGroupKey, value: GroupValue | None) -> bool:
        """Replay a record of a consumer group. Tombstones of what is not there are ignored. False: it was skipped."""
        assert not isinstance(value, OffsetCommitValue | GroupMetadataValue), "the key's value"
        known = self.groups.get(key.group)
        if isinstance(known, ConsumerGroup):
            if isinstance(key, ConsumerGroupMetadataKey) and value is None:
                del self.groups[key.group]
                return True
            return known.apply(key, value)
        if value is None:
            return True
        if not key.group or (known is not None and known.members):
            return False
        group = ConsumerGroup(key.group)
        is_applied = group.apply(key, value)
        if is_applied:
            self.groups[key.group] = group
        return is_applied

    def knows(self, group_id: str) -> bool:
        return group_id in self.groups or group_id in self.offsets or group_id in self.pending.groups

    def loners(self) -> list[str]:
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
            found = self.groups[group_id] = Group(group_id, self.config, now)
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


def restored(group_id: str, value: GroupMetadataValue, config: GroupConfig, now: Instant) -> Group:
    assert value.generation >= 0
    group = Group(group_id, config, now)
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
        member.heard(now)
        members.append(member)
    since = Instant(value.current_state_timestamp) if value.current_state_timestamp >= 0 else now
    group.restore(members, value.leader, since)
    if members and value.leader is None:
        group.prepare_rebalance(now)  # it was a consumer group, and its members have not joined again yet
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
