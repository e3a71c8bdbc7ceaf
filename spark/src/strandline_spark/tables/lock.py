"""One process writes a table at a time: what a dead one left is cleaned away, what a living one does must not be."""

import contextlib
import fcntl
import os
import shutil

from strandline_spark import durable
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.manifest import FOLDER

CREATING = "creating"  # in our folder while a library makes its table: what is there besides is of that


class Lock:
    """Ends with its process, however that ends. Raises StrandlineError if another has it."""

    def __init__(self, table: str) -> None:
        folder = os.path.join(table, FOLDER)
        os.makedirs(folder, exist_ok=True)
        durable.sync_above(folder)
        handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            os.close(handle)
            raise StrandlineError(
                f"{table} is being written by another process ({holder})", "wait for it, or end it"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"pid {os.getpid()}\n".encode())
        self.handle: int | None = handle

    def release(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def may_create(table: str) -> bool:
    """Is the folder, whose lock is ours, empty but for ourselves? What a death in mid-creation left is removed."""
    mark = os.path.join(table, FOLDER, CREATING)
    if os.path.exists(mark):
        for name in os.listdir(table):
            if name != FOLDER:
                shutil.rmtree(os.path.join(table, name))
    if os.listdir(table) != [FOLDER]:
        return False
    with open(mark, "wb"):
        pass
    durable.sync(os.path.dirname(mark))
    return True


def has_created(table: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(table, FOLDER, CREATING))
