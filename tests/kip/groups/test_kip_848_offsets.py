"""KIP-848 and KIP-1251: whose offsets a consumer group takes, and whom it shows them."""

import pytest
from tests.rows import each
from tests.unit.group.consuming import Consumer, Consumers
from tests.unit.group.coordination import commit_request, pending_request

from strandline.base.errors import ErrorCode as E
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


def pair() -> Consumers:
    """`a` has t-0, since epoch 1, and is at epoch 2; `b` has t-1 since epoch 2."""
    made = Consumers()
    a, b = made.consumer("a"), made.consumer("b")
    made.reconcile(a, b)
    assert (a.has, b.has, a.epoch, b.epoch) == ({("t", 0)}, {("t", 1)}, 2, 2)
    return made


@pytest.fixture
def world() -> Consumers:
    return pair()


def committed(world: Consumers, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> E:
    answer = world.ask(commit_request(7, member_id, epoch, partition=partition), version)
    return E(answer.topics[0].partitions[0].error_code)


@each(
    ("member_id", "epoch", "partition", "version", "error"),
    [
        ("a", 2, 0, 9, E.NONE),
        ("a", 2, 1, 9, E.NONE),  # as in the classic protocol, a member may commit for others
        ("a", 2, 0, 8, E.UNSUPPORTED_VERSION),  # whose clients do not know the errors
        ("a", 3, 0, 9, E.STALE_MEMBER_EPOCH),
        ("a", 1, 0, 9, E.NONE),  # it has had it since then
        ("a", 0, 0, 9, E.STALE_MEMBER_EPOCH),
        ("a", 1, 1, 9, E.STALE_MEMBER_EPOCH),  # another member has it
        ("b", 1, 1, 9, E.STALE_MEMBER_EPOCH),  # it had not got it then
        ("a", -1, 0, 9, E.STALE_MEMBER_EPOCH),
        ("x", 2, 0, 9, E.UNKNOWN_MEMBER_ID),
        ("", -1, 0, 9, E.UNKNOWN_MEMBER_ID),
    ],
    world=pair,
)
def test_a_member_commits_with_its_epoch_or_for_what_it_has_had_since_an_older_one(
    member_id: str, epoch: int, partition: int, version: int, error: E, world: Consumers
) -> None:
    assert committed(world, member_id, epoch, partition, version) is error
    assert bool(world.shard.offsets) == (error is E.NONE)


def test_while_a_group_is_empty_whoever_is_no_member_commits(world: Consumers) -> None:
    for member_id in ("a", "b"):
        Consumer(world, member_id).leave()
    assert committed(world, "", -1) is E.NONE
    assert committed(world, "a", 2) is E.UNKNOWN_MEMBER_ID


def test_a_commit_does_not_keep_a_member_alive(world: Consumers) -> None:
    world.wait(30_000)
    assert committed(world, "a", 2) is E.NONE
    world.wait(20_000)
    assert world.consumers.members == {}


@each(
    ("member_id", "epoch", "error"),
    [
        ("a", 2, E.NONE),
        ("a", 1, E.NONE),
        ("a", 3, E.ILLEGAL_GENERATION),  # producers know the classic error alone
        ("x", 2, E.UNKNOWN_MEMBER_ID),
        ("", -1, E.NONE),  # it did not say who its consumer is
        ("x", -1, E.UNKNOWN_MEMBER_ID),
    ],
    world=pair,
)
def test_a_producer_commits_for_a_member(member_id: str, epoch: int, error: E, world: Consumers) -> None:
    answer = world.ask(pending_request(7, member_id, epoch))
    assert E(answer.topics[0].partitions[0].error_code) is error


@each(
    ("member_id", "epoch", "error"),
    [
        (None, -1, E.NONE),
        ("a", 2, E.NONE),
        ("a", 1, E.STALE_MEMBER_EPOCH),
        ("a", 3, E.STALE_MEMBER_EPOCH),
        ("x", 2, E.UNKNOWN_MEMBER_ID),
        (None, 2, E.UNKNOWN_MEMBER_ID),
        ("", -1, E.UNKNOWN_MEMBER_ID),
    ],
    world=pair,
)
def test_offsets_are_shown_to_a_member_of_the_present_epoch_and_to_who_claims_to_be_none(
    member_id: str | None, epoch: int, error: E, world: Consumers
) -> None:
    assert committed(world, "a", 2) is E.NONE
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=topics)
    answer = world.ask(OffsetFetchRequest(groups=(group,)), 9).groups[0]
    assert E(answer.error_code) is error
    assert [p.committed_offset for t in answer.topics for p in t.partitions] == ([7] if error is E.NONE else [])


def test_offsets_expire_in_a_group_with_members_if_nobody_is_subscribed_to_their_topic() -> None:
    world = Consumers(offsets_retention_ms=20_000, offsets_retention_check_ms=10_000)
    a = world.consumer("a")
    world.wait(30_000)
    assert world.consumers.members.keys() == {"a"}, "a group with members and without offsets"
    for topic in ("t", "u"):
        answer = world.ask(commit_request(7, "a", 1, topic=topic), 9)
        assert answer.topics[0].partitions[0].error_code == 0
    a.beat()
    world.wait(30_000)
    world.commit()
    assert list(world.shard.offsets["g"]) == [("t", 0)]
    a.leave()
    world.wait(10_000)
    world.commit()
    assert (world.shard.offsets, world.shard.groups) == ({}, {}), "and with the last of them the group"
    assert world.log.live_keys() == []
