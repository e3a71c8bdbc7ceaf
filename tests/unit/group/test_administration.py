"""Describing, listing and deleting groups, and what survives when another broker takes over."""

import pytest
from msgspec.structs import replace
from tests.unit.group.coordination import Coordination, commit_request, join_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.coordination.partitioning import partition_for
from strandline.group.classic.group import State
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribedGroup, DescribeGroupsRequest
from strandline.wire.messages.groups.leave_group import MemberIdentity
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


def described(c: Coordination, group_id: str = "g", version: int = 6) -> DescribedGroup:
    (found,) = c.ask(DescribeGroupsRequest(groups=(group_id,)), version).groups
    assert isinstance(found, DescribedGroup)
    return found


def test_a_missing_group_is_an_error_from_version_6_on_and_dead_before() -> None:
    c = Coordination()
    for version in range(7):
        found = described(c, "none", version)
        assert found.group_state == "Dead"
        assert found.error_code == (E.GROUP_ID_NOT_FOUND if version == 6 else E.NONE)


def test_a_group_of_another_coordinator_is_not_described() -> None:
    c = Coordination()
    c.groups.shards.loaded.clear()
    assert described(c).error_code == E.NOT_COORDINATOR


def test_a_stable_group_is_described_with_assignments_and_a_rebalancing_one_without() -> None:
    c = Coordination()
    a = c.stable()
    found = described(c)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    (member,) = found.members
    assert (member.member_id, bytes(member.member_assignment), bytes(member.member_metadata)) == (a, b"all", b"topics")
    assert (member.client_id, member.client_host) == ("app", "/10.0.0.1")
    c.enter()
    found = described(c)
    assert (found.group_state, found.protocol_data) == ("PreparingRebalance", "")
    assert {bytes(m.member_assignment) for m in found.members} == {b""}


def test_a_group_that_only_committed_offsets_is_empty_not_missing() -> None:
    c = Coordination()
    c.ask(commit_request(1), 9)
    assert (described(c).group_state, described(c).error_code) == ("Empty", E.NONE)


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ((), (), {"g", "idle"}),
        (("stable",), (), {"g"}),
        (("Empty",), (), {"idle"}),
        (("Dead",), (), set()),
        ((), ("Classic",), {"g", "idle"}),
        ((), ("consumer",), set()),
    ],
)
def test_listing_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], listed: set[str]) -> None:
    c = Coordination()
    c.stable()
    idle = commit_request(1)
    c.ask(type(idle)(group_id="idle", topics=idle.topics), 9)
    answer = c.ask(ListGroupsRequest(states_filter=states, types_filter=types))
    assert {g.group_id for g in answer.groups} == listed


def test_deleting_groups_says_for_each_why_not() -> None:
    c = Coordination()
    c.stable()
    c.ask(commit_request(1, c.group.leader or "", 1), 9)
    answer = c.ask(DeleteGroupsRequest(groups_names=("g", "none", "none")))
    errors = [(r.group_id, r.error_code) for r in answer.results]
    assert errors == [("g", E.NON_EMPTY_GROUP), ("none", E.GROUP_ID_NOT_FOUND)]
    assert c.ask(DeleteGroupsRequest(groups_names=())).results == ()


def test_a_deletion_is_answered_when_it_is_written_and_the_group_does_not_come_back() -> None:
    c = Coordination()
    a = c.stable()
    c.ask(commit_request(1, a, 1), 9)
    c.leave(MemberIdentity(member_id=a))
    c.commit()
    number = c.send(DeleteGroupsRequest(groups_names=("g",)))
    assert number not in c.answers
    c.commit()
    assert c.answers[number].results[0].error_code == E.NONE
    assert (c.shard.groups, c.shard.offsets) == ({}, {})
    assert (c.reload().groups, c.reload().offsets) == ({}, {})


def test_a_deletion_that_cannot_be_written_is_refused_and_the_offsets_stay() -> None:
    c = Coordination()
    c.ask(commit_request(1), 9)
    number = c.send(DeleteGroupsRequest(groups_names=("g",)))
    c.fail(E.NOT_LEADER_OR_FOLLOWER)
    assert c.answers[number].results[0].error_code == E.NOT_COORDINATOR
    assert c.shard.offsets["g"]


def test_memory_equals_the_log_when_a_commit_and_a_deletion_cross() -> None:
    c = Coordination()
    c.ask(commit_request(1), 9)
    c.send(commit_request(2), 9)
    c.send(DeleteGroupsRequest(groups_names=("g",)))
    c.send(commit_request(3, partition=1), 9)
    c.commit()
    assert list(c.shard.offsets["g"]) == [("t", 1)]
    assert c.shard.offsets == c.reload().offsets


def test_a_new_leader_of_the_partition_knows_what_the_old_one_knew() -> None:
    c = Coordination()
    a = c.static("i1", protocols={"range": b"topics", "sticky": b"s"})
    c.ask(commit_request(5, a, 1, "note"), 9)
    there = c.reload()
    assert there.offsets == c.shard.offsets
    old, new = c.group, there.groups["g"]
    new.check()
    for name in ("state", "generation", "protocol_type", "protocol", "leader", "static"):
        assert getattr(new, name) == getattr(old, name), name
    was, now = old.members[a], new.members[a]
    for name in ("assignment", "instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms"):
        assert getattr(now, name) == getattr(was, name), name
    assert now.session_ends == c.now + was.session_timeout_ms, "a whole session to show up"


def test_when_leadership_moves_everyone_who_is_parked_is_sent_away() -> None:
    c = Coordination()
    a = c.stable()
    b, b_joins = c.enter()
    c.log.epoch = None
    c.take(c.groups.follow_leadership(Instant(c.now)))
    assert c.answers[b_joins].error_code == E.NOT_COORDINATOR
    assert c.heartbeat(a, 1) is E.NOT_COORDINATOR
    assert c.answers[c.join(b)].error_code == E.NOT_COORDINATOR
    assert c.groups.deadline() >= c.now + 1


def test_parked_syncs_are_sent_away_too_and_the_write_under_way_answers_nobody_twice() -> None:
    c = Coordination()
    a, _ = c.enter()
    number = c.sync(a, 1, {a: b"all"})
    c.log.epoch = LeaderEpoch(1)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    assert c.answers[number].error_code == E.NOT_COORDINATOR
    c.commit()


def test_a_broker_that_leads_again_loads_the_groups_from_the_log() -> None:
    c = Coordination()
    a = c.stable()
    c.log.epoch = LeaderEpoch(2)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    assert c.group.state is State.STABLE
    assert c.heartbeat(a, 1) is E.NONE


def test_before_the_topic_exists_there_is_no_coordinator() -> None:
    c = Coordination()
    c.groups.shards.partitions = 0
    c.groups.shards.loaded.clear()
    assert c.answers[c.send(join_request())].error_code == E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("group_id", "code"),
    [
        ("", 0),
        ("a", 97),
        ("ab", 3105),  # 97 * 31 + 98
        ("my-group", None),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # two UTF-16 units
        ("polygenelubricants", -(1 << 31)),  # the well-known string whose hash has no absolute value
    ],
)
def test_a_group_lives_where_java_says(group_id: str, code: int | None) -> None:
    if code is None:
        code = java_hash(group_id)
    assert java_hash(group_id) == code
    absolute = 0 if code == -(1 << 31) else abs(code)
    for partitions in (1, 3, 50):
        assert partition_for(group_id, partitions) == absolute % partitions


def test_a_negative_hash_counts_by_its_absolute_value() -> None:
    assert java_hash("zzzzzz") < 0
    assert partition_for("zzzzzz", 50) == -java_hash("zzzzzz") % 50


def java_hash(text: str) -> int:
    """Java's definition as a sum of powers, unlike the rolling form under test."""
    raw = text.encode("utf-16-be")
    units = [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]
    total = sum(unit * pow(31, len(units) - 1 - i) for i, unit in enumerate(units)) % (1 << 32)
    return total - (1 << 32) if total >= 1 << 31 else total


@pytest.mark.parametrize("is_asked", [False, True])
def test_without_an_authorizer_every_client_may_do_all_with_a_group(is_asked: bool) -> None:
    c = Coordination()
    c.stable()
    answer = c.ask(DescribeGroupsRequest(groups=("g", "none"), include_authorized_operations=is_asked), 6)
    everything = sum(1 << operation for operation in (3, 6, 8, 10, 11))
    reported = [group.authorized_operations for group in answer.groups]
    assert reported == [everything if is_asked else -(1 << 31), -(1 << 31)], (
        "of a group that is not there nothing is said"
    )


def test_offsets_of_the_empty_group_id_are_kept_read_and_deleted_as_in_kafka() -> None:
    c = Coordination()
    assert c.ask(replace(commit_request(5), group_id=""), 9).topics[0].partitions[0].error_code == E.NONE
    asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="", topics=None),))
    assert c.ask(asked, 9).groups[0].topics[0].partitions[0].committed_offset == 5
    assert c.reload().offsets[""][("t", 0)].offset == 5
    assert c.ask(DeleteGroupsRequest(groups_names=("",))).results[0].error_code == E.NONE
    assert c.shard.offsets == {}
