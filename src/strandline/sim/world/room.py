"""Waiting for room on a full disk, as the real driver does it: without a node, or with one that lacks a directory."""

from typing import Protocol

from strandline.log.files.room import needed_room
from strandline.sim.world.disk import SimDisk
from strandline.sim.world.ground import Ground
from strandline.sim.world.trace import Kind

CHECK_MS = 300
STEADY_LOOKS = 2  # that must find room in a row, before a node stops for a directory


class Owner(Protocol):
    disk: SimDisk
    life: int
    is_running: bool
    is_paused: bool
    waits_for_room: bool
    awaited: tuple[str, ...]

    @property
    def world(self) -> Ground: ...
    def note(self, kind: Kind, text: str) -> None: ...
    def start(self) -> None: ...
    def begin_anew(self) -> None: ...


def wait_without_node(machine: Owner) -> None:
    life = machine.life

    def look() -> None:
        if not machine.waits_for_room or life != machine.life:
            return
        if all(has_room(machine.disk, root) for root in machine.disk.roots):
            machine.note(Kind.REPORT, "comes back: there is room")
            machine.start()
        else:
            machine.world.time.later(CHECK_MS, look)

    machine.world.time.later(CHECK_MS, look)


def wait_with_node(machine: Owner, paths: tuple[str, ...]) -> None:
    """Until there has been room in one of these for a while, or the node waits for others."""
    life = machine.life

    def look(looks: int) -> None:
        if life != machine.life or not machine.is_running or machine.awaited is not paths:
            return
        is_there = any(path not in machine.disk.failing and has_room(machine.disk, path) for path in paths)
        looks = looks + 1 if is_there else 0
        if looks < STEADY_LOOKS or machine.is_paused:
            machine.world.time.later(CHECK_MS, lambda: look(looks))
        else:
            machine.begin_anew()

    machine.world.time.later(CHECK_MS, lambda: look(0))


def has_room(disk: SimDisk, path: str) -> bool:
    with disk.observed():
        total, free = disk.usage(path)
    return total < 0 or free >= needed_room(total)
