"""Fetch answers get smaller as memory for answers is used: by slow clients, and by answers of the same step."""

import pytest
from tests.unit.replica.conftest import World
from tests.unit.replica.serving.test_sessions import BATCH, base_offsets, fetch, fill, partitions, rows

from strandline.base import answer_memory
from strandline.base.answer_memory import LARGE_BYTES, NOTHING, AnswerMemory
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.replica.config import ReplicaConfig

MIB = 1 << 20


def filled_world() -> tuple[World, AnswerMemory]:
    """Ten batches, and memory for forty in all: ten in an answer."""
    world = World(config=ReplicaConfig(queued_answer_bytes_max=40 * BATCH))
    partitions(world, 1)
    fill(world, 0, 10)
    return world, world.nodes[NodeId(1)].host.answers


def test_an_answer_has_at_most_a_quarter_of_what_is_free_and_one_batch_at_the_bound() -> None:
    world, answers = filled_world()
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0)))()) == {0: list(range(10))}
    answers.hold(20 * BATCH)
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0)))()) == {0: list(range(5))}
    answers.hold(30 * BATCH)
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0)))()) == {0: [0]}
    answers.release(50 * BATCH)
    assert base_offsets(fetch(world, 0, -1, *rows((0, 0)))()) == {0: list(range(10))}


def test_above_the_bound_a_fetch_waits_and_gets_nothing_when_its_time_is_over() -> None:
    world, answers = filled_world()
    answers.hold(51 * BATCH)
    waiting = fetch(world, 0, -1, *rows((0, 0)), max_wait_ms=100)
    assert waiting() is None
    world.run(101)
    assert base_offsets(waiting()) == {0: []}
    waiting = fetch(world, 0, -1, *rows((0, 0)), max_wait_ms=100)
    answers.release(51 * BATCH)
    world.run(101)
    assert base_offsets(waiting()) == {0: list(range(10))}


def test_who_wants_more_than_there_is_memory_for_does_not_wait_for_it() -> None:
    world, answers = filled_world()
    answers.hold(30 * BATCH)
    waiting = fetch(world, 0, -1, *rows((0, 0)), min_bytes=5 * BATCH, max_wait_ms=1_000_000)
    assert base_offsets(waiting()) == {0: [0, 1]}


def test_answers_of_one_instant_get_smaller_before_the_driver_has_seen_any(monkeypatch: pytest.MonkeyPatch) -> None:
    world, answers = filled_world()
    monkeypatch.setattr(answer_memory, "LARGE_BYTES", 5 * BATCH)
    answers.gave(0, world.now)  # takes the smaller bound
    sizes = [len(base_offsets(fetch(world, 0, -1, *rows((0, 0)))())[0]) for _ in range(10)]
    assert sizes[:5] == [10, 7, 5, 4, 3]
    assert sizes[-1] == 1
    world.run(1)
    after = [len(base_offsets(fetch(world, 0, -1, *rows((0, 0)))())[0]) for _ in range(2)]
    assert after == [1, 10], "the first small one of another instant ends the count"


def test_what_is_held_and_given_is_subtracted_and_small_answers_are_not_counted() -> None:
    it = AnswerMemory(256 * MIB)
    it.gave(LARGE_BYTES - 1, Instant(1))
    assert (it.answer_max, it.counted_from) == (64 * MIB, LARGE_BYTES)
    it.gave(52 * MIB, Instant(1))
    assert (it.answer_max, it.counted_from) == (51 * MIB, 0)
    it.gave(100, Instant(1))
    assert it.given == 52 * MIB + 100
    it.hold(60 * MIB)
    it.gave(100, Instant(2))
    assert (it.given, it.answer_max, it.counted_from) == (0, 49 * MIB, LARGE_BYTES)
    it.hold(260 * MIB)
    assert it.answer_max == 0
    it.hold(1)
    assert it.answer_max == NOTHING
