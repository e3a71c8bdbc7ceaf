"""The flusher's thread and the loop, which save the same files."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.saving import Driver, Make, SavingConformance

from strandline.base.effects import Save
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.flusher import Flusher
from strandline.server.storage.writers import Writers
from strandline.testing.power_loss import PowerLossDisk


class Real:
    """The flusher, on a loop that runs when the test says so."""

    def __init__(self, disk: RealDisk) -> None:
        self.disk = disk
        self.loop = asyncio.new_event_loop()
        self.answers: list[Any] = []
        self.crashes: list[BaseException] = []
        self.flusher = Flusher(self.loop, disk, self.answers.append, self.crashed, is_vital=False)
        self.asked = 0

    def crashed(self, error: BaseException, event: object) -> None:
        self.crashes.append(error)

    def perform(self, effect: Save) -> None:
        self.asked += 1
        self.flusher.submit(effect)

    def go_on(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    def wait_all(self) -> list[Any]:
        while len(self.answers) < self.asked and not self.crashes:
            self.go_on()
        assert self.crashes == []
        return self.answers


def made(disk: Callable[[], RealDisk]) -> Make:
    @contextmanager
    def make() -> Iterator[Driver]:
        driver = Real(disk())
        try:
            yield driver
        finally:
            driver.flusher.close()
            driver.loop.close()

    return make


class TestRealDriver(SavingConformance):
    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        (tmp_path / "data").mkdir()
        return str(tmp_path / "data" / "checkpoint")

    @pytest.fixture
    def make(self) -> Make:
        return made(RealDisk)


class TestPowerLossDriver(TestRealDriver):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return made(lambda: PowerLossDisk([str(tmp_path / "data")], tmp_path / "durable"))


# --- who may write


def in_thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("turn", [Writers.taking_turns, Writers.saving])
def test_a_save_waits_for_the_thread_that_writes_the_same_file(
    turn: Callable[[Writers, str], AbstractContextManager[None]],
) -> None:
    writers, order = Writers(), []

    def second() -> None:
        with turn(writers, "/d/a"):
            order.append("second")

    with writers.taking_turns("/d/a"):
        thread = in_thread(second)
        with turn(writers, "/d/b"):
            order.append("another file")
        order.append("first")
    thread.join()
    assert order == ["another file", "first", "second"]
    assert writers.owners == {}


def test_a_file_of_the_loop_alone_has_no_second_writer() -> None:
    writers = Writers()
    with writers.taking_turns("/d/a"):
        with pytest.raises(AssertionError, match="/d/a has two writers"), writers.alone("/d/a"):
            pass
        with writers.alone("/d/b"):
            pass
    with writers.alone("/d/a"):
        pass


@pytest.mark.parametrize("has_power", [True, False])
def test_a_file_that_is_being_saved_is_not_written_without_waiting(tmp_path: Path, *, has_power: bool) -> None:
    data = tmp_path / "data"
    data.mkdir()
    disk = RealDisk() if has_power else PowerLossDisk([str(data)], tmp_path / "durable")
    path = str(data / "checkpoint")
    with disk.writers.taking_turns(path), pytest.raises(AssertionError, match="two writers"):
        disk.write_file(path, b"mixed")
    assert disk.read_file(path) is None
