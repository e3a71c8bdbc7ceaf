"""KIP-848: groups of both protocols have one namespace. An empty group changes its protocol at once.

Requests of the other protocol have the errors that Kafka has for them.
"""

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.group.consuming import Consumer, Consumers, error_of
from tests.unit.group.coordination import commit_request, join_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.group_records import GroupMetadataKey
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest


@pytest.fixture
def world() -> Consumers:
    return Consumers()


@each(
    ("request_", "error"),
    [
        (join_request(), E.MEMBER_ID_REQUIRED),
        (join_request("m"), E.INCONSISTENT_GROUP_PROTOCOL),
        (join_request("m", protocol_type="connect"), E.INCONSISTENT_GROUP_PROTOCOL),
        (join_request("m", protocols={}), E.INCONSISTENT_GROUP_PROTOCOL),
        (join_request("m", session=1), E.INVALID_SESSION_TIMEOUT),
        (join_request("m" * 40_000), E.INVALID_REQUEST),
        (SyncGroupRequest(group_id="g", member_id="a", generation_id=1), E.UNKNOWN_MEMBER_ID),
        (HeartbeatRequest(group_id="g", member_id="a", generation_id=1), E.UNKNOWN_MEMBER_ID),
    ],
)
def test_requests_of_the_classic_protocol_that_a_group_of_the_other_refuses(request_: object, error: E) -> None:
    world = Consumers()
    world.consumer("a")
    assert E(world.ask(request_).error_code) is error
    left = world.ask(LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="b"),)))
    assert E(left.members[0].error_code) is E.UNKNOWN_MEMBER_ID
    assert world.consumers.members.keys() == {"a"}


def test_members_of_the_consumer_protocol_are_refused_by_a_classic_group_with_members(world: Consumers) -> None:
    world.stable()
    for epoch in (1, -1):
        refused = world.ask(replace(Consumer(world, "a").first(), member_epoch=epoch))
        assert error_of(refused) == (E.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    assert len(world.group.members) == 1


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_first_heartbeat(world: Consumers) -> None:
    member_id = world.stable()
    world.ask(commit_request(7, member_id, 1), 9)
    world.leave(MemberIdentity(member_id=member_id))
    world.commit()
    a = world.consumer("a")
    assert a.epoch == 1
    for shard in (world.shard, world.reload()):
        assert shard.consumer("g") is not None
        assert shard.offsets["g"]["t", 0].offset == 7, "it goes on where the other ended"


def test_an_empty_consumer_group_becomes_a_classic_one_with_join_group(world: Consumers) -> None:
    world.consumer("a", subscribed_topic_names=(), subscribed_topic_regex="t").leave()
    assert E(world.answers[world.join("a")].error_code) is E.UNKNOWN_MEMBER_ID
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    assert E(world.answers[world.join()].error_code) is E.COORDINATOR_NOT_AVAILABLE
    assert world.consumers.members == {}, "what the log refuses changes nothing"
    world.log.refuses = None
    world.stable()
    for shard in (world.shard, world.reload()):
        assert shard.classic("g") is not None
    assert world.log.live_keys() == [GroupMetadataKey(group="g")], "of the other group nothing is left"


def test_groups_are_listed_with_their_types_and_states(world: Consumers) -> None:
    a = world.consumer("a")
    world.ask(replace(commit_request(1), group_id="lone"), 9)

    def listed(**filters: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
        rows = world.ask(ListGroupsRequest(**filters)).groups
        return [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in rows]

    consumers, lone = ("g", "consumer", "Stable", "consumer"), ("lone", "", "Empty", "classic")
    assert listed() == [consumers, lone]
    assert listed(types_filter=("Consumer",)) == [consumers]
    assert listed(types_filter=("classic",)) == [lone]
    assert listed(states_filter=("stable",)) == [consumers]
    a.leave()
    assert [row[2] for row in listed(types_filter=("consumer",))] == ["Empty"]


def test_a_group_is_described_by_the_request_of_its_protocol(world: Consumers) -> None:
    a = world.consumer("a", rack_id="r", instance="i")
    world.consumer("b")
    a.beat()
    group = world.described()
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Reconciling", 2, 2)
    found = {member.member_id: member for member in group.members}
    assert [(m.instance_id, m.rack_id, m.member_epoch, m.member_type) for m in found.values()] == [
        ("i", "r", 1, 1),
        (None, None, 2, 1),
    ]
    assert (found["a"].client_id, found["a"].client_host, found["a"].subscribed_topic_names) == (
        "app",
        "/10.0.0.1",
        ("t",),
    )
    assert world.names(found["a"].assignment.topic_partitions) == {("t", 0), ("t", 1)}, "what it must give back, too"
    assert len(world.names(found["a"].target_assignment.topic_partitions)) == 1
    classic = world.ask(DescribeGroupsRequest(groups=("g",)), 6).groups[0]
    assert (classic.error_code, classic.error_message) == (E.GROUP_ID_NOT_FOUND, "Group g is not a classic group.")
    assert world.ask(DescribeGroupsRequest(groups=("g",)), 5).groups[0].group_state == "Dead"
    world.join(group_id="other")
    rows = world.ask(ConsumerGroupDescribeRequest(group_ids=("other", "none", ""))).groups
    assert [(E(row.error_code), row.error_message) for row in rows] == [
        (E.GROUP_ID_NOT_FOUND, "Group other is not a consumer group."),
        (E.GROUP_ID_NOT_FOUND, "Group none not found."),
        (E.INVALID_GROUP_ID, None),
    ]


def test_a_topic_that_was_deleted_is_not_described(world: Consumers) -> None:
    world.consumer("a", subscribed_topic_names=("t", "u"))
    world.delete("t")
    found = world.described().members[0]
    assert {topic.topic_name for topic in found.assignment.topic_partitions} == {"u"}


def test_an_empty_group_is_deleted_and_one_with_members_is_not(world: Consumers) -> None:
    a = world.consumer("a", subscribed_topic_names=(), subscribed_topic_regex="t")

    def deleted() -> E:
        return E(world.ask(DeleteGroupsRequest(groups_names=("g",))).results[0].error_code)

    assert deleted() is E.NON_EMPTY_GROUP
    a.leave()
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    assert deleted() is E.COORDINATOR_NOT_AVAILABLE
    assert world.consumers.epoch == 2, "what the log refuses changes nothing"
    world.log.refuses = None
    assert deleted() is E.NONE
    assert (world.shard.groups, world.log.live_keys()) == ({}, [])
    assert deleted() is E.GROUP_ID_NOT_FOUND
    assert world.consumer("a").epoch == 1, "a new group begins anew"
