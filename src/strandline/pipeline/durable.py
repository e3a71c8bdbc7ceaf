"""Small files that are either there as a whole or not at all, also after a loss of power."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, content: bytes | memoryview, *, unfinished: str | None = None) -> None:
    """Durable when this returns. Replaces what was there. `unfinished`: the name before it is whole, where several
    processes may write the same file."""
    fresh = path.with_name(unfinished or f"{path.name}.tmp")
    with open(fresh, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    sync(path.parent)


def sync(path: str | Path) -> None:
    """Make a file's content, or a folder's entries, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folders(root: str, files: Iterable[str]) -> None:
    """Make the names of files durable, and those of the folders between them and a root, which their paths begin at."""
    folders = {""}
    for path in files:
        folder = os.path.dirname(path)
        while folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    for folder in sorted(folders):
        sync(os.path.join(root, folder))


def sync_above(path: str) -> None:
    """Make the names of a path's own folders durable, whoever has made them. Those of others may be closed to us."""
    for folder in Path(path).parents:
        with contextlib.suppress(OSError):
            sync(folder)
