"""What the disk was told."""

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """Call for the paths that have been synced since the last call."""
    paths: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    def called() -> set[str]:
        found = set(paths)
        paths.clear()
        return found

    monkeypatch.setattr(os, "fsync", fsync)
    return called
