"""What a coordinator reads of its topic: every record, whatever else lies between."""

import struct
from typing import Any

import pytest
from crc32c import crc32c
from tests.unit.replica.conftest import AT, START, World
from tests.unit.replica.scrubbing.test_scrubbing import PASS, a_world, flip, log_of

from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.broker.coordinators.internal_topics import InternalTopics
from strandline.coordination.internal_log import Reached, Reader
from strandline.metadata import records as r
from strandline.wire.batch import build


def written(*batches: bytes) -> list[bytes | None]:
    """The keys that a coordinator reads of these."""
    world = World(1)
    directories = (bytes([1]) * 16,)
    world.commit(
        r.TopicRecord(name=OFFSETS_TOPIC, topic_id=AT.topic_id),
        r.PartitionRecord(
            partition_id=0, topic_id=AT.topic_id, replicas=(1,), isr=(1,), leader=1, directories=directories
        ),
    )
    node: Any = world.nodes[NodeId(1)]
    for batch in batches:
        node.host.partitions.find(AT).log.append_as_leader(bytearray(batch), 0, world.now, internal=True)
    node.host.partitions.find(AT).role.advance(world.now)
    part = InternalTopics(node).reader(OFFSETS_TOPIC, 0).read(1 << 20, world.now)
    assert part.reached is Reached.END
    return [key for batch in part.batches for _, key, _ in batch.rows]


def keyed(key: bytes) -> bytes:
    return build([(START, key, b"v", ((("hh", b"x")),))])


def test_a_batch_without_records_is_passed() -> None:
    """A cleaner leaves such ones for what they say of a producer."""
    empty = build([], last_offset_delta=2)
    assert written(keyed(b"1"), empty, keyed(b"2")) == [b"1", b"2"]


def test_a_batch_that_cannot_be_read_is_passed() -> None:
    """Its coordinator serves all the other groups."""
    bad = bytearray(keyed(b"x"))
    at = bad.rfind(b"hh")
    bad[at : at + 2] = b"\xff\xfe"
    struct.pack_into(">I", bad, 17, crc32c(memoryview(bad)[21:]))
    assert written(keyed(b"1"), bytes(bad), keyed(b"2")) == [b"1", b"2"]


# --- what rots on the disk


LENGTH, RECORD = (8, 128), (64, 8)  # of a byte, which bits


def internal(world: World) -> InternalTopics:
    node: Any = world.nodes[NodeId(1)]
    return InternalTopics(node)


def read_all(world: World, reader: Reader) -> tuple[int, Reached]:
    """How many records come next, read in small parts."""
    count, reached = 0, Reached.MORE
    while reached is Reached.MORE:
        part = reader.read(1, world.now)
        count, reached = count + sum(len(batch.rows) for batch in part.batches), part.reached
    return count, reached


@pytest.mark.parametrize(("byte", "mask"), [LENGTH, RECORD])
def test_what_another_replica_has_is_waited_for_and_repaired_for_the_coordinator_too(byte: int, mask: int) -> None:
    world = a_world(log_scrub_max_bytes_per_second=0)
    assert read_all(world, internal(world).reader("t", 0)) == (20, Reached.END)
    flip(world, 1, 5, byte, mask)
    world.cut = {NodeId(2), NodeId(3)}
    reader = internal(world).reader("t", 0)
    assert read_all(world, reader) == (5, Reached.DAMAGE)
    for _ in range(2):
        world.run(PASS)
        assert read_all(world, reader) == (0, Reached.DAMAGE)
    world.cut = set()
    assert read_all(world, reader) == (0, Reached.DAMAGE)
    world.run(2 * PASS)
    assert read_all(world, reader) == (15, Reached.END)


@pytest.mark.parametrize(("brokers", "byte", "mask"), [(1, *RECORD), (3, *RECORD), (1, *LENGTH), (3, *LENGTH)])
def test_what_no_replica_has_is_passed_once_it_is_known_to_be_lost_and_nothing_else_is(
    brokers: int, byte: int, mask: int
) -> None:
    world = a_world(brokers, log_scrub_max_bytes_per_second=0)
    behind = next(base for base in log_of(world, 1).bases if base > 5)
    for node in world.nodes:
        flip(world, node, 5, byte, mask)
    reader = internal(world).reader("t", 0)
    assert read_all(world, reader) == (5, Reached.DAMAGE)
    world.run(PASS)
    hidden = 1 if (byte, mask) == RECORD else behind - 5
    assert read_all(world, reader) == (15 - hidden, Reached.END)
    assert read_all(world, internal(world).reader("t", 0)) == (20 - hidden, Reached.END)


def test_what_is_not_cached_is_read_elsewhere_before_a_coordinator_reads_it() -> None:
    world = a_world(1)
    world.disks[NodeId(1)].cold |= {segment.path for segment in log_of(world, 1).segments}
    reader = internal(world).reader("t", 0)
    count, asked = 0, 0
    while (step := read_all(world, reader))[1] is Reached.COLD:
        assert read_all(world, reader) == (0, Reached.COLD), "it is still under way"
        world.run(1)
        (effect, *_) = world.cold_reads(1)[asked:]
        count, asked = count + step[0], asked + 1
        world.warmed(1, effect)
    assert step[1] is Reached.END
    assert count + step[0] == 20
