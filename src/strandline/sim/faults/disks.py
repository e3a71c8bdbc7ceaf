"""Disks that fill up, fail, forget, rot, or are exchanged. Metadata lies on a disk of its own, which only loses power;
`damaged_metadata` has what else may befall it."""

from collections.abc import Mapping
from random import Random

from strandline.base.effects import Effect
from strandline.base.time import Instant
from strandline.broker.node import Node
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.wires import UNPROTECTED
from strandline.sim.world.disk import Image, is_topic_segment
from strandline.sim.world.machine import METADATA_DIR, Machine
from strandline.wire.batch import CRC_AT, HEADER_SIZE, batches

BACK_MS = (300, 1500, 5000)


def full(injector: FaultInjector, rng: Random) -> None:
    """No room for what comes next; some time later there is, and the machine comes back by itself. One with several log
    directories may live on without some: it stops in order when there is room, and begins anew. Where one directory is
    a file system of its own, it alone is full."""
    machine = injector.someone_to_kill(rng)
    if machine is not None:
        injector.world.damage.stops(machine.node_id)  # it may, at any moment from now on
        room, at, is_alone = rng.choice((0, 100, 2000)), rng.choice(BACK_MS), rng.choice((False, True))
        if is_alone and len(machine.log_dirs) > 1:
            injector.note(f"the directory {machine.log_dirs[-1]} of {machine.name} is full")
            machine.disk.filled[machine.log_dirs[-1]] = None
        else:
            injector.note(f"the disk of {machine.name} is full")
            machine.disk.capacity = machine.disk.used + room
        injector.later(at, machine.make_room)


def failing_sync(injector: FaultInjector, rng: Random) -> None:
    """The next flush fails. What it had not made durable may be gone, for the kernel forgot it. The process ends, or
    goes on without that directory."""
    machine = injector.someone_to_lose_data(rng)
    if machine is not None:
        injector.note(f"the next flush of {machine.name} fails")
        injector.world.damage.lost(machine.node_id, "had a flush that failed")
        injector.world.damage.stops(machine.node_id)
        machine.disk.fail_next_sync()
        injector.later(rng.choice(BACK_MS), machine.repaired)


def failing_directory(injector: FaultInjector, rng: Random) -> None:
    """Every access to one log directory fails, for a while. If there is another one the machine lives on, and somebody
    starts it anew some time after."""
    machine = injector.someone_to_kill(rng)
    if machine is not None:
        root = rng.choice(machine.log_dirs)
        injector.note(f"the directory {root} of {machine.name} fails")
        injector.world.damage.stops(machine.node_id)
        machine.disk.fail(root)
        at = rng.choice(BACK_MS)
        injector.later(at, lambda: machine.disk.mend(root))
        injector.later(at + rng.choice((0, 0, 2000)), machine.repaired)


def replaced(injector: FaultInjector, rng: Random) -> None:
    """A log directory is a new, empty disk when the machine comes back."""
    machine = injector.someone_to_lose_data(rng)
    if machine is not None and not machine.needs_inventory:  # a part of which would be on this disk
        root = rng.choice(machine.log_dirs)
        injector.note(f"the disk {root} of {machine.name} is replaced")
        injector.world.damage.lost(machine.node_id, "has a new disk")
        machine.kill()
        machine.replace_disk(root)
        injector.later(rng.choice(BACK_MS), machine.start)


def restored(injector: FaultInjector, rng: Random) -> None:
    """The log directories come back as they were some time ago; what the marker of a clean stop says is old too."""
    machine = rng.choice(list(injector.world.machines.values()))
    old = machine.disk.snapshot().entries

    def restore() -> None:
        if not injector.may_lose_data(machine):
            return
        injector.note(f"an old image of {machine.name} is restored")
        injector.world.damage.lost(machine.node_id, "has an old image of its disk")
        bring_back(machine, old)
        machine.changed |= dict.fromkeys(injector.world.laws.partitions.names)
        injector.later(rng.choice(BACK_MS), machine.start)

    injector.later(rng.choice((2000, 5000)), restore)


def bring_back(machine: Machine, old: Mapping[str, bytes | None]) -> None:
    """The log directories are as they were then."""
    machine.kill()
    machine.touches += 1
    now = machine.disk.snapshot().entries
    kept = {path: data for path, data in now.items() if is_metadata(path)}
    machine.disk.restore(Image(kept | {path: data for path, data in old.items() if not is_metadata(path)}))


def move_logs(injector: FaultInjector, rng: Random) -> None:
    """Some replicas of one machine move to another directory, or stay where they are."""
    machine = rng.choice(list(injector.world.machines.values()))
    if machine.node is None or machine.node.broker is None or machine.is_paused:
        return
    names = sorted(hosted.name for hosted in machine.node.broker.replicas.host.partitions.all())
    wanted = [(name, rng.choice(machine.log_dirs)) for name in names if rng.randrange(2)]
    injector.note(f"logs of {machine.name} move: {', '.join(f'{name} to {root}' for name, root in wanted)}")

    def move(node: Node, now: Instant) -> list[Effect]:
        assert node.broker is not None
        for name, root in wanted:
            node.broker.replicas.futures.alter(name, root, now)
        return node.propagate([], now)

    machine.run("an operator moves logs", move)


def is_metadata(path: str) -> bool:
    return path == METADATA_DIR or path.startswith(f"{METADATA_DIR}/")


def rot(injector: FaultInjector, rng: Random) -> None:
    """One bit of a segment flips. Readers must see that; in the end it is repaired, if any replica has what it was."""
    machine = injector.someone_to_lose_data(rng)
    if machine is None:
        return
    contents = machine.disk.contents()
    segments = [path for path in sorted(contents) if is_topic_segment(path) and len(contents[path]) > HEADER_SIZE]
    if not segments:
        return
    path = rng.choice(segments)
    position = rng.randrange(0, len(contents[path]))
    for header in batches(memoryview(contents[path])):
        if position - header.position in UNPROTECTED:
            position = header.position + CRC_AT
    injector.note(f"a bit flips on {machine.name}: {path} at {position}")
    injector.world.damage.lost(machine.node_id, "has a bit that flipped")
    machine.disk.flip(path, position, rng.randrange(0, 8))
    machine.is_rotten = True
    machine.touches += 1
