"""Members and assignments as the records of `__consumer_offsets` have them, in both directions."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.group.consumer.member import AWAY, STATE_BY_NUMBER, Held, Member, MemberState, Partitions, pairs
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.consumer_groups.records import ConsumerGroupKey, ConsumerGroupValue

Record = tuple[ConsumerGroupKey, ConsumerGroupValue | None]  # None: a tombstone

# An epoch is a 32-bit number, and grows by one with each rebalance. None comes so far by counting, and behind this
# there is room for a million rebalances.
EPOCH_END = (1 << 31) - (1 << 20)


def is_sane(value: ConsumerGroupValue) -> bool:
    """Is there a group with such a record? A client that calls itself Kafka's tool may write any."""
    match value:
        case r.ConsumerGroupMetadataValue():
            return 0 <= value.epoch < EPOCH_END
        case r.ConsumerGroupTargetAssignmentMetadataValue():
            return -1 <= value.assignment_epoch < EPOCH_END
        case r.ConsumerGroupTargetAssignmentMemberValue():
            return all(p >= 0 for row in value.topic_partitions for p in row.partitions)
        case r.ConsumerGroupCurrentMemberAssignmentValue():
            rows = (*value.assigned_partitions, *value.partitions_pending_revocation)
            listed = [(row.topic_id, p) for row in rows for p in row.partitions]
            epochs = [epoch for row in rows for epoch in row.assignment_epochs or ()]
            gives_back = any(row.partitions for row in value.partitions_pending_revocation)
            return (
                AWAY <= value.member_epoch < EPOCH_END
                and AWAY <= value.previous_member_epoch < EPOCH_END
                and all(0 <= epoch < EPOCH_END for epoch in epochs)
                and all(p >= 0 for _, p in listed)
                and len(set(listed)) == len(listed)
                and (not gives_back or value.state == MemberState.UNREVOKED_PARTITIONS.value)
            )
        case _:
            return True


# --- from records


def member_of(member: Member, value: ConsumerGroupValue) -> Member:
    match value:
        case r.ConsumerGroupMemberMetadataValue():
            return replace(
                member,
                instance_id=value.instance_id,
                rack=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                topics=frozenset(value.subscribed_topic_names),
                regex=value.subscribed_topic_regex or "",
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                assignor=value.server_assignor,
                classic=owned_copy(value.classic_member_metadata),
            )
        case r.ConsumerGroupCurrentMemberAssignmentValue():
            return replace(
                member,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=STATE_BY_NUMBER.get(value.state, MemberState.UNKNOWN),
                assigned=held_of(value.assigned_partitions, value.member_epoch),
                revoking=held_of(value.partitions_pending_revocation, value.member_epoch),
            )
        case _:
            raise AssertionError(f"{type(value).__name__} is not about a member")


def owned_copy(classic: r.ClassicMemberMetadata | None) -> r.ClassicMemberMetadata | None:
    """Not a view of the batch that it was read from. A record that does not have the field is an older one of ours, and
    no classic member supports no protocol."""
    if classic is None or not classic.supported_protocols:
        return None
    protocols = tuple(r.ClassicProtocol(name=p.name, metadata=bytes(p.metadata)) for p in classic.supported_protocols)
    return replace(classic, supported_protocols=protocols)


def partitions_of(rows: Iterable[Any]) -> Partitions:
    """Of rows that have a topic id and partitions."""
    found: dict[Uuid, frozenset[int]] = {}
    for row in rows:
        if row.partitions:
            topic_id = Uuid(bytes(row.topic_id))
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(row.partitions)
    return found


def held_of(rows: Iterable[r.CurrentTopicPartitions], member_epoch: int) -> Held:
    """A record without the epochs of its partitions is of Kafka before 4.2: the member's own epoch stands for them."""
    assert member_epoch >= AWAY, "others are not read"
    found: dict[Uuid, dict[int, int]] = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = (max(member_epoch, 0),) * len(row.partitions)
        if row.partitions:
            found.setdefault(Uuid(bytes(row.topic_id)), {}).update(zip(row.partitions, epochs, strict=True))
    return found


# --- to records


def metadata_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    assert 0 <= epoch < EPOCH_END
    return (
        r.ConsumerGroupMetadataKey(group=group_id),
        r.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: Member) -> Record:
    assert member.member_id, "no record is about a member without an id"
    return (
        r.ConsumerGroupMemberMetadataKey(group=group_id, member_id=member.member_id),
        r.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.topics)),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def current_record(group_id: str, member: Member) -> Record:
    assert AWAY <= member.epoch < EPOCH_END and AWAY <= member.previous_epoch < EPOCH_END
    assert not member.revoking or member.state is MemberState.UNREVOKED_PARTITIONS, "it gives back, and is known to"
    return (
        r.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.member_id),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state.value,
            assigned_partitions=held_rows(member.assigned),
            partitions_pending_revocation=held_rows(member.revoking),
        ),
    )


def held_rows(held: Held) -> tuple[r.CurrentTopicPartitions, ...]:
    return tuple(
        r.CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=tuple(sorted(them)),
            assignment_epochs=tuple(them[p] for p in sorted(them)),
        )
        for topic_id, them in sorted(held.items())
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> Record:
    return (
        r.ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id),
        r.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=tuple(
                r.TargetTopicPartition(topic_id=topic_id, partitions=tuple(sorted(them)))
                for topic_id, them in sorted(target.items())
                if them
            )
        ),
    )


def target_epoch_record(group_id: str, epoch: int, now_ms: int = 0) -> Record:
    """`now_ms`: when the assignment was computed; 0: it was not, since the group is empty."""
    assert 0 <= epoch < EPOCH_END and now_ms >= 0
    return (
        r.ConsumerGroupTargetAssignmentMetadataKey(group=group_id),
        r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms),
    )


def regex_record(group_id: str, regex: str, topics: Iterable[str], now_ms: int) -> Record:
    """The version stays 0, which is older than all metadata: another coordinator resolves the expression again."""
    assert regex and now_ms >= 0
    return (
        r.ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=regex),
        r.ConsumerGroupRegularExpressionValue(topics=tuple(sorted(topics)), version=0, timestamp=now_ms),
    )


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """In Kafka's order, in which each record is about something that is there."""
    return [
        (r.ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None),
        # guard: target-outlives-its-member
        (r.ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), None),
        # guard: member-outlives-its-tombstone
        (r.ConsumerGroupMemberMetadataKey(group=group_id, member_id=member_id), None),
    ]


def regex_tombstone(group_id: str, regex: str) -> Record:
    return (r.ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=regex), None)


def same(a: Partitions, b: Partitions) -> bool:
    return frozenset(pairs(a)) == frozenset(pairs(b))
