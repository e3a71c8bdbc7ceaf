"""A coordinator loads one partition of `__consumer_offsets`, from a log that is written with its own encoder."""

import random
from collections.abc import Iterator
from typing import Any

from tests.steps.stopwatch import Stopwatch
from tests.unit.replica.conftest import AT, START, World

from strandline.base.ids import OFFSETS_TOPIC, NodeId, Uuid
from strandline.base.time import Instant
from strandline.broker.coordinators.internal_topics import InternalTopics
from strandline.group.config import GroupConfig
from strandline.group.coordinator import Groups
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE
from strandline.metadata.state import Delta

SEGMENT_BYTES = 100 << 20
TOPIC, TOPIC_ID = "topic", Uuid(b"id of the topic.")  # for which the groups commit


def commits(count: int, in_one: int, groups: int) -> Iterator[bytearray]:
    """Batches as coordinators write them: `in_one` partitions in each."""
    for number in range(count // in_one):
        stamp = Instant(START + number)
        rows = [
            offset_record(f"group-{number % groups}", TOPIC, at, CommittedOffset(number, 3, "", stamp, TOPIC_ID))
            for at in range(in_one)
        ]
        yield batch_of(rows, stamp)


def world_of(batches: Iterator[bytearray]) -> World:
    """A broker that leads a partition with these."""
    world = World(1)
    settings = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
    world.commit(
        r.TopicRecord(name=TOPIC, topic_id=TOPIC_ID),
        r.TopicRecord(name=OFFSETS_TOPIC, topic_id=AT.topic_id),
        *(
            r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=OFFSETS_TOPIC, name=name, value=value)
            for name, value in settings.items()
        ),
        r.PartitionRecord(
            partition_id=0, topic_id=AT.topic_id, replicas=(1,), isr=(1,), leader=1, directories=(bytes([1]) * 16,)
        ),
    )
    hosted: Any = world.nodes[NodeId(1)].host.partitions.find(AT)
    for batch in batches:
        hosted.log.append_as_leader(batch, 0, world.now, internal=True)
    hosted.role.advance(world.now)
    return world


def load(world: World, name: str) -> Groups:
    node = world.nodes[NodeId(1)]
    groups = Groups(GroupConfig(), InternalTopics(node), random.Random(1))
    image = world.image
    delta = Delta()
    delta.reloaded = True
    watch = Stopwatch(name)
    watch.step(lambda: groups.apply(image, delta, world.now))
    while groups.deadline() < world.now + 60_000:
        world.now = groups.deadline()
        watch.step(lambda: groups.expire(world.now))
    assert 0 in groups.shards.loaded
    print(watch)
    return groups


def main(count: int) -> None:
    for in_one, groups in ((1, 1_000), (10, 1_000), (10, count // 10)):
        name = f"load of {count:,} commits, {in_one} in a batch, {groups:,} groups"
        found = load(world_of(commits(count, in_one, groups)), name)
        assert len(found.shards.loaded[0].offsets) == groups
