"""One process writes a table at a time: what a dead one left is cleaned away, what a living one does must not be."""

import fcntl
import os

from strandline.pipeline.errors import PipelineError
from strandline.pipeline.tables.manifest import FOLDER


class Lock:
    """Ends with its process, however that ends. Raises PipelineError if another has it."""

    def __init__(self, table: str) -> None:
        folder = os.path.join(table, FOLDER)
        os.makedirs(folder, exist_ok=True)
        handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            os.close(handle)
            raise PipelineError(
                f"{table} is being written by another process ({holder})", "wait for it, or end it"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"pid {os.getpid()}\n".encode())
        self.handle: int | None = handle

    def release(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None
