"""The end of a group: tombstones for all that its records say, in Kafka's order."""

from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.stored import Record, regex_tombstone
from strandline.wire.messages.consumer_groups.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


def group_tombstones(group: ConsumerGroup) -> list[Record]:
    assert not group.members, "the tombstones of its members come first"
    group_id = group.group_id
    records: list[Record] = [regex_tombstone(group_id, regex) for regex in sorted(group.regexes)]
    records.append((ConsumerGroupTargetAssignmentMetadataKey(group=group_id), None))
    if group.has_partition_metadata:
        records.append((ConsumerGroupPartitionMetadataKey(group=group_id), None))
    return [*records, (ConsumerGroupMetadataKey(group=group_id), None)]
