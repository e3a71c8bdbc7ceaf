"""Joining and leaving classic groups: who waits for whom, and what everybody is told."""

import pytest
from tests.unit.group.coordination import Coordination, join_request

from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.group.classic.group import State
from strandline.group.offsets.offsets import batch_of
from strandline.group.shards.shard import GENERATION_END
from strandline.wire.messages.groups.group_records import GroupMetadataKey, GroupMetadataValue
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity


def test_a_new_member_is_given_its_id_and_joins_with_it() -> None:
    c = Coordination()
    first = c.answers[c.join()]
    assert first.error_code == E.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("app-")
    answer = c.joined(c.join(first.member_id))
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (1, first.member_id, "range")
    assert [m.member_id for m in answer.members] == [first.member_id]


def test_before_version_4_a_member_joins_in_one_step() -> None:
    c = Coordination()
    assert c.joined(c.join(version=3)).generation_id == 1


def test_an_id_that_was_never_handed_out_is_refused() -> None:
    c = Coordination()
    assert c.answers[c.join("made-up")].error_code == E.UNKNOWN_MEMBER_ID
    c.stable()
    assert c.answers[c.join("made-up")].error_code == E.UNKNOWN_MEMBER_ID


def test_refusals_that_name_what_is_wrong_with_the_request() -> None:
    c = Coordination()
    rows = [
        (join_request(session=1), E.INVALID_SESSION_TIMEOUT),
        (join_request(session=10**8), E.INVALID_SESSION_TIMEOUT),
        (join_request(protocols={}), E.INCONSISTENT_GROUP_PROTOCOL),
        (join_request(protocol_type=""), E.INCONSISTENT_GROUP_PROTOCOL),
        (join_request(group_id=""), E.INVALID_GROUP_ID),
        (join_request(group_id="é" * 16_384), E.INVALID_GROUP_ID),
        (join_request(group_instance_id="i" * 32_740), E.INVALID_REQUEST),
        (join_request(protocol_type="t" * 32_768), E.INVALID_REQUEST),
        (join_request(protocols={"p" * 32_768: b""}), E.INVALID_REQUEST),
        (join_request(protocols={"a": bytes(1 << 19), "b": bytes(1 << 19)}), E.INVALID_REQUEST),
    ]
    for request, error in rows:
        for version in range(10):
            assert c.answers[c.send(request, version)].error_code == error


def test_a_member_without_a_common_protocol_stays_out() -> None:
    c = Coordination()
    c.stable()
    assert c.answers[c.join(protocols={"sticky": b""})].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert c.answers[c.join(protocol_type="connect")].error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_no_more_members() -> None:
    c = Coordination(max_size=1)
    c.stable()
    assert c.answers[c.join()].error_code == E.GROUP_MAX_SIZE_REACHED


def test_an_empty_group_waits_for_more_members_and_each_arrival_extends_the_wait() -> None:
    c = Coordination(delay_ms=3000)
    a, a_joins = c.enter()
    c.wait(2000)
    b, b_joins = c.enter()
    c.wait(2999)
    assert a_joins not in c.answers, "three seconds since the last arrival are not over"
    c.wait(1)
    assert {m.member_id for m in c.joined(a_joins).members} == {a, b}
    assert c.joined(b_joins).members == (), "only the leader gets the members"
    assert c.joined(b_joins).leader == a


def test_the_wait_of_an_empty_group_ends_with_its_first_members_rebalance_timeout() -> None:
    c = Coordination(delay_ms=3000)
    _, number = c.enter(rebalance=5000)
    for _ in range(4):
        c.wait(1200)
        c.enter(rebalance=5000)
    assert number not in c.answers
    c.wait(200)
    assert len(c.joined(number).members) == 5


def test_a_second_member_makes_the_first_join_again() -> None:
    c = Coordination()
    a = c.stable()
    b, b_joins = c.enter()
    assert b_joins not in c.answers
    assert c.heartbeat(a, 1) is E.REBALANCE_IN_PROGRESS
    a_joins = c.join(a)
    assert c.joined(a_joins).generation_id == c.joined(b_joins).generation_id == 2
    assert {m.member_id for m in c.joined(a_joins).members} == {a, b}


def test_a_member_that_does_not_rejoin_in_time_is_out() -> None:
    c = Coordination()
    a = c.stable(session=100_000, rebalance=20_000)
    b, b_joins = c.enter(rebalance=10_000)
    c.wait(19_999)
    assert b_joins not in c.answers
    c.wait(1)
    assert [m.member_id for m in c.joined(b_joins).members] == [b]
    assert c.joined(b_joins).leader == b
    assert c.heartbeat(a, 1) is E.UNKNOWN_MEMBER_ID


def test_an_id_handed_out_holds_a_rebalance_open_until_its_session_ends() -> None:
    c = Coordination()
    a = c.stable()
    c.answers[c.join(session=7000)]
    c.join(a, protocols={"range": b"other"})
    number = len(c.asked) - 1
    c.wait(6999)
    assert number not in c.answers
    c.wait(1)
    assert c.joined(number).generation_id == 2


def test_an_id_handed_out_outlives_the_rebalance_that_did_not_wait_for_it() -> None:
    c = Coordination()
    a = c.stable(rebalance=5000)
    late = c.answers[c.join(session=10_000)].member_id
    number = c.join(a, protocols={"range": b"other"}, rebalance=5000)
    c.wait(5000)
    assert c.joined(number).generation_id == 2
    c.join(late, session=10_000)
    assert c.heartbeat(a, 2) is E.REBALANCE_IN_PROGRESS, "the late one was let in"


def test_a_follower_that_joins_again_unchanged_gets_its_generation_once_more() -> None:
    c = Coordination()
    a = c.stable()
    b, _ = c.enter()
    c.join(a)
    c.sync(a, 2, {a: b"1", b: b"2"})
    c.commit()
    again = c.joined(c.join(b))
    assert (again.generation_id, again.members) == (2, ())
    assert c.group.state is State.STABLE


def test_the_leader_that_joins_a_stable_group_again_starts_a_rebalance() -> None:
    c = Coordination()
    a = c.stable()
    assert c.joined(c.join(a)).generation_id == 2


def test_another_order_of_preference_is_a_change() -> None:
    c = Coordination()
    a = c.stable()
    b, _ = c.enter(protocols={"range": b"", "sticky": b""})
    c.join(a, protocols={"range": b"", "sticky": b""})
    c.sync(a, 2, {})
    c.commit()
    assert c.group.state is State.STABLE
    c.join(b, protocols={"sticky": b"", "range": b""})
    assert c.group.state is State.PREPARING_REBALANCE


def test_timeouts_are_those_of_the_latest_join() -> None:
    c = Coordination()
    a = c.stable(session=10_000)
    number = c.join(a, session=30_000)
    assert c.joined(number).generation_id == 2
    c.sync(a, 2, {a: b""})
    c.commit()
    c.wait(29_999)
    assert c.heartbeat(a, 2) is E.NONE


def test_the_protocol_that_most_members_prefer_among_the_common_ones_is_chosen() -> None:
    c = Coordination(delay_ms=3000)
    numbers = [
        c.enter(protocols={"a": b"", "b": b""})[1],
        c.enter(protocols={"b": b"", "a": b""})[1],
        c.enter(protocols={"only-mine": b"", "b": b"", "a": b""})[1],
    ]
    c.wait(3000)
    assert {c.joined(n).protocol_name for n in numbers} == {"b"}


def test_leaving_one_by_one_before_version_3() -> None:
    c = Coordination()
    a = c.stable()
    for version in range(3):
        unknown = c.ask(LeaveGroupRequest(group_id="g", member_id="nobody"), version)
        assert unknown.error_code == E.UNKNOWN_MEMBER_ID
        missing = c.ask(LeaveGroupRequest(group_id="other", member_id="nobody"), version)
        assert missing.error_code == E.UNKNOWN_MEMBER_ID
    assert c.ask(LeaveGroupRequest(group_id="g", member_id=a), 2).error_code == E.NONE
    assert c.group.state is State.EMPTY


def test_leaving_together_answers_for_each() -> None:
    c = Coordination()
    static = c.static("i1")
    members = (
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="wrong", group_instance_id="i1"),
        MemberIdentity(member_id="", group_instance_id="i2"),
        MemberIdentity(member_id="", group_instance_id="i1"),
    )
    answer = c.leave(*members)
    expected = [E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.UNKNOWN_MEMBER_ID, E.NONE]
    assert [m.error_code for m in answer.members] == expected
    assert answer.error_code == E.NONE
    assert static not in c.group.members


def test_leaving_a_group_that_does_not_exist_answers_for_each_member() -> None:
    answer = Coordination().leave(MemberIdentity(member_id="x"), MemberIdentity(member_id="y"))
    assert answer.error_code == E.NONE
    assert [m.error_code for m in answer.members] == [E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID]


def test_a_member_that_leaves_makes_the_others_join_again() -> None:
    c = Coordination()
    a = c.stable()
    b, _ = c.enter()
    c.join(a)
    c.sync(a, 2, {})
    c.sync(b, 2)
    c.commit()
    c.leave(MemberIdentity(member_id=b))
    assert c.heartbeat(a, 2) is E.REBALANCE_IN_PROGRESS
    assert c.joined(c.join(a)).generation_id == 3


def test_a_member_that_leaves_while_parked_is_answered() -> None:
    c = Coordination()
    c.stable()
    b, b_joins = c.enter()
    c.leave(MemberIdentity(member_id=b))
    assert c.answers[b_joins].error_code == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [(1 << 31) - 1, GENERATION_END, -1, -(1 << 31)])
def test_a_generation_that_no_group_comes_to_by_counting_is_not_gone_on_from(generation: int) -> None:
    """Who calls itself an administrator's client may write into the coordinator's topic, as in Kafka."""
    c = Coordination()
    c.stable()
    record = (GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer", generation=generation))
    c.log.batches.append(bytes(batch_of([record], Instant(c.now))))
    shard = c.fail_over()
    assert (shard.groups["g"].generation, shard.unreadable) == (1, 1)
    _, number = c.enter()
    c.wait(400_000)
    assert c.joined(number).generation_id == 2


def test_the_last_generation_that_is_believed_leaves_room_for_more() -> None:
    c = Coordination()
    record = (GroupMetadataKey(group="g"), GroupMetadataValue(generation=GENERATION_END - 1))
    c.log.batches.append(bytes(batch_of([record], Instant(c.now))))
    c.fail_over()
    assert c.joined(c.enter()[1]).generation_id == GENERATION_END
