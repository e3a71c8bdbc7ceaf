"""Deleted directories are removed by a thread."""

import logging
import threading
from pathlib import Path

import pytest

from strandline.base.effects import Remove
from strandline.server.storage import disk as disk_module
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.remover import Remover


def test_a_tree_is_removed_and_what_lies_beside_it_stays(tmp_path: Path) -> None:
    for name in ("t-0.1-delete", "t-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x")
    remover = Remover(RealDisk())
    remover.submit(Remove((str(tmp_path / "t-0.1-delete"), str(tmp_path / "never-was"))))
    remover.thread.shutdown(wait=True)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["t-0"]


def test_what_cannot_be_removed_is_said_and_the_others_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = disk_module.shutil.rmtree

    def refuse(path: str) -> None:
        if path.endswith("held"):
            raise PermissionError(13, "Permission denied")
        whole(path)

    for name in ("held", "free"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(disk_module.shutil, "rmtree", refuse)
    monkeypatch.setattr(logging.getLogger("strandline"), "propagate", True)
    remover = Remover(RealDisk())
    remover.submit(Remove((str(tmp_path / "held"), str(tmp_path / "free"))))
    remover.thread.shutdown(wait=True)
    assert [path.name for path in tmp_path.iterdir()] == ["held"]
    assert f"{tmp_path / 'held'}: Permission denied" in caplog.text


def test_the_end_of_the_process_waits_for_one_of_them_and_not_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(path: str) -> None:
        begun.set()
        goes_on.wait(10)
        Path(path).rmdir()

    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(disk_module.shutil, "rmtree", slow)
    remover = Remover(RealDisk())
    remover.submit(Remove(tuple(str(tmp_path / name) for name in ("a", "b", "c"))))
    assert begun.wait(10)
    remover.thread.shutdown(wait=False, cancel_futures=True)
    goes_on.set()
    remover.close()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["b", "c"]
