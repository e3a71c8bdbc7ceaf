"""What operators do meanwhile."""

from random import Random

from strandline.metadata.image import Partition
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import when


def recreate(injector: FaultInjector, rng: Random) -> None:
    if "brief" in injector.world.options.workloads:
        injector.admin.wish(lambda: injector.admin.delete("brief"), lambda: injector.admin.create("brief"))


def configure(injector: FaultInjector, rng: Random) -> None:
    value = str(rng.choice((1, 2, 2, 3)))
    injector.admin.wish(lambda: injector.admin.configure("orders", "min.insync.replicas", value))


def trim(injector: FaultInjector, rng: Random) -> None:
    offset = rng.choice((-1, -1, rng.randrange(0, 300), 1 << 40))  # to the high watermark, somewhere, and too far
    injector.admin.wish(lambda: injector.admin.trim("loose", offset))


def add_partitions(injector: FaultInjector, rng: Random) -> None:
    count = rng.choice((4, 5))
    injector.admin.wish(lambda: injector.admin.add_partitions("orders", count))


def somewhere(injector: FaultInjector, rng: Random) -> tuple[str, int, Partition] | None:
    """A partition of a topic that clients work with."""
    found = [
        (topic.name, index, partition)
        for topic in injector.world.laws.metadata.image.topics.values()
        for index, partition in topic.partitions.items()
        if topic.name != "brief"
    ]
    return rng.choice(found) if found else None


def reassign(injector: FaultInjector, rng: Random) -> None:
    """To as many replicas as it had, one more, or one fewer; mostly one of them is another."""
    found = somewhere(injector, rng)
    if found is None:
        return
    topic, index, partition = found
    nodes = [int(node) for node in injector.world.machines]
    original = [int(node) for node in partition.replicas if node not in partition.adding_replicas]
    size = min(max(len(original) + rng.choice((-1, 0, 0, 0, 1)), injector.world.options.min_isr), len(nodes))
    fresh = [node for node in nodes if node not in original]
    target = rng.sample(original, len(original))
    if fresh:
        target[rng.randrange(0, len(target))] = rng.choice(fresh)
    left = [node for node in nodes if node not in target]
    target = (target + rng.sample(left, len(left)))[:size]
    injector.admin.wish(lambda: injector.admin.reassign(topic, index, tuple(target)))


def reassign_eligible(injector: FaultInjector, rng: Random) -> None:
    """A replica that is eligible and not in sync is taken away, as soon as there is one."""

    def found() -> list[tuple[str, int, tuple[int, ...]]]:
        return [
            (topic.name, index, tuple(int(node) for node in partition.replicas if node != gone))
            for topic in injector.world.laws.metadata.image.topics.values()
            for index, partition in topic.partitions.items()
            for gone in partition.elr
            if partition.isr and len(partition.replicas) > injector.world.options.min_isr and not partition.is_moving
        ]

    def move() -> None:
        topic, index, target = rng.choice(found())
        injector.admin.wish(lambda: injector.admin.reassign(topic, index, target))

    when(injector, lambda: bool(found()), move)


def cancel(injector: FaultInjector, rng: Random) -> None:
    image = injector.world.laws.metadata.image
    moving = [
        (topic.name, index)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.is_moving
    ]
    if moving:
        topic, index = rng.choice(moving)
        injector.admin.wish(lambda: injector.admin.reassign(topic, index, None))


def elect(injector: FaultInjector, rng: Random) -> None:
    """The preferred leaders, of all partitions."""
    injector.admin.wish(injector.admin.elect)


def throttle(injector: FaultInjector, rng: Random) -> None:
    """What replicas of a topic copy counts for the replication quotas that the plan's settings have."""
    key = f"{rng.choice(('leader', 'follower'))}.replication.throttled.replicas"
    injector.admin.wish(lambda: injector.admin.configure("orders", key, "*"))
