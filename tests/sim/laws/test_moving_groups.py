"""The law about the log of a group that changes its protocol: what is written is one group, whose epochs count on."""

from typing import Any

import pytest
from tests.rows import each

from strandline.base.ids import Uuid
from strandline.metadata.image import Image
from strandline.metadata.records import TopicRecord
from strandline.sim.laws.clients.replayed import Replayed
from strandline.wire.batch import batches, build
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_embedded,
)
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)

Row = tuple[Any, Any]
GROUP = GroupMetadataKey(group="g")
EPOCH = r.ConsumerGroupMetadataKey(group="g")
MEMBER = r.ConsumerGroupMemberMetadataKey(group="g", member_id="m")
HAS = r.ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="m")
OFFSET = OffsetCommitKey(group="g", topic="t", partition=0)
TOPIC = Uuid(b"t" * 16)
ASSIGNED = (r.CurrentTopicPartitions(topic_id=TOPIC, partitions=(0,)),)


def classic(generation: int, *members: str) -> Row:
    rows = tuple(MemberMetadata(member_id=one) for one in members)
    return GROUP, GroupMetadataValue(protocol_type="consumer", generation=generation, protocol="range", members=rows)


def consumer(epoch: int, member_epoch: int) -> tuple[Row, ...]:
    return (
        (MEMBER, r.ConsumerGroupMemberMetadataValue()),
        (EPOCH, r.ConsumerGroupMetadataValue(epoch=epoch)),
        (HAS, r.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=member_epoch, assigned_partitions=ASSIGNED)),
    )


UPGRADE = ((GROUP, None), *consumer(4, 4))
DOWNGRADE = ((HAS, None), (MEMBER, None), (EPOCH, None))


def replay(*written: tuple[Row, ...]) -> Replayed:
    replayed, offset = Replayed(0, set()), 0
    for rows in written:
        records = [(0, encode_key(key), None if value is None else encode_value(value), ()) for key, value in rows]
        buffer = build(records, base_offset=offset)
        for header in batches(buffer):
            replayed.take_batch(header, memoryview(buffer))
        offset += len(rows)
    return replayed


@each(
    ("written", "why"),
    [
        ([(classic(4, "m"),), UPGRADE, (*DOWNGRADE, classic(5, "m")), ((GROUP, None), *consumer(6, 6))], None),
        ([(classic(4),), consumer(1, 1)], None),  # nobody was in it: it is a new one
        ([(classic(4, "n"),), ((GROUP, None), *consumer(1, 1))], None),  # the last one had left it
        ([(classic(4, "m", "n"),), ((GROUP, None), *consumer(1, 1))], "the epoch of g goes back from 4 to 1"),
        ([(classic(4, "m"),), ((GROUP, None), *consumer(3, 3))], "the epoch of g goes back from 4 to 3"),
        (
            [(classic(4, "m"),), UPGRADE, (*DOWNGRADE, classic(3, "m"))],
            "m was in epoch 4 of g, which goes on as a classic",
        ),
        ([(classic(4, "m"),), (classic(3, "m"),)], "g goes back from 4 to generation 3"),
        ([(classic(4, "m"),), consumer(4, 4)], "g is a classic group with members, too"),
        ([(classic(4, "m"),), UPGRADE, (classic(5, "m"),)], "g is of both protocols"),
        ([UPGRADE, ((OFFSET, OffsetCommitValue(offset=1)),), ((OFFSET, None),)], "an offset of .* is removed"),
    ],
)
def test_a_group_whose_log_does_not_count_on_is_noticed(written: list[tuple[Row, ...]], why: str | None) -> None:
    if why is None:
        replay(*written)
        return
    with pytest.raises(AssertionError, match=why):
        replay(*written)


def test_a_member_that_stays_in_its_group_through_a_downgrade_is_not_taken_out() -> None:
    both = [(classic(4, "m"),), UPGRADE]
    stays = replay(*both, (*DOWNGRADE, classic(4, "m"))).consumers["g"]
    assert (stays.gone, stays.ended_at) == ([], -1)
    leaves = replay(*both, DOWNGRADE).consumers["g"]
    assert [one.member_id for one in leaves.gone] == ["m"]
    assert leaves.ended_at >= 0


@each(
    ("epoch", "given", "committed", "written", "is_written"),
    [
        (4, (0,), 9, [UPGRADE], True),
        (4, (0,), 9, [UPGRADE, (*DOWNGRADE, classic(4, "m"))], True),  # it has gone on as a classic group since
        (4, (0,), 3, [UPGRADE, (*DOWNGRADE, classic(4, "m"))], False),  # what it had is not committed
        (5, (0,), 9, [UPGRADE, (*DOWNGRADE, classic(5, "m"))], False),
        (4, (0, 1), 9, [UPGRADE, (*DOWNGRADE, classic(4, "m"))], False),
        (4, (), 9, [UPGRADE, (*DOWNGRADE, classic(4, "m"))], False),
        (4, (0,), 20, [UPGRADE, DOWNGRADE, consumer(1, 1), DOWNGRADE], False),  # that was another life of the group
    ],
)
def test_an_answer_may_be_from_before_its_group_became_a_classic_one(
    epoch: int, given: tuple[int, ...], committed: int, written: list[tuple[Row, ...]], is_written: bool
) -> None:
    image = Image()
    image.apply(TopicRecord(name="t", topic_id=TOPIC))
    group = replay(*written).consumers["g"]
    assigned = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="t", partitions=given),))
    assert group.has_assigned("m", epoch, encode_embedded(assigned, 1), committed, image) is is_written
