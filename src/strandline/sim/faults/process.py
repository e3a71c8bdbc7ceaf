"""Processes and machines that end, stand still, and come back: inside and outside the session timeout."""

from random import Random

from strandline.base.ids import NOBODY, OFFSETS_TOPIC
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.world.machine import Machine

BACK_MS = (0, 30, 300, 1500, 4000)
STILL_MS = (50, 700, 2500, 5000)
LONG_JUMP_MS = 130_000
FUSE_MS = 40  # if the process does nothing to its disk until then, the power fails all the same


def kill(injector: FaultInjector, rng: Random) -> None:
    """SIGKILL: the page cache survives."""
    machine = injector.someone_to_kill(rng)
    if machine is not None:
        machine.kill()
        if rng.randrange(0, 2) and machine.is_powered:
            injector.later(rng.choice(BACK_MS), machine.start)


def start(injector: FaultInjector, rng: Random) -> None:
    for machine in injector.world.machines.values():
        if not machine.is_running and rng.randrange(0, 2):
            machine.start()


def shut_down(injector: FaultInjector, rng: Random) -> None:
    machine = injector.someone(rng)
    if machine is not None:
        injector.shut_down(machine)


def pause(injector: FaultInjector, rng: Random) -> None:
    """SIGSTOP: peers see a machine that accepts everything and answers nothing."""
    machine = injector.someone(rng)
    if machine is not None:
        machine.pause()
        injector.later(rng.choice(STILL_MS), machine.go_on)


def power_cut(injector: FaultInjector, rng: Random) -> None:
    """What was not synced is lost, torn, or partly kept."""
    world = injector.world
    if world.options.is_ruthless and rng.randrange(0, 6) == 0:
        for machine in world.machines.values():
            lose_power(injector, rng, machine)
        return
    stopped = [machine for machine in world.machines.values() if machine.has_left and machine.is_powered]
    if stopped and rng.randrange(2):
        lose_power(injector, rng, rng.choice(stopped))  # it must lose nothing
        return
    victim = injector.someone_to_lose_data(rng)
    if victim is not None:
        lose_power(injector, rng, victim)


def lose_power(injector: FaultInjector, rng: Random, machine: Machine) -> None:
    """At once, or in the middle of what the process is about to do to its disk."""
    if not machine.is_powered:
        return
    injector.later(rng.choice(BACK_MS[1:]), machine.start)
    if machine.is_running and rng.randrange(3) == 0:
        machine.disk.fuse = rng.randrange(0, 12)
        injector.world.damage.stops(machine.node_id)
        injector.later(FUSE_MS, lambda: machine.power_cut() if machine.disk.fuse >= 0 else None)
    else:
        machine.power_cut()


def bounce(injector: FaultInjector, rng: Random) -> None:
    """Leaders of one partition follow one another faster than their logs can agree."""
    partitions = injector.world.laws.metadata.history
    if not partitions:
        return
    at = rng.choice(list(partitions))

    def strike() -> None:
        partition = injector.world.laws.metadata.image.partition(at)
        machine = injector.world.machines.get(partition.leader) if partition is not None else None
        if machine is not None and injector.may_be_killed(machine):
            machine.kill()
            injector.later(rng.choice((0, 20, 60, 150)), machine.start)

    for step in range(rng.choice((2, 3, 4))):
        injector.later(step * rng.choice((80, 150, 300)), strike)


def rolling_restart(injector: FaultInjector, rng: Random) -> None:
    """One node after another, as an operator does it, but too fast."""
    at = 0
    injector.note("a rolling restart begins")
    for machine in injector.world.machines.values():
        injector.suffers_later(at, machine, lambda machine=machine: injector.shut_down(machine))  # type: ignore[misc]  # the default's type is not inferred
        at += rng.choice((400, 1000, 3000))
        injector.later(at, machine.start)


def double(injector: FaultInjector, rng: Random) -> None:
    """A follower comes and goes, and while the ISR changes, so does the controller."""
    follower, controller = injector.someone_to_kill(rng), injector.world.controller()
    if follower is None or controller is None or controller is follower or not injector.may_be_killed(controller):
        return
    rng.choice((follower.kill, follower.pause))()
    at = rng.choice((60, 300, 2000, 3000))
    injector.later(at, follower.go_on)
    injector.later(at, follower.start)
    at += rng.randrange(0, 120)
    act = rng.choice((controller.kill, controller.pause, controller.shut_down))
    injector.suffers_later(at, controller, act)
    at += rng.choice((0, 10, 700, 2500))
    injector.later(at, controller.go_on)
    injector.later(at, controller.start)


def clock_jump(injector: FaultInjector, rng: Random) -> None:
    """The clock of a machine goes on from later than it was, as after a suspended laptop."""
    machine = injector.someone(rng)
    if machine is not None:
        span = rng.choice((200, 1000, 5000, 60_000))
        injector.note(f"the clock of {machine.name} jumps by {span} ms")
        machine.clock.jump(span)
        machine.wake()


def long_jump(injector: FaultInjector, rng: Random) -> None:
    """The same where groups are coordinated, by more than the offsets of a group without members are kept for."""
    topic = injector.world.laws.metadata.image.topic_named(OFFSETS_TOPIC)
    leaders = [] if topic is None else [one.leader for one in topic.partitions.values() if one.leader != NOBODY]
    if leaders:
        machine = injector.world.machines[rng.choice(leaders)]
        injector.note(f"the clock of {machine.name} jumps by {LONG_JUMP_MS} ms")
        machine.clock.jump(LONG_JUMP_MS)
        machine.wake()
