"""Coordinators as values: a real machine, by the shortest way to one like it.

What follows from an input is found out once, on a machine that is made anew and given all that led there.
"""

from strandline.sim.model.transactions.likeness import Likeness, likeness
from strandline.sim.model.transactions.machine import Broken, Due, Input, Load, Machine, Output, cluster
from strandline.sim.model.transactions.setup import Setup
from strandline.txn.transaction import Transaction


class Coordinator:
    """There is one object for all machines that are alike, so it is compared by identity."""

    __slots__ = ("current", "due", "epoch", "following", "history", "is_loaded", "written")

    def __init__(self, history: tuple[Input, ...], machine: Machine) -> None:
        load = history[0]
        assert isinstance(load, Load)
        self.history = history
        self.epoch = load.epoch
        self.current: Transaction | None = machine.current
        self.written: Transaction | None = machine.log.written  # and not committed yet
        self.is_loaded = bool(machine.transactions.shards.loaded)
        self.due: tuple[Due, ...] = machine.due
        self.following: dict[Input, tuple[Coordinator, tuple[Output, ...]]] = {}


class Coordinators:
    def __init__(self, setup: Setup) -> None:
        self.two_phase = setup.two_phase
        self.image, self.delta = cluster(setup.version)
        self.known: dict[Likeness, Coordinator] = {}
        self.loaded: dict[Load, tuple[Coordinator, tuple[Output, ...]]] = {}

    def load(self, load: Load) -> tuple[Coordinator, tuple[Output, ...]]:
        found = self.loaded.get(load)
        if found is None:
            found = self.loaded[load] = self.made((), load)
        return found

    def step(self, coordinator: Coordinator, given: Input) -> tuple[Coordinator, tuple[Output, ...]]:
        found = coordinator.following.get(given)
        if found is None:
            found = coordinator.following[given] = self.made(coordinator.history, given)
        return found

    def made(self, history: tuple[Input, ...], last: Input) -> tuple[Coordinator, tuple[Output, ...]]:
        way = (*history, last)
        load = way[0]
        assert isinstance(load, Load)
        machine = Machine(self.image, self.delta, load, two_phase=self.two_phase)
        outputs: list[Output] = []
        for given in way:
            outputs = machine.take(given)
        if any(isinstance(output, Broken) for output in outputs):
            return Coordinator(way, machine), tuple(outputs)  # whatever it is like, it is the end
        key = likeness(machine)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Coordinator(way, machine)
        return found, tuple(outputs)
