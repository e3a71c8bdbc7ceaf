"""Bits rot on the disks of a cluster: who notices, what is fetched again, and what is lost."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.log.logs import content
from tests.unit.replica.conftest import AT, START, World, a_batch
from tests.unit.replica.serving.test_offsets import list_offset

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.broker.metrics.gauges import of_scrubber
from strandline.log.evidence.soundness import Damage
from strandline.log.log import Log
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT
from strandline.metadata.losses import AT_MOST, EXACTLY, withdrawal
from strandline.replica.scrubbing.scrubber import FIRST_MS, Scrubber
from strandline.sim.laws.logs.indexes import why_not_right
from strandline.wire.batch import BatchHeader, batches, build

FLUSHED = 3_100
PASS = 10_000
E = ErrorCode


def a_world(brokers: int = 3, *, spread_ms: int = 0, **settings: int) -> World:
    """Twenty batches of one record each, in segments of four or so, durable on all brokers, and in no log's tail."""
    static: Any = {"log.scrub.interval.ms": 1_000, "log.flush.offset.checkpoint.interval.ms": 3_000} | {
        k.replace("_", "."): v for k, v in settings.items()
    }
    world = World(brokers, static=static)
    world.create(replicas=tuple(range(1, brokers + 1)), internal_segment_bytes="300")
    for number in range(20):
        world.produce(1, batch=build([(START + number * spread_ms, None, b"value", ())]))
    world.run(FLUSHED)
    for node in world.nodes:
        log_of(world, node).tail.clear()
    return world


@pytest.fixture
def world() -> World:
    return a_world()


@pytest.fixture
def unscrubbed() -> World:
    """What reads come upon is repaired all the same."""
    return a_world(log_scrub_max_bytes_per_second=0)


def log_of(world: World, node: int) -> Log:
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    return hosted.log


def scrubber_of(world: World, node: int) -> Scrubber:
    return world.nodes[NodeId(node)].scrubber


def place_of(world: World, node: int, offset: int) -> tuple[str, BatchHeader]:
    log = log_of(world, node)
    segment = next(one for one in reversed(log.segments) if one.base_offset <= offset)
    for header in batches(segment.file.read(0, segment.size)):
        if header.base_offset == offset:
            return segment.path, header
    raise AssertionError(offset)


def flip(world: World, node: int, offset: int, byte: int, mask: int = 1) -> None:
    """Change a byte of the batch that begins at `offset`."""
    path, header = place_of(world, node, offset)
    world.disks[NodeId(node)].files[path].content[header.position + byte] ^= mask


def stored(world: World, node: int) -> bytes:
    return b"".join(bytes(segment.file.read(0, segment.size)) for segment in log_of(world, node).segments)


def reports_with(world: World, text: str) -> list[str]:
    return [report for report in world.reports if text in report]


def losses(world: World, node: int) -> list[tuple[int, int, int]]:
    events = [lost.event for lost in world.nodes[NodeId(node)].host.ledger.all()]
    return [(event.start, event.end, event.certainty) for event in events]


# Base offset, length (shorter, longer, negative), leader epoch, magic, CRC, attributes, last offset delta, a record.
BYTES = [(7, 1), (0, 1), (11, 1), (11, 64), (9, 1), (8, 128), (15, 1), (16, 1), (18, 4), (22, 1), (26, 2), (64, 8)]


@each(("byte", "mask"), BYTES)
@each("node", [1, 2], world=a_world)
def test_what_rots_is_fetched_again_from_a_replica_that_has_it(world: World, node: int, byte: int, mask: int) -> None:
    for offset in (5, 13):
        flip(world, node, offset, byte, mask)
    world.run(PASS)
    assert stored(world, node) == stored(world, 3)
    scrubber = scrubber_of(world, node)
    assert (scrubber.repairs.damaged, scrubber.repairs.repaired, scrubber.repairs.lost) == (2, 2, 0)
    assert len(reports_with(world, "t-0: offsets 5 to 5 are repaired")) == 1
    assert losses(world, node) == []


def test_what_is_not_cached_is_looked_at_once_it_was_read_elsewhere(world: World) -> None:
    """And each place of a file is read elsewhere once, however often it is out of the cache again."""
    flip(world, 2, 5, 64)
    disk = world.disks[NodeId(2)]
    disk.cold |= {segment.path for segment in log_of(world, 2).segments}
    world.run(PASS)
    assert scrubber_of(world, 2).repairs.damaged == 0
    (asked,) = world.cold_reads(2)
    for _ in range(20):
        world.warmed(2, asked)
        world.run(100)
        if world.cold_reads(2)[-1] == asked:
            break
        asked = world.cold_reads(2)[-1]
    assert stored(world, 2) == stored(world, 3)
    assert len({(one.path, one.position) for one in world.cold_reads(2)}) == len(world.cold_reads(2))


@each("offset", range(20), world=a_world)
def test_every_batch_is_looked_at(world: World, offset: int) -> None:
    flip(world, 2, offset, 64)
    world.run(PASS)
    assert stored(world, 2) == stored(world, 3)


def test_a_run_of_batches_that_are_gone_is_repaired_as_one(world: World) -> None:
    path, header = place_of(world, 1, 5)
    held = world.disks[NodeId(1)].files[path].content
    held[header.position :] = bytes(len(held) - header.position)
    world.run(PASS)
    assert stored(world, 1) == stored(world, 3)


def test_a_file_that_ends_early_is_whole_again(world: World) -> None:
    path, header = place_of(world, 1, 5)
    world.disks[NodeId(1)].files[path].truncate(header.position + 10)
    world.run(PASS)
    assert stored(world, 1) == stored(world, 3)


def test_the_repaired_bytes_are_synced(world: World) -> None:
    path, _ = place_of(world, 1, 5)
    flip(world, 1, 5, 64)
    world.disks[NodeId(1)].synced.clear()
    world.run(PASS)
    assert path in world.disks[NodeId(1)].synced


# --- reads


@pytest.mark.parametrize(("byte", "mask"), [b for b in BYTES if b[0] != 15])
def test_a_read_there_gets_an_error_and_the_next_read_has_the_records(unscrubbed: World, byte: int, mask: int) -> None:
    """But for a leader epoch, which no consumer looks at."""
    world = unscrubbed
    flip(world, 1, 5, byte, mask)
    assert world.consume(1, 5)().error_code == E.CORRUPT_MESSAGE
    world.run(10)
    assert stored(world, 1) == stored(world, 3)
    answer = world.consume(1, 5)()
    assert answer.error_code == E.NONE
    assert next(iter(batches(answer.records))).base_offset == 5


@pytest.mark.parametrize(("byte", "mask"), BYTES)
def test_who_reads_before_it_is_served_up_to_there_at_least(unscrubbed: World, byte: int, mask: int) -> None:
    flip(unscrubbed, 1, 5, byte, mask)
    answer = unscrubbed.consume(1, 4)()
    assert answer.error_code == E.NONE
    assert next(iter(batches(answer.records))).base_offset == 4


def test_a_follower_that_reads_there_has_its_leader_repaired(unscrubbed: World) -> None:
    world = unscrubbed
    flip(world, 1, 5, 64)
    world.kill(NodeId(3))
    world.disks[NodeId(3)].remove_tree("/data3/t-0")
    world.start(NodeId(3))
    world.run(5_000)
    assert stored(world, 1) == stored(world, 2) == stored(world, 3)


@pytest.mark.parametrize(("byte", "mask"), [(8, 128), (11, 1), (64, 8)])
@pytest.mark.parametrize("damaged", [4, 5, 19])
def test_a_search_for_a_time_names_no_record_behind_damage(damaged: int, byte: int, mask: int) -> None:
    world = a_world(log_scrub_max_bytes_per_second=0, spread_ms=10)
    flip(world, 1, damaged, byte, mask)
    wanted = START + 10 * damaged
    assert list_offset(world, wanted).error_code == E.CORRUPT_MESSAGE
    world.run(PASS)
    assert (list_offset(world, wanted).error_code, list_offset(world, wanted).offset) == (E.NONE, damaged)
    assert list_offset(world, wanted + 1).offset == (damaged + 1 if damaged < 19 else -1)


def test_a_length_that_claims_more_than_there_is_costs_no_memory(unscrubbed: World) -> None:
    flip(unscrubbed, 1, 5, 8, 0x7F)
    sizes: list[int] = []
    path, _ = place_of(unscrubbed, 2, 4)
    log = log_of(unscrubbed, 1)
    segment = next(one for one in log.segments if one.path.endswith(path.rpartition("/")[2]))
    read = segment.file.read
    segment.file.read = lambda position, size: sizes.append(size) or read(position, size)  # type: ignore
    assert unscrubbed.consume(1, 5)().error_code == E.CORRUPT_MESSAGE
    assert max(sizes) <= 1 << 20


# --- nobody has it


@pytest.mark.parametrize(("byte", "end", "certainty"), [(64, 6, EXACTLY), (8, 8, AT_MOST)])
def test_what_no_replica_has_is_lost_and_the_ledger_has_it(world: World, byte: int, end: int, certainty: int) -> None:
    """A batch with a rotten length hides those behind it, up to the next entry of the index, or the segment's end."""
    for node in (1, 2, 3):
        flip(world, node, 5, byte, 128)
    world.run(PASS)
    for node in (1, 2, 3):
        (event,) = losses(world, node)
        assert event == (5, event[1], certainty)
        assert event[1] >= end
        assert scrubber_of(world, node).repairs.lost == 1
    assert world.consume(1, 5)().error_code == E.CORRUPT_MESSAGE
    assert world.consume(1, 4)().error_code == E.NONE
    world.run(100_000)
    assert len(losses(world, 1)) == 1


def test_a_single_replica_has_nobody_to_ask() -> None:
    world = a_world(1)
    flip(world, 1, 5, 64)
    world.run(PASS)
    assert losses(world, 1) == [(5, 6, EXACTLY)]
    scrubber = scrubber_of(world, 1)
    found = {family.metric.name: list(family.samples) for family in of_scrubber(scrubber)}
    assert found["strandline_replica_Scrubber_Lost_total"] == [((), 1)]
    assert found["strandline_replica_Scrubber_ScrubbedBytes_total"] == [((), scrubber.bytes)]
    assert scrubber.bytes > len(stored(world, 1)), "more than one pass"


def test_while_one_replica_has_not_answered_nothing_is_lost(world: World) -> None:
    for node in (1, 2):
        flip(world, node, 5, 64)
    world.kill(NodeId(3))
    world.run(PASS)
    assert losses(world, 1) == []
    assert world.consume(1, 5)().error_code == E.CORRUPT_MESSAGE
    world.start(NodeId(3))
    world.run(70_000)
    assert stored(world, 1) == stored(world, 2) == stored(world, 3)
    assert losses(world, 1) == []


def test_nor_while_a_replica_has_no_broker_that_could_be_asked(world: World) -> None:
    for node in (1, 2):
        flip(world, node, 5, 64)
    broker = world.image.brokers[NodeId(3)]
    world.kill(NodeId(3))
    world.commit(r.UnregisterBrokerRecord(broker_id=3, broker_epoch=broker.epoch))
    world.run(PASS)
    assert losses(world, 1) == []
    assert scrubber_of(world, 1).repairs.lost == 0


def test_what_was_lost_is_repaired_when_a_replica_has_it_after_all(world: World) -> None:
    for node in (1, 2, 3):
        flip(world, node, 5, 64)
    world.run(PASS)
    flip(world, 3, 5, 64)
    world.run(700_000)
    assert stored(world, 1) == stored(world, 2) == stored(world, 3)


# --- how slowly


def test_nothing_is_read_while_the_rate_is_0() -> None:
    world = a_world(log_scrub_max_bytes_per_second=0)
    flip(world, 1, 5, 64)
    world.run(PASS)
    assert scrubber_of(world, 1).bytes == 0
    name, value = "log.scrub.max.bytes.per.second", "1000"
    world.commit(r.ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=CLUSTER_DEFAULT, name=name, value=value))
    world.run(FIRST_MS + PASS)
    assert stored(world, 1) == stored(world, 3)


def test_no_more_is_read_in_a_second_than_is_allowed() -> None:
    world = a_world(log_scrub_max_bytes_per_second=200, log_scrub_interval_ms=1)
    before = scrubber_of(world, 1).bytes
    world.run(5_000)
    assert 600 <= scrubber_of(world, 1).bytes - before <= 1_400


def test_a_pass_rests_before_the_next() -> None:
    world = a_world(log_scrub_interval_ms=100_000)
    world.run(FIRST_MS)
    assert scrubber_of(world, 1).bytes == len(stored(world, 1))
    world.run(90_000)
    assert scrubber_of(world, 1).bytes == len(stored(world, 1))
    world.run(20_000)
    assert scrubber_of(world, 1).bytes == 2 * len(stored(world, 1))


# --- what changes meanwhile


def test_what_is_not_committed_is_left_alone(world: World) -> None:
    world.cut = {NodeId(2), NodeId(3)}
    world.produce(1, batch=a_batch(1))
    log = log_of(world, 1)
    log.mark_synced(log.log_end_offset)
    flip(world, 1, 20, 64)
    world.run(PASS)
    assert scrubber_of(world, 1).repairs.damaged == 0


def test_an_answer_for_a_log_that_was_cut_is_not_taken(world: World) -> None:
    flip(world, 2, 5, 64)
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    world.cut = {NodeId(1), NodeId(3)}
    world.run(PASS)
    (repair,) = scrubber_of(world, 2).repairs.known.values()
    hosted.log.truncate_to(15)
    assert repair.is_over


def test_a_log_reads_as_before_after_its_repair(world: World) -> None:
    held = content(log_of(world, 1))
    flip(world, 1, 5, 64)
    world.run(PASS)
    assert content(log_of(world, 1)) == held
    log_of(world, 1).check()


def test_a_batch_that_others_have_compacted_is_copied_again_with_all_behind_it() -> None:
    """With its own checksum gone, nothing shows that the leader's batch is the one that was here."""
    world = a_world(3)
    for node in world.nodes:
        log_of(world, node).gaps.cleaned_to = 0
    flip(world, 2, 5, 18)
    flip(world, 2, 5, 64)
    world.run(PASS)
    assert reports_with(world, "this replica leaves ISR and ELR")
    assert scrubber_of(world, 2).repairs.lost == 0
    lost = world.nodes[NodeId(2)].host.withdrawals.held[AT]
    event = withdrawal(NodeId(2), lost.start, lost.end, lost.cause, lost.time_ms, 0)
    world.change(leader=1, isr=(1, 3), withdrawals=(event,))
    world.run(PASS)
    assert stored(world, 2) == stored(world, 3)


def test_damage_that_hides_no_record_is_nobodys_business(world: World) -> None:
    """The offset of a batch in a compacted log may rot so that it reaches to the segment's end."""
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    segment = hosted.log.segments[0]
    end = segment.next_offset
    damage = Damage(segment.base_offset, 0, segment.size, end, end, end, is_exact=False)
    repairs = scrubber_of(world, 2).repairs
    assert repairs.found(hosted, segment, damage, world.now) == []
    assert (repairs.known, repairs.damaged) == ({}, 0)


BASE_TIMESTAMP, MAX_TIMESTAMP = 27, 35  # where they begin in a batch


@each("offset", [1, 3, 19], world=lambda: a_world(spread_ms=1_000))
@each("mask", [4, 128])
def test_what_an_index_had_from_damage_is_gone_after_the_repair(world: World, offset: int, mask: int) -> None:
    """A start builds indexes from batches whose contents it does not check. A time that is far ahead would keep a
    segment for ever; one that is too small would hide its records from a search."""
    flip(world, 2, offset, MAX_TIMESTAMP, mask)
    for segment in log_of(world, 2).segments:
        segment.forget()
        assert segment.walk_on(gaps=False)
        if segment is not log_of(world, 2).active:
            segment.seal()
    world.run(PASS)
    for mine, other in zip(log_of(world, 2).segments, log_of(world, 3).segments, strict=True):
        assert why_not_right(mine) is None
        assert (mine.max_timestamp, mine.max_timestamp_offset) == (other.max_timestamp, other.max_timestamp_offset)
        assert (mine.next_offset, mine.since_entry) == (other.next_offset, other.since_entry)
        assert list(mine.time_index.timestamps) == list(other.time_index.timestamps)


def test_a_gap_that_a_cleaner_left_behind_a_segment_is_there_after_the_repair(unscrubbed: World) -> None:
    _, header = place_of(unscrubbed, 2, 1)
    segment = log_of(unscrubbed, 2).segments[0]
    segment.next_offset = following = segment.next_offset + 2
    patch = segment.file.read(header.position, header.size)
    flip(unscrubbed, 2, 1, MAX_TIMESTAMP)
    segment.repair(header.position, memoryview(bytes(patch)), gaps=True, is_active=False)
    assert segment.next_offset == following
