"""What befalls one log directory of a machine that has several, while the machine stops in order and begins anew."""

from random import Random

from strandline.log.evidence.clean_shutdown import FILE as MARKER
from strandline.sim.faults.damaged import folders, tamper
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import when
from strandline.sim.world.machine import Machine

BACK_MS = (300, 1500, 4000)
DRAINED_MS = 60  # a flush that was under way is over


def chosen(injector: FaultInjector, rng: Random) -> tuple[Machine, str] | None:
    """A machine that goes on without one of its directories, and which one: it has replicas in it."""
    machine = injector.someone_to_lose_data(rng)
    if machine is None or machine.is_paused or len(machine.log_dirs) < 2 or machine.has_offline_directories:
        return None
    broker = None if machine.node is None else machine.node.broker
    used = [] if broker is None else [hosted.directory.path for hosted in broker.replicas.host.partitions.all()]
    return (machine, rng.choice(used)) if used else None


def full_directory(injector: FaultInjector, rng: Random) -> None:
    """It is full. Perhaps a flush that is under way in it fails, or another directory does: then room alone is not
    enough, and somebody has to see to it."""
    found = chosen(injector, rng)
    if found is None:
        return
    machine, root = found
    life, back = machine.life, rng.choice(BACK_MS)
    others = [one for one in machine.log_dirs if one != root]
    second = rng.choice(others) if len(others) > 1 and rng.randrange(2) else None
    is_flush_lost = second is None and rng.randrange(2) == 0
    injector.note(f"the directory {root} of {machine.name} is full")
    injector.world.damage.stops(machine.node_id)
    machine.disk.filled[root] = None
    injector.later(back, machine.make_room)

    def fails() -> None:
        if machine.life != life:
            return
        if second is not None:
            injector.note(f"the directory {second} of {machine.name} fails")
            machine.disk.fail(second)
            injector.later(back + 900, lambda: machine.disk.mend(second))
        if is_flush_lost and injector.may_lose_data(machine):
            injector.note(f"a flush of {root} on {machine.name} fails")
            injector.world.damage.lost(machine.node_id, "had a flush that failed")

            faults = machine.disk.sync_faults

            def which(path: str) -> bool:
                return path.startswith(f"{root}/")

            def passes() -> None:
                if which in faults:
                    faults.remove(which)

            faults.append(which)
            injector.later(DRAINED_MS, passes)
        if second is not None or is_flush_lost:
            injector.later(back + 2500, machine.repaired)

    when(injector, lambda: machine.has_offline_directories or machine.life != life, fails)


def stopped_without(injector: FaultInjector, rng: Random) -> None:
    """It fails, and is back when the machine has stopped in order; perhaps without a log, or as a new disk."""
    found = chosen(injector, rng)
    if found is None:
        return
    machine, root = found
    life, back = machine.life, rng.choice((0, 30, 300))
    loss = rng.choice(("a folder", "a folder", "the disk", ""))
    injector.note(f"the directory {root} of {machine.name} fails")
    injector.world.damage.stops(machine.node_id)
    machine.disk.fail(root)

    def come_back() -> None:
        machine.disk.mend(root)
        if machine.is_running or machine.life != life + 1:
            return
        if loss == "a folder" and injector.may_lose_data(machine):
            take_folder(injector, rng, machine, root)
        elif loss == "the disk" and injector.may_lose_data(machine):
            replace(injector, machine, root)
        injector.later(back, machine.start)

    def stop() -> None:
        injector.later(rng.choice((0, 100, 1000)), machine.shut_down)
        when(injector, lambda: not machine.is_running or machine.life != life, come_back)

    when(injector, lambda: machine.has_offline_directories or machine.life != life, stop)


def take_folder(injector: FaultInjector, rng: Random, machine: Machine, root: str) -> None:
    inside = [path for path in folders(machine.disk.snapshot().entries) if path.startswith(f"{root}/")]
    if not inside:
        return
    folder = rng.choice(inside)
    injector.note(f"on {machine.name} a folder is deleted: {folder}")
    tamper(injector, machine, {folder: None}, takes_records=True)


def replace(injector: FaultInjector, machine: Machine, root: str) -> None:
    injector.note(f"the disk {root} of {machine.name} is replaced after a stop in order")
    injector.world.damage.stops(machine.node_id)
    injector.world.damage.lost(machine.node_id, "has a new disk")
    machine.replace_disk(root)


def exchanged(injector: FaultInjector, rng: Random) -> None:
    """It is a new disk after a stop in order, or has lost the marker of that stop."""
    found = chosen(injector, rng)
    if found is None:
        return
    machine, root = found
    life, back, is_new = machine.life, rng.choice(BACK_MS), rng.randrange(2) == 0

    def exchange() -> None:
        is_down = not machine.is_running and machine.life == life + 1
        if is_down and not machine.needs_inventory and injector.may_lose_data(machine):
            machine.has_inventory = False
            if is_new:
                replace(injector, machine, root)
            else:
                injector.note(f"the marker in {root} of {machine.name} is deleted")
                tamper(injector, machine, {f"{root}/{MARKER}": None}, takes_records=False)
                injector.world.damage.stops(machine.node_id)
        injector.later(back, machine.start)

    injector.shut_down(machine)
    when(injector, lambda: not machine.is_running or machine.life != life, exchange)
