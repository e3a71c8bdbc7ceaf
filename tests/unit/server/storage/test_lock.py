"""Who has a directory, and who started that process."""

import os
from pathlib import Path

import pytest

from strandline.server.lifeline import LIFELINE, Lifeline, inherited
from strandline.server.storage.lock import Holder, InUse, holder_of, lock_directory


def test_the_lock_says_who_has_it_until_it_is_given_back(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert holder_of(str(folder)) is None
    assert not folder.exists(), "to ask makes nothing"
    for starter in (77, 0):
        lock = lock_directory(str(folder), starter)
        assert holder_of(str(folder)) == Holder(os.getpid(), starter)
        with pytest.raises(InUse):
            lock_directory(str(folder))
        os.close(lock)
        assert holder_of(str(folder)) is None


@pytest.mark.parametrize("text", ["", "x\n", "0\n", "999999999\n", "1 started by\n", "-1\n", "9" * 40 + "\n"])
def test_a_lock_that_names_nobody_who_lives_is_not_tried(tmp_path: Path, text: str) -> None:
    lock = lock_directory(str(tmp_path))
    (tmp_path / ".lock").write_text(text)
    assert holder_of(str(tmp_path)) is None
    os.close(lock)


def test_a_lifeline_is_an_open_pipe_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    file = os.open(tmp_path, os.O_RDONLY)
    rows = {f"{reading} 7": Lifeline(reading, 7), f"{file} 7": None, "12345 7": None, "-1 7": None, "x": None, "": None}
    for text, found in {**rows, "9" * 30 + " 7": None, str(reading): None}.items():
        monkeypatch.setenv(LIFELINE, text)
        assert inherited() == found
    for fd in (reading, writing, file):
        os.close(fd)
