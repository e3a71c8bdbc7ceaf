"""What every driver must do with two sides that save one file: the node by `Disk.save`, in the middle of a step, and by
the effect `Save`, which becomes durable some time later. A test module makes a suite of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pytest

from strandline.base.effects import Save
from strandline.base.ports import Disk
from strandline.replica.tokens import ReplicaToken

ROUNDS = 60
LONG = 6_000  # bytes: of contents with different sizes a mixture can be told


class Driver(Protocol):
    disk: Disk

    def perform(self, effect: Save) -> None: ...

    def go_on(self) -> None:
        """Let what was asked for get some way, or none."""
        ...

    def wait_all(self) -> list[Any]:
        """Let all of it be done; returns the answers."""
        ...


Make = Callable[[], AbstractContextManager[Driver]]


class SavingConformance:
    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError("the suite's subclass says how to make a driver")

    @pytest.fixture
    def path(self) -> str:
        raise NotImplementedError("the suite's subclass says which file")

    def test_both_sides_save_one_path_without_an_error_or_a_mixture(self, make: Make, path: str) -> None:
        with make() as driver:
            asked = 0
            for number in range(ROUNDS):
                for half in range(3):
                    asked += 1
                    driver.perform(asking(driver, path, content(number, half), asked))
                driver.go_on()
                driver.disk.save(path, content(number, 3))
                for _ in range(2):
                    assert driver.disk.read_file(path) == content(number, 3), f"round {number}"
                    driver.go_on()
            answers = driver.wait_all()
            assert [type(answer).__name__ for answer in answers] == ["Synced"] * asked
            assert [answer.token for answer in answers] == [Saved(n + 1) for n in range(asked)]
            assert driver.disk.read_file(path) == content(ROUNDS - 1, 3)

    def test_a_save_that_was_asked_for_last_is_what_stays(self, make: Make, path: str) -> None:
        with make() as driver:
            driver.perform(asking(driver, path, b"first", 1))
            driver.disk.save(path, b"second")
            driver.perform(asking(driver, path, b"third", 2))
            assert len(driver.wait_all()) == 2
            assert driver.disk.read_file(path) == b"third"

    def test_what_was_asked_for_in_a_step_before_the_node_saved_is_older(self, make: Make, path: str) -> None:
        """Its effect is performed only after the step."""
        with make() as driver:
            effect = asking(driver, path, b"older", 1)
            driver.disk.save(path, b"newer")
            driver.perform(effect)
            assert len(driver.wait_all()) == 1
            assert driver.disk.read_file(path) == b"newer"


class Saved(ReplicaToken, frozen=True):
    number: int


def asking(driver: Driver, path: str, content: bytes, number: int) -> Save:
    return Save(path, content, Saved(number), driver.disk.saves(path))


def content(number: int, half: int) -> bytes:
    return f"{number}.{half} ".encode() * (LONG // (half + 1))
