"""Processes and machines that end, stand still, and come back: inside and outside the session timeout."""

from random import Random

from strandline.sim.faults.turmoil import Turmoil

BACK_MS = (0, 30, 300, 1500, 4000)
STILL_MS = (50, 700, 2500, 5000)


def kill(turmoil: Turmoil, rng: Random) -> None:
    """SIGKILL: the page cache survives."""
    machine = turmoil.someone(rng)
    if machine is not None:
        machine.kill()
        if rng.randrange(0, 2) and machine.is_powered:
            turmoil.later(rng.choice(BACK_MS), machine.start)


def start(turmoil: Turmoil, rng: Random) -> None:
    for machine in turmoil.world.machines.values():
        if not machine.is_running and rng.randrange(0, 2):
            machine.start()


def shut_down(turmoil: Turmoil, rng: Random) -> None:
    machine = turmoil.someone(rng)
    if machine is not None:
        machine.shut_down()


def pause(turmoil: Turmoil, rng: Random) -> None:
    """SIGSTOP: peers see a machine that accepts everything and answers nothing."""
    machine = turmoil.someone(rng)
    if machine is not None:
        machine.pause()
        turmoil.later(rng.choice(STILL_MS), machine.go_on)


def power_cut(turmoil: Turmoil, rng: Random) -> None:
    """What was not synced is lost, torn, or partly kept."""
    world = turmoil.world
    if world.options.is_ruthless and rng.randrange(0, 6) == 0:
        machines = list(world.machines.values())
    else:
        one = turmoil.someone_to_lose_data(rng)
        machines = [] if one is None else [one]
    for machine in machines:
        if machine.is_powered:
            world.damage.lost(machine.node_id, "lost power")
            machine.power_cut()
            turmoil.later(rng.choice(BACK_MS[1:]), machine.start)


def rolling_restart(turmoil: Turmoil, rng: Random) -> None:
    """One node after another, as an operator does it, but too fast."""
    world, at = turmoil.world, 0
    if turmoil.victim is not None:
        return
    turmoil.tell("a rolling restart begins")
    for machine in world.machines.values():
        turmoil.later(at, machine.shut_down)
        at += rng.choice((400, 1000, 3000))
        turmoil.later(at, machine.start)


def double(turmoil: Turmoil, rng: Random) -> None:
    """A follower comes and goes, and while the ISR changes, so does the controller."""
    follower, controller = turmoil.someone(rng), turmoil.world.controller()
    if follower is None or controller is None or controller is follower or not turmoil.may_suffer(controller):
        return
    rng.choice((follower.kill, follower.pause))()
    at = rng.choice((60, 300, 2000, 3000))
    turmoil.later(at, follower.go_on)
    turmoil.later(at, follower.start)
    at += rng.randrange(0, 120)
    turmoil.later(at, rng.choice((controller.kill, controller.pause, controller.shut_down)))
    at += rng.choice((0, 10, 700, 2500))
    turmoil.later(at, controller.go_on)
    turmoil.later(at, controller.start)


def clock_jump(turmoil: Turmoil, rng: Random) -> None:
    """The clock of a machine goes on from later than it was, as after a suspended laptop."""
    machine = turmoil.someone(rng)
    if machine is not None:
        span = rng.choice((200, 1000, 5000, 60_000))
        turmoil.tell(f"the clock of {machine.name} jumps by {span} ms")
        machine.clock.jump(span)
        machine.wake()
