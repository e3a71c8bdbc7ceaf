"""What is in the page cache, and what brings it there: with a real file that is taken out of it."""

import asyncio
import os
from pathlib import Path

import pytest

from strandline.base.effects import Warm, Warmed
from strandline.base.value import Value
from strandline.server.storage.disk import RealDisk, RealFile
from strandline.server.storage.warmer import Warmer

SIZE = 4 << 20


class Asked(Value, frozen=True):
    name: str


@pytest.fixture
def cold(tmp_path: Path) -> RealFile:
    file = RealDisk().open(str(tmp_path / "old"))
    file.append([os.urandom(SIZE)])
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if file.is_cached(0, SIZE):
        pytest.skip("this file system keeps what it is told to drop")
    return file


def warmed(*effects: Warm) -> list[Warmed]:
    answers: list[Warmed] = []

    async def run() -> None:
        warmer = Warmer(asyncio.get_running_loop(), answers.append)
        for effect in effects:
            warmer.submit(effect)
        while len(answers) < len(effects):
            await asyncio.sleep(0.005)
        warmer.close()

    asyncio.run(asyncio.wait_for(run(), 20))
    return answers


def test_what_is_read_elsewhere_is_cached_then(cold: RealFile) -> None:
    assert warmed(Warm(cold.path, 1 << 20, 1 << 20, Asked("a"))) == [Warmed(Asked("a"))]
    assert cold.is_cached(1 << 20, 1 << 20)


def test_each_is_answered_whatever_becomes_of_its_file(tmp_path: Path) -> None:
    gone = [Warm(str(tmp_path / name), 0, 10, Asked(name)) for name in ("a", "b")]
    (tmp_path / "b").mkdir()
    assert {answer.token for answer in warmed(*gone)} == {Asked("a"), Asked("b")}


def test_a_part_of_which_a_piece_is_missing_is_not_cached(cold: RealFile) -> None:
    cold.read(0, SIZE)
    assert cold.is_cached(0, SIZE)
    assert cold.is_cached(SIZE, 10) and cold.is_cached(0, 2 * SIZE), "there is nothing behind it to wait for"
    os.posix_fadvise(cold.fd, SIZE // 2, 0, os.POSIX_FADV_DONTNEED)
    assert not cold.is_cached(0, SIZE)
    assert cold.is_cached(0, SIZE // 2)
