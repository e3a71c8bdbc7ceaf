"""Who has a directory: its `.lock`, as Kafka has one. The file says which process that is, for people and for `up`."""

import fcntl
import os
import re
from contextlib import suppress
from typing import NamedTuple

from strandline.base.ports import DiskError
from strandline.server.storage.disk import naming

LOCK = ".lock"
TEXT = re.compile(r"(\d{1,9})(?: started by (\d{1,9}))?\n")
TEXT_MAX = 64


class InUse(DiskError):
    """The directory is fine, and another process has it."""


class Holder(NamedTuple):
    pid: int
    starter: int = 0  # the process that started it for itself, and that it ends with; 0: somebody started it by hand


def lock_directory(path: str, starter: int = 0) -> int:
    """Take the directory's lock, so that two processes never write one log. Returns the descriptor that holds it until
    the process ends."""
    assert starter >= 0
    with naming(path):
        os.makedirs(path, exist_ok=True)
        fd = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise InUse(f"{path}: another process uses this log directory") from error
    text = f"{os.getpid()} started by {starter}\n" if starter else f"{os.getpid()}\n"
    with suppress(OSError):  # the lock holds without it, also where there is no room
        os.ftruncate(fd, 0)
        os.pwrite(fd, text.encode(), 0)
    return fd


def holder_of(path: str) -> Holder | None:
    """Who has the directory's lock; None if nobody has, or if it does not say who. Nothing is made for this.

    The lock itself is tried only while the process that is named lives: to try it is to have it for a moment, and who
    starts just then must not find it taken.
    """
    try:
        fd = os.open(os.path.join(path, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = TEXT.fullmatch(os.pread(fd, TEXT_MAX, 0).decode("ascii", "replace"))
        if found is None or not is_alive(int(found[1])):
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Holder(int(found[1]), int(found[2] or 0))
        return None
    except OSError:
        return None
    finally:
        os.close(fd)


def is_alive(pid: int) -> bool:
    assert pid >= 0, "no group of processes is meant"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0
