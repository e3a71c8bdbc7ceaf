"""Files and names that are there after a loss of power: small files as a whole or not at all."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

UNFINISHED = ".tmp"  # how the name ends before a file is whole


def write(path: Path, content: bytes | memoryview, *, is_shared: bool = False) -> None:
    """Durable when this returns. Replaces what was there. `is_shared`: several processes may write the same file."""
    own = f".{path.name}.{os.uname().nodename}-{os.getpid()}" if is_shared else path.name
    fresh = path.with_name(own + UNFINISHED)
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
