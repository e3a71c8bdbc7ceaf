"""The simulator's driver, where a node and its flushes save the same file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.conformance.saving import Driver, Make, SavingConformance

from strandline.base.effects import Event, Save
from strandline.base.ids import NodeId
from strandline.sim.simulation import World
from strandline.sim.world.options import Options


class Simulated:
    """A machine whose process is this test."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, Options())
        self.machine = self.world.machines[NodeId(1)]
        self.machine.is_running = True
        self.disk = self.machine.disk
        self.answers: list[Event] = []
        self.machine.event = self.answers.append  # type: ignore[method-assign]

    def perform(self, effect: Save) -> None:
        self.machine.perform(effect)

    def go_on(self) -> None:
        self.world.time.run(1)

    def wait_all(self) -> list[Any]:
        self.world.time.run(60_000)
        return self.answers


@contextmanager
def simulated() -> Iterator[Driver]:
    yield Simulated(1)


class TestSimulatedDriver(SavingConformance):
    @pytest.fixture
    def path(self) -> str:
        return "/d0/checkpoint"

    @pytest.fixture
    def make(self) -> Make:
        return simulated
