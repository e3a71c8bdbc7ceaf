"""What a coordinator reads of its topic: every record, whatever else lies between."""

import struct
from typing import Any

from crc32c import crc32c
from tests.unit.replica.conftest import AT, START, World

from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.broker.broker import InternalTopics
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
        node.host.find(AT).log.append_as_leader(bytearray(batch), 0, world.now, internal=True)
    node.host.find(AT).role.advance(world.now)
    return [record.key for record in InternalTopics(node).records_internal(OFFSETS_TOPIC, 0)]


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
