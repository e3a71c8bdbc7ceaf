"""Records that are not in the page cache: a Fetch waits for them as for new ones, and nobody waits for the medium."""

from typing import Any

import pytest
from tests.unit.replica.asking import ask, offsets_in
from tests.unit.replica.conftest import AT, START, World

from strandline.base.effects import Warm
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.replica import cold
from strandline.replica.serving.fetching import COLD_WAIT_MS
from strandline.replica.serving.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from strandline.wire.batch import build
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

ME = NodeId(1)


@pytest.fixture
def alone() -> World:
    """One broker, whose log of three batches is in no memory."""
    world = World(1)
    world.create(replicas=(1,))
    for _ in range(3):
        world.produce(1)
    world.run(100)
    hosted(world).log.tail.clear()
    world.disks[ME].cold.add(path(world))
    return world


def hosted(world: World) -> Any:
    return world.nodes[ME].host.partitions.find(AT)


def path(world: World) -> str:
    return str(hosted(world).log.segments.active.path)


def asked(world: World) -> list[Warm]:
    """What the driver is to read, by now."""
    world.run(1)
    return world.cold_reads(ME)


def warmed(world: World, effect: Warm) -> None:
    world.warmed(ME, effect)


def test_a_fetch_waits_until_what_it_asks_for_was_read_elsewhere_even_if_its_client_does_not_wait(alone: World) -> None:
    answer = alone.consume(1, 1)
    assert answer() is None
    (effect,) = asked(alone)
    assert (effect.path, effect.position) == (path(alone), 0)
    assert effect.size == hosted(alone).log.segments.active.size
    warmed(alone, effect)
    assert offsets_in(answer().records) == [1, 2], "although it is out of the cache again"
    alone.consume(1, 1)
    assert len(asked(alone)) == 2, "the next one asks anew"


def test_what_several_ask_for_is_read_once(alone: World) -> None:
    answers = [alone.consume(1, 0, max_wait_ms=500) for _ in range(3)]
    (effect,) = asked(alone)
    warmed(alone, effect)
    assert [offsets_in(answer().records) for answer in answers] == [[0, 1, 2]] * 3


def test_a_fetch_that_has_waited_long_enough_gets_nothing_and_the_next_one_reads(alone: World) -> None:
    first = alone.consume(1, 0, max_wait_ms=500)
    (effect,) = asked(alone)
    alone.run(COLD_WAIT_MS)
    assert (first().error_code, first().records) == (0, b"")
    second = alone.consume(1, 0)
    assert second() is None
    warmed(alone, effect)
    assert offsets_in(second().records) == [0, 1, 2]
    assert asked(alone) == [effect]


def test_what_has_become_of_the_partition_meanwhile_decides(alone: World) -> None:
    answer = alone.consume(1, 0)
    (effect,) = asked(alone)
    gone = DeleteRecordsTopic(name="t", partitions=(DeleteRecordsPartition(partition_index=0, offset=2),))
    ask(alone, 1, "delete_records", DeleteRecordsRequest(topics=(gone,), timeout_ms=1_000), 2)
    warmed(alone, effect)
    assert answer().error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    answer = alone.consume(1, 2)
    (_, effect) = asked(alone)
    alone.change(leader=2)
    assert offsets_in(answer().records) == [], "at once, by the follower that it is now"
    warmed(alone, effect)


def listed(world: World, *timestamps: int) -> Any:
    asks = tuple(ListOffsetsPartition(partition_index=n, timestamp=one) for n, one in enumerate(timestamps))
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=asks),))
    return ask(world, 1, "list_offsets", request, version=11)


@pytest.mark.parametrize("timestamp", [START, MAX_TIMESTAMP])
def test_a_search_by_time_waits_until_what_it_begins_to_read_was_read_elsewhere(alone: World, timestamp: int) -> None:
    answer = listed(alone, timestamp)
    assert answer() is None
    (effect,) = asked(alone)
    assert (effect.path, effect.position) == (path(alone), 0)
    warmed(alone, effect)
    assert answer().topics[0].partitions[0].offset == 0, "although it is out of the cache again"
    assert not alone.nodes[ME].cold.warmed, "nobody comes back to it"


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, START + 1_000_000])
def test_what_reads_no_record_does_not_wait(alone: World, timestamp: int) -> None:
    assert listed(alone, timestamp)() is not None
    assert not asked(alone)


def test_a_search_answers_with_the_last_of_what_it_waits_for(alone: World) -> None:
    """And a Fetch that waits for the same file is none of its business."""
    alone.consume(1, 1)
    first, second = listed(alone, START), listed(alone, START, START)
    assert (first(), second()) == (None, None)
    of_fetch, of_search = asked(alone)
    warmed(alone, of_fetch)
    assert (first(), second()) == (None, None)
    warmed(alone, of_search)
    assert [answer().topics[0].partitions[0].offset for answer in (first, second)] == [0, 0]
    assert second().topics[0].partitions[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_search_of_a_partition_that_is_no_longer_led_here_says_so(alone: World) -> None:
    answer = listed(alone, START)
    (effect,) = asked(alone)
    alone.change(leader=2)
    warmed(alone, effect)
    assert answer().topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_nobody_comes_back_to_is_forgotten_some_time(alone: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "WARMED_MAX", 1)
    for offset in (0, 1):
        alone.consume(1, offset)
    for effect in asked(alone):
        alone.run(COLD_WAIT_MS)
        warmed(alone, effect)
    assert [place.offset for place in alone.nodes[ME].cold.warmed] == [1]


def test_what_lies_a_large_batch_behind_the_index_entry_is_asked_for_too(alone: World) -> None:
    log = hosted(alone).log
    for _ in range(3):
        alone.produce(1, batch=build([(START, None, bytes(5_000), ())] * 2))
    log.tail.clear()
    segment = log.segments.active
    (second,) = (header for header in segment.headers(0) if header.base_offset == 5)
    assert segment.index.position_of(5) < second.position - 9_000
    missing = second.end - 1
    segment.file.is_cached = lambda position, size: not position <= missing < position + size
    assert segment.cold_part(5, second.size) is not None
    assert segment.cold_part(3, 9_000) is None


def test_a_fetch_of_no_bytes_waits_like_any_other(alone: World) -> None:
    segment = hosted(alone).log.segments.active
    segment.interval_bytes = 0
    for limit in (-1, 0, 1):
        missing = segment.cold_part(0, limit)
        assert missing.position == 0 and missing.size > 1
    answer = alone.consume(1, 0, max_bytes=0)
    warmed(alone, *asked(alone))
    assert offsets_in(answer().records) == [0]
