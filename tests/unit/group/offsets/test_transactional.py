"""Offsets that are committed in transactions: who may, when they count, and what a fetch of stable offsets says."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.group.coordination import Coordination, commit_request, pending_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.group.shards.shard import group_record
from strandline.wire.batch import read_header
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.leave_group import MemberIdentity
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


def error_of(answer: TxnOffsetCommitResponse) -> E:
    return E(answer.topics[0].partitions[0].error_code)


def committed(c: Coordination, request: TxnOffsetCommitRequest, version: int = 5) -> E:
    return error_of(c.ask(request, version))


def offset(c: Coordination, topic: str = "t", partition: int = 0) -> int:
    found = c.shard.offsets.get("g", {}).get((topic, partition))
    return -1 if found is None else found.offset


def reloaded(c: Coordination, topic: str = "t", partition: int = 0) -> int:
    found = c.reload().offsets.get("g", {}).get((topic, partition))
    return -1 if found is None else found.offset


def fetched(c: Coordination, *, stable: bool = True, version: int = 9, topic: str = "t") -> list[tuple[int, E]]:
    """The offsets of partitions 0 and 1, and their errors."""
    one = OffsetFetchRequestTopic(name=topic, partition_indexes=(0, 1))
    many = OffsetFetchRequestTopics(name=topic, partition_indexes=(0, 1))
    group = OffsetFetchRequestGroup(group_id="g", topics=(many,))
    request = OffsetFetchRequest(group_id="g", topics=(one,), groups=(group,), require_stable=stable)
    answer = c.answers[c.send(request, version)]
    topics: Any = answer.groups[0].topics if version >= 8 else answer.topics
    return [(p.committed_offset, E(p.error_code)) for p in topics[0].partitions]


UNSTABLE = (-1, E.UNSTABLE_OFFSET_COMMIT)
NOTHING = (-1, E.NONE)


# --- when they count


def test_a_commit_in_a_transaction_is_answered_when_it_is_written_and_counts_with_its_marker() -> None:
    c = Coordination()
    number = c.send(pending_request(5))
    assert number not in c.answers
    c.commit()
    assert (error_of(c.answers[number]), offset(c)) == (E.NONE, -1)
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (5, 5)


def test_what_an_aborted_transaction_has_committed_never_counts() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(pending_request(5))
    c.end_transaction(commits=False)
    assert (offset(c), reloaded(c)) == (3, 3)
    assert fetched(c) == [(3, E.NONE), NOTHING]
    c.end_transaction(commits=True)
    assert (offset(c), reloaded(c)) == (3, 3), "nor with the next transaction of this producer"


def test_a_marker_is_about_the_offsets_of_its_producer_alone() -> None:
    c = Coordination()
    c.ask(pending_request(5, producer_id=7))
    c.ask(pending_request(6, producer_id=8, partition=1))
    c.end_transaction(8)
    assert (offset(c), offset(c, partition=1)) == (-1, 6)
    assert fetched(c) == [UNSTABLE, (6, E.NONE)]
    c.end_transaction(9, commits=False)
    c.end_transaction(7)
    assert (offset(c), offset(c, partition=1)) == (5, 6)


def test_of_several_commits_in_one_transaction_the_last_counts() -> None:
    c = Coordination()
    for pending in (5, 9, 7):
        c.ask(pending_request(pending))
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (7, 7)


def test_of_two_transactions_at_once_the_later_record_counts_whichever_ends_first() -> None:
    for first, last in ((7, 8), (8, 7)):
        c = Coordination()
        c.ask(pending_request(5, producer_id=7))
        c.ask(pending_request(6, producer_id=8))
        c.end_transaction(first)
        assert fetched(c)[0] == UNSTABLE
        c.end_transaction(last)
        assert (offset(c), reloaded(c)) == (6, 6)


def test_an_offset_that_was_committed_after_the_pending_one_wins() -> None:
    """As for a cleaner, to which the later record of a key counts."""
    c = Coordination()
    c.ask(pending_request(5))
    c.ask(commit_request(9), 9)
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (9, 9)


def test_an_offset_that_was_committed_before_the_pending_one_gives_way_to_it() -> None:
    c = Coordination()
    c.ask(commit_request(9), 9)
    c.ask(pending_request(5))
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (5, 5)


def test_a_commit_that_is_not_acknowledged_in_time_counts_if_its_transaction_is_committed() -> None:
    """It is in the log before the marker, which cannot be committed without it."""
    c = Coordination()
    number = c.send(pending_request(5))
    batch, done = c.log.under_way.pop()
    c.take(done(E.REQUEST_TIMED_OUT, c.log.written(batch), Instant(c.now)))
    assert error_of(c.answers[number]) is E.COORDINATOR_NOT_AVAILABLE
    assert fetched(c)[0] == UNSTABLE
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (5, 5)


def test_a_commit_that_is_refused_leaves_nothing_behind() -> None:
    c = Coordination()
    c.send(pending_request(5))
    c.fail(E.INVALID_TXN_STATE)
    assert fetched(c) == [NOTHING, NOTHING]
    c.end_transaction()
    assert offset(c) == -1


def test_a_marker_in_a_partition_that_is_not_loaded_is_read_when_it_is() -> None:
    c = Coordination()
    c.ask(pending_request(5))
    c.log.epoch = None
    c.groups.follow_leadership(Instant(c.now))
    c.end_transaction()
    c.log.epoch = LeaderEpoch(1)
    c.groups.follow_leadership(Instant(c.now))
    assert offset(c) == 5


# --- how they are written


@each("version, adds", [(3, False), (4, False), (5, True)])
def test_the_partition_is_verified_or_with_newer_clients_added_and_the_batch_is_the_producers(
    version: int, adds: bool
) -> None:
    c = Coordination()
    c.ask(pending_request(5, producer_id=12, epoch=3), version)
    assert c.log.asked == [("tx", adds)]
    header = read_header(c.log.batches[0])
    assert (header.is_transactional, header.producer_id, header.producer_epoch) == (True, 12, 3)
    assert header.base_sequence == -1


@each(
    "changes",
    [{"transactional_id": ""}, {"producer_id": -1}, {"epoch": -1}],
)
def test_a_commit_in_nobodys_transaction_is_refused(changes: dict[str, Any]) -> None:
    c = Coordination()
    assert committed(c, pending_request(5, **changes)) is E.INVALID_REQUEST
    assert c.log.batches == []


def test_each_row_is_judged_by_itself() -> None:
    c = Coordination(offset_metadata_max_bytes=4)
    rows = [pending_request(1, metadata="12345"), pending_request(2, topic="u", metadata="1234")]
    rows += [pending_request(3, topic="nowhere"), pending_request(4, partition=9)]
    whole = TxnOffsetCommitRequest(
        transactional_id="tx", group_id="g", producer_id=7, topics=tuple(row.topics[0] for row in rows)
    )
    answer = c.ask(whole)
    errors = [E(topic.partitions[0].error_code) for topic in answer.topics]
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [E.OFFSET_METADATA_TOO_LARGE, E.NONE, unknown, unknown]
    c.end_transaction()
    assert list(c.shard.offsets["g"]) == [("u", 0)]


def test_where_no_row_is_acceptable_nothing_is_written() -> None:
    c = Coordination()
    number = c.send(pending_request(5, topic="nowhere"))
    assert error_of(c.answers[number]) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert (c.log.asked, c.log.under_way) == ([], [])


# --- who may


def test_a_member_commits_in_its_generation_by_its_id() -> None:
    c = Coordination()
    a = c.stable()
    assert committed(c, pending_request(5, a, 1)) is E.NONE
    assert committed(c, pending_request(6, a, 0)) is E.ILLEGAL_GENERATION
    assert committed(c, pending_request(6, a, 2)) is E.ILLEGAL_GENERATION
    assert committed(c, pending_request(6, a, -1)) is E.ILLEGAL_GENERATION, "a member has a generation"
    assert committed(c, pending_request(6, "nobody", 1)) is E.UNKNOWN_MEMBER_ID
    assert committed(c, pending_request(6, "", 1)) is E.UNKNOWN_MEMBER_ID
    c.end_transaction()
    assert offset(c) == 5


def test_a_static_member_that_was_replaced_is_fenced() -> None:
    c = Coordination()
    a = c.static("i1")
    assert committed(c, pending_request(5, a, 1, instance_id="i1")) is E.NONE
    assert committed(c, pending_request(6, "older", 1, instance_id="i1")) is E.FENCED_INSTANCE_ID
    assert committed(c, pending_request(6, a, 1, instance_id="i2")) is E.UNKNOWN_MEMBER_ID
    assert committed(c, pending_request(6, "", -1, instance_id="i1")) is E.FENCED_INSTANCE_ID


def test_an_older_client_that_names_no_member_commits_for_a_group_with_members() -> None:
    """Its producer epoch alone fences it."""
    c = Coordination()
    c.stable()
    assert committed(c, pending_request(5), 2) is E.NONE
    assert committed(c, pending_request(6)) is E.NONE, "or a newer one that was not told who its consumer is"
    c.end_transaction()
    assert offset(c) == 6


def test_without_members_only_a_consumer_of_its_own_commits() -> None:
    c = Coordination()
    assert committed(c, pending_request(5, "x", 3)) is E.ILLEGAL_GENERATION, "there is no group"
    assert committed(c, pending_request(5, "x", -1)) is E.NONE
    a = c.stable()
    c.leave(MemberIdentity(member_id=a))
    assert committed(c, pending_request(6, "x", -1)) is E.NONE
    assert committed(c, pending_request(6, a, 1)) is E.UNKNOWN_MEMBER_ID


def test_a_commit_in_a_transaction_is_taken_while_the_leader_assigns() -> None:
    """The group's state is not asked for: what was read before the rebalance is committed before the next fetch."""
    c = Coordination()
    a = c.stable()
    c.enter()
    assert committed(c, pending_request(5, a, 1)) is E.NONE
    c.join(a)
    assert committed(c, pending_request(6, a, 2)) is E.NONE


def test_a_commit_in_a_transaction_does_not_keep_a_session() -> None:
    c = Coordination()
    a = c.stable(session=10_000)
    c.wait(9_999)
    assert committed(c, pending_request(5, a, 1)) is E.NONE
    c.wait(2)
    assert c.heartbeat(a, 1) is E.UNKNOWN_MEMBER_ID


def test_a_group_has_an_id_and_its_coordinator_is_asked() -> None:
    c = Coordination()
    request = pending_request(5)
    nameless = TxnOffsetCommitRequest(transactional_id="tx", producer_id=7, topics=request.topics)
    assert committed(c, nameless) is E.INVALID_GROUP_ID
    c.groups.shards.loaded.clear()
    assert committed(c, request) is E.NOT_COORDINATOR
    c.groups.shards.partitions = 0
    assert committed(c, request) is E.COORDINATOR_NOT_AVAILABLE


@each("version, expected", [(1, E.COORDINATOR_NOT_AVAILABLE), (2, E.COORDINATOR_LOAD_IN_PROGRESS)])
def test_old_producers_are_not_told_that_a_coordinator_loads(version: int, expected: E) -> None:
    c = Coordination()
    c.log.epoch = None
    c.groups.follow_leadership(Instant(c.now))
    c.log.epoch, c.log.is_damaged = LeaderEpoch(2), True
    c.groups.follow_leadership(Instant(c.now))
    assert committed(c, pending_request(5), version) is expected


@each(
    "failure, version, expected",
    [
        (E.NOT_LEADER_OR_FOLLOWER, 5, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, 5, E.NOT_COORDINATOR),
        (E.NOT_ENOUGH_REPLICAS, 5, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, 5, E.COORDINATOR_NOT_AVAILABLE),
        (E.MESSAGE_TOO_LARGE, 5, E.INVALID_COMMIT_OFFSET_SIZE),
        (E.NETWORK_EXCEPTION, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.NETWORK_EXCEPTION, 1, E.COORDINATOR_NOT_AVAILABLE),
        (E.CONCURRENT_TRANSACTIONS, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.NOT_COORDINATOR, 5, E.COORDINATOR_LOAD_IN_PROGRESS),  # of the transaction
        (E.PRODUCER_FENCED, 5, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_EPOCH, 5, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (E.INVALID_TXN_STATE, 3, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 3, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 4, E.TRANSACTION_ABORTABLE),
    ],
)
def test_what_a_refused_write_is_called_for_a_producer(failure: E, version: int, expected: E) -> None:
    c = Coordination()
    number = c.send(pending_request(5), version)
    c.fail(failure)
    assert error_of(c.answers[number]) is expected


# --- stable offsets


@pytest.mark.parametrize("version", [7, 8, 9])
def test_who_wants_stable_offsets_is_told_where_one_is_pending(version: int) -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(commit_request(4, partition=1), 9)
    c.ask(pending_request(5))
    assert fetched(c, version=version) == [UNSTABLE, (4, E.NONE)]
    assert fetched(c, version=version, stable=False) == [(3, E.NONE), (4, E.NONE)]
    c.end_transaction()
    assert fetched(c, version=version) == [(5, E.NONE), (4, E.NONE)]


def test_an_offset_is_unstable_from_when_its_commit_is_accepted() -> None:
    """Its member may be out of the group before the record is written, and another one fetches meanwhile."""
    c = Coordination()
    c.send(pending_request(5))
    assert fetched(c) == [UNSTABLE, NOTHING]
    c.send(pending_request(6))
    c.fail(E.NOT_ENOUGH_REPLICAS)
    assert fetched(c) == [UNSTABLE, NOTHING], "there is another one"
    c.fail(E.NOT_ENOUGH_REPLICAS)
    assert fetched(c) == [NOTHING, NOTHING]


def test_a_fetch_of_all_offsets_tells_of_those_that_are_not_stable() -> None:
    """But not where no offset counts yet, as in Kafka."""
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(commit_request(4, partition=1), 9)
    c.ask(pending_request(5))
    c.ask(pending_request(6, topic="u"))
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    (topic,) = c.ask(OffsetFetchRequest(groups=(everything,), require_stable=True), 9).groups[0].topics
    assert [(p.committed_offset, p.error_code) for p in topic.partitions] == [UNSTABLE, (4, E.NONE)]
    (topic,) = c.ask(OffsetFetchRequest(group_id="g", topics=None, require_stable=True), 7).topics
    assert [(p.committed_offset, p.error_code) for p in topic.partitions] == [UNSTABLE, (4, E.NONE)]


# --- loading


def test_a_transaction_that_is_open_where_the_log_ends_is_pending_for_a_new_coordinator() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(pending_request(5))
    c.fail_over()
    assert fetched(c) == [UNSTABLE, NOTHING]
    c.end_transaction()
    assert fetched(c) == [(5, E.NONE), NOTHING]


def test_a_new_coordinator_knows_which_record_is_the_later_one() -> None:
    for requests, expected in (
        ((commit_request(3), pending_request(5)), 5),
        ((pending_request(5), commit_request(3)), 3),
    ):
        c = Coordination()
        for request in requests:
            c.ask(request, 9 if request.api_key == 8 else 5)
        c.fail_over()
        c.end_transaction()
        assert (offset(c), reloaded(c)) == (expected, expected)


def test_in_a_transaction_only_offsets_are_committed() -> None:
    """A client that calls itself Kafka's tool may write any record."""
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.stable()
    key, _ = offset_record("g", "t", 0, CommittedOffset(3, -1, "", Instant(0)))
    group_key, group = group_record(c.group)
    strange = batch_of([(key, None), (group_key, None), (group_key, group)], Instant(0), (7, 0))
    c.log.written(bytes(strange))
    c.end_transaction()
    shard = c.reload()
    assert (shard.offsets["g"]["t", 0].offset, list(shard.groups), shard.unreadable) == (3, ["g"], 3)


# --- what is forgotten


def test_an_offset_whose_time_is_up_is_kept_while_another_is_pending_and_so_is_its_group() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(commit_request(4, partition=1), 9)
    a = c.stable()
    c.leave(MemberIdentity(member_id=a))
    c.commit()
    c.ask(pending_request(5))
    c.wait(c.config.offsets_retention_ms + c.config.offsets_retention_check_ms)
    c.commit()
    assert (offset(c), offset(c, partition=1)) == (3, -1)
    assert "g" in c.shard.groups
    c.end_transaction(commits=False)
    c.wait(c.config.offsets_retention_check_ms)
    c.commit()
    assert (c.shard.offsets, c.shard.groups) == ({}, {})


def test_a_group_without_an_offset_is_kept_while_one_is_pending() -> None:
    c = Coordination()
    a = c.stable()
    c.leave(MemberIdentity(member_id=a))
    c.ask(pending_request(5))
    c.wait(c.config.offsets_retention_check_ms)
    c.commit()
    assert "g" in c.shard.groups


def test_offsets_of_a_deleted_topic_are_forgotten_when_their_transaction_has_ended() -> None:
    """Else what is pending for a topic that is made anew would go with them."""
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(pending_request(5))
    c.delete("t")
    assert c.commit() == 0
    c.create("t")
    c.ask(pending_request(6, producer_id=8))
    c.end_transaction(7)
    assert c.commit() == 0
    c.end_transaction(8)
    c.wait(c.config.offsets_retention_check_ms)
    assert c.commit() == 0
    assert fetched(c)[0] == (6, E.NONE)


def test_what_was_pending_for_a_deleted_topic_is_forgotten_after_its_commit() -> None:
    c = Coordination()
    c.ask(pending_request(5))
    c.delete("t")
    c.end_transaction()
    c.wait(c.config.offsets_retention_check_ms)
    assert c.commit() == 1
    assert (c.shard.offsets, c.reload().offsets) == ({}, {})


def test_a_group_is_deleted_with_what_is_pending_in_it() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.ask(pending_request(5))
    c.ask(pending_request(6, topic="u", producer_id=8))
    answer = c.ask(DeleteGroupsRequest(groups_names=("g",)))
    assert [result.error_code for result in answer.results] == [E.NONE]
    c.end_transaction(7)
    c.end_transaction(8)
    assert (c.shard.offsets, c.reload().offsets) == ({}, {})


def test_what_is_pending_after_a_tombstone_outlives_it() -> None:
    c = Coordination()
    c.ask(commit_request(3), 9)
    c.send(DeleteGroupsRequest(groups_names=("g",)))
    c.send(pending_request(5))
    c.commit()
    assert offset(c) == -1
    c.end_transaction()
    assert (offset(c), reloaded(c)) == (5, 5)


def test_a_group_in_which_an_offset_is_pending_exists() -> None:
    c = Coordination()
    c.ask(pending_request(5))
    described = c.ask(DescribeGroupsRequest(groups=("g",))).groups[0]
    assert (described.error_code, described.group_state) == (E.NONE, "Empty")
    assert [group.group_id for group in c.ask(ListGroupsRequest()).groups] == ["g"]
    answer = c.ask(DeleteGroupsRequest(groups_names=("g",)))
    assert answer.results[0].error_code == E.NONE
    assert c.ask(ListGroupsRequest()).groups == ()
