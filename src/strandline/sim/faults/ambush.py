"""Faults that answer an event: the moments in which protocols are weakest are too short to be met by chance."""

from collections.abc import Callable
from random import Random

from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.process import BACK_MS, STILL_MS, lose_power
from strandline.sim.faults.scripted import when
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
Act = Callable[[FaultInjector, Random, Machine], None]


def ambush(injector: FaultInjector, rng: Random) -> None:
    """Wait for the next event of a kind; then strike who caused it, or somebody else, or cut them off."""
    event, act, span = rng.choice(EVENTS), rng.choice(ACTS), rng.choice(WITHIN_MS)
    hits_another = rng.randrange(3) == 0

    def strike(name: str) -> None:
        machines = {machine.name: machine for machine in injector.world.machines.values()}
        if name in machines:
            machine = rng.choice(list(machines.values())) if hits_another else machines[name]
            injector.later(span, lambda: act(injector, rng, machine))

    injector.world.ambushes.setdefault(event, []).append(strike)


def kill(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    if injector.may_be_killed(machine):
        machine.kill()
        injector.later(rng.choice(BACK_MS), machine.start)


def pause(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    if injector.may_suffer(machine):
        machine.pause()
        injector.later(rng.choice(STILL_MS), machine.go_on)


def power(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    if injector.may_lose_data(machine):
        lose_power(injector, rng, machine)


def isolate(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    """For a short while, from everybody or from the controller alone."""
    if not injector.may_suffer(machine):
        return
    controller = injector.world.controller()
    others = [one for one in injector.world.machines.values() if one is not machine]
    if controller in others and rng.randrange(2):
        others = [controller]
    network = injector.world.network
    injector.note(f"{machine.name} is cut off from {', '.join(one.name for one in others if one is not None)}")
    for one in others:
        if one is not None:
            network.cut(machine.name, one.name)
    injector.later(rng.choice((100, 1000, 3500)), network.heal)


def kindle(injector: FaultInjector, rng: Random) -> None:
    """The power of a machine fails just behind its next cut of a log, or the next swap of a compacted segment."""
    machine = rng.choice(list(injector.world.machines.values()))
    if injector.world.options.is_ruthless:
        machine.disk.tinder = (rng.choice(("cut", "swap")), rng.randrange(1, 6))
        when(injector, lambda: not machine.is_powered, lambda: injector.later(rng.choice(BACK_MS), machine.start))


def delay(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    """Its requests, and the answers to it, come late."""
    for connection in list(machine.outbound.values()):
        rng.choice((connection.up, connection.down)).lag_ms = rng.choice((100, 300, 1000))


ACTS: tuple[Act, ...] = (kill, kill, pause, power, power, power, isolate, delay)
