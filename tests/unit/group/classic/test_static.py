"""Static members (KIP-345): they come back under a new id, and the group does not notice."""

from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State


def test_a_static_member_that_restarts_takes_its_place_without_a_rebalance() -> None:
    c = Coordination()
    old = c.static()
    number = c.join(group_instance_id="i1")
    assert number not in c.answers, "the next coordinator would fence the new id, so it is written first"
    c.commit()
    answer = c.joined(number)
    assert (answer.generation_id, answer.skip_assignment, answer.leader) == (1, True, answer.member_id)
    assert answer.member_id != old
    assert c.group.state is State.STABLE
    assert c.answers[c.sync(answer.member_id, 1)].assignment == b"all"
    assert c.heartbeat(old, 1, "i1") is E.FENCED_INSTANCE_ID
    assert c.reload().groups["g"].static == {"i1": answer.member_id}


def test_before_skip_assignment_existed_the_old_id_is_named_as_the_leader() -> None:
    c = Coordination()
    old = c.static(version=5)
    number = c.join(group_instance_id="i1", version=5)
    c.commit()
    assert (c.joined(number).leader, c.joined(number).members) == (old, ())


def test_a_swap_that_cannot_be_written_is_refused() -> None:
    c = Coordination()
    c.static()
    number = c.join(group_instance_id="i1")
    c.fail(E.NOT_LEADER_OR_FOLLOWER)
    assert c.answers[number].error_code == E.NOT_COORDINATOR


def test_two_processes_with_one_instance_id_the_later_one_wins() -> None:
    c = Coordination()
    c.static()
    first, second = c.join(group_instance_id="i1"), c.join(group_instance_id="i1")
    c.commit()
    assert c.answers[first].error_code == E.FENCED_INSTANCE_ID
    assert c.joined(second).generation_id == 1


def test_a_static_member_that_comes_back_with_another_subscription_causes_a_rebalance() -> None:
    c = Coordination()
    c.static()
    assert c.joined(c.join(group_instance_id="i1", protocols={"range": b"more topics"})).generation_id == 2


def test_a_static_member_that_restarts_during_a_rebalance_releases_the_request_of_its_old_self() -> None:
    c = Coordination()
    c.stable()
    parked = c.join(group_instance_id="i1")
    c.join(group_instance_id="i1")
    assert c.answers[parked].error_code == E.FENCED_INSTANCE_ID


def test_instance_ids_that_do_not_fit_the_member_id() -> None:
    c = Coordination()
    static = c.static()
    assert c.answers[c.join("other", group_instance_id="i1")].error_code == E.FENCED_INSTANCE_ID
    assert c.answers[c.join("other", group_instance_id="i2")].error_code == E.UNKNOWN_MEMBER_ID
    assert c.heartbeat(static, 1, "i1") is E.NONE
    assert c.heartbeat(static, 1, "i2") is E.UNKNOWN_MEMBER_ID


def test_a_rebalance_goes_on_without_a_static_leader_that_is_away_but_keeps_its_place() -> None:
    c = Coordination()
    away = c.static(session=100_000, rebalance=20_000)
    b, b_joins = c.enter(rebalance=20_000)
    c.wait(20_000)
    answer = c.joined(b_joins)
    assert answer.leader == b, "somebody who is there must assign"
    assert {m.member_id for m in answer.members} == {away, b}


def test_a_static_member_that_stays_away_loses_its_place_when_its_session_ends() -> None:
    c = Coordination()
    c.static(session=30_000, rebalance=20_000)
    c.wait(30_000)
    assert c.group.members == {}


def test_a_rebalance_for_which_nobody_came_starts_no_generation() -> None:
    c = Coordination()
    c.static(session=100_000, rebalance=5000)
    joining, _ = c.enter(session=6000, rebalance=5000)
    c.wait(5000)
    assert c.group.generation == 2
    c.wait(6000)  # the new one never syncs; the static one is still away
    assert joining not in c.group.members
    generation = c.group.generation
    c.wait(20_000)
    assert c.group.generation == generation
