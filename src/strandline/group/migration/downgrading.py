"""A consumer group becomes a classic one, when its last member of the consumer protocol is gone (KIP-848, "Downgrade").

The group's record has its members with what they own. Kafka's has what the target assignment gives them. Nobody is
assigned it from there; but if the group goes back to the consumer protocol at once, the record says who owns what. It
names no leader if the members must join again. A coordinator that loads it then begins that rebalance, as the one that
wrote it has.
"""

from collections.abc import Collection

from strandline.base.time import Instant
from strandline.group.classic import member as classic
from strandline.group.classic.voting import common_protocols, vote
from strandline.group.config import BIDIRECTIONAL, DOWNGRADE, GroupConfig
from strandline.group.consumer.ending import tombstones_of_all
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Member, pairs
from strandline.group.migration.embedded import embedded_assignment
from strandline.metadata.image import Image
from strandline.wire.compress import Corrupt
from strandline.wire.messages.groups.consumer_protocol import PROTOCOL_TYPE, version_of
from strandline.wire.messages.groups.group_records import (
    GroupKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupValue,
    MemberMetadata,
)

Records = tuple[tuple[GroupKey, GroupValue | None], ...]


def downgraded(
    group: ConsumerGroup, gone: Collection[str], config: GroupConfig, image: Image, now: Instant
) -> Records | None:
    """The records by which the group goes on as a classic one without these members. None: it may not, or need not.
    Kafka looks only when a member of the consumer protocol goes. Here it may also be one of the classic protocol: the
    policy may not have permitted it before."""
    remaining = [member for member in group.members.values() if member.member_id not in gone]
    return records_of(group, remaining, config, image, now, must_rebalance=True)


def replaced(
    group: ConsumerGroup,
    holder: Member,
    new: Member,
    config: GroupConfig,
    image: Image,
    now: Instant,
    *,
    must_rebalance: bool,
) -> Records | None:
    """The same if `new`, which speaks the classic protocol, takes the place of the static member `holder`."""
    if holder.classic is not None:
        return None  # nothing has changed
    members = [new if member.member_id == holder.member_id else member for member in group.members.values()]
    return records_of(group, members, config, image, now, must_rebalance=must_rebalance)


def records_of(
    group: ConsumerGroup,
    members: list[Member],
    config: GroupConfig,
    image: Image,
    now: Instant,
    *,
    must_rebalance: bool,
) -> Records | None:
    # guard: group-never-goes-back
    if config.consumer_migration_policy not in (DOWNGRADE, BIDIRECTIONAL) or not group.epoch:
        return None
    if not 0 < len(members) <= config.max_size or any(member.classic is None for member in members):
        return None
    protocol = common_protocol(members)
    if protocol is None:
        return None
    try:
        rows = tuple(member_row(member, protocol, image) for member in members)
    except Corrupt:
        return None  # no classic member can have joined so: another writer's record
    assert len({row.member_id for row in rows}) == len(rows), "each member once"
    value = GroupMetadataValue(
        protocol_type=PROTOCOL_TYPE,
        # No member has a later epoch. Those that have this one join again with what they have; others are fenced.
        # guard: downgrade-begins-anew
        generation=group.target_epoch if group.target_epoch > 0 else group.epoch,
        protocol=protocol,
        # guard: downgrade-without-rebalance
        leader=None if must_rebalance else members[0].member_id,
        current_state_timestamp=now,
        members=rows,
    )
    # guard: consumer-group-outlives-its-downgrade
    return (*tombstones_of_all(group), (GroupMetadataKey(group=group.group_id), value))


def common_protocol(members: list[Member]) -> str | None:
    """The one for which most of them vote, as in a rebalance."""
    voters = [as_classic(member) for member in members]
    if not all(voter.protocols for voter in voters) or not common_protocols(voters):
        return None
    return vote(voters)


def as_classic(member: Member) -> classic.Member:
    assert member.classic is not None
    return classic.Member(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=protocols_of(member),
    )


def protocols_of(member: Member) -> dict[str, bytes]:
    assert member.classic is not None
    return {protocol.name: bytes(protocol.metadata) for protocol in member.classic.supported_protocols}


def member_row(member: Member, protocol: str, image: Image) -> MemberMetadata:
    assert member.classic is not None
    subscription = protocols_of(member)[protocol]
    owned = [*pairs(member.assigned), *pairs(member.revoking)]  # guard: downgrade-forgets-assignments
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.classic.session_timeout_ms,
        subscription=subscription,
        assignment=embedded_assignment(owned, image, version_of(subscription)),
    )
