"""JoinGroup of a member that speaks the classic protocol, to a group of the consumer protocol (KIP-848).

The coordinator assigns, so nobody waits for the other members. The answer's generation is the member's epoch, and
SyncGroup gets what the member has. What the member still owns stands in its subscription.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from strandline.base.effects import Caller
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.group.config import DISABLED, GroupConfig
from strandline.group.consumer.catalog import ids_of
from strandline.group.consumer.draft import Draft
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Member, MemberState, Partitions, pairs
from strandline.group.consumer.reconciling import reconciled
from strandline.group.consumer.stored import current_record, member_record
from strandline.group.migration.downgrading import Records, protocols_of, replaced
from strandline.group.migration.embedded import by_id
from strandline.group.migration.upgrading import classic_metadata
from strandline.metadata.image import Image
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolSubscription,
    decode_embedded,
)
from strandline.wire.messages.groups.join_group import JoinGroupRequest


class Joined(Value, frozen=True):
    """`takes_over`: the member whose place it takes, if the group becomes a classic one with that. `is_quiet`: and
    nobody else need join again."""

    member: Member
    records: Records
    has_looked: bool = False
    takes_over: str | None = None
    is_quiet: bool = False


def plan_join(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    member_id: str,
    caller: Caller,
    config: GroupConfig,
    image: Image,
    now: Instant,
) -> Joined | ErrorCode:
    """`member_id`: the request's own, or a new one."""
    assert member_id and request.protocols
    try:
        subscription = decode_embedded(ConsumerProtocolSubscription, request.protocols[0].metadata)
    except Corrupt:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    draft = Draft(group, config, image)
    holder = group.members.get(group.static.get(request.group_instance_id or "", ""))
    owned = by_id(subscription.owned_partitions, image)
    before = find(draft, holder, request, member_id, owned)
    if isinstance(before, ErrorCode):
        return before
    is_new = before.member_id not in draft.members
    after = updated(before, request, subscription, caller)
    assert after.member_id == member_id and after.classic is not None
    if is_new or after != before:
        draft.records.append(member_record(group.group_id, after))
    assignor = draft.assignor()
    draft.members[member_id] = after
    draft.forget_regexes()
    is_changed = (after.topics, after.regex) != (before.topics, before.regex)
    draft.renew(must=is_new or is_changed or draft.assignor() != assignor)
    # A regular expression that matches other topics now is resolved with a heartbeat of the consumer protocol.
    has_looked = draft.has_looked and not draft.regexes
    if holder is not None and holder.member_id != member_id:
        found = downgraded_with(draft, holder, after, owned, now)
        if found is not None:
            return found
    draft.assign(now)
    moved = moved_on(draft, after, owned)
    if moved != after:
        draft.records.append(current_record(group.group_id, moved))
    return Joined(moved, tuple(draft.records), has_looked)


def why_not_join(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, config: GroupConfig
) -> ErrorCode | None:
    """In Kafka's order."""
    if config.consumer_migration_policy == DISABLED:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    is_known = member_id in group.members or request.group_instance_id in group.static
    if len(group.members) >= config.consumer_max_size and not is_known:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    names = {protocol.name for protocol in request.protocols}
    others = [m for m in group.members.values() if m.classic is not None and m.member_id != member_id]
    if request.protocol_type != PROTOCOL_TYPE or not names or not supported_by(others, names):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def supported_by(members: Iterable[Member], names: Collection[str]) -> bool:
    """Could they go on as a classic group?"""
    common = set(names)
    for member in members:
        common &= protocols_of(member).keys()
    return bool(common)


def find(
    draft: Draft, holder: Member | None, request: JoinGroupRequest, member_id: str, owned: Partitions
) -> Member | ErrorCode:
    """The member as it is, or as it begins. One that is not known, and owns partitions, was removed: it must give them
    up before it joins (Kafka takes it in)."""
    if request.group_instance_id is None or (holder is None and not request.member_id):
        known = draft.members.get(member_id)
        if known is None and request.member_id and owned:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return known or Member(member_id)
    if request.member_id:
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return holder if holder.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID
    assert holder is not None
    new = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
    draft.replace(holder, new)
    return new


def updated(
    member: Member, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, caller: Caller
) -> Member:
    patience = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    protocols = {protocol.name: bytes(protocol.metadata) for protocol in request.protocols}
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack=subscription.rack_id or member.rack,
        rebalance_timeout_ms=patience,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=caller.client_id,
        client_host=f"/{caller.host}",
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def moved_on(draft: Draft, member: Member, owned: Partitions) -> Member:
    target = draft.target.get(member.member_id, {})
    subscribed = ids_of(draft.image, draft.topics_of(member))
    # guard: classic-member-believed-to-own-nothing
    return reconciled(member, draft.target_epoch, target, draft.group.owner_of, owned, subscribed)


def downgraded_with(draft: Draft, holder: Member, new: Member, owned: Partitions, now: Instant) -> Joined | None:
    """The last static member of the consumer protocol comes back with the classic one. If everybody has what the target
    assignment gives it, it slips into its place. Kafka compares epochs alone; then it could be given a partition that
    another member still has to give back."""
    group = draft.group
    is_stable = draft.epoch == group.target_epoch and all(
        member.is_reconciled_to(group.target_epoch)
        for member in group.members.values()
        if member.member_id != holder.member_id
    )
    moved = moved_on(draft, new, owned) if is_stable else new
    is_quiet = is_stable and moved.is_reconciled_to(group.target_epoch)
    records = replaced(group, holder, moved, draft.config, draft.image, now, must_rebalance=not is_quiet)
    if records is None:
        return None
    return Joined(moved, records, takes_over=holder.member_id, is_quiet=is_quiet)


# --- what a member learns by its heartbeat


def must_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """A new epoch has begun, or it must give partitions back, or all those that it waits for are free now."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    # guard: released-partition-not-fetched
    return member.state is MemberState.UNRELEASED_PARTITIONS and not waits_for_others(group, member)


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    return any(
        partition not in member.assigned.get(topic_id, ())
        and group.owner_of(topic_id, partition) not in (None, member.member_id)
        for topic_id, partition in pairs(group.target.get(member.member_id, {}))
    )
