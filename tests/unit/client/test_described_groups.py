"""Groups of both protocols as values, from what coordinators answer."""

from strandline.base.errors import ErrorCode
from strandline.client.admin.groups.consumers import of_consumers
from strandline.client.admin.groups.described import CLASSIC, CONSUMER, GroupState
from strandline.client.admin.groups.states import of_classic
from strandline.client.admin.partitions import Place
from strandline.wire.messages.consumer_groups import consumer_group_describe as wire
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_embedded,
)
from strandline.wire.messages.groups.describe_groups import DescribedGroup, DescribedGroupMember

READS = encode_embedded(ConsumerProtocolSubscription(topics=("u", "t")), 1)
HAS = encode_embedded(ConsumerProtocolAssignment(assigned_partitions=(TopicPartition("t", (2, 0)),)), 1)


def classic(metadata: bytes, assignment: bytes, protocol_type: str = "consumer") -> GroupState:
    member = DescribedGroupMember("m", "i", "app", "/h", metadata, assignment)
    row = DescribedGroup(
        group_id="g", group_state="Stable", protocol_type=protocol_type, protocol_data="range", members=(member,)
    )
    state = of_classic(3, row)
    assert isinstance(state, GroupState)
    return state


def test_members_of_the_classic_protocol_say_what_they_read() -> None:
    state = classic(READS, HAS)
    assert (state.type, state.assignor, state.coordinator, state.epoch) == (CLASSIC, "range", 3, None)
    (member,) = state.members
    assert (member.subscribed, member.assigned) == (("t", "u"), (Place("t", 0), Place("t", 2)))
    assert (member.instance_id, member.epoch, member.target) == ("i", None, None)
    assert state.owners() == {Place("t", 0): member, Place("t", 2): member}


def test_texts_that_nobody_else_can_read_are_left_out() -> None:
    for state in (classic(b"junk", b"\0"), classic(READS, HAS, "connect"), classic(b"", b"")):
        assert (state.members[0].subscribed, state.members[0].assigned) == ((), ())


def test_a_dead_group_is_one_that_is_not_there() -> None:
    assert of_classic(3, DescribedGroup(group_id="g", group_state="Dead")) is ErrorCode.GROUP_ID_NOT_FOUND
    refused = DescribedGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    assert of_classic(3, refused) is ErrorCode.NOT_COORDINATOR


def test_members_of_the_consumer_protocol_have_epochs_and_targets() -> None:
    def places(*indexes: int) -> wire.Assignment:
        return wire.Assignment((wire.TopicPartitions(topic_name="t", partitions=indexes),))

    member = wire.Member(
        member_id="m",
        member_epoch=4,
        client_id="app",
        client_host="/h",
        subscribed_topic_names=("t",),
        assignment=places(1, 0),
        target_assignment=places(0),
    )
    row = wire.DescribedGroup(
        group_id="g", group_state="Reconciling", group_epoch=5, assignor_name="uniform", members=(member,)
    )
    state = of_consumers(3, row)
    assert isinstance(state, GroupState)
    assert (state.type, state.epoch, state.assignor, state.progress) == (CONSUMER, 5, "uniform", None)
    (found,) = state.members
    assert (found.epoch, found.assigned, found.target) == (4, (Place("t", 0), Place("t", 1)), (Place("t", 0),))
    assert of_consumers(3, wire.DescribedGroup(error_code=69)) is ErrorCode.GROUP_ID_NOT_FOUND
