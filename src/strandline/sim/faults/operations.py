"""What operators do meanwhile."""

from random import Random

from strandline.metadata.image import Partition
from strandline.sim.faults.scripted import when
from strandline.sim.faults.turmoil import Turmoil


def recreate(turmoil: Turmoil, rng: Random) -> None:
    if "brief" in turmoil.world.options.workloads:
        turmoil.admin.wish(lambda: turmoil.admin.delete("brief"), lambda: turmoil.admin.create("brief"))


def configure(turmoil: Turmoil, rng: Random) -> None:
    value = str(rng.choice((1, 2, 2, 3)))
    turmoil.admin.wish(lambda: turmoil.admin.configure("orders", "min.insync.replicas", value))


def trim(turmoil: Turmoil, rng: Random) -> None:
    offset = rng.choice((-1, -1, rng.randrange(0, 300), 1 << 40))  # to the high watermark, somewhere, and too far
    turmoil.admin.wish(lambda: turmoil.admin.trim("loose", offset))


def add_partitions(turmoil: Turmoil, rng: Random) -> None:
    count = rng.choice((4, 5))
    turmoil.admin.wish(lambda: turmoil.admin.add_partitions("orders", count))


def somewhere(turmoil: Turmoil, rng: Random) -> tuple[str, int, Partition] | None:
    """A partition of a topic that clients work with."""
    found = [
        (topic.name, index, partition)
        for topic in turmoil.world.laws.metadata.image.topics.values()
        for index, partition in topic.partitions.items()
        if topic.name != "brief"
    ]
    return rng.choice(found) if found else None


def reassign(turmoil: Turmoil, rng: Random) -> None:
    """To as many replicas as it had, one more, or one fewer; mostly one of them is another."""
    found = somewhere(turmoil, rng)
    if found is None:
        return
    topic, index, partition = found
    nodes = [int(node) for node in turmoil.world.machines]
    original = [int(node) for node in partition.replicas if node not in partition.adding_replicas]
    size = min(max(len(original) + rng.choice((-1, 0, 0, 0, 1)), turmoil.world.options.min_isr), len(nodes))
    fresh = [node for node in nodes if node not in original]
    target = rng.sample(original, len(original))
    if fresh:
        target[rng.randrange(0, len(target))] = rng.choice(fresh)
    left = [node for node in nodes if node not in target]
    target = (target + rng.sample(left, len(left)))[:size]
    turmoil.admin.wish(lambda: turmoil.admin.reassign(topic, index, tuple(target)))


def reassign_eligible(turmoil: Turmoil, rng: Random) -> None:
    """A replica that is eligible and not in sync is taken away, as soon as there is one."""

    def found() -> list[tuple[str, int, tuple[int, ...]]]:
        return [
            (topic.name, index, tuple(int(node) for node in partition.replicas if node != gone))
            for topic in turmoil.world.laws.metadata.image.topics.values()
            for index, partition in topic.partitions.items()
            for gone in partition.elr
            if partition.isr and len(partition.replicas) > turmoil.world.options.min_isr and not partition.is_moving
        ]

    def move() -> None:
        topic, index, target = rng.choice(found())
        turmoil.admin.wish(lambda: turmoil.admin.reassign(topic, index, target))

    when(turmoil, lambda: bool(found()), move)


def cancel(turmoil: Turmoil, rng: Random) -> None:
    image = turmoil.world.laws.metadata.image
    moving = [
        (topic.name, index)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.is_moving
    ]
    if moving:
        topic, index = rng.choice(moving)
        turmoil.admin.wish(lambda: turmoil.admin.reassign(topic, index, None))


def elect(turmoil: Turmoil, rng: Random) -> None:
    """The preferred leaders, of all partitions."""
    turmoil.admin.wish(turmoil.admin.elect)


def throttle(turmoil: Turmoil, rng: Random) -> None:
    """What replicas of a topic copy counts for the replication quotas that the plan's settings have."""
    key = f"{rng.choice(('leader', 'follower'))}.replication.throttled.replicas"
    turmoil.admin.wish(lambda: turmoil.admin.configure("orders", key, "*"))
