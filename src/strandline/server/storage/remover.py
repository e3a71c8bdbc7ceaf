"""Deleted directories are removed off the event loop, by one thread: a topic's files are many, and nobody waits for it.

Invariant: nothing is removed that no `Remove` named. What fails is left to the next start.
"""

import logging
from concurrent.futures import ThreadPoolExecutor

from strandline.base.effects import Remove
from strandline.base.ports import DiskError
from strandline.server.storage.disk import RealDisk

log = logging.getLogger("strandline")


class Remover:
    def __init__(self, disk: RealDisk) -> None:
        self.disk = disk
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remover")

    def submit(self, effect: Remove) -> None:
        for path in effect.paths:
            self.thread.submit(self.remove, path)

    def remove(self, path: str) -> None:
        """Runs in the thread."""
        try:
            self.disk.remove_tree(path)
        except DiskError as error:
            log.warning("a deleted log's files are left for the next start: %s", error)

    def close(self) -> None:
        """Only the one that is being removed is waited for."""
        self.thread.shutdown(wait=True, cancel_futures=True)
