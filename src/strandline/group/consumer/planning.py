"""What follows from a heartbeat, from leaving, and from a timer: records and an answer, or an error (KIP-848).

Planning changes nothing. The records do when they are in the log (`ConsumerGroup.apply`). Errors, messages and the
order of the records are Kafka's.

A heartbeat has three steps:
  1. The member is new, or says something new. If that touches what is assigned, the group has a new epoch.
  2. If the group's epoch is newer than the target assignment's, that is computed.
  3. The member goes on towards the target assignment (`reconciling.py`).
"""

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from strandline.base.effects import Caller
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.group.config import GroupConfig
from strandline.group.consumer.catalog import ids_of
from strandline.group.consumer.draft import Draft
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import AWAY, LEFT, Member, MemberState, Partitions, is_within, pairs
from strandline.group.consumer.reconciling import reconciled
from strandline.group.consumer.regexes import InvalidRegex
from strandline.group.consumer.settings import consumer_config
from strandline.group.consumer.stored import (
    Record,
    current_record,
    member_record,
    member_tombstones,
    metadata_record,
    partitions_of,
    target_epoch_record,
)
from strandline.metadata.image import Image
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitionsResponse,
)

ABANDON = "The member must abandon all its partitions and rejoin."


class Refused(Value, frozen=True):
    error: ErrorCode
    message: str

    def __post_init__(self) -> None:
        assert self.error is not ErrorCode.NONE


class Plan(Value, frozen=True):
    """`answer` may leave when `records`, and all earlier ones of the group, are committed."""

    answer: ConsumerGroupHeartbeatResponse
    records: tuple[Record, ...] = ()
    has_looked: bool = False  # at the subscribed topics: the group is not stale any more


class Topics(Protocol):
    @property
    def image(self) -> Image: ...


def everything(caller: Caller, names: Iterable[str]) -> Iterable[str]:
    """Which of these topics may the caller describe? An expression matches no others."""
    del caller
    return names


class Planner:
    def __init__(self, config: GroupConfig, topics: Topics) -> None:
        self.config = config
        self.topics = topics
        self.describable = everything  # a node with an authorizer knows better

    # --- heartbeats

    def heartbeat(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Instant
    ) -> Plan | Refused:
        """Of a member that joins or stays. Its id is not empty."""
        assert request.member_id and request.member_epoch >= 0
        owned = None if request.topic_partitions is None else partitions_of(request.topic_partitions)
        draft = Draft(group, self.config, self.topics.image)
        before = self.why_full(group, request) or find(draft, request, owned)
        if isinstance(before, Refused):
            return before
        is_new = before.member_id not in draft.members
        after = updated(before, request, caller)
        if after.state is MemberState.UNKNOWN and owned != {}:
            return Refused(ErrorCode.FENCED_MEMBER_EPOCH, f"The consumer group member is in a unknown state. {ABANDON}")
        if is_new or after != before:
            draft.records.append(member_record(group.group_id, after))
        assignor = draft.assignor()
        draft.members[after.member_id] = after
        try:
            names = partial(self.describable, caller, self.topics.image.topic_ids)
            has_new_matches = draft.resolve(after.regex, names, now)
        except InvalidRegex as error:
            why = f"SubscribedTopicRegex `{after.regex}` is not a valid regular expression: {error}."
            return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, why)
        is_changed = (after.topics, after.regex) != (before.topics, before.regex)
        draft.renew(must=is_new or is_changed or has_new_matches or draft.assignor() != assignor)
        draft.assign(now)
        after = self.moved(draft, after, owned)
        return Plan(self.answer(request, before, after), tuple(draft.records), draft.has_looked)

    def moved(self, draft: Draft, member: Member, owned: Partitions | None) -> Member:
        """The member one step further, with the record of that."""
        target = draft.target.get(member.member_id, {})
        subscribed = ids_of(self.topics.image, draft.topics_of(member))
        moved = reconciled(member, draft.target_epoch, target, draft.group.owner_of, owned, subscribed)
        has = frozenset(pairs(member.assigned))
        free = (None, member.member_id)
        assert all(at in has or draft.group.owner_of(*at) in free for at in pairs(moved.assigned)), "of another member"
        if moved != member:
            draft.records.append(current_record(draft.group.group_id, moved))
        return moved

    def answer(
        self, request: ConsumerGroupHeartbeatRequest, before: Member, after: Member
    ) -> ConsumerGroupHeartbeatResponse:
        """A member that says everything is told everything; else only what has changed."""
        assert after.member_id == request.member_id
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        says_all = request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
        # guard: lost-answer-not-repeated
        is_full = request.member_epoch == 0 or says_all or partitions_in(before) != partitions_in(after)
        return ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=consumer_config(self.topics.image, request.group_id, self.config)[1],
            assignment=assignment_of(after) if is_full else None,
        )

    def why_full(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Refused | None:
        """A static member that comes back takes no new place."""
        if len(group.members) < self.config.consumer_max_size or request.member_id in group.members:
            return None
        if request.instance_id in group.static:
            return None
        size = self.config.consumer_max_size
        return Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size} members.",
        )

    # --- leaving

    def leave(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Plan | Refused:
        """Of a member that leaves for good the plan has no records: with it, the group may change its protocol."""
        assert request.member_epoch in (LEFT, AWAY)
        instance_id = request.instance_id
        if instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                return unknown_member(group, request.member_id)
        else:
            holder = static_holder(group, instance_id, request.member_id)
            if isinstance(holder, Refused):
                return holder
            member = holder
        answer = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.member_epoch == AWAY:
            assert instance_id is not None, "refused before"
            return Plan(answer, (current_record(group.group_id, replace(member, epoch=AWAY, revoking={})),))
        return Plan(answer)

    def fence(self, group: ConsumerGroup, member_ids: list[str]) -> tuple[Record, ...]:
        """The members are out. The others are assigned what they had with the next heartbeat of one of them."""
        assert member_ids and all(member_id in group.members for member_id in member_ids)
        draft = Draft(group, self.config, self.topics.image)
        for member_id in member_ids:
            draft.remove(member_id)
            draft.records += member_tombstones(group.group_id, member_id)
        draft.forget_regexes()
        draft.renew(must=True)
        if not draft.members:
            draft.records.append(target_epoch_record(group.group_id, draft.epoch))
        return tuple(draft.records)


def proof_record(group: ConsumerGroup) -> Record:
    """It changes nothing. When it is committed, so is what the group wrote before."""
    return metadata_record(group.group_id, group.epoch, group.metadata_hash)


# --- who is it?


def find(draft: Draft, request: ConsumerGroupHeartbeatRequest, owned: Partitions | None) -> Member | Refused:
    """The member as it is, or as it begins. A member that is known and joins has lost an answer, or was fenced, or has
    said that it would be back: it goes on as it is."""
    group, joins = draft.group, request.member_epoch == 0
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            return Member(request.member_id) if joins else unknown_member(group, request.member_id)
        return why_fenced(member, request.member_epoch, owned) or member
    if joins and request.member_id not in group.members:
        holder_id = group.static.get(request.instance_id)
        return Member(request.member_id) if holder_id is None else take_over(draft, group.members[holder_id], request)
    if joins and group.members[request.member_id].instance_id != request.instance_id:
        # With the place of another member it would lose its own, and nobody would have its partitions.
        why = f"Member {request.member_id} cannot change its instance id to {request.instance_id}."
        return Refused(ErrorCode.INVALID_REQUEST, why)
    holder = static_holder(group, request.instance_id, request.member_id)
    if isinstance(holder, Refused):
        return holder
    return why_fenced(holder, request.member_epoch, owned) or holder


def take_over(draft: Draft, holder: Member, request: ConsumerGroupHeartbeatRequest) -> Member | Refused:
    """A static member comes back, perhaps with another id: it has what it had, if it had said that it would. One that
    spoke the classic protocol until now need not have, as with that protocol."""
    if holder.epoch != AWAY and holder.classic is None:  # guard: instance-id-taken-from-a-living-member
        return Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group because "
            f"the instance id is owned by {holder.member_id} member.",
        )
    member = replace(holder, member_id=request.member_id, epoch=0, previous_epoch=0)
    draft.replace(holder, member)
    return member


def static_holder(group: ConsumerGroup, instance_id: str, member_id: str) -> Member | Refused:
    holder = group.static.get(instance_id)
    if holder is None:
        return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder != member_id:
        why = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}."
        return Refused(ErrorCode.FENCED_INSTANCE_ID, why)
    assert group.members[holder].instance_id == instance_id
    return group.members[holder]


def unknown_member(group: ConsumerGroup, member_id: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def why_fenced(member: Member, epoch: int, owned: Partitions | None) -> Refused | None:
    """Who comes with epoch 0 has given up everything. Who comes with the epoch before may not have got the answer that
    had the new one: then it owns nothing beyond what it has."""
    assert epoch >= 0, "who leaves is not asked for it"
    if epoch in (0, member.epoch):  # guard: older-member-epoch-accepted
        return None
    is_newer = epoch > member.epoch
    was_before = epoch == member.previous_epoch and not is_newer
    if was_before and owned is not None and is_within(owned, member.assigned):
        return None
    return Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_newer else 'smaller'} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member.epoch}). {ABANDON}",
    )


# --- what it says


def updated(member: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """What is null in the request did not change."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    patience_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack=member.rack if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if patience_ms == -1 else patience_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=f"/{caller.host}",
        classic=None,
    )


def partitions_in(member: Member) -> Partitions:
    return {topic_id: frozenset(them) for topic_id, them in member.assigned.items()}


def assignment_of(member: Member) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitionsResponse(topic_id=topic_id, partitions=tuple(sorted(them)))
            for topic_id, them in sorted(member.assigned.items())
        )
    )
