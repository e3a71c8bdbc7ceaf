"""A node that ran out of room waits for it, in the same process, and then begins anew.

One that goes on without a full log directory waits as well: when there has been room for a while, it stops in order and
begins anew with all. That costs the cluster elections, so it is more patient.

There is room when each of its file systems has enough free, and takes a new file: what the system says of free space
knows nothing of quotas, nor of limits on the sizes of files. A directory that cannot be looked at has no say: whether
the node can live without it shows when it begins.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from strandline.base.ports import DiskError, DiskFull
from strandline.log.files.room import ROOM_BYTES, mib, needed_room
from strandline.server.storage.disk import naming

PROBE = ".room"
PIECE_BYTES = 1 << 20
LOOKS = 5  # in a row that must find room in a directory, before the node stops for it


class Patience(NamedTuple):
    first_s: float
    longest_s: float
    short_life_s: float  # what has no room again sooner waits longer


OF_NODE = Patience(2.0, 60.0, 60.0)
OF_DIRECTORY = Patience(10.0, 600.0, 600.0)


class Steady:
    """Which full directory has had room for long enough?"""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}  # directories with room, and how often in a row it was found

    def look(self, roots: Iterable[str]) -> str | None:
        self.found = {root: self.found.get(root, 0) + 1 for root in roots if has_room(root)}
        return next((root for root, count in self.found.items() if count >= LOOKS), None)


def has_room(root: str) -> bool:
    """Not where it cannot be looked at."""
    try:
        return why_none_in(root) is None
    except DiskError:
        return False


def why_no_room(roots: Sequence[str]) -> str | None:
    """A message for an operator about the first directory that lacks space."""
    for root in roots:
        try:
            why = why_none_in(root)
        except DiskError:
            continue
        if why is not None:
            return f"{root} {why}"
    return None


def why_none_in(root: str) -> str | None:
    with naming(root):
        found = os.statvfs(root)
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    needed = needed_room(total)
    assert needed <= total
    if free < needed:
        return f"has {mib(free)} of {mib(total)} free, and {mib(needed)} are needed: free space there"
    if found.f_files and not found.f_favail:
        return "can take no more files: remove some there"
    size = min(max(needed, 1), ROOM_BYTES)  # a file system may not say how large it is
    try:
        probe(root, size)
    except DiskFull as error:
        return f"takes no file of {mib(size)}, raise the limit or the quota there: {error}"
    return None


def probe(root: str, size: int) -> None:
    """Write a file without a name, of which nothing is left."""
    assert size > 0
    path = f"{root}/{PROBE}"
    with naming(root):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.unlink(path)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, size)
            else:
                for position in range(0, size, PIECE_BYTES):
                    os.pwrite(fd, bytes(min(PIECE_BYTES, size - position)), position)
        finally:
            with suppress(OSError):
                os.close(fd)


def next_pause(before_s: float, lived_s: float, patience: Patience = OF_NODE) -> float:
    """How long to wait, at least, after a life of `lived_s` seconds: longer each time, for what is full again at
    once."""
    assert before_s >= 0
    assert lived_s >= 0
    assert patience.first_s <= patience.longest_s
    is_first = lived_s >= patience.short_life_s or not before_s
    return patience.first_s if is_first else min(2 * before_s, patience.longest_s)
