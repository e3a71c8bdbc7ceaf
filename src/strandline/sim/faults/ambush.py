"""Faults that answer an event: the moments in which protocols are weakest are too short to be met by chance."""

from collections.abc import Callable
from random import Random

from strandline.sim.faults.process import BACK_MS, STILL_MS, lose_power
from strandline.sim.faults.scripted import when
from strandline.sim.faults.turmoil import Turmoil
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind

EVENTS = (
    Kind.LEADS,
    Kind.LEADS,
    Kind.ISR,
    Kind.TRUNCATED,
    Kind.CONTROLLER,
    Kind.STARTED,
    "AlterPartitionRequest",
    "AlterPartitionRequest",
    "VoteResponse",
)
WITHIN_MS = (0, 2, 6, 40, 300)
Act = Callable[[Turmoil, Random, Machine], None]


def ambush(turmoil: Turmoil, rng: Random) -> None:
    """Wait for the next event of a kind; then strike who caused it, or somebody else, or cut them off."""
    event, act, span = rng.choice(EVENTS), rng.choice(ACTS), rng.choice(WITHIN_MS)
    hits_another = rng.randrange(3) == 0

    def strike(name: str) -> None:
        machines = {machine.name: machine for machine in turmoil.world.machines.values()}
        if name in machines:
            machine = rng.choice(list(machines.values())) if hits_another else machines[name]
            turmoil.later(span, lambda: act(turmoil, rng, machine))

    turmoil.world.ambushes.setdefault(event, []).append(strike)


def kill(turmoil: Turmoil, rng: Random, machine: Machine) -> None:
    if turmoil.may_be_killed(machine):
        machine.kill()
        turmoil.later(rng.choice(BACK_MS), machine.start)


def pause(turmoil: Turmoil, rng: Random, machine: Machine) -> None:
    if turmoil.may_suffer(machine):
        machine.pause()
        turmoil.later(rng.choice(STILL_MS), machine.go_on)


def power(turmoil: Turmoil, rng: Random, machine: Machine) -> None:
    if turmoil.may_lose_data(machine):
        lose_power(turmoil, rng, machine)


def isolate(turmoil: Turmoil, rng: Random, machine: Machine) -> None:
    """For a short while, from everybody or from the controller alone."""
    if not turmoil.may_suffer(machine):
        return
    controller = turmoil.world.controller()
    others = [one for one in turmoil.world.machines.values() if one is not machine]
    if controller in others and rng.randrange(2):
        others = [controller]
    network = turmoil.world.network
    turmoil.note(f"{machine.name} is cut off from {', '.join(one.name for one in others if one is not None)}")
    for one in others:
        if one is not None:
            network.cut(machine.name, one.name)
    turmoil.later(rng.choice((100, 1000, 3500)), network.heal)


def kindle(turmoil: Turmoil, rng: Random) -> None:
    """The power of a machine fails just behind its next cut of a log, or the next swap of a compacted segment."""
    machine = rng.choice(list(turmoil.world.machines.values()))
    if turmoil.world.options.is_ruthless:
        machine.disk.tinder = (rng.choice(("cut", "swap")), rng.randrange(1, 6))
        when(turmoil, lambda: not machine.is_powered, lambda: turmoil.later(rng.choice(BACK_MS), machine.start))


def delay(turmoil: Turmoil, rng: Random, machine: Machine) -> None:
    """What it has sent, or will be told, comes late."""
    for connection in list(machine.outbound.values()):
        rng.choice((connection.up, connection.down)).lag_ms = rng.choice((100, 300, 1000))


ACTS: tuple[Act, ...] = (kill, kill, pause, power, power, power, isolate, delay)
