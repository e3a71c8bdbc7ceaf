"""Assignments, heartbeats and sessions: nobody gets an assignment that the next coordinator might not know."""

import pytest
from tests.unit.group.coordination import Coordination

from strandline.base.errors import ErrorCode as E
from strandline.group.classic.group import State
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest


def pair() -> tuple[Coordination, str, str]:
    """Two members in generation 2, both before their sync."""
    c = Coordination()
    a = c.stable()
    b, _ = c.enter()
    c.join(a)
    assert c.group.state is State.COMPLETING_REBALANCE
    return c, a, b


def test_nobody_gets_an_assignment_before_it_is_written() -> None:
    c, a, b = pair()
    b_syncs = c.sync(b, 2)
    a_syncs = c.sync(a, 2, {a: b"1", b: b"2"})
    assert a_syncs not in c.answers
    assert b_syncs not in c.answers
    assert c.commit() == 1
    assert (c.answers[a_syncs].assignment, c.answers[b_syncs].assignment) == (b"1", b"2")


def test_a_sync_after_the_group_is_stable_is_answered_at_once() -> None:
    c, a, b = pair()
    c.sync(a, 2, {a: b"1", b: b"2"})
    c.commit()
    assert c.answers[c.sync(b, 2)].assignment == b"2"


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_assignment_that_cannot_be_written_is_given_to_nobody(failure: E, expected: E) -> None:
    c, a, b = pair()
    numbers = [c.sync(b, 2), c.sync(a, 2, {a: b"1", b: b"2"})]
    c.fail(failure)
    assert [c.answers[n].error_code for n in numbers] == [expected, expected]
    assert all(m.assignment == b"" for m in c.group.members.values())
    assert c.heartbeat(a, 2) is E.REBALANCE_IN_PROGRESS


def test_a_write_that_ends_after_the_group_moved_on_changes_nothing() -> None:
    c, a, b = pair()
    number = c.sync(a, 2, {a: b"1", b: b"2"})
    c.enter()
    assert c.answers[number].error_code == E.REBALANCE_IN_PROGRESS
    c.commit()
    assert c.group.state is State.PREPARING_REBALANCE


def test_a_write_that_ends_in_the_next_generation_completes_nothing_of_it() -> None:
    """The assignments that the new leader is about to make are not those that were written."""
    c, a, b = pair()
    c.sync(a, 2, {a: b"1", b: b"2"})
    again = [c.enter()[1], c.join(a), c.join(b)]
    assert [c.joined(number).generation_id for number in again] == [3, 3, 3]
    assert c.group.state is State.COMPLETING_REBALANCE
    c.commit()
    assert c.group.state is State.COMPLETING_REBALANCE


def test_syncs_that_are_refused() -> None:
    c, a, _ = pair()
    assert c.answers[c.sync("nobody", 2)].error_code == E.UNKNOWN_MEMBER_ID
    assert c.answers[c.sync(a, 1)].error_code == E.ILLEGAL_GENERATION
    assert c.answers[c.sync(a, 2, protocol_type="connect")].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    wrong = c.sync(a, 2, protocol_type="consumer", protocol_name="sticky")
    assert c.answers[wrong].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    c.enter()
    assert c.answers[c.sync(a, 2)].error_code == E.REBALANCE_IN_PROGRESS
    for version in range(6):
        missing = c.ask(SyncGroupRequest(group_id="other", member_id="x"), version)
        assert missing.error_code == E.UNKNOWN_MEMBER_ID


def test_heartbeats_say_what_the_group_is_doing() -> None:
    c, a, b = pair()
    assert c.heartbeat(a, 2) is E.NONE, "completing"
    c.sync(a, 2, {})
    c.commit()
    assert c.heartbeat(b, 2) is E.NONE, "stable"
    assert c.heartbeat(b, 1) is E.ILLEGAL_GENERATION
    assert c.heartbeat("nobody", 2) is E.UNKNOWN_MEMBER_ID
    c.enter()
    assert c.heartbeat(a, 2) is E.REBALANCE_IN_PROGRESS
    other = HeartbeatRequest(group_id="other", member_id="x", generation_id=1)
    assert c.ask(other).error_code == E.UNKNOWN_MEMBER_ID
    assert c.ask(HeartbeatRequest(group_id="", member_id="x")).error_code == E.INVALID_GROUP_ID


def test_a_session_ends_without_heartbeats_and_not_before() -> None:
    c = Coordination()
    a = c.stable(session=10_000)
    c.wait(9999)
    assert c.heartbeat(a, 1) is E.NONE
    c.wait(9999)
    assert c.group.state is State.STABLE
    c.wait(1)
    assert (c.group.state, c.group.members) == (State.EMPTY, {})
    assert c.commit() == 1, "that the group is empty is written"
    assert c.reload().groups["g"].state is State.EMPTY


def test_a_leader_that_never_assigns_is_out_and_the_others_are_reported() -> None:
    c, a, b = pair()
    b_syncs = c.sync(b, 2)
    c.wait(10_000)
    assert c.answers[b_syncs].error_code == E.REBALANCE_IN_PROGRESS
    assert list(c.group.members) == [b]
    assert c.group.leader == b
    assert a not in c.group.members


def test_members_that_never_sync_are_out_when_the_rebalance_timeout_is_over() -> None:
    c = Coordination()
    a, number = c.enter(session=100_000, rebalance=20_000)
    assert c.joined(number).generation_id == 1
    c.wait(20_000)
    assert c.group.members == {}
    assert c.heartbeat(a, 1) is E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("error", [None, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_a_write_that_takes_long_takes_nothing_from_its_members_sessions(error: E | None) -> None:
    """As in Kafka: who waits has no session, and a whole one from the answer on."""
    c, a, b = pair()
    c.sync(b, 2)
    c.sync(a, 2, {a: b"1", b: b"2"})
    c.wait(9_000)
    if error is None:
        c.commit()
    else:
        c.fail(error)
    assert c.unanswered() == []
    c.wait(9_999)
    assert list(c.group.members) == [a, b]
    c.wait(1)
    assert c.group.members == {}


def test_the_end_of_a_write_takes_nothing_from_who_was_heard_meanwhile() -> None:
    c, a, b = pair()
    c.sync(b, 2)
    c.sync(a, 2, {a: b"1", b: b"2"})
    c.wait(9_000)
    assert c.heartbeat(a, 2) is E.NONE
    c.commit()
    c.wait(9_999)
    assert list(c.group.members) == [a, b]
