"""Committed offsets: who may commit, what a fetch shows, and when they are forgotten."""

import pytest
from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import NEVER, Instant
from strandline.group.config import GroupConfig
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.wire.messages.groups.leave_group import MemberIdentity
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

DAY = 24 * 3600 * 1000


def error_of(answer: OffsetCommitResponse) -> E:
    return E(answer.topics[0].partitions[0].error_code)


def committed(c: Coordination, request: OffsetCommitRequest, version: int = 9) -> E:
    return error_of(c.ask(request, version))


def offset(c: Coordination, topic: str = "t", partition: int = 0) -> int:
    found = c.shard.offsets.get("g", {}).get((topic, partition))
    return -1 if found is None else found.offset


def test_an_offset_is_visible_and_answered_when_it_is_written() -> None:
    c = Coordination()
    number = c.send(commit_request(5), 9)
    assert (number in c.answers, offset(c)) == (False, -1)
    c.commit()
    assert (error_of(c.answers[number]), offset(c)) == (E.NONE, 5)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.RECORD_LIST_TOO_LARGE, E.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_an_offset_that_cannot_be_written_is_not_remembered(failure: E, expected: E) -> None:
    c = Coordination()
    number = c.send(commit_request(5), 9)
    c.fail(failure)
    assert (error_of(c.answers[number]), offset(c)) == (expected, -1)


def test_a_member_commits_in_its_generation_and_that_keeps_its_session() -> None:
    c = Coordination()
    a = c.stable(session=10_000)
    c.wait(9999)
    assert committed(c, commit_request(5, a, 1)) is E.NONE
    c.wait(9999)
    assert c.heartbeat(a, 1) is E.NONE
    assert committed(c, commit_request(6, a, 0)) is E.ILLEGAL_GENERATION
    assert committed(c, commit_request(6, "nobody", 1)) is E.UNKNOWN_MEMBER_ID
    assert committed(c, commit_request(6)) is E.UNKNOWN_MEMBER_ID, "an outsider, while the group has members"
    assert offset(c) == 5


def test_commits_while_members_join_are_taken_and_while_the_leader_assigns_are_not() -> None:
    c = Coordination()
    a = c.stable()
    c.enter()
    assert committed(c, commit_request(5, a, 1)) is E.NONE
    c.join(a)
    assert committed(c, commit_request(6, a, 2)) is E.REBALANCE_IN_PROGRESS
    assert offset(c) == 5


def test_without_a_group_only_a_consumer_of_its_own_commits() -> None:
    c = Coordination()
    assert committed(c, commit_request(1, "x", 3), 8) is E.ILLEGAL_GENERATION
    assert committed(c, commit_request(1, "x", 3), 9) is E.GROUP_ID_NOT_FOUND
    assert committed(c, commit_request(1, "x", -1)) is E.NONE
    a = c.stable()
    c.leave(MemberIdentity(member_id=a))
    assert committed(c, commit_request(2)) is E.NONE, "all members are gone"


def test_metadata_that_is_too_large_is_refused_and_the_rest_is_written() -> None:
    c = Coordination(offset_metadata_max_bytes=4)
    both = OffsetCommitRequest(
        group_id="g", topics=commit_request(1, metadata="12345").topics + commit_request(2, topic="u").topics
    )
    answer = c.ask(both, 9)
    errors = [t.partitions[0].error_code for t in answer.topics]
    assert errors == [E.OFFSET_METADATA_TOO_LARGE, E.NONE]
    assert (offset(c), offset(c, "u")) == (-1, 2)
    assert committed(c, commit_request(1, metadata="1234")) is E.NONE, "at the edge"
    number = c.send(commit_request(1, metadata="12345"), 9)
    assert error_of(c.answers[number]) is E.OFFSET_METADATA_TOO_LARGE, "nothing to write, nothing to wait for"


@pytest.mark.parametrize("version", range(1, 8))
def test_fetching_the_offsets_of_one_group(version: int) -> None:
    c = Coordination()
    c.ask(commit_request(7, metadata="mine"), 9)
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    answer = c.ask(OffsetFetchRequest(group_id="g", topics=(topic,), require_stable=True), version)
    found = [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in answer.topics[0].partitions]
    assert found == [(0, 7, "mine", E.NONE), (1, -1, "", E.NONE)]
    if version >= 2:
        everything = c.ask(OffsetFetchRequest(group_id="g", topics=None), version)
        assert [(t.name, len(t.partitions)) for t in everything.topics] == [("t", 1)]


@pytest.mark.parametrize("version", [8, 9])
def test_fetching_the_offsets_of_several_groups(version: int) -> None:
    c = Coordination()
    c.ask(commit_request(7), 9)
    some = OffsetFetchRequestGroup(group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),))
    every = OffsetFetchRequestGroup(group_id="g", topics=None)
    none = OffsetFetchRequestGroup(group_id="other", topics=None)
    answer = c.ask(OffsetFetchRequest(groups=(some, every, none), require_stable=True), version)
    found = [[p.committed_offset for t in g.topics for p in t.partitions] for g in answer.groups]
    assert found == [[7, -1], [7], []]
    assert [g.error_code for g in answer.groups] == [E.NONE] * 3


@pytest.mark.parametrize("version", range(1, 10))
def test_a_fetch_from_a_broker_that_does_not_coordinate_the_group(version: int) -> None:
    c = Coordination()
    c.groups.shards.loaded.clear()
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(0,))
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    answer = c.ask(OffsetFetchRequest(group_id="g", topics=(topic,), groups=(group,)), version)
    if version == 1:
        error = answer.topics[0].partitions[0].error_code
    else:
        error = answer.groups[0].error_code if version >= 8 else answer.error_code
    assert error == E.NOT_COORDINATOR


def test_offsets_without_members_are_forgotten_after_their_retention() -> None:
    c = Coordination(offsets_retention_ms=DAY)
    c.ask(commit_request(5), 9)
    c.wait(DAY - GroupConfig().offsets_retention_check_ms)
    assert offset(c) == 5
    c.wait(2 * GroupConfig().offsets_retention_check_ms)
    assert offset(c) == 5, "not before the tombstone is written"
    c.commit()
    assert offset(c) == -1
    assert c.reload().offsets == {}


def test_retention_counts_from_when_the_last_member_left() -> None:
    c = Coordination(offsets_retention_ms=DAY)
    a = c.stable(session=1_800_000)
    c.ask(commit_request(5, a, 1), 9)
    for _ in range(60):
        c.wait(1_000_000)
        assert c.heartbeat(a, 1) is E.NONE
        c.commit()
    assert offset(c) == 5
    c.leave(MemberIdentity(member_id=a))
    c.wait(DAY - GroupConfig().offsets_retention_check_ms)
    c.commit()
    assert offset(c) == 5
    c.wait(2 * GroupConfig().offsets_retention_check_ms)
    c.commit()
    assert (c.shard.offsets, c.shard.groups) == ({}, {})
    assert c.reload().groups == {}


def test_offsets_of_a_group_with_members_are_not_forgotten_however_old_they_are() -> None:
    """A member that finds nothing new commits nothing, and goes on from there when something comes."""
    c = Coordination(offsets_retention_ms=DAY)
    a = c.stable(session=1_800_000)
    c.ask(commit_request(5, a, 1), 9)
    for _ in range(200):
        c.wait(1_000_000)
        assert c.heartbeat(a, 1) is E.NONE
        c.commit()
    assert offset(c) == 5
    assert c.reload().offsets["g"][("t", 0)].offset == 5


def test_a_new_coordinator_finds_the_last_offset_that_was_committed() -> None:
    c = Coordination()
    for committed_offset in (5, 9, 7):
        c.ask(commit_request(committed_offset), 9)
    assert c.reload().offsets["g"][("t", 0)].offset == 7


def test_a_coordinator_that_cannot_read_all_yet_asks_to_wait_and_forgets_nothing() -> None:
    """Damaged on its disk, and another replica may have it."""
    c = Coordination()
    c.ask(commit_request(7), 9)
    c.log.epoch = None
    c.groups.follow_leadership(Instant(c.now))
    c.log.epoch, c.log.is_damaged = LeaderEpoch(2), True
    c.groups.follow_leadership(Instant(c.now))
    asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),))
    loading = E.COORDINATOR_LOAD_IN_PROGRESS
    assert c.ask(asked, 9).groups[0].error_code == loading
    assert c.ask(ListGroupsRequest()).error_code == loading
    c.wait(3_000)
    assert c.ask(asked, 9).groups[0].error_code == loading
    c.log.is_damaged = False
    c.wait(1_000)
    assert (offset(c), c.ask(ListGroupsRequest()).error_code) == (7, E.NONE)
    c.wait(10)
    assert c.groups.shards.next_load == NEVER, "memory of the load is freed"


def test_an_empty_group_that_never_committed_is_forgotten_at_the_next_check() -> None:
    c = Coordination()
    a = c.stable()
    c.leave(MemberIdentity(member_id=a))
    c.wait(GroupConfig().offsets_retention_check_ms)
    c.commit()
    assert (c.shard.groups, c.reload().groups) == ({}, {})


# --- topics that are not there, or no more


def rows(*ats: tuple[str, int]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic, partitions=(OffsetCommitRequestPartition(partition_index=index, committed_offset=5),)
            )
            for topic, index in ats
        ),
    )


def fetched(c: Coordination, topic: str = "t") -> int:
    asked = (OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
    answer = c.ask(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=asked),)), 9)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def test_offsets_of_partitions_that_are_not_there_are_refused_one_by_one_and_not_stored() -> None:
    c = Coordination()
    answer = c.ask(rows(("t", 0), ("nowhere", 0), ("t", 7)), 9)
    errors = [E(topic.partitions[0].error_code) for topic in answer.topics]
    assert errors == [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert list(c.shard.offsets["g"]) == list(c.reload().offsets["g"]) == [("t", 0)]
    number = c.send(rows(("nowhere", 0)), 9)
    assert error_of(c.answers[number]) is E.UNKNOWN_TOPIC_OR_PARTITION, "at once: nothing is written"


def test_a_topic_that_is_made_while_its_offset_is_refused_does_not_turn_the_refusal_into_success() -> None:
    c = Coordination()
    number = c.send(rows(("t", 0), ("later", 0)), 9)
    c.create("later")
    c.commit()
    assert E(c.answers[number].topics[1].partitions[0].error_code) is E.UNKNOWN_TOPIC_OR_PARTITION


def test_the_offsets_of_a_deleted_topic_are_forgotten_in_the_log_too() -> None:
    c = Coordination()
    c.ask(rows(("t", 0), ("u", 0)), 9)
    c.delete("t")
    assert c.commit() == 1
    assert list(c.shard.offsets["g"]) == list(c.reload().offsets["g"]) == [("u", 0)]
    c.create("t")
    assert c.commit() == 0
    assert (fetched(c), fetched(c, "u")) == (-1, 5)


def test_a_topic_made_anew_has_no_old_offset_though_no_tombstone_could_be_written() -> None:
    c = Coordination()
    c.ask(rows(("t", 0)), 9)
    c.delete("t")
    c.fail(E.NOT_ENOUGH_REPLICAS)
    c.create("t")
    assert fetched(c) == -1
    assert c.shard.offsets["g"]
    c.wait(c.config.offsets_retention_check_ms)
    assert c.commit() == 1
    assert c.reload().offsets == c.shard.offsets == {}


def test_a_topic_deleted_and_made_anew_while_there_was_no_coordinator_has_no_old_offset() -> None:
    c = Coordination()
    c.ask(rows(("t", 0)), 9)
    c.log.epoch = None
    c.delete("t")
    c.create("t")
    c.take(c.groups.follow_leadership(Instant(c.now)))
    c.log.epoch = LeaderEpoch(1)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    assert fetched(c) == -1
    assert c.reload().offsets == {}, "the tombstone is written at last"


def test_no_tombstone_takes_away_a_commit_that_is_under_way() -> None:
    """The tombstone would follow it in the log."""
    c = Coordination()
    c.ask(rows(("t", 0)), 9)
    c.delete("t")
    c.fail(E.NOT_ENOUGH_REPLICAS)
    c.create("t")
    number = c.send(rows(("t", 0)), 9)
    c.wait(c.config.offsets_retention_check_ms)
    c.commit()
    assert error_of(c.answers[number]) is E.NONE
    assert fetched(c) == 5
    assert c.reload().offsets == c.shard.offsets


def test_an_offset_whose_time_is_up_is_kept_while_a_new_one_is_under_way() -> None:
    c = Coordination()
    c.ask(rows(("t", 0)), 9)
    c.wait(c.config.offsets_retention_ms - 1)
    c.send(rows(("t", 0)), 9)
    c.wait(c.config.offsets_retention_check_ms)
    c.commit()
    assert fetched(c) == 5


def test_an_older_record_without_a_topic_id_counts_by_its_topics_name() -> None:
    c = Coordination()
    committed = CommittedOffset(9, -1, "", Instant(c.now))
    c.log.batches.append(bytes(batch_of([offset_record("g", "t", 0, committed)], Instant(c.now))))
    c.fail_over()
    assert fetched(c) == 9
    c.delete("t")
    c.commit()
    assert c.reload().offsets == {}
