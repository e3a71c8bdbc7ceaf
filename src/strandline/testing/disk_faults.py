"""A disk for tests that is full or broken while a file says so, and that can lose power besides.

A test writes one word into the file that the environment of the node names, and the disk looks at each operation: so a
disk is still full, or broken, for a node that starts again. Nothing in the node knows of it.

  - `full`: what takes room fails as with ENOSPC; what is there can be read, cut and deleted
  - `failed`: every operation fails as with EIO
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from strandline.base.ports import Buffer, DiskError
from strandline.server.storage.disk import RealDisk, disk_error
from strandline.testing.power_loss import PowerLossDisk, PowerLossFile, power_loss_disk

FAULT = "STRANDLINE_DISK_FAULT"  # the path of the file that says what is wrong
FULL, FAILED = "full", "failed"


class DiskFault:
    """What is wrong now."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> str:
        if not os.path.exists(self.path):
            return ""
        try:
            return Path(self.path).read_text().strip()
        except OSError:  # it has just gone
            return ""

    def check_write(self, path: str) -> None:
        """Raises DiskError, DiskFull."""
        found = self.read()
        if found == FULL:
            raise disk_error(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        if found == FAILED:
            raise failure(path)

    def check(self, path: str) -> None:
        """Raises DiskError."""
        if self.read() == FAILED:
            raise failure(path)


def failure(path: str) -> DiskError:
    return disk_error(path, OSError(errno.EIO, os.strerror(errno.EIO)))


class FaultyFile(PowerLossFile):
    def __init__(self, path: str, disk: "FaultyDisk") -> None:
        self.fault = disk.fault
        if os.path.exists(path):
            self.fault.check(path)
        else:
            self.fault.check_write(path)
        super().__init__(path, disk)

    def append(self, buffers: Sequence[Buffer]) -> int:
        self.fault.check_write(self.path)
        return super().append(buffers)

    def write_at(self, position: int, data: Buffer) -> None:
        self.fault.check_write(self.path)
        super().write_at(position, data)

    def read(self, position: int, size: int) -> memoryview:
        self.fault.check(self.path)
        return super().read(position, size)

    def truncate(self, size: int) -> None:
        self.fault.check(self.path)
        super().truncate(size)


class FaultyDisk(PowerLossDisk):
    def __init__(self, roots: Sequence[str], durable: Path, fault: DiskFault) -> None:
        self.fault = fault
        super().__init__(roots, durable)

    def new_file(self, path: str) -> PowerLossFile:
        return FaultyFile(path, self)

    def list(self, path: str) -> list[str]:
        self.fault.check(path)
        return super().list(path)

    def make_directory(self, path: str) -> None:
        if os.path.isdir(path):
            self.fault.check(path)
        else:
            self.fault.check_write(path)
        super().make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self.fault.check(old)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.fault.check(path)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self.fault.check(path)
        super().remove_tree(path)

    def read_file(self, path: str) -> bytes | None:
        self.fault.check(path)
        return super().read_file(path)

    def sync_each(self, paths: Sequence[str]) -> dict[str, DiskError]:
        if self.fault.read() == FAILED:
            return {path: failure(path) for path in paths}
        return super().sync_each(paths)


def disk_of(roots: Sequence[str]) -> RealDisk:
    """The disk of this process, by its environment."""
    path = os.environ.get(FAULT)
    if path is None:
        return power_loss_disk(roots, PowerLossDisk)
    return power_loss_disk(roots, lambda roots, durable: FaultyDisk(roots, durable, DiskFault(path)))
