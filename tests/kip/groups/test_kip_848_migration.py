"""KIP-848, "Migration": a group moves between the classic and the consumer protocol while it runs."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rows import each
from tests.unit.group.classic_clients import (
    COOPERATIVE,
    EAGER,
    SUBSCRIPTION,
    Classic,
    Migrating,
    all_owned,
    of_six,
    pair,
)
from tests.unit.group.consuming import SESSION_MS, Consumer, error_of, replica, state
from tests.unit.group.coordination import commit_request, join_request

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State
from strandline.group.consumer.group import ConsumerGroupState
from strandline.group.consumer.member import MemberState
from strandline.wire.batch import read_header
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_embedded,
    encode_embedded,
    version_of,
)
from strandline.wire.messages.groups.group_records import GroupMetadataKey, decode_key
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.record import records


@pytest.fixture
def world() -> Migrating:
    return of_six()


def error_text(why: str) -> tuple[E, str]:
    return E.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group g to consumer group because {why}."


# --- upgrade


@each("protocol", [EAGER, COOPERATIVE], world=of_six)
def test_a_group_goes_there_and_back_with_all_its_members(world: Migrating, protocol: str) -> None:
    a, b = pair(world, protocol)
    generation = world.group.generation
    world.ask(commit_request(7, a.member_id, a.generation), 9)
    c = world.consumer("c")
    assert world.consumers.epoch == generation + 1, "generations and epochs are one row"
    assert c.has == set(), "all partitions belong to the others"
    assert replica(world.reload()) == state(world)
    world.go_on(a, b, c)
    assert world.consumers.state is ConsumerGroupState.STABLE
    assert [len(x.has) for x in (a, b, c)] == [2, 2, 2] and all_owned(world, a, b, c)
    assert world.ask(commit_request(8, a.member_id, a.generation), 9).topics[0].partitions[0].error_code == 0
    assert c.leave().member_epoch == -1
    assert world.group.state is State.PREPARING_REBALANCE
    assert world.log.live_keys().count(GroupMetadataKey(group="g")) == 1
    assert not any(type(key).__name__.startswith("ConsumerGroup") for key in world.log.live_keys())
    world.go_on(a, b)
    assert [len(x.has) for x in (a, b)] == [3, 3] and all_owned(world, a, b)
    assert world.group.generation > generation + 1
    assert world.shard.offsets["g"]["t", 0].offset == 8


def test_the_group_is_one_batch_in_kafkas_order(world: Migrating) -> None:
    a = world.classic()
    number = world.send(Consumer(world, "c").first())
    assert number not in world.answers
    assert world.commit() == 1
    keys = [type(key) for key in keys_of(world.log.batches[-1])]
    member, target, current = (
        r.ConsumerGroupMemberMetadataKey,
        r.ConsumerGroupTargetAssignmentMemberKey,
        r.ConsumerGroupCurrentMemberAssignmentKey,
    )
    epochs = [r.ConsumerGroupMetadataKey, r.ConsumerGroupTargetAssignmentMetadataKey]
    made = [GroupMetadataKey, member, epochs[0], target, epochs[1], current]
    assert keys[: len(made)] == made
    found = world.member(a.member_id)
    assert found.classic is not None
    assert (found.classic.session_timeout_ms, found.rebalance_timeout_ms) == (SESSION_MS, 60_000)
    assert (found.topics, found.client_host) == (frozenset({"t"}), "/10.0.0.1")
    described = {member.member_id: member.member_type for member in world.described().members}
    assert described == {a.member_id: 0, "c": 1}


def keys_of(batch: bytes) -> list[Any]:
    return [decode_key(record.key) for record in records(read_header(batch), batch)]


CUSTOM = encode_embedded(ConsumerProtocolAssignment(user_data=b"x"), 3)


@each(
    ("config", "changes", "assignment", "why"),
    [
        ({"consumer_migration_policy": "disabled"}, {}, b"", "online upgrade is disabled"),
        ({"consumer_migration_policy": "downgrade"}, {}, b"", "online upgrade is disabled"),
        (
            {},
            {"protocol_type": "connect"},
            b"",
            "the group does not use the consumer embedded protocol",
        ),
        ({}, {"protocols": {"range": b"\x00\x01\x00"}}, b"", "the embedded consumer protocol is malformed"),
        ({}, {"protocols": {"range": b""}}, b"", "the embedded consumer protocol is malformed"),
        ({}, {}, b"\xff\xff", "the embedded consumer protocol is malformed"),
        (
            {},
            {"protocols": {"mine": SUBSCRIPTION}},
            CUSTOM,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        ),
    ],
)
def test_a_group_that_cannot_change_stays_as_it_is(
    config: dict[str, Any], changes: dict[str, Any], assignment: bytes, why: str
) -> None:
    world = of_six(**config)
    member_id, number = world.enter(**{"protocols": {"range": SUBSCRIPTION}, **changes})
    assert world.joined(number).generation_id == 1
    world.sync(member_id, 1, {member_id: assignment})
    world.commit()
    assert error_of(world.ask(Consumer(world, "c").first())) == error_text(why)
    assert world.heartbeat(member_id, 1) is E.NONE


def test_a_group_with_too_many_members_stays_as_it_is() -> None:
    for size, expected in ((1, error_text("the group size exceeds the consumer group maximum size")), (2, None)):
        world = of_six(consumer_max_size=size)
        a, _ = pair(world)
        full = E.GROUP_MAX_SIZE_REACHED, f"The consumer group has reached its maximum capacity of {size} members."
        assert error_of(world.ask(Consumer(world, "c").first())) == (expected or full)
        assert world.heartbeat(a.member_id, a.generation) is E.NONE


def test_an_assignment_of_a_known_assignor_may_have_user_data(world: Migrating) -> None:
    """librdkafka repeats there what the subscription had."""
    member_id, _ = world.enter(protocols={"cooperative-sticky": SUBSCRIPTION})
    world.sync(member_id, 1, {member_id: CUSTOM})
    world.commit()
    assert world.consumer("c").epoch == 2


def test_what_the_log_refuses_changes_nothing(world: Migrating) -> None:
    a, b = pair(world)
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    assert error_of(world.ask(Consumer(world, "c").first()))[0] is E.COORDINATOR_NOT_AVAILABLE
    assert (world.group.state, world.shard.proofs) == (State.STABLE, {})
    world.log.refuses = None
    c = world.consumer("c")
    world.go_on(a, b, c)
    world.log.refuses = E.NOT_ENOUGH_REPLICAS
    before = state(world)
    assert error_of(c.leave())[0] is E.COORDINATOR_NOT_AVAILABLE
    leave = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=a.member_id),))
    assert E(world.ask(leave).error_code) is E.COORDINATOR_NOT_AVAILABLE
    assert E(world.ask(replace(a.join_request(), session_timeout_ms=7_000)).error_code) is E.COORDINATOR_NOT_AVAILABLE
    assert state(world) == before


def test_members_that_wait_for_a_rebalance_of_the_classic_group_join_again(world: Migrating) -> None:
    a, b = pair(world)
    world.parked.clear()
    joining = world.send(a.join_request() if a.member_id != world.group.leader else b.join_request())
    waits = world.join("", protocols={COOPERATIVE: SUBSCRIPTION})
    parked = world.join(world.answers[waits].member_id, protocols={COOPERATIVE: SUBSCRIPTION})
    assert parked not in world.answers
    world.consumer("c")
    assert E(world.answers[parked].error_code) is E.REBALANCE_IN_PROGRESS
    assert joining in world.answers
    assert len(world.consumers.members) == 4


def test_what_a_cooperative_member_still_has_is_given_to_nobody_before_it_gives_it_back(world: Migrating) -> None:
    """Its last assignment is smaller than what it owns: it is about to give the rest back."""
    a = world.classic()
    assert len(a.has) == 6
    b = Classic(world)
    b.play(b.begin())  # it is parked
    a.next = "join"
    world.commit()
    number = world.send(a.request())
    a.heard(world.answers[number])
    world.hear()
    syncing = world.send(a.request())
    world.commit()
    assert syncing in world.answers and len(a.has) == 6, "the answer is under way"
    given = decode_embedded(ConsumerProtocolAssignment, world.answers[syncing].assignment).assigned_partitions
    assert sum(len(row.partitions) for row in given) == 3
    c = world.consumer("c")
    member = world.member(a.member_id)
    assert (member.state, len(world.held(member.revoking))) == (MemberState.UNREVOKED_PARTITIONS, 3)
    assert c.has == set()
    a.heard(world.answers[syncing])
    a.next = "beat"
    world.go_on(a, b, c)
    assert [len(x.has) for x in (a, b, c)] == [2, 2, 2] and all_owned(world, a, b, c)


def test_the_subscription_is_that_of_the_protocol_that_the_group_has_chosen(world: Migrating) -> None:
    other = encode_embedded(ConsumerProtocolSubscription(topics=("u",)), 3)
    a = world.enter(protocols={"roundrobin": other, EAGER: SUBSCRIPTION})
    b = world.enter(protocols={EAGER: SUBSCRIPTION})
    again = world.join(a[0], protocols={"roundrobin": other, EAGER: SUBSCRIPTION})
    assert (world.joined(again).protocol_name, world.joined(b[1]).protocol_name) == (EAGER, EAGER)
    world.consumer("c")
    assert world.member(a[0]).topics == {"t"}


# --- classic members in a consumer group


def test_a_member_learns_by_its_heartbeat_when_it_must_join_again(world: Migrating) -> None:
    a, b = pair(world)
    beat = lambda x: world.heartbeat(x.member_id, x.generation)  # noqa: E731
    assert beat(a) is E.NONE
    c = world.consumer("c")
    assert (beat(a), beat(b)) == (E.REBALANCE_IN_PROGRESS, E.REBALANCE_IN_PROGRESS), "there is a new epoch"
    a.next = "join"
    for _ in range(2):  # JoinGroup and SyncGroup: it learns what it must give back
        number = world.send(a.request())
        world.commit()
        a.heard(world.answers[number])
    assert len(a.has) == 2
    assert beat(a) is E.REBALANCE_IN_PROGRESS, "it has not reported that yet"
    world.go_on(a, b, c)
    assert (beat(a), beat(b)) == (E.NONE, E.NONE)
    c.leave()


def test_a_member_that_waits_for_others_joins_again_when_all_is_free(world: Migrating) -> None:
    c = world.consumer("c")
    assert len(c.has) == 6
    a = world.classic()
    assert (a.has, world.heartbeat(a.member_id, a.generation)) == (set(), E.NONE)
    c.beat()
    assert world.heartbeat(a.member_id, a.generation) is E.NONE, "they are not given back"
    c.beat()
    assert world.heartbeat(a.member_id, a.generation) is E.REBALANCE_IN_PROGRESS
    world.go_on(a, c)
    assert (len(a.has), len(c.has)) == (3, 3)


def test_a_member_that_does_not_join_or_does_not_sync_in_time_is_fenced(world: Migrating) -> None:
    c = world.consumer("c")
    for does in ("join", "sync"):
        a = world.classic()
        if does == "join":
            c.beat(subscribed_topic_names=("t", "u"))  # a new epoch
            assert world.heartbeat(a.member_id, a.generation) is E.REBALANCE_IN_PROGRESS
        else:
            number = world.send(replace(a.join_request(), session_timeout_ms=90_000))
            world.commit()
            assert world.answers[number].error_code == E.NONE
        for _ in range(2):
            assert a.member_id in world.consumers.members
            world.wait(29_999)
            world.heartbeat(a.member_id, world.member(a.member_id).epoch)
            c.beat()
        world.wait(3)
        assert world.consumers.members.keys() == {"c"}, does
    a = world.classic()
    farewell = MemberIdentity(member_id=a.member_id, reason="poll timeout")
    world.ask(LeaveGroupRequest(group_id="g", members=(farewell,)))
    assert [one.why for one in world.consumers.history.departures.latest] == [
        "did not rejoin within 60000 ms (max.poll.interval.ms)",
        "joined, and did not come for its assignment within 60000 ms (max.poll.interval.ms)",
        "left: poll timeout",
    ]


def test_a_member_that_changes_its_protocol_need_not_join_any_more(world: Migrating) -> None:
    c, a = world.consumer("c"), world.classic()
    c.beat(subscribed_topic_names=("t", "u"))
    assert world.heartbeat(a.member_id, a.generation) is E.REBALANCE_IN_PROGRESS
    same = world.consumer(a.member_id)
    for _ in range(3):
        world.wait(30_000)
        world.go_on(c, same)
    assert world.consumers.members.keys() == {"c", a.member_id}


def test_a_member_has_the_session_timeout_that_it_brings(world: Migrating) -> None:
    c = world.consumer("c")
    a = world.classic()
    world.ask(replace(a.join_request(), session_timeout_ms=10_000))
    world.ask(a.request() if a.next == "sync" else replace(a.join_request(), session_timeout_ms=10_000))
    world.wait(9_000)
    world.move_away()
    world.take_over(1)
    world.wait(9_999)
    assert a.member_id in world.consumers.members, "a whole session with the new coordinator"
    world.wait(1)
    assert c.beat().error_code == E.NONE
    assert a.member_id not in world.consumers.members


@each("version", [0, 1, 2, 3, 9])
def test_an_assignment_has_the_version_of_the_members_own_subscription(version: int) -> None:
    world = of_six()
    world.consumer("c", subscribed_topic_names=("u",))
    metadata = (
        version.to_bytes(2, "big") + encode_embedded(ConsumerProtocolSubscription(topics=("t",)), min(version, 3))[2:]
    )
    request = join_request("m", protocols={EAGER: metadata + b"more" * (version == 9), "roundrobin": metadata})
    joined = world.ask(request)
    assert (joined.generation_id, joined.protocol_name, joined.leader, joined.members) == (2, EAGER, "", ())
    number = world.sync("m", 2, protocol_type="consumer", protocol_name=EAGER)
    world.commit()
    synced = world.answers[number]
    assert (synced.error_code, synced.protocol_type, synced.protocol_name) == (0, "consumer", EAGER)
    assert version_of(synced.assignment) == int.from_bytes(synced.assignment[:2], "big") == min(version, 3)
    found = decode_embedded(ConsumerProtocolAssignment, synced.assignment)
    assert found.assigned_partitions == (TopicPartition(topic="t", partitions=(0, 1, 2, 3, 4, 5)),)


@each(
    ("generation", "changes", "error"),
    [
        (1, {}, E.ILLEGAL_GENERATION),
        (2, {"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        (2, {"protocol_name": "roundrobin"}, E.INCONSISTENT_GROUP_PROTOCOL),
        (2, {"group_instance_id": "j"}, E.UNKNOWN_MEMBER_ID),
        (2, {"group_instance_id": "i"}, E.FENCED_INSTANCE_ID),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(generation: int, changes: dict[str, Any], error: E) -> None:
    world = of_six()
    world.consumer("c", instance="i")
    assert world.ask(join_request("m", protocols={EAGER: SUBSCRIPTION})).generation_id == 2
    number = world.sync("m", generation, **changes)
    assert E(world.answers[number].error_code) is error
    if "protocol" not in str(changes):
        assert world.heartbeat("m", generation, changes.get("group_instance_id")) is error


def test_members_share_a_protocol_with_which_they_could_go_back(world: Migrating) -> None:
    world.consumer("c")
    both = {EAGER: SUBSCRIPTION, "roundrobin": SUBSCRIPTION}
    assert world.ask(join_request("a", protocols={"sticky": SUBSCRIPTION})).error_code == E.NONE
    assert world.ask(join_request("a", protocols=both)).error_code == E.NONE
    assert (
        E(world.ask(join_request("b", protocols={"sticky": SUBSCRIPTION})).error_code) is E.INCONSISTENT_GROUP_PROTOCOL
    )
    assert world.ask(join_request("b", protocols={"roundrobin": SUBSCRIPTION})).error_code == E.NONE
    assert E(world.ask(join_request("a", protocols={EAGER: SUBSCRIPTION})).error_code) is E.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_that_was_removed_gives_up_what_it_had_before_it_joins(world: Migrating) -> None:
    a = world.classic()
    world.wait(SESSION_MS)
    c = world.consumer("c")
    assert len(a.has) == len(c.has) == 6
    a.next = "join"
    number = world.send(a.request())
    assert E(world.answers[number].error_code) is E.UNKNOWN_MEMBER_ID
    a.heard(world.answers[number])
    world.go_on(a, c)
    assert all_owned(world, a, c)


def test_whoever_names_an_instance_must_be_its_member(world: Migrating) -> None:
    world.consumer("c", instance="i")
    for member_id, instance, error in (("m", "j", E.UNKNOWN_MEMBER_ID), ("m", "i", E.FENCED_INSTANCE_ID)):
        refused = world.ask(join_request(member_id, group_instance_id=instance, protocols={EAGER: SUBSCRIPTION}))
        assert E(refused.error_code) is error
    assert world.consumers.members.keys() == {"c"}


def test_a_group_whose_policy_is_disabled_takes_no_classic_members() -> None:
    world = of_six(consumer_migration_policy="disabled")
    world.consumer("c")
    refused = world.ask(join_request("a", protocols={EAGER: SUBSCRIPTION}))
    assert E(refused.error_code) is E.INCONSISTENT_GROUP_PROTOCOL
    full = of_six(consumer_max_size=1)
    full.consumer("c")
    refused = full.ask(join_request("a", protocols={EAGER: SUBSCRIPTION}))
    assert E(refused.error_code) is E.GROUP_MAX_SIZE_REACHED


# --- no promise before its proof


def test_members_are_answered_when_what_they_learn_is_committed(world: Migrating) -> None:
    world.consumer("c", subscribed_topic_names=("u",))
    joining = world.send(join_request("m", protocols={EAGER: SUBSCRIPTION}))
    syncing = world.sync("m", 2)
    assert world.consumers.epoch == 2 and not world.answers.keys() & {joining, syncing}
    world.commit()
    assert (world.answers[joining].error_code, world.answers[syncing].error_code) == (0, 0)
    leaving = world.send(LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),)))
    assert leaving not in world.answers
    world.move_away()
    assert E(world.answers[leaving].error_code) is E.NOT_COORDINATOR


def test_a_new_coordinator_says_nothing_that_is_not_committed(world: Migrating) -> None:
    world.consumer("c")
    world.ask(join_request("m", protocols={EAGER: SUBSCRIPTION}))
    world.move_away()
    world.log.has_uncommitted = True
    world.take_over(1)
    refused = world.ask(join_request("m", protocols={EAGER: SUBSCRIPTION}))
    assert E(refused.error_code) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert E(world.answers[world.sync("m", 2)].error_code) is E.REBALANCE_IN_PROGRESS
    world.log.has_uncommitted = False
    assert world.ask(join_request("m", protocols={EAGER: SUBSCRIPTION})).generation_id == 2
