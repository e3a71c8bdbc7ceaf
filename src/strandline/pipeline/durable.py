"""Small files that are either there as a whole or not at all, also after a loss of power."""

import os
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
