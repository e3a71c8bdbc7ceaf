"""The ports through which the pure core reaches a disk, and randomness.

Disk calls are direct (the page cache is fast) with two exceptions. Making bytes durable is an *effect*
(`base.effects.Sync`, `Save`) that the driver answers with `Synced`, so that a simulated crash can fall between any two.
And who may ask for old records asks first whether they are cached (`File.is_cached`): if not, `base.effects.Warm` has
them read where nobody waits.
Only `Disk.sync` is immediate; it is for start-up and shutdown, when nobody waits for an answer.
"""

from collections.abc import Sequence
from typing import Protocol

from strandline.base.value import Value

Buffer = bytes | bytearray | memoryview


class DiskError(Exception):
    """An operating error of the disk: the message says which path and why."""


class DiskFull(DiskError):
    """A write that found no room: the disk is full, or a quota or a limit on file sizes is reached. What was there
    before is as good as it was; of what was to be written, a part may be there."""


class Cold(Value, frozen=True):
    """A read would wait for the medium: these bytes of this file are not cached."""

    path: str
    position: int
    size: int


class File(Protocol):
    """One open file. Offsets and sizes in bytes."""

    path: str

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write `buffers` at the end with one gathering write; return the number of bytes written."""
        ...

    def write_at(self, position: int, data: Buffer) -> None: ...

    def read(self, position: int, size: int) -> memoryview:
        """At most `size` bytes from `position`; fewer at the end of the file."""
        ...

    def is_cached(self, position: int, size: int) -> bool:
        """Would a `read` there return without waiting for the medium, as far as a few of its pages show?"""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Paths are plain strings with '/' between parts; parents must exist unless said otherwise."""

    def open(self, path: str) -> File:
        """Open for reading and writing, creating an empty file if there is none."""
        ...

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Sorted names in a directory; empty if there is no such directory."""
        ...

    def make_directory(self, path: str) -> None:
        """With parents; no error if it exists."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new` if it is a file."""
        ...

    def remove(self, path: str) -> None:
        """A file; no error if there is none."""
        ...

    def remove_tree(self, path: str) -> None: ...

    def read_file(self, path: str) -> bytes | None:
        """The whole content, None if there is no such file."""
        ...

    def write_file(self, path: str, content: bytes) -> None:
        """Replace the file atomically (temporary file, rename). Not durable until synced."""
        ...

    def save(self, path: str, content: bytes) -> None:
        """Replace the file atomically and durably (blocks): no loss of power leaves another content than the old one
        or the new one. No `Save` of this path that was asked for before is written after it."""
        ...

    def saves(self, path: str) -> int:
        """How often `save` was called for it."""
        ...

    def save_since(self, path: str, content: bytes, since: int) -> None:
        """For drivers, in whichever thread: perform a `Save`, unless `save` was called since then."""
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """The file system that holds `path`: its size, and what a process may still write, in bytes. −1: no limit
        is known."""
        ...

    def boot_id(self) -> str:
        """Names the run of the operating system that keeps what was written and is not durable yet. Another one: that
        may be gone. Empty: not known."""
        ...

    def sync(self, paths: Sequence[str]) -> None:
        """Make files and directories durable now (blocks). A missing path is not an error (T39)."""
        ...


class Rng(Protocol):
    """Randomness comes from the driver. `random.Random` satisfies it."""

    def randrange(self, start: int, stop: int) -> int: ...

    def randbytes(self, n: int) -> bytes: ...
