"""ConsumerGroupDescribe: a group as administrators see it."""

from collections.abc import Iterable

from strandline.base.ids import Uuid
from strandline.group.config import GroupConfig
from strandline.group.consumer.draft import preferred_assignor
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import NOTHING, Member, Partitions, pairs
from strandline.metadata.image import Image
from strandline.wire.messages.consumer_groups import consumer_group_describe as d

OF_CLASSIC_PROTOCOL, OF_CONSUMER_PROTOCOL = 0, 1


def described(group: ConsumerGroup, config: GroupConfig, image: Image, operations: int) -> d.DescribedGroup:
    return d.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group.members.values(), config),
        members=tuple(
            described_member(member, group.target.get(member.member_id, NOTHING), image)
            for member in group.members.values()
        ),
        authorized_operations=operations,
    )


def described_member(member: Member, target: Partitions, image: Image) -> d.Member:
    """What it must give back it still has."""
    return d.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        assignment=assignment([*pairs(member.assigned), *pairs(member.revoking)], image),
        target_assignment=assignment(pairs(target), image),
        member_type=OF_CONSUMER_PROTOCOL if member.classic is None else OF_CLASSIC_PROTOCOL,
    )


def assignment(partitions: Iterable[tuple[Uuid, int]], image: Image) -> d.Assignment:
    """A topic that was deleted has no name any more, and is left out."""
    found: dict[Uuid, list[int]] = {}
    for topic_id, partition in partitions:
        if topic_id in image.topics:
            found.setdefault(topic_id, []).append(partition)
    return d.Assignment(
        topic_partitions=tuple(
            d.TopicPartitions(topic_id=topic_id, topic_name=image.topics[topic_id].name, partitions=tuple(sorted(them)))
            for topic_id, them in sorted(found.items())
        )
    )
