"""What faults work on, and the caution of gentle runs.

Gentle: while one machine may have lost data it is the *victim*, and until it is back only one other may suffer; no
data is lost unless everything is whole. So one untouched replica of each partition always has everything, and nothing
that was acknowledged may be missing. In a ruthless run anything may happen at any time.
"""

from collections.abc import Callable
from random import Random

from strandline.sim.clients.admin import Admin
from strandline.sim.machine import Machine
from strandline.sim.trace import Kind
from strandline.sim.world import World


class Turmoil:
    def __init__(self, world: World, admin: Admin) -> None:
        self.world = world
        self.admin = admin
        self.victim: Machine | None = None
        self.other: Machine | None = None
        self.is_over = False
        self.pending = 0  # acts that are still to come

    def tell(self, text: str) -> None:
        self.world.tell(Kind.FAULT, text)

    def may_suffer(self, machine: Machine) -> bool:
        victim = self.victim
        if victim is None or self.world.options.is_ruthless:
            return True
        if not victim.is_rotten and victim.is_let_in:
            self.victim = self.other = None
            return True
        if self.other is None and machine is not victim:
            self.other = machine
        return machine in (victim, self.other)

    def is_quiet(self) -> bool:
        world = self.world
        if (
            self.pending
            or world.network.cuts
            or world.network.slow
            or self.victim is not None
            or world.why_not_whole() is not None
        ):
            return False
        return all(not machine.is_paused for machine in world.machines.values())

    def someone(self, rng: Random) -> Machine | None:
        """A machine that may suffer now; often the controller."""
        machine = rng.choice(list(self.world.machines.values()))
        controller = self.world.controller()
        if controller is not None and rng.randrange(0, 4) == 0:
            machine = controller
        return machine if self.may_suffer(machine) else None

    def someone_to_lose_data(self, rng: Random) -> Machine | None:
        machine = rng.choice(list(self.world.machines.values()))
        return machine if self.may_lose_data(machine) else None

    def may_lose_data(self, machine: Machine) -> bool:
        """Asked by who then does it."""
        if self.world.options.is_ruthless:
            return True
        if not self.is_quiet():
            return False
        self.victim, self.other = machine, None
        return True

    def later(self, span_ms: int, act: Callable[[], object]) -> None:
        """The rest of a fault, unless faults have ended by then, and everything that they did is undone."""
        self.pending += 1

        def then() -> None:
            self.pending -= 1
            if not self.is_over:
                act()

        self.world.time.later(span_ms, then)
