"""The cleaner compacts one partition of `__consumer_offsets`, and a coordinator loads what is left."""

from typing import Any

from tests.steps.loading import commits, load, world_of
from tests.steps.stopwatch import Stopwatch
from tests.unit.replica.conftest import AT, World

from strandline.base.ids import NodeId
from strandline.base.time import Instant

NODE = NodeId(1)
LONG_MS = 600_000  # the cleaner has found nothing to do for most of it


def size_of(world: World) -> int:
    hosted: Any = world.nodes[NODE].host.partitions.find(AT)
    return sum(segment.size for segment in hosted.log.segments)


def compact(world: World, name: str) -> None:
    node, watch, before = world.nodes[NODE], Stopwatch(name), size_of(world)
    end = world.now + LONG_MS
    while (now := Instant(max(world.now, node.deadline()))) < end:
        world.now = now
        world.perform(NODE, watch.step(lambda: node.expire(world.now)))
    print(f"{watch}; {before / 1e6:,.1f} MB before, {size_of(world) / 1e6:,.1f} MB after")


def main(count: int) -> None:
    for groups in (1_000, count // 100):
        name = f"{count:,} commits of {groups:,} groups, ten partitions each"
        world = world_of(commits(count, 10, groups))
        compact(world, f"compaction of {name}")
        load(world, f"load of what is left of {name}")
