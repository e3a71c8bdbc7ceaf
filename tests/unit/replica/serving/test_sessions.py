"""Fetch sessions (KIP-227): whose slot a new one may take, what an incremental fetch tells, and whose turn it is."""

import random
from typing import Any

import pytest
from tests.unit.replica.asking import ask, offsets_in
from tests.unit.replica.conftest import AT, START, World, a_batch

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.metadata import records as r
from strandline.replica.config import ReplicaConfig
from strandline.replica.serving.sessions import FINAL_EPOCH, Context, Sessions
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

CONSUMER, FOLLOWER, OTHER_FOLLOWER = -1, 2, 3
EVICTION = 120_000


class Cache:
    """Three slots."""

    def __init__(self) -> None:
        config = ReplicaConfig(fetch_session_slots=3)
        assert config.fetch_session_eviction_ms == EVICTION
        self.sessions = Sessions(config, random.Random(1))
        self.now = START

    def open(self, size: int, replica: int = CONSUMER) -> int:
        """The new session's id, 0 if there is none."""
        rows = tuple(FetchPartition(partition=index) for index in range(size))
        request = FetchRequest(session_epoch=0, topics=(FetchTopic(topic="t", partitions=rows),))
        context = self.sessions.open(request, NodeId(replica), False, self.now)
        assert isinstance(context, Context)
        context.take(request)
        self.sessions.check()
        return context.session_id

    def use(self, session_id: int) -> None:
        epoch = self.sessions.sessions[session_id].epoch
        replica = self.sessions.sessions[session_id].replica
        self.sessions.open(FetchRequest(session_id=session_id, session_epoch=epoch), replica, False, self.now)

    def later(self, span_ms: int, *used: int) -> None:
        """Time passes, and these sessions are used at its end."""
        self.now = Instant(self.now + span_ms)
        for session_id in used:
            self.use(session_id)

    def holds(self, *session_ids: int) -> bool:
        return list(self.sessions.sessions) == list(session_ids)


@pytest.fixture
def cache() -> Cache:
    return Cache()


def test_a_young_session_is_safe_from_a_larger_one_of_its_kind(cache: Cache) -> None:
    one, two, three = cache.open(1), cache.open(2), cache.open(3)
    cache.later(EVICTION, one, two, three)
    assert cache.open(100) == 0
    assert cache.holds(one, two, three)


def test_an_old_session_gives_way_to_a_larger_one(cache: Cache) -> None:
    one, two, three = cache.open(5), cache.open(4), cache.open(6)
    cache.later(EVICTION + 1, one, two, three)
    assert cache.open(4) == 0  # not larger than the smallest
    four = cache.open(5)
    assert cache.holds(one, three, four)


def test_a_session_that_was_unused_for_long_goes_first_however_large(cache: Cache) -> None:
    one, two, three = cache.open(1), cache.open(100), cache.open(1)
    cache.later(EVICTION, one, three)
    assert cache.open(50) == 0
    cache.later(1, one, three)
    four = cache.open(1)
    assert four
    assert two not in cache.sessions.sessions
    assert cache.holds(one, three, four)


def test_a_follower_takes_the_slot_of_the_smallest_consumer_however_young(cache: Cache) -> None:
    one, two, three = cache.open(50), cache.open(40), cache.open(60)
    four = cache.open(1, FOLLOWER)
    assert four
    assert cache.holds(one, three, four)
    assert two not in cache.sessions.sessions


def test_a_consumer_never_takes_the_slot_of_a_follower_that_is_alive(cache: Cache) -> None:
    followers = [cache.open(1, node) for node in (2, 3, 4)]
    cache.later(EVICTION + 1, *followers)
    assert cache.open(100) == 0
    assert cache.holds(*followers)


def test_a_follower_that_is_long_gone_loses_its_slot_also_to_a_consumer(cache: Cache) -> None:
    _, two, three = cache.open(10, FOLLOWER), cache.open(1), cache.open(1)
    cache.later(EVICTION + 1, two, three)
    four = cache.open(1)
    assert four
    assert cache.holds(two, three, four)


def test_followers_take_slots_of_their_like_only_from_old_and_smaller_ones(cache: Cache) -> None:
    two, three, four = (cache.open(size, node) for node, size in ((2, 10), (3, 5), (4, 20)))
    assert cache.open(100, 5) == 0
    cache.later(EVICTION + 1, two, three, four)
    assert cache.open(5, 5) == 0
    five = cache.open(6, 5)
    assert cache.holds(two, four, five)


def test_without_slots_there_are_no_sessions() -> None:
    sessions = Sessions(ReplicaConfig(fetch_session_slots=0), random.Random(1))
    assert not sessions.has_room(100, NodeId(2), START)


def test_partitions_that_a_client_adds_forever_end_its_session_and_no_other(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.replica.serving.sessions.INTERESTS_MAX", 1000)
    follower, small, greedy = cache.open(2000, FOLLOWER), cache.open(50), cache.open(1)
    session = cache.sessions.sessions[greedy]
    for index in range(1, 1000):
        named = (FetchTopic(topic="t", partitions=(FetchPartition(partition=index),)),)
        request = FetchRequest(session_id=greedy, session_epoch=session.epoch, topics=named)
        assert cache.sessions.open(request, CONSUMER, False, cache.now) is session
        session.take(request)
        cache.sessions.check()
        if greedy not in cache.sessions.sessions:
            break
    assert 250 < len(session.interests) < 1000
    assert session.session_id == 0  # so its client asks for all of it anew
    assert cache.holds(follower, small)


def test_a_session_that_is_too_large_from_the_start_is_served_and_not_kept(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.replica.serving.sessions.INTERESTS_MAX", 1000)
    small = cache.open(50)
    assert cache.open(2000) == 0
    assert cache.holds(small)


# --- over the wire


def rows(*partitions: tuple[int, int], topic: str = "t", max_bytes: int = 1 << 20) -> tuple[FetchTopic, ...]:
    """Partition and offset each."""
    asked = tuple(
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        for index, offset in partitions
    )
    return (FetchTopic(topic=topic, partitions=asked),)


def fetch(world: World, session_id: int, epoch: int, *topics: FetchTopic, **fields: Any) -> Any:
    """The function that gives the answer."""
    fields = {"min_bytes": 1, **fields}
    return ask(world, 1, "fetch", FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, **fields))


def base_offsets(answer: Any) -> dict[int, list[int]]:
    """The base offsets of the batches in an answer, by partition."""
    return {
        row.partition_index: offsets_in(row.records) if len(row.records) else []
        for topic in answer.responses
        for row in topic.partitions
    }


def partitions(world: World, count: int) -> None:
    """A topic "t" with replication factor 1 on broker 1."""
    world.commit(
        r.TopicRecord(name="t", topic_id=AT.topic_id),
        *(
            r.PartitionRecord(
                partition_id=index,
                topic_id=AT.topic_id,
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(bytes([1]) * 16,),
            )
            for index in range(count)
        ),
    )


def fill(world: World, partition: int, batches: int, size: int = 1) -> None:
    for _ in range(batches):
        batch = bytearray(a_batch(size))
        world.perform(
            NodeId(1), world.nodes[NodeId(1)].append_internal("t", partition, batch, world.now, lambda *_: [])
        )


BATCH = len(a_batch(1))


def test_partitions_take_turns_when_the_answer_has_not_room_for_all(world: World) -> None:
    partitions(world, 3)
    for index in range(3):
        fill(world, index, 4)
    limits = {"max_bytes": BATCH}
    answer = fetch(world, 0, 0, *rows((0, 0), (1, 0), (2, 0)), **limits)()
    turns, offsets = [base_offsets(answer)], {0: 0, 1: 0, 2: 0}
    for epoch in range(1, 7):
        done = [index for index, bases in turns[-1].items() if bases]
        for index in done:
            offsets[index] += 1
        named = rows(*[(index, offsets[index]) for index in done])
        turns.append(base_offsets(fetch(world, answer.session_id, epoch, *named, **limits)()))
    assert [[index for index, bases in turn.items() if bases] for turn in turns] == [[0], [1], [2]] * 2 + [[0]]
    assert offsets == {0: 2, 1: 2, 2: 2}


def test_the_limit_of_the_answer_counts_over_all_partitions_in_the_order_asked(world: World) -> None:
    partitions(world, 3)
    for index in range(3):
        fill(world, index, 4)
    answer = fetch(world, 0, -1, *rows((2, 0), (0, 1), (1, 0)), max_bytes=5 * BATCH)()
    assert base_offsets(answer) == {2: [0, 1, 2, 3], 0: [1], 1: []}


def test_the_limit_of_a_partition_holds_but_for_the_first_batch_of_an_answer(world: World) -> None:
    partitions(world, 2)
    fill(world, 0, 2)
    fill(world, 1, 2)
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0), (1, 0), max_bytes=1))()) == {0: [0], 1: []}
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0), (1, 0), max_bytes=BATCH))()) == {0: [0], 1: [0]}


def test_a_fetch_that_wants_more_than_an_answer_may_have_waits_only_for_that_much() -> None:
    world = World(config=ReplicaConfig(answer_bytes_max=2 * BATCH))
    partitions(world, 1)
    fill(world, 0, 3)
    answer = fetch(world, 0, -1, *rows((0, 0)), min_bytes=100 * BATCH, max_wait_ms=10_000)
    assert base_offsets(answer()) == {0: [0, 1]}


def test_a_session_without_partitions_ends(world: World) -> None:
    partitions(world, 1)
    opened = fetch(world, 0, 0, *rows((0, 0)))()
    forgotten = (ForgottenTopic(topic="t", partitions=(0,)),)
    ended = fetch(world, opened.session_id, 1, forgotten_topics_data=forgotten)()
    assert (ended.error_code, ended.session_id, ended.responses) == (ErrorCode.NONE, 0, ())
    assert not world.nodes[NodeId(1)].fetching.sessions.sessions


def test_a_fetch_that_waits_in_an_evicted_session_is_answered_with_its_end() -> None:
    world = World(config=ReplicaConfig(fetch_session_slots=1))
    partitions(world, 1)
    opened = fetch(world, 0, 0, *rows((0, 0)))()
    waiting = fetch(world, opened.session_id, 1, max_wait_ms=1_000_000)
    world.run(EVICTION + 1)
    other = fetch(world, 0, 0, *rows((0, 0)))()
    assert other.session_id
    assert waiting() is None
    fill(world, 0, 1)
    assert (base_offsets(waiting()), waiting().session_id) == ({0: [0]}, 0)
    gone = fetch(world, opened.session_id, 2)()
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    world.nodes[NodeId(1)].check()
    (hosted,) = world.nodes[NodeId(1)].host.partitions.all()
    assert len(hosted.watchers) == 1  # of the other session


def test_an_error_in_a_session_is_reported_again_until_it_goes_and_then_the_partition_once(world: World) -> None:
    partitions(world, 1)
    fill(world, 0, 1)
    opened = fetch(world, 0, 0, *rows((0, 1)))()
    assert base_offsets(opened) == {0: []}
    for epoch in (1, 2):
        beyond = fetch(world, opened.session_id, epoch, *(rows((0, 2)) if epoch == 1 else ()))()
        assert beyond.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    back = fetch(world, opened.session_id, 3, *rows((0, 1)))()
    assert [row.error_code for row in back.responses[0].partitions] == [ErrorCode.NONE]
    assert fetch(world, opened.session_id, 4)().responses == ()


def test_a_divergence_is_reported_until_the_client_asks_elsewhere(world: World) -> None:
    partitions(world, 1)
    fill(world, 0, 2)
    world.change(leader=1)  # the same leader in a new epoch
    fill(world, 0, 1)
    diverged = FetchPartition(
        partition=0, fetch_offset=3, last_fetched_epoch=0, current_leader_epoch=-1, partition_max_bytes=100
    )
    topics = (FetchTopic(topic="t", partitions=(diverged,)),)
    opened = ask(world, 1, "fetch", FetchRequest(session_epoch=0, topics=topics), version=12)()
    for epoch in (1, 2):
        again = ask(world, 1, "fetch", FetchRequest(session_id=opened.session_id, session_epoch=epoch), version=12)()
        (row,) = again.responses[0].partitions
        assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 2)


def test_nobody_uses_or_ends_the_session_of_another_replica(cache: Cache) -> None:
    of_follower = cache.open(1, 2)
    for epoch in (1, FINAL_EPOCH):
        request = FetchRequest(session_id=of_follower, session_epoch=epoch)
        outcome = cache.sessions.open(request, NodeId(-1), False, cache.now)
        assert outcome is ErrorCode.FETCH_SESSION_ID_NOT_FOUND or epoch == FINAL_EPOCH
        assert cache.holds(of_follower)
    assert cache.sessions.sessions[of_follower].epoch == 1
