"""KIP-848, "Migration": the way back to the classic protocol, and static members that change theirs."""

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
from tests.unit.group.consuming import SESSION_MS, Consumer

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State
from strandline.group.consumer.group import ConsumerGroupState
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity


@pytest.fixture
def world() -> Migrating:
    return of_six()


def mixed(**config: Any) -> tuple[Migrating, Classic, Classic, Consumer]:
    world = of_six(**config)
    a, b = pair(world)
    c = world.consumer("c")
    world.go_on(a, b, c)
    return world, a, b, c


@each("how", ["left", "fenced", "sent away"])
def test_when_the_last_member_of_the_consumer_protocol_is_gone_the_group_is_classic(how: str) -> None:
    world, a, b, c = mixed()
    match how:
        case "left":
            c.leave()
        case "fenced":
            for _ in range(3):
                world.go_on(a, b)
                world.wait(SESSION_MS // 2)
        case "sent away":
            world.ask(LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="c"),)))
    world.go_on(a, b)
    assert world.group.members.keys() == {a.member_id, b.member_id}
    assert [len(x.has) for x in (a, b)] == [3, 3] and all_owned(world, a, b)


@each("config", [{"consumer_migration_policy": "upgrade"}, {"max_size": 2}])
def test_a_group_that_may_not_go_back_goes_on_with_classic_members(config: dict[str, Any]) -> None:
    world, a, b, c = mixed(**{k: v for k, v in config.items() if k != "max_size"})
    if "max_size" in config:
        d = Classic(world)
        d.play(d.begin())
        world.go_on(a, b, c, d)
        world.shard.config = world.groups.heartbeats.config = replace(world.config, max_size=2)
    c.leave()
    world.go_on(a, b, *([d] if "max_size" in config else []))
    assert "c" not in world.consumers.members and world.consumers.state is ConsumerGroupState.STABLE
    world.grow("t", 8)
    clients = [a, b, *([d] if "max_size" in config else [])]
    world.go_on(*clients)
    assert all_owned(world, *clients), "they notice new partitions by themselves"


def test_what_a_member_has_not_given_back_is_its_own_through_both_moves() -> None:
    world = of_six()
    a, b = pair(world)
    c = world.consumer("c")
    number = world.send(a.join_request())
    world.commit()
    assert (world.answers[number].error_code, len(world.held(world.member(a.member_id).revoking))) == (0, 1)
    c.leave()
    assert world.group.state is State.PREPARING_REBALANCE
    d = world.consumer("d")
    assert not d.has & (a.has | b.has)
    world.go_on(a, b, d)
    assert [len(x.has) for x in (a, b, d)] == [2, 2, 2] and all_owned(world, a, b, d)


def test_members_of_the_last_target_assignment_keep_what_they_have_until_they_join_again() -> None:
    world, a, b, c = mixed()
    d = world.consumer("d")
    world.go_on(a, b, c, d)
    c.leave()  # a new epoch, for which nobody has computed an assignment
    d.leave()
    assert world.heartbeat(a.member_id, a.generation) is E.REBALANCE_IN_PROGRESS
    world.go_on(a, b)
    assert all_owned(world, a, b)


def test_a_group_that_went_back_knows_all_protocols_of_its_members(world: Migrating) -> None:
    a = Classic(world)
    a.protocols = (COOPERATIVE, EAGER)
    a.play(a.begin())
    c = world.consumer("c")
    world.go_on(a, c)
    c.leave()
    assert world.group.protocol == COOPERATIVE
    refused = world.answers[world.join(protocols={"sticky": SUBSCRIPTION})]
    assert E(refused.error_code) is E.INCONSISTENT_GROUP_PROTOCOL
    assert E(world.answers[world.join(protocols={EAGER: SUBSCRIPTION})].error_code) is E.MEMBER_ID_REQUIRED


def test_a_coordinator_that_loads_a_group_on_its_way_back_goes_on_with_that(world: Migrating) -> None:
    world, a, b, c = mixed()
    c.leave()
    world.move_away()
    world.take_over(1)
    assert world.group.state is State.PREPARING_REBALANCE
    world.go_on(a, b)
    assert [len(x.has) for x in (a, b)] == [3, 3] and all_owned(world, a, b)
    assert world.reload().groups["g"].state is State.STABLE


@each("is_stable", [True, False])
def test_a_static_member_comes_back_with_the_classic_protocol(is_stable: bool) -> None:
    world = of_six()
    c = world.consumer("c", instance="i")
    a = world.classic()
    world.go_on(a, c)
    assert (len(a.has), len(c.has)) == (3, 3)
    if not is_stable:
        world.grow("t", 8)
        a.play()
    d = Classic(world, instance="i")
    assert d.play(d.begin()) is E.NONE
    if is_stable:
        assert (d.has, world.group.state) == (c.has, State.STABLE), "it slips into its place"
        assert a.play() is E.NONE
    world.go_on(a, d)
    assert world.group.static == {"i": d.member_id}
    assert all_owned(world, a, d)
    assert E(world.ask(c.request()).error_code) is E.GROUP_ID_NOT_FOUND


def test_a_static_member_whose_group_has_a_newer_epoch_begins_a_rebalance(world: Migrating) -> None:
    c, d = world.consumer("c", instance="i"), world.consumer("d")
    a = world.classic()
    world.go_on(a, c, d)
    d.leave()
    e = Classic(world, instance="i")
    e.play(e.begin())
    assert world.group.state is State.PREPARING_REBALANCE
    world.go_on(a, e)
    assert all_owned(world, a, e)


def test_a_static_member_does_not_slip_in_while_another_has_too_much(world: Migrating) -> None:
    world.consumer("c", instance="i").beat()
    a, d = world.classic(), Classic(world)
    d.play(d.begin())  # its share is not free yet
    e = Classic(world, instance="i")
    e.play(e.begin())
    assert world.group.state is State.PREPARING_REBALANCE
    world.go_on(a, d, e)
    assert all_owned(world, a, d, e)


def test_a_classic_member_that_joins_does_not_hide_new_topics_from_an_expression(world: Migrating) -> None:
    c = world.consumer("c", subscribed_topic_names=(), subscribed_topic_regex="t.*")
    world.create("t2")
    world.classic(topics=("u",))
    c.beat()
    assert world.consumers.topics_of(world.member("c")) == {"t", "t2"}


def test_a_static_member_of_the_classic_protocol_comes_back_with_the_other(world: Migrating) -> None:
    a, b = world.classic(instance="i"), Classic(world)
    b.play(b.begin())
    world.go_on(a, b)
    c = world.consumer("c", instance="i")
    assert c.has == a.has, "it need not say before that it will be back"
    world.go_on(b, c)
    assert (all_owned(world, b, c), world.consumers.static) == (True, {"i": "c"})
    assert world.heartbeat(a.member_id, a.generation, "i") is E.FENCED_INSTANCE_ID
