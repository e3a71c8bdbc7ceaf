"""What Eligible Leader Replicas must survive (KIP-966). Only seeds that have them draw these."""

from collections.abc import Mapping
from random import Random

from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import Partition
from strandline.sim.faults.disks import bring_back
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import cast, when

BACK_MS = (30, 300, 1500, 4000)


def last_replica(injector: FaultInjector, rng: Random) -> None:
    """The KIP's motivation: followers go one after another, the leader is left alone, and then it loses its power."""
    found = cast(injector, rng)
    if found is None:
        return
    first, *others = found[1]
    injector.note(f"{first.name} is to be the last replica standing")
    gap = rng.choice((50, 600, 3500))
    for number, machine in enumerate(others):
        span = number * gap
        if rng.randrange(3) == 0:
            injector.suffers_later(span, machine, machine.kill)
        else:
            injector.later(span, lambda machine=machine: injector.shut_down(machine))  # type: ignore[misc]  # the default's type is not inferred

    def fall() -> None:
        if injector.may_lose_data(first):
            first.power_cut()
        for machine in rng.sample([first, *others], len(others) + 1):
            injector.later(rng.choice(BACK_MS), machine.start)

    injector.later(len(others) * gap + rng.choice((0, 200, 3500)), fall)


def switch(injector: FaultInjector, rng: Random) -> None:
    """The feature off while replicas are eligible, and mostly on again."""
    admin = injector.admin
    when(
        injector,
        lambda: has_eligible(injector),
        lambda: admin.wish(lambda: admin.set_feature(ELR_FEATURE, 0)),
    )
    if rng.randrange(4):
        back = rng.choice((1000, 2000, 5000))
        injector.later(back, lambda: admin.wish(lambda: admin.set_feature(ELR_FEATURE, 1)))


def min_isr(injector: FaultInjector, rng: Random) -> None:
    """Another min ISR while replicas are eligible by the one that is (T2, L6, L7)."""
    admin, value = injector.admin, str(rng.choice((1, 2, 3)))
    key = "min.insync.replicas"
    when(
        injector,
        lambda: has_eligible(injector, "orders"),
        lambda: admin.wish(lambda: admin.configure("orders", key, value)),
    )


def unregister(injector: FaultInjector, rng: Random) -> None:
    """A broker that is gone is unregistered, and comes back as one that nobody knows (L4)."""
    machine = injector.someone_to_lose_data(rng)
    if machine is None or machine.is_paused:
        return
    if rng.randrange(2):
        machine.shut_down()
    else:
        machine.kill()
    back = rng.choice((1500, 4000))

    def forget() -> None:
        if not machine.is_running and (injector.may_lose_data(machine) or not injector.has_elr):
            injector.world.damage.stops(machine.node_id)  # the controller will not know it when it is back
            injector.admin.wish(lambda: injector.admin.unregister(machine.node_id))

    injector.later(rng.choice((20, 500, 3500)), forget)
    injector.later(back, machine.start)


def lost_directory(injector: FaultInjector, rng: Random) -> None:
    """A directory fails, is taken out of the configuration, and its replicas begin empty in another one, after a stop
    that was in order (L5)."""
    machine = injector.someone_to_lose_data(rng)
    if machine is None or len(machine.log_dirs) < 2 or machine.is_paused:
        return
    root = rng.choice(machine.log_dirs)
    injector.note(f"the directory {root} of {machine.name} fails for good")
    injector.world.damage.lost(machine.node_id, f"loses its directory {root}")
    machine.disk.fail(root)

    def take_out() -> None:
        if machine.log_dirs == [root]:
            return  # the other one was taken out meanwhile
        injector.note(f"{machine.name} goes on without {root}")
        machine.disk.mend(root)
        machine.without_directory(root)
        machine.start()

    span = rng.choice((30, 400, 3500))
    injector.later(span, machine.shut_down)
    injector.later(span, lambda: when(injector, lambda: not machine.is_running, take_out))


def stale_marker(injector: FaultInjector, rng: Random) -> None:
    """The image of a disk is taken while the machine is down, after a stop that was in order; it goes on, and later the
    image comes back with the marker of that stop (T28)."""
    machine = injector.someone(rng)
    if machine is None or machine.is_paused or not machine.is_running:
        return
    span = rng.choice((1000, 3000))

    def keep() -> None:
        old = machine.disk.snapshot().entries
        machine.start()
        injector.later(span, lambda: restore(old))

    def restore(old: Mapping[str, bytes | None]) -> None:
        if not injector.may_lose_data(machine):
            return
        injector.note(f"the image of {machine.name} from its last stop is restored")
        injector.world.damage.lost(machine.node_id, "has an old image of its disk")
        bring_back(machine, old)
        injector.later(rng.choice((0, 300, 3500)), machine.start)

    injector.shut_down(machine)
    when(injector, lambda: not machine.is_running and machine.has_left, keep)


def deleted_without_isr(injector: FaultInjector, rng: Random) -> None:
    """All replicas of a topic are gone, and it is deleted while nobody is in sync (L10)."""
    admin = injector.admin
    world = injector.world

    def brief() -> Partition | None:
        topic = world.laws.metadata.image.topic_named("brief")
        return None if topic is None else topic.partitions[0]

    def is_empty() -> bool:
        partition = brief()
        return partition is not None and not partition.isr

    found = brief()
    if found is None:
        return
    hosts = [world.machines[node] for node in found.replicas]
    injector.note(f"all that host brief-0 fall: {', '.join(machine.name for machine in hosts)}")
    for machine in hosts:
        machine.kill()
    when(injector, is_empty, lambda: admin.wish(lambda: admin.delete("brief"), lambda: admin.create("brief")))
    for machine in hosts:
        injector.later(rng.choice((3500, 4000)), machine.start)


def has_eligible(injector: FaultInjector, name: str = "") -> bool:
    """Has a partition an ELR?"""
    return any(
        bool(partition.elr) and name in ("", topic.name)
        for topic in injector.world.laws.metadata.image.topics.values()
        for partition in topic.partitions.values()
    )
