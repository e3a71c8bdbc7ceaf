"""A group of the consumer protocol as its records say it is: by the last value of each key, and nothing else.

It shares no code with the coordinator. Where that goes through what a record means, this looks up what stands there.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from strandline.base.ids import Uuid
from strandline.base.value import Value
from strandline.metadata.image import Image
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.consumer_groups.records import ConsumerGroupKey, ConsumerGroupValue
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    decode_embedded,
)
from strandline.wire.messages.groups.group_records import GroupMetadataValue

At = tuple[Uuid, int]
UNREVOKED = 1  # the state of a member that must give something back


class Said(Value, frozen=True):
    """One record about what a member has. `offset`: where; `time`: by the clock of the coordinator that wrote it."""

    offset: int
    time: int
    epoch: int
    previous_epoch: int
    state: int
    assigned: frozenset[At]
    revoking: frozenset[At]


class Gone(Value, frozen=True):
    """A member was taken out, at an offset and a time of the coordinator's clock."""

    offset: int
    time: int
    member_id: str
    instance_id: str | None
    last: Said | None
    patience_ms: int  # its rebalance timeout
    session_ms: int  # that it has brought, if it speaks the classic protocol; or 0

    @property
    def is_classic(self) -> bool:
        return self.session_ms > 0


class Consumers:
    """One group, in one coordinator's log. All offsets grow."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.last: dict[ConsumerGroupKey, ConsumerGroupValue] = {}
        self.said: dict[str, list[Said | None]] = {}  # by member id, in order; None: it was taken out after that
        self.before: dict[str, list[Said | None]] = {}  # the same, when the group ended last: answers may be late
        self.gone: list[Gone] = []
        self.came: list[tuple[str, int, r.ConsumerGroupMemberMetadataValue]] = []  # static members: id, time, and what
        self.epochs: list[tuple[int, int]] = []  # of the group, each with its offset
        self.reached: list[tuple[int, int]] = []  # of its target, and generations: no member is ahead of that
        self.ended_at = -1  # where the group was removed last, or had no members
        self.classic: frozenset[str] = frozenset()  # members of the classic group that it is, as its log says
        self.went_on = -1  # the end before that, in case this is no end

    def take(self, key: Any, value: Any, offset: int, time: int) -> None:
        """`key`: a ConsumerGroupKey; `value`: its ConsumerGroupValue, or None for a tombstone."""
        match key, value:
            case r.ConsumerGroupMetadataKey(), r.ConsumerGroupMetadataValue():
                if self.classic and not self.classic & self.members():
                    self.epochs = []  # all had left, and the record of that was not written
                self.classic = frozenset()
                last = self.epochs[-1][1] if self.epochs else 0
                assert value.epoch >= last, f"the epoch of {self.group_id} goes back from {last} to {value.epoch}"
                self.epochs.append((offset, value.epoch))
            case r.ConsumerGroupMetadataKey(), None:
                self.went_on, self.before = self.ended_at, self.said
                self.last, self.said, self.epochs, self.ended_at = {}, {}, [], offset
                return
            case r.ConsumerGroupTargetAssignmentMetadataKey(), r.ConsumerGroupTargetAssignmentMetadataValue():
                self.reached.append((offset, value.assignment_epoch))
            case r.ConsumerGroupCurrentMemberAssignmentKey(), r.ConsumerGroupCurrentMemberAssignmentValue():
                self.said.setdefault(key.member_id, []).append(said(value, offset, time))
            case r.ConsumerGroupCurrentMemberAssignmentKey(), None if key in self.last:
                self.is_gone(key.member_id, offset, time)
            case r.ConsumerGroupMemberMetadataKey(), r.ConsumerGroupMemberMetadataValue() if value.instance_id:
                self.came.append((key.member_id, time, value))
        if value is None:
            self.last.pop(key, None)
        else:
            self.last[key] = value

    def is_classic(self, value: GroupMetadataValue, offset: int, since: int) -> None:
        """The group is a classic one. With members in a batch that begins at `since`, in which the consumer group
        ended, it has gone on, and none of them is gone. Generations and epochs count on."""
        assert not self.members() or not value.members, f"{self.group_id} is of both protocols, as its log says"
        self.classic = frozenset(member.member_id for member in value.members)
        if not value.members:
            self.epochs, self.ended_at = [], offset
            return
        if self.ended_at >= since:
            self.ended_at = self.went_on
            stay = {member.member_id for member in value.members}
            places = {member.group_instance_id for member in value.members} - {None}
            for gone in [gone for gone in self.gone if gone.offset >= since]:
                if gone.member_id in stay or gone.instance_id in places:
                    self.gone.remove(gone)
                    epoch = 0 if gone.last is None else gone.last.epoch
                    assert epoch <= value.generation, (
                        f"{gone.member_id} was in epoch {epoch} of {self.group_id}, which goes on as a classic group in"
                        f" generation {value.generation}"
                    )
        last = self.epochs[-1][1] if self.epochs else 0
        assert value.generation >= last, f"{self.group_id} goes back from {last} to generation {value.generation}"
        self.epochs.append((offset, value.generation))
        self.reached.append((offset, value.generation))

    def may_be_replaced(self, gone: Gone, instance_id: str) -> bool:
        """Has another member come in its place, and does one of them speak the classic protocol, in which a static
        member need not have been away? The other one may be gone by now."""
        return any(
            value.instance_id == instance_id
            and member_id != gone.member_id
            and time == gone.time
            and (gone.is_classic or value.classic_member_metadata is not None)
            for member_id, time, value in self.came
        )

    def is_gone(self, member_id: str, offset: int, time: int) -> None:
        member: Any = self.last.get(r.ConsumerGroupMemberMetadataKey(group=self.group_id, member_id=member_id))
        instance_id = None if member is None else member.instance_id
        patience_ms = 0 if member is None else member.rebalance_timeout_ms
        classic = None if member is None else member.classic_member_metadata
        session_ms = 0 if classic is None else classic.session_timeout_ms
        self.gone.append(Gone(offset, time, member_id, instance_id, self.now_of(member_id), patience_ms, session_ms))
        self.said.setdefault(member_id, []).append(None)

    def now_of(self, member_id: str) -> Said | None:
        rows = self.said.get(member_id)
        return rows[-1] if rows else None

    def has_said(self, member_id: str) -> list[Said]:
        """All that it has had, also before the group ended last, and perhaps went on as a classic one."""
        rows = [*self.before.get(member_id, ()), *self.said.get(member_id, ())]
        return [row for row in rows if row is not None]

    def has_assigned(self, member_id: str, epoch: int, assignment: bytes, committed: int, image: Image) -> bool:
        """To a classic member, and it is committed. A topic that is gone has no name, and is left out."""
        rows = [row for row in self.has_said(member_id) if row.offset < committed and row.epoch == epoch]
        given = given_by(assignment, image) if rows else frozenset[At]()
        return any({at for at in row.assigned if at[0] in image.topics} == given for row in rows)

    def members(self) -> set[str]:
        return {key.member_id for key in self.last if isinstance(key, r.ConsumerGroupMemberMetadataKey)}

    def why_rejoin(self, member_id: str, topics: Container[Uuid]) -> str | None:
        """Why must a member of the classic protocol be told to join again? `topics`: those that there are."""
        now, epoch = self.now_of(member_id), self.epochs[-1][1] if self.epochs else 0
        if now is None or now.epoch < epoch:
            return f"and the group is in epoch {epoch}"
        if now.state == UNREVOKED:
            return f"which must give back {sorted(now.revoking)}"
        target = self.targets().get(member_id, frozenset())
        lacks = {at for at in target - now.assigned if at[0] in topics}
        others = [self.now_of(one) for one in self.members() - {member_id}]
        taken = {at for one in others if one is not None for at in one.assigned | one.revoking}
        return f"which lacks {sorted(lacks)}, and nobody has that" if lacks and not lacks & taken else None

    def targets(self) -> dict[str, frozenset[At]]:
        return {
            key.member_id: flat(value.topic_partitions)
            for key, value in self.last.items()
            if isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey)
            and isinstance(value, r.ConsumerGroupTargetAssignmentMemberValue)
        }

    def reached_below(self, committed: int) -> int:
        return next((epoch for offset, epoch in reversed(self.reached) if offset < committed), 0)

    # --- beside the coordinator's memory

    def why_not_like(self, group: Any) -> str | None:
        """`group`: a ConsumerGroup."""
        for what, mine, memory in self.rows(group):
            if mine != memory:
                return f"{what} of {self.group_id}: the log says {mine}, and the coordinator remembers {memory}"
        return None

    def rows(self, group: Any) -> Iterable[tuple[str, Any, Any]]:
        name, last = self.group_id, self.last
        metadata: Any = last.get(r.ConsumerGroupMetadataKey(group=name))
        epoch, topics = (0, 0) if metadata is None else (metadata.epoch, metadata.metadata_hash)
        yield "the epoch", (epoch, topics), (group.epoch, group.metadata_hash)
        target: Any = last.get(r.ConsumerGroupTargetAssignmentMetadataKey(group=name))
        yield "the target's epoch", 0 if target is None else target.assignment_epoch, group.target_epoch
        targets = self.targets()
        yield "the target", targets, {one: unfolded(them) for one, them in group.target.items()}
        regexes = {
            key.regular_expression: frozenset(value.topics)
            for key, value in last.items()
            if isinstance(key, r.ConsumerGroupRegularExpressionKey)
            and isinstance(value, r.ConsumerGroupRegularExpressionValue)
        }
        yield "the topics of expressions", regexes, {one: known.topics for one, known in group.regexes.items()}
        members = {
            key.member_id: value
            for key, value in last.items()
            if isinstance(key, r.ConsumerGroupMemberMetadataKey)
            and isinstance(value, r.ConsumerGroupMemberMetadataValue)
        }
        yield "the members", members.keys(), group.members.keys()
        yield "whom the target is for beside the members", set(), targets.keys() - members.keys()
        instances = {value.instance_id: one for one, value in members.items() if value.instance_id is not None}
        yield "the static members", instances, group.static
        for member_id, value in members.items():
            member, now = group.members[member_id], self.now_of(member_id)
            wants = value.instance_id, frozenset(value.subscribed_topic_names), value.subscribed_topic_regex or ""
            yield f"what {member_id} wants", wants, (member.instance_id, member.topics, member.regex)
            has: tuple[int, int, frozenset[At], frozenset[At]] = (0, 0, frozenset(), frozenset())
            if now is not None:
                has = now.epoch, now.state, now.assigned, now.revoking
            remembered = unfolded(member.assigned), unfolded(member.revoking)
            yield f"what {member_id} has", has, (member.epoch, member.state.value, *remembered)


def said(value: r.ConsumerGroupCurrentMemberAssignmentValue, offset: int, time: int) -> Said:
    assigned, revoking = flat(value.assigned_partitions), flat(value.partitions_pending_revocation)
    epochs = value.member_epoch, value.previous_member_epoch
    return Said(offset, time, *epochs, value.state, assigned, revoking)


def flat(rows: Iterable[Any]) -> frozenset[At]:
    return frozenset((Uuid(bytes(row.topic_id)), partition) for row in rows for partition in row.partitions)


def given_by(assignment: bytes, image: Image) -> frozenset[At]:
    rows = decode_embedded(ConsumerProtocolAssignment, assignment) if assignment else None
    return frozenset[At]() if rows is None else by_id(image, rows.assigned_partitions)


def by_id(image: Image, rows: tuple[TopicPartition, ...]) -> frozenset[At]:
    ids: Any = image.topic_ids
    return frozenset((Uuid(ids[row.topic]), p) for row in rows if row.topic in ids for p in row.partitions)


def unfolded(held: Mapping[Uuid, Iterable[int]]) -> frozenset[At]:
    return frozenset((topic_id, partition) for topic_id, them in held.items() for partition in them)
