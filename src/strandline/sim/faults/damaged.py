"""Files that somebody else changes: an operator, a backup, a file system that was repaired. The process does not run,
or runs and does not look.

A file or the folder of a partition is truncated, deleted, swapped with another of its kind, or is again what it was
some time ago. Records that were there may be gone then, so the machine counts as one that lost data in the partitions
concerned. What only helps to find records (an index, epochs, producers, a checkpoint) takes no record away: nothing may
be lost by it, and the machine's stop is only suspect.

A stop in order leaves an inventory of all files, in its marker. Without one nothing distinguishes most files that were
swapped with others, so they are swapped only where the marker stays as it was. Topic ids, and folders of two topics,
are swapped after any stop: a folder bears its topic's name. While a process runs, only a folder is deleted, or files
that it does not read.

`meta.properties` and the loss ledger are left alone: without the first a node does not start, and nobody can tell what
the second has lost. Metadata lies on a disk of its own.
"""

from collections.abc import Callable, Mapping
from random import Random

from strandline.log.directory import PARTITION_METADATA, parse_directory_name
from strandline.log.evidence.clean_shutdown import FILE as MARKER
from strandline.sim.faults.disks import is_metadata
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import cast, when
from strandline.sim.world.disk import is_topic_segment
from strandline.sim.world.machine import Machine

BACK_MS = (0, 30, 300, 1500, 4000)
AGE_MS = (300, 1500, 3000)  # how old what comes back is
Entries = Mapping[str, bytes | None]  # files, and folders (None)


def is_folder(path: str) -> bool:
    return path.count("/") == 2 and parse_directory_name(path.rpartition("/")[2]) is not None


def topic_of(folder: str) -> str:
    name = parse_directory_name(folder.rpartition("/")[2])
    assert name is not None
    return name.topic


def in_folder(path: str) -> bool:
    return path.count("/") == 3 and is_folder(path.rpartition("/")[0])


KINDS: dict[str, Callable[[str], bool]] = {
    "segment": is_topic_segment,
    "topic id": lambda path: in_folder(path) and path.endswith(f"/{PARTITION_METADATA}"),
    "index": lambda path: in_folder(path) and path.endswith("index"),
    "epochs": lambda path: in_folder(path) and path.endswith("/leader-epoch-checkpoint"),
    "producers": lambda path: in_folder(path) and path.endswith(".snapshot"),
    "checkpoint": lambda path: path.count("/") == 2 and path.endswith("-checkpoint"),
    "marker": lambda path: path.count("/") == 2 and path.endswith(f"/{MARKER}"),
}
UNREAD = ("epochs", "producers", "checkpoint")  # by a process that runs
ACTS = ("truncated", "deleted", "stale", "swapped")


def acts_on(machine: Machine, *, needs_inventory: bool) -> tuple[str, ...]:
    """`needs_inventory`: nothing else would show that such files were swapped."""
    if machine.is_running:
        return ("deleted",)
    return ACTS if machine.has_inventory or not needs_inventory else ACTS[:-1]


def damaged_files(injector: FaultInjector, rng: Random) -> None:
    """Of one machine, while it is down after a stop in order or a kill, or while it runs; then it is started anew."""
    machine = injector.someone_to_lose_data(rng)
    if machine is None or machine.is_paused:
        return
    old = machine.disk.snapshot().entries
    is_up = rng.randrange(4) == 0
    age, back = rng.choice(AGE_MS), rng.choice(BACK_MS)

    def strike() -> None:
        if machine.is_paused or not injector.may_lose_data(machine):
            return
        damage(injector, rng, machine, old)
        if machine.is_running:
            injector.suffers_later(rng.choice(AGE_MS), machine, machine.kill)
        injector.later(back if not machine.is_running else AGE_MS[-1], machine.start)

    if is_up:
        injector.later(age, strike)
        return

    def stop() -> None:
        if rng.randrange(3) == 0 and injector.may_be_killed(machine):
            machine.kill()
        else:
            injector.shut_down(machine)
        when(injector, lambda: not machine.is_running, strike)

    injector.later(age, stop)


def damaged_last(injector: FaultInjector, rng: Random) -> None:
    """All replicas of a partition stop in order, one after another. The files of the last one in sync are damaged, and
    it comes back first."""
    found = cast(injector, rng)
    if found is None:
        return
    at, (last, *others) = found
    name = injector.world.laws.partitions.names.get(at)
    if name is None:
        return
    injector.note(f"{last.name} is to be the last in sync of {name}, and its files are damaged")
    old = last.disk.snapshot().entries
    gap = rng.choice((50, 600, 3500))
    for number, machine in enumerate(others):
        injector.later(number * gap, lambda machine=machine: injector.shut_down(machine))  # type: ignore[misc]  # the default's type is not inferred

    def strike() -> None:
        if injector.may_lose_data(last):
            folder = next((path for path in folders(last.disk.snapshot().entries) if path.endswith(f"/{name}")), None)
            damage(injector, rng, last, old, folder)
        last.start()
        for machine in others:
            injector.later(rng.choice(BACK_MS), machine.start)

    def stop_last() -> None:
        injector.shut_down(last)
        when(injector, lambda: not last.is_running, strike)

    injector.later(len(others) * gap + rng.choice((0, 200, 3500)), stop_last)


def damage(injector: FaultInjector, rng: Random, machine: Machine, old: Entries, folder: str | None = None) -> None:
    """One to three files, or whole folders; `folder`: this one at least."""
    injector.world.damage.stops(machine.node_id)
    now = machine.disk.snapshot().entries
    if folder is not None:
        strike_folder(injector, rng, machine, old, folder)
    elif rng.randrange(3) == 0:
        found = folders(now)
        if found:
            strike_folder(injector, rng, machine, old, rng.choice(found))
            return
    for _ in range(rng.randrange(1, 4) if folder is None else rng.randrange(2)):
        strike_file(injector, rng, machine, old)


def folders(entries: Entries) -> list[str]:
    return [path for path, data in entries.items() if data is None and is_folder(path) and not is_metadata(path)]


def strike_file(injector: FaultInjector, rng: Random, machine: Machine, old: Entries) -> None:
    now = {path: data for path, data in machine.disk.snapshot().entries.items() if data is not None}
    kind = rng.choice(UNREAD if machine.is_running else tuple(KINDS))
    paths = [path for path in now if KINDS[kind](path) and not is_metadata(path)]
    if not paths or (kind == "marker" and machine.needs_inventory):
        return
    is_shown = kind == "topic id"
    path, act = rng.choice(paths), rng.choice(acts_on(machine, needs_inventory=not is_shown))
    changed: dict[str, bytes | None] = {}
    if act == "truncated" and now[path]:
        changed[path] = now[path][: rng.randrange(len(now[path]))]
    elif act == "deleted":
        changed[path] = None
    elif act == "swapped" and len(paths) > 1:
        other = rng.choice([one for one in paths if one != path])
        changed = {path: now[other], other: now[path]}
    elif act == "stale":
        before = old.get(path)
        changed[path] = before
    changed = {one: data for one, data in changed.items() if data != now[one]}
    if changed:
        injector.note(f"on {machine.name} the {kind} is {act}: {', '.join(changed)}")
        tamper(injector, machine, changed, takes_records=kind in ("segment", "topic id"))
        machine.has_inventory = machine.has_inventory and kind != "marker"
        machine.needs_inventory = machine.needs_inventory or (act == "swapped" and not is_shown)


def strike_folder(injector: FaultInjector, rng: Random, machine: Machine, old: Entries, folder: str) -> None:
    """The folder of a partition is gone, is again what it was, is another one's, or its last segment is cut in half."""
    now = machine.disk.snapshot().entries
    inside = {path: data for path, data in now.items() if path.startswith(f"{folder}/") and data is not None}
    before = {path: data for path, data in old.items() if path.startswith(f"{folder}/") and data is not None}
    others = [one for one in folders(now) if machine.has_inventory or topic_of(one) != topic_of(folder)]
    others = [one for one in others if one != folder]
    act = rng.choice(acts_on(machine, needs_inventory=False))
    changed: dict[str, bytes | None] = {}
    if act == "deleted":
        changed = {folder: None}
    elif act == "stale" and before:
        changed = {**dict.fromkeys(inside), **before}
    elif act == "swapped" and others:
        other = rng.choice(others)
        machine.needs_inventory = machine.needs_inventory or topic_of(other) == topic_of(folder)
        theirs = {path: data for path, data in now.items() if path.startswith(f"{other}/") and data is not None}
        changed = {**dict.fromkeys(inside), **dict.fromkeys(theirs)}
        changed |= {folder + path.removeprefix(other): data for path, data in theirs.items()}
        changed |= {other + path.removeprefix(folder): data for path, data in inside.items()}
    else:
        segments = [path for path in inside if path.endswith(".log")]
        if segments:
            path = segments[-1]
            data = inside[path]
            assert data is not None
            changed = {path: data[: len(data) // 2]}
            act = "cut in half"
    changed = {path: data for path, data in changed.items() if path == folder or data != now.get(path)}
    if changed:
        injector.note(f"on {machine.name} a folder is {act}: {folder}")
        tamper(injector, machine, changed, takes_records=True)


def tamper(injector: FaultInjector, machine: Machine, changed: Entries, *, takes_records: bool) -> None:
    if takes_records:
        names = {path.split("/")[2] for path in changed}
        for at, name in injector.world.laws.partitions.names.items():
            if str(name) in names:
                injector.world.damage.lost_of(at, machine.node_id, "has damaged files")
                machine.changed[at] = None
    machine.is_tampered = True
    machine.touches += 1
    for path, data in changed.items():
        machine.disk.tamper(path, data)
