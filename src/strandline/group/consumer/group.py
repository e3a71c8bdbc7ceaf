"""One group of the consumer protocol (KIP-848): a ledger. Its records change it (`apply`), and nothing else does.

Three epochs say how far it has come. The group epoch grows with each change of members, subscriptions or subscribed
topics. The target assignment is computed for a group epoch, and has that epoch. Each member's epoch is that of the
target assignment to which it has been moved.

Invariants (executed by `check`):
  - no partition has two owners: what a member has, and what it must give back, no other member has
  - `owners` and `static` say what the members say
  - a member gives partitions back in the state for that, and none that it may consume
"""

from enum import Enum

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.group.consumer.history import History
from strandline.group.consumer.member import LEFT, Member, MemberState, Partitions, pairs, without
from strandline.group.consumer.stored import is_sane, member_of, partitions_of
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.consumer_groups.records import ConsumerGroupKey, ConsumerGroupValue


class ConsumerGroupState(Enum):
    EMPTY = "Empty"  # it has no members
    ASSIGNING = "Assigning"  # the target assignment is older than the group
    RECONCILING = "Reconciling"  # members are on their way to the target assignment
    STABLE = "Stable"  # every member has what the target assignment gives it


class Resolved(Value, frozen=True):
    """The topics that match a regular expression, as its record says."""

    topics: frozenset[str]
    version: int
    timestamp: int


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        assert group_id, "refused before"
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0  # of the subscribed topics, when the epoch began
        self.target_epoch = 0
        self.target: dict[str, Partitions] = {}  # by member id
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # group.instance.id → member id
        self.owners: dict[Uuid, dict[int, str]] = {}
        self.regexes: dict[str, Resolved] = {}
        self.has_partition_metadata = False  # a record of Kafka before 4.1
        self.history = History()  # not replicated
        # Not replicated: may topics have changed since the hash was computed? A loaded group must look.
        self.is_stale = True

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def note(self, now: Instant) -> None:
        """The group may have changed."""
        state = self.state
        is_stable = state in (ConsumerGroupState.EMPTY, ConsumerGroupState.STABLE)
        self.history.note(state.value if is_stable else "", now)

    def owner_of(self, topic_id: Uuid, partition: int) -> str | None:
        return self.owners.get(topic_id, {}).get(partition)

    def topics_of(self, member: Member) -> frozenset[str]:
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self.topics_of, self.members.values()))

    # --- replay

    def apply(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> bool:
        """Replay one record of this group, except for the tombstone that removes it. False: no group can have such a
        record, and it was skipped."""
        assert key.group == self.group_id, "of this group"
        if value is not None and not is_sane(value):
            return False
        match key, value:
            case r.ConsumerGroupMetadataKey(), r.ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case r.ConsumerGroupPartitionMetadataKey(), _:
                self.has_partition_metadata = value is not None
            case r.ConsumerGroupMemberMetadataKey(), _ if key.member_id:
                self.apply_member(key.member_id, value)
            case r.ConsumerGroupTargetAssignmentMetadataKey(), r.ConsumerGroupTargetAssignmentMetadataValue():
                self.target_epoch = value.assignment_epoch
            case r.ConsumerGroupTargetAssignmentMetadataKey(), None:
                self.target_epoch = 0
            case r.ConsumerGroupTargetAssignmentMemberKey(), r.ConsumerGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = partitions_of(value.topic_partitions)
            case r.ConsumerGroupTargetAssignmentMemberKey(), None:
                self.target.pop(key.member_id, None)
            case r.ConsumerGroupCurrentMemberAssignmentKey(), _ if key.member_id:
                self.apply_current(key.member_id, value)
            case r.ConsumerGroupRegularExpressionKey(), r.ConsumerGroupRegularExpressionValue():
                self.regexes[key.regular_expression] = Resolved(frozenset(value.topics), value.version, value.timestamp)
            case r.ConsumerGroupRegularExpressionKey(), None:
                self.regexes.pop(key.regular_expression, None)
            case _:
                return False
        return True

    def apply_member(self, member_id: str, value: ConsumerGroupValue | None) -> None:
        old = self.members.get(member_id)
        if value is not None:
            self.put(member_of(old or Member(member_id), value))
        elif old is not None:
            self.forget(old)

    def apply_current(self, member_id: str, value: ConsumerGroupValue | None) -> None:
        old = self.members.get(member_id)
        if value is not None:
            self.put(member_of(old or Member(member_id), value))
        elif old is not None:
            self.put(replace(old, epoch=LEFT, previous_epoch=LEFT, state=MemberState.STABLE, assigned={}, revoking={}))

    def put(self, member: Member) -> None:
        """A partition that another member had goes to this one. Only a log that was compacted while a tombstone was
        pending, or that somebody else wrote, says such a thing; and there the later record is right."""
        assert member.member_id, "no record is about a member without an id"
        old = self.members.get(member.member_id)
        if old is not None:
            self.release(old)
        taken: dict[str, list[tuple[Uuid, int]]] = {}
        for held in (member.assigned, member.revoking):
            for topic_id, partition in pairs(held):
                owner = self.owners.setdefault(topic_id, {}).get(partition)
                if owner is not None and owner != member.member_id:
                    taken.setdefault(owner, []).append((topic_id, partition))
                self.owners[topic_id][partition] = member.member_id
        for owner, lost in taken.items():
            other = self.members[owner]
            self.members[owner] = replace(
                other, assigned=without(other.assigned, lost), revoking=without(other.revoking, lost)
            )
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def release(self, member: Member) -> None:
        for held in (member.assigned, member.revoking):
            for topic_id, partition in pairs(held):
                assert self.owners[topic_id].pop(partition) == member.member_id, "its owner"
                if not self.owners[topic_id]:
                    del self.owners[topic_id]
        assert self.members[member.member_id] is member, "what it has now"
        if member.instance_id is not None and self.static.get(member.instance_id) == member.member_id:
            del self.static[member.instance_id]

    def forget(self, member: Member) -> None:
        self.release(member)
        del self.members[member.member_id]
        assert self.static.get(member.instance_id or "") != member.member_id

    def check(self) -> None:
        owners: dict[tuple[Uuid, int], str] = {}
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert not member.revoking or member.state is MemberState.UNREVOKED_PARTITIONS
            for held in (member.assigned, member.revoking):
                assert all(held.values()), "no topic without partitions"
                for at in pairs(held):
                    assert at not in owners, f"{at} belongs to {owners[at]} and to {member_id}"
                    owners[at] = member_id
        assert all(self.owners.values()), "no topic without partitions"
        assert owners == {(t, p): owner for t, them in self.owners.items() for p, owner in them.items()}
        for instance_id, member_id in self.static.items():
            assert self.members[member_id].instance_id == instance_id
