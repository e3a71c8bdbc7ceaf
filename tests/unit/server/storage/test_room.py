"""A node without room: how much it waits for, and its next life."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from strandline.base.effects import AwaitRoom, Effect, Endpoint, Event, Halt
from strandline.base.ports import Disk, DiskError, DiskFull, Rng
from strandline.base.time import NEVER, Instant
from strandline.broker.config import NodeConfig
from strandline.log.evidence.wholeness import FILE
from strandline.log.files.room import needed_room
from strandline.server import main
from strandline.server.main import NodeRunner, real_disk
from strandline.server.pump import DISK_FAILED, OUT_OF_ROOM
from strandline.server.storage import room as room_module
from strandline.server.storage.room import LOOKS, OF_DIRECTORY, Steady, has_room, next_pause, why_no_room

MIB = 1 << 20


@pytest.mark.parametrize(
    ("total", "needed"),
    [
        (0, 0),
        (8 * MIB, 2 * MIB),
        (256 * MIB, 64 * MIB),
        (1024 * MIB, 64 * MIB),
        (6400 * MIB, 64 * MIB),
        (10_000 * MIB, 100 * MIB),
    ],
)
def test_how_much_must_be_free(total: int, needed: int) -> None:
    assert needed_room(total) == needed


def test_a_file_system_that_does_not_say_how_large_it_is_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SimpleNamespace(f_blocks=0, f_frsize=4096, f_bavail=0, f_files=0, f_favail=0)
    monkeypatch.setattr(room_module.os, "statvfs", lambda path: silent)
    assert has_room(str(tmp_path))
    assert why_no_room([str(tmp_path)]) is None


def test_a_node_that_fills_its_disk_at_once_waits_longer_each_time() -> None:
    pauses = [next_pause(0.0, 0.0)]
    for _ in range(7):
        pauses.append(next_pause(pauses[-1], 1.0))
    assert pauses[:3] == [2.0, 4.0, 8.0]
    assert pauses[-1] == 60.0
    assert next_pause(60.0, 60.0) == 2.0


def test_a_directory_is_waited_for_with_more_patience() -> None:
    """Who comes back for it stops first, and others have to lead."""
    pauses = [next_pause(0.0, 0.0, OF_DIRECTORY)]
    for _ in range(7):
        pauses.append(next_pause(pauses[-1], 599.0, OF_DIRECTORY))
    assert pauses[:3] == [10.0, 20.0, 40.0]
    assert pauses[-1] == 600.0
    assert next_pause(600.0, 600.0, OF_DIRECTORY) == 10.0


def system(
    monkeypatch: pytest.MonkeyPatch, *, free: int, total: int = 8 * MIB, files: int = 10, error: int = 0
) -> None:
    """A file system of its own, in blocks of one MiB."""

    def statvfs(path: str) -> object:
        return SimpleNamespace(f_frsize=MIB, f_blocks=total // MIB, f_bavail=free // MIB, f_files=10, f_favail=files)

    def allocate(fd: int, offset: int, size: int) -> None:
        if error:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(room_module.os, "statvfs", statvfs)
    monkeypatch.setattr(room_module.os, "posix_fallocate", allocate, raising=False)


def test_there_is_room_when_enough_is_free_and_a_file_of_that_size_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system(monkeypatch, free=2 * MIB)
    assert why_no_room([str(tmp_path)]) is None
    system(monkeypatch, free=1 * MIB)
    assert why_no_room([str(tmp_path)]) == (
        f"{tmp_path} has 1.0 MiB of 8.0 MiB free, and 2.0 MiB are needed: free space there"
    )
    system(monkeypatch, free=4 * MIB, files=0)
    assert why_no_room([str(tmp_path)]) == f"{tmp_path} can take no more files: remove some there"
    for number in (errno.EFBIG, errno.EDQUOT):
        system(monkeypatch, free=4 * MIB, error=number)
        why = why_no_room([str(tmp_path)])
        assert why is not None
        todo = "takes no file of 2.0 MiB, raise the limit or the quota there"
        assert why == f"{tmp_path} {todo}: {tmp_path}: {os.strerror(number)}"
    assert os.listdir(tmp_path) == []


def test_each_directory_must_have_room_and_one_that_cannot_be_read_has_no_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system(monkeypatch, free=2 * MIB)
    assert why_no_room([str(tmp_path / "missing"), str(tmp_path)]) is None
    system(monkeypatch, free=0)
    assert why_no_room([str(tmp_path), str(tmp_path / "missing")]) is not None


def test_a_directory_that_cannot_be_looked_at_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system(monkeypatch, free=2 * MIB)
    assert has_room(str(tmp_path))
    assert not has_room(str(tmp_path / "missing"))


def test_a_directory_has_had_room_for_long_enough_when_each_of_some_looks_in_a_row_found_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free: dict[str, bool] = {"/a": True, "/b": False}
    monkeypatch.setattr(room_module, "has_room", free.__getitem__)
    steady = Steady()
    assert [steady.look(free) for _ in range(LOOKS - 1)] == [None] * (LOOKS - 1)
    free |= {"/a": False, "/b": True}
    assert steady.look(free) is None
    free["/a"] = True
    assert [steady.look(free) for _ in range(LOOKS - 1)] == [None] * (LOOKS - 2) + ["/b"], "either of them will do"


# --- lives


class Mortal:
    """A node that finds no room, goes on without a directory, or halts at its shutdown."""

    def __init__(self, disk: Disk, path: str, how: str) -> None:
        self.how = how
        self.is_asked = False
        self.file = disk.open(path)

    def start(self, now: Instant) -> list[Effect]:
        if self.how == "finds no room":
            raise DiskFull("/d/a: No space left on device")
        return [] if self.how == "halts" else [AwaitRoom(("/d/full",))]

    def step(self, event: Event, now: Instant) -> list[Effect]:
        return []

    def deadline(self) -> Instant:
        return NEVER

    def expire(self, now: Instant) -> list[Effect]:
        return []

    def shutdown(self, now: Instant) -> list[Effect]:
        if self.how == "is short, and fails to stop":
            raise DiskError("/d/a: Input/output error")
        if self.how == "is short, and stops slowly" and not self.is_asked:
            self.is_asked = True
            asyncio.get_running_loop().call_soon(lambda: os.kill(os.getpid(), signal.SIGTERM))
            return []
        return [Halt("asked to", 0)]


class Play:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, lives: list[str], lacks: list[str | None]) -> None:
        """`lives`: how each ends; `lacks`: what each look at the room finds."""
        self.path, self.lives, self.lacks = path, lives, lacks
        self.nodes: list[Mortal] = []
        self.before: list[float] = []  # pauses that were, each time that the next one is asked for
        monkeypatch.setattr(main, "next_pause", self.next_pause)
        monkeypatch.setattr(main, "why_no_room", lambda roots: self.look())
        monkeypatch.setattr(room_module, "has_room", lambda root: self.look() is None)
        self.on_look: Callable[[], None] = lambda: None

    def next_pause(self, before_s: float, lived_s: float, patience: object = None) -> float:
        assert 0.0 <= lived_s < 20.0
        self.before.append(before_s)
        return 0.001

    def look(self) -> str | None:
        self.on_look()
        return self.lacks.pop(0)

    def make(self, config: NodeConfig, disk: Disk, rng: Rng, where: Mapping[str, Endpoint], secret: object) -> Mortal:
        how = self.lives.pop(0)
        if how == "cannot even open":
            raise DiskFull("/d/b: No space left on device")
        node = Mortal(disk, str(self.path / "log"), how)
        self.nodes.append(node)
        if how == "halts":
            asyncio.get_running_loop().call_later(0.001, lambda: os.kill(os.getpid(), signal.SIGTERM))
        return node

    def run(self) -> int:
        config = NodeConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@127.0.0.1:1",
                "log.dirs": str(self.path),
                "cluster.secret.required": "false",  # the nodes here are none
            }
        )

        async def lives() -> int:
            self.process = NodeRunner(asyncio.get_running_loop(), config, self.make, real_disk)
            return await self.process.run()

        return asyncio.run(asyncio.wait_for(lives(), 20))


def test_a_node_without_room_begins_anew_in_its_process_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    play = Play(
        tmp_path,
        monkeypatch,
        ["finds no room", "cannot even open", "halts"],
        ["/d is full", "/d is full", None, None, None],
    )
    with caplog.at_level("INFO", "strandline"):
        assert play.run() == 0
    assert play.lives == play.lacks == []
    assert play.nodes[0].file.fd == -1, "nothing of the first life is left open"  # type: ignore[attr-defined]
    lines = [record.message for record in caplog.records]
    assert lines[:6] == [
        "node 1 stops: disk full: /d/a: No space left on device",
        "node 1 waits, and restarts by itself: /d is full",
        "node 1 restarts: there is space again",
        "node 1 stops: disk full: /d/b: No space left on device",
        "node 1 waits, and restarts by itself: in 0 s, since there is space now",
        "node 1 restarts: there is space again",
    ]
    assert "Traceback" not in caplog.text


def test_a_signal_ends_a_waiting_process_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(tmp_path, monkeypatch, ["finds no room"], ["/d is full"] * 1000)
    play.on_look = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert play.run() == OUT_OF_ROOM
    assert len(play.nodes) == 1


def test_after_an_error_of_a_disk_no_file_says_that_logs_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_text("all")
    play = Play(tmp_path, monkeypatch, ["finds no room"], ["/d is full"] * 1000)
    play.on_look = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert play.run() == OUT_OF_ROOM
    assert not (tmp_path / FILE).exists()


# --- a node that goes on without a directory


def test_a_node_stops_in_order_when_a_directory_has_room_again_and_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lacks = ["/d/full has none", *[None] * (LOOKS - 1), "/d/full has none", *[None] * LOOKS]
    play = Play(tmp_path, monkeypatch, ["is short", "halts"], lacks)
    with caplog.at_level("INFO", "strandline"):
        assert play.run() == 0
    assert play.lives == play.lacks == []
    lines = [record.message for record in caplog.records if "listens" not in record.message]
    assert lines[:2] == [
        "there is space in /d/full again: node 1 shuts down, and restarts",
        "node 1 stops: asked to",
    ]


def test_it_remembers_how_patient_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(tmp_path, monkeypatch, ["is short", "is short", "halts"], [None] * 2 * LOOKS)
    assert play.run() == 0
    assert play.before == [0.0, 0.001]


def test_a_node_that_somebody_ends_meanwhile_does_not_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(tmp_path, monkeypatch, ["is short"], ["/d/full has none"] * 1000)
    play.on_look = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert play.run() == 0
    assert len(play.nodes) == 1


def test_nor_one_that_somebody_ends_while_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(tmp_path, monkeypatch, ["is short, and stops slowly"], [None] * 1000)
    assert play.run() == 0
    assert len(play.nodes) == 1


def test_nor_one_that_fails_to_stop_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(tmp_path, monkeypatch, ["is short, and fails to stop"], [None] * 1000)
    assert play.run() == DISK_FAILED
    assert len(play.nodes) == 1


def test_nor_one_that_is_not_to_wait_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another directory has failed while this one was looked at."""
    play = Play(tmp_path, monkeypatch, ["is short"], [None] * LOOKS)

    def look() -> None:
        if len(play.lacks) == 1:
            driver = play.process.driver
            assert driver is not None
            driver.await_room(AwaitRoom(()))
            loop = play.process.loop
            loop.call_soon_threadsafe(lambda: loop.call_later(0.02, lambda: os.kill(os.getpid(), signal.SIGTERM)))

    play.on_look = look
    assert play.run() == 0
    assert len(play.nodes) == 1
