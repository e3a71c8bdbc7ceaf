"""What a coordinator reads of its topic: every record, whatever else lies between."""

import struct
from typing import Any

import pytest
from crc32c import crc32c
from tests.unit.replica.conftest import AT, START, World
from tests.unit.replica.scrubbing.test_scrubbing import PASS, a_world, flip, log_of

from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.broker.coordinators.internal_topics import InternalTopics
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
    return [row.record.key for row in InternalTopics(node).replay(OFFSETS_TOPIC, 0) if row.record is not None]


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


def count(world: World) -> int:
    return len(list(internal(world).replay("t", 0)))


@pytest.mark.parametrize(("byte", "mask"), [LENGTH, RECORD])
def test_what_another_replica_has_is_waited_for_and_repaired_for_the_coordinator_too(byte: int, mask: int) -> None:
    world = a_world(log_scrub_max_bytes_per_second=0)
    assert internal(world).is_whole("t", 0, world.now)
    flip(world, 1, 5, byte, mask)
    world.cut = {NodeId(2), NodeId(3)}
    for _ in range(3):
        assert not internal(world).is_whole("t", 0, world.now)
        world.run(PASS)
    world.cut = set()
    assert not internal(world).is_whole("t", 0, world.now)
    world.run(PASS)
    assert internal(world).is_whole("t", 0, world.now)
    assert count(world) == 20


@pytest.mark.parametrize(("brokers", "byte", "mask"), [(1, *RECORD), (3, *RECORD), (1, *LENGTH), (3, *LENGTH)])
def test_what_no_replica_has_is_passed_once_it_is_known_to_be_lost_and_nothing_else_is(
    brokers: int, byte: int, mask: int
) -> None:
    world = a_world(brokers, log_scrub_max_bytes_per_second=0)
    behind = next(base for base in log_of(world, 1).bases if base > 5)
    for node in world.nodes:
        flip(world, node, 5, byte, mask)
    assert not internal(world).is_whole("t", 0, world.now)
    world.run(PASS)
    assert internal(world).is_whole("t", 0, world.now)
    hidden = 1 if (byte, mask) == RECORD else behind - 5
    assert count(world) == 20 - hidden
