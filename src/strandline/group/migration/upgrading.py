"""A classic group with members becomes a consumer group, when the first member of the consumer protocol joins (KIP-848,
"Upgrade").

Rules:
  - the group's epochs are the generation, and each member has what the last assignment gave it
  - a member that consumes cooperatively may still own more than that: what it said when it last joined, and nobody else
    has. It must give that back first (Kafka forgets it, and may assign it to another member at once)
  - the members learn with their next heartbeat that they must join again
"""

from collections.abc import Iterable

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.group.classic import member as classic
from strandline.group.classic.group import Group
from strandline.group.config import BIDIRECTIONAL, UPGRADE, GroupConfig
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Held, Member, MemberState, Partitions, pairs
from strandline.group.consumer.planning import Refused
from strandline.group.consumer.stored import (
    Record,
    current_record,
    member_record,
    metadata_record,
    target_epoch_record,
    target_record,
)
from strandline.group.migration.embedded import by_id
from strandline.metadata.image import Image
from strandline.wire.compress import Corrupt
from strandline.wire.messages.consumer_groups.records import ClassicMemberMetadata, ClassicProtocol
from strandline.wire.messages.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_embedded,
)

# Assignors of Kafka's and librdkafka's clients. What they say in an assignment's user data, nobody needs.
KNOWN_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def upgraded(group: Group, config: GroupConfig, image: Image) -> ConsumerGroup | Refused:
    """The group as it will be. `creation_records` has what the log is to say. Errors and messages are Kafka's."""
    why = why_not_upgrade(group, config)
    if why is not None:
        return cannot(group, why)
    made = ConsumerGroup(group.group_id)
    try:
        members = [member_of(group, member, image) for member in group.members.values()]
    except Corrupt:
        return cannot(group, "the embedded consumer protocol is malformed")
    except UnknownAssignor:
        return cannot(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        )
    for member, claimed in with_one_owner(members):
        made.target[member.member_id] = {topic_id: frozenset(them) for topic_id, them in member.assigned.items()}
        made.put(must_give_back(member, claimed))
    made.epoch = made.target_epoch = group.generation  # guard: upgrade-begins-anew
    made.check()
    assert made.members.keys() == group.members.keys(), "nobody is lost on the way"
    return made


def why_not_upgrade(group: Group, config: GroupConfig) -> str | None:
    if config.consumer_migration_policy not in (UPGRADE, BIDIRECTIONAL):
        return "online upgrade is disabled"
    if group.protocol_type != PROTOCOL_TYPE:
        return "the group does not use the consumer embedded protocol"
    if len(group.members) > config.consumer_max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def cannot(group: Group, why: str) -> Refused:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)


class UnknownAssignor(Exception):
    """What it has put into the assignments would be lost."""


def member_of(group: Group, member: classic.Member, image: Image) -> tuple[Member, Partitions]:
    """With what it said that it owned. Raises Corrupt and UnknownAssignor."""
    protocol = group.protocol if group.protocol in member.protocols else next(iter(member.protocols))
    subscription = decode_embedded(ConsumerProtocolSubscription, member.protocols[protocol])
    # A member that has just joined was never assigned anything.
    assignment = (
        decode_embedded(ConsumerProtocolAssignment, member.assignment)
        if member.assignment
        else ConsumerProtocolAssignment()
    )
    if assignment.user_data and protocol not in KNOWN_ASSIGNORS:
        raise UnknownAssignor
    assigned = by_id(assignment.assigned_partitions, image)  # guard: upgrade-forgets-assignments
    return (
        Member(
            member.member_id,
            instance_id=member.instance_id,
            rack=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=frozenset(subscription.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=classic_metadata(member.session_timeout_ms, member.protocols),
            epoch=group.generation,
            previous_epoch=group.generation,
            assigned={topic_id: dict.fromkeys(them, group.generation) for topic_id, them in assigned.items()},
        ),
        by_id(subscription.owned_partitions, image),
    )


def classic_metadata(session_timeout_ms: int, protocols: dict[str, bytes]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=tuple(ClassicProtocol(name=name, metadata=data) for name, data in protocols.items()),
    )


def with_one_owner(members: list[tuple[Member, Partitions]]) -> list[tuple[Member, Held]]:
    """Each partition has one owner from here on: the first to whom it was assigned, else the first who claims it."""
    taken: set[tuple[Uuid, int]] = set()
    found = []
    for member, claimed in members:
        assigned = first_of(pairs(member.assigned), taken, member.epoch)
        found.append((replace(member, assigned=assigned), claimed))
    return [(member, first_of(pairs(claimed), taken, member.epoch)) for member, claimed in found]


def first_of(wanted: Iterable[tuple[Uuid, int]], taken: set[tuple[Uuid, int]], epoch: int) -> Held:
    assert epoch >= 0, "a generation"
    found: dict[Uuid, dict[int, int]] = {}
    for at in wanted:
        if at not in taken:
            taken.add(at)
            found.setdefault(at[0], {})[at[1]] = epoch
    return found


def must_give_back(member: Member, claimed: Held) -> Member:
    assert all(claimed.values()), "no topic without partitions"
    if not claimed:  # guard: upgrade-forgets-what-members-still-own
        return member
    return replace(member, state=MemberState.UNREVOKED_PARTITIONS, revoking=claimed)


def creation_records(group: ConsumerGroup) -> list[Record]:
    """All that there is to say about a group that was made from a classic one; nothing about an empty one. In Kafka's
    order."""
    if not group.members and not group.epoch:
        return []
    assert group.target.keys() == group.members.keys(), "each member has a target"
    group_id, members = group.group_id, group.members.values()
    return [
        *(member_record(group_id, member) for member in members),
        metadata_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, member_id, group.target[member_id]) for member_id in group.members),
        target_epoch_record(group_id, group.target_epoch),
        *(current_record(group_id, member) for member in members),
    ]
