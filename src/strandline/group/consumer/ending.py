"""The end of a group: tombstones for all that its records say, in Kafka's order."""

from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.stored import Record, member_tombstones, regex_tombstone
from strandline.wire.messages.consumer_groups.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


def group_tombstones(group: ConsumerGroup) -> list[Record]:
    assert not group.members, "the tombstones of its members come first"
    return own_tombstones(group)


def own_tombstones(group: ConsumerGroup) -> list[Record]:
    group_id = group.group_id
    records: list[Record] = [regex_tombstone(group_id, regex) for regex in sorted(group.regexes)]
    records.append((ConsumerGroupTargetAssignmentMetadataKey(group=group_id), None))
    if group.has_partition_metadata:
        records.append((ConsumerGroupPartitionMetadataKey(group=group_id), None))
    return [*records, (ConsumerGroupMetadataKey(group=group_id), None)]


def tombstones_of_all(group: ConsumerGroup) -> list[Record]:
    """With its members."""
    assert group.members, "an empty group ends without them"
    members = [record for member_id in group.members for record in member_tombstones(group.group_id, member_id)]
    return [*members, *own_tombstones(group)]
