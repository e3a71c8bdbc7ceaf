"""Which thread replaces which file now, and how often each was saved: a path has one writer at a time.

Two threads that replace one file at once would share its temporary file, and leave a mixture, or an error. The loop and
the flusher both save the replicas' checkpoints: there, the second waits for the first. A file that is written without
waiting for the disk belongs to the loop alone, and a second writer of it is a defect.

Invariants:
  - no two threads are between `begin` and `end` of one path
  - `saves` counts what the loop has begun to save by itself; a save that was asked for before that is older, and is
    not written after it
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Writers:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.owners: dict[str, int] = {}  # paths that are being replaced, and by which thread
        self.counts: dict[str, int] = {}

    def saves(self, path: str) -> int:
        return self.counts.get(path, 0)

    def is_mine(self, path: str) -> bool:
        return self.owners.get(path) == threading.get_ident()

    @contextmanager
    def saving(self, path: str) -> Iterator[None]:
        """The loop's turn: every save that was asked for earlier is outdated."""
        with self.taking_turns(path):
            self.counts[path] = self.saves(path) + 1
            assert self.is_mine(path)
            yield

    @contextmanager
    def taking_turns(self, path: str) -> Iterator[None]:
        """Wait until nobody else writes `path`."""
        with self.changed:
            assert not self.is_mine(path), f"{path} would be waited for for ever"
            while path in self.owners:
                self.changed.wait()
            self.begin(path)
        try:
            yield
        finally:
            self.end(path)

    @contextmanager
    def alone(self, path: str) -> Iterator[None]:
        """Nobody else may write `path`, and so nobody is waited for."""
        with self.changed:
            self.begin(path)
        try:
            yield
        finally:
            self.end(path)

    def begin(self, path: str) -> None:
        assert path not in self.owners, f"{path} has two writers"
        self.owners[path] = threading.get_ident()

    def end(self, path: str) -> None:
        with self.changed:
            owner = self.owners.pop(path)
            self.changed.notify_all()
        assert owner == threading.get_ident(), f"{path} has two writers"
