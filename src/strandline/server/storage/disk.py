"""The real disk: base.ports.Disk and File over system calls.

A file tracks its own size, so that an append costs one `pwritev` and no `lseek` or `fstat`; one `RealFile` per path is
open for writing at a time (the log's rule, not checked here). Every operating error becomes a `DiskError` that names
the path and the system's reason.

Invariants:
  - `size()` is the position after the last byte that was written through this file;
  - `write_file` leaves the old content or the new, never a mixture, whenever the process dies;
  - a path that is replaced has one writer at a time, and older content never follows newer (`server.storage.writers`).
"""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from weakref import WeakSet

from strandline.base.ports import Buffer, DiskError, DiskFull
from strandline.server.storage.private import DIRECTORY_MODE, create_private, is_private
from strandline.server.storage.writers import Writers

BUFFERS_PER_WRITE_MAX = 1024  # IOV_MAX of Linux and macOS
PATHS_AT_ONCE_MIN = 16
SYNC_THREADS = 8
BOOT_ID = "/proc/sys/kernel/random/boot_id"
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
NO_WAIT = getattr(os, "RWF_NOWAIT", 0)  # not on macOS: there everything counts as cached
PROBE_BYTES = 128 << 10
WRITE_BYTES_MAX = 1 << 30  # Linux writes at most 2 GiB - 4 KiB per call; stay well below


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn the system's error into one that names the path."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from error


def disk_error(path: str, error: OSError) -> DiskError:
    kind = DiskFull if error.errno in FULL else DiskError
    return kind(f"{path}: {error.strerror or error}")


class RealFile:
    def __init__(self, path: str) -> None:
        self.path = path
        with naming(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self.fd = create_private(path, flags) if is_private(path) else os.open(path, flags, 0o644)
            self.end = os.fstat(self.fd).st_size

    def append(self, buffers: Sequence[Buffer]) -> int:
        assert self.fd >= 0, f"{self.path} is closed"
        total = sum(len(b) if not isinstance(b, memoryview) else b.nbytes for b in buffers)
        if len(buffers) <= BUFFERS_PER_WRITE_MAX and total <= WRITE_BYTES_MAX:
            try:
                written = os.pwritev(self.fd, buffers, self.end)
            except OSError as error:
                raise disk_error(self.path, error) from error
            if written == total:
                self.end += total
                return total
            self.write_rest(buffers, written, total)
        else:
            self.write_rest(buffers, 0, total)
        self.end += total
        return total

    def write_rest(self, buffers: Sequence[Buffer], written: int, total: int) -> None:
        """Finish a gathering write of which the first `written` bytes are on disk."""
        assert 0 <= written <= total
        views = [memoryview(b).cast("B") for b in buffers if len(b)]
        with naming(self.path):
            skip = written
            while written < total:
                while skip >= len(views[0]):
                    skip -= len(views.pop(0))
                views[0] = views[0][skip:]
                assert len(views[0]), "what is left has bytes"
                batch: list[memoryview] = []
                size = 0
                for view in views[:BUFFERS_PER_WRITE_MAX]:
                    batch.append(view[: WRITE_BYTES_MAX - size])
                    size += len(batch[-1])
                    if size == WRITE_BYTES_MAX:
                        break
                skip = os.pwritev(self.fd, batch, self.end + written)
                if skip == 0:
                    raise OSError(errno.EIO, "nothing was written")
                written += skip

    def write_at(self, position: int, data: Buffer) -> None:
        assert position >= 0
        assert self.fd >= 0, f"{self.path} is closed"
        view = memoryview(data).cast("B")
        done = 0
        with naming(self.path):
            while done < len(view):
                done += os.pwrite(self.fd, view[done : done + WRITE_BYTES_MAX], position + done)
        self.end = max(self.end, position + len(view))

    def read(self, position: int, size: int) -> memoryview:
        assert self.fd >= 0, f"{self.path} is closed"
        assert position >= 0
        # `pread` allocates what it is asked for, so never ask for more than there is.
        size = min(size, self.end - position)
        if size <= 0:
            return memoryview(b"")
        try:
            return memoryview(os.pread(self.fd, size, position))
        except OSError as error:
            raise DiskError(f"{self.path}: {error.strerror or error}") from error

    def is_cached(self, position: int, size: int) -> bool:
        """Asks for one byte in every 128 KiB, which the kernel reads ahead at once: that costs microseconds."""
        last = min(position + size, self.end) - 1
        one = bytearray(1)
        try:
            for at in (*range(position, last, PROBE_BYTES), last):
                os.preadv(self.fd, (one,), at, NO_WAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # this file system does not tell, or a read will say what is wrong
        return True

    def size(self) -> int:
        return self.end

    def truncate(self, size: int) -> None:
        assert size >= 0
        assert self.fd >= 0, f"{self.path} is closed"
        with naming(self.path):
            os.ftruncate(self.fd, size)
        self.end = size

    def close(self) -> None:
        """Closing twice is not an error."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with naming(self.path):
                os.close(fd)


class RealDisk:
    def __init__(self) -> None:
        self.writers = Writers()
        self.files: WeakSet[RealFile] = WeakSet()

    def open(self, path: str) -> RealFile:
        file = RealFile(path)
        self.files.add(file)
        return file

    def abandon(self) -> None:
        """The node is gone, and has left files open."""
        for file in list(self.files):
            with suppress(DiskError):
                file.close()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        with naming(path):
            try:
                return sorted(os.listdir(path))
            except FileNotFoundError:
                return []

    def make_directory(self, path: str) -> None:
        with naming(path):
            os.makedirs(path, DIRECTORY_MODE if is_private(path) else 0o777, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        with naming(f"{old} -> {new}"):
            os.replace(old, new)

    def remove(self, path: str) -> None:
        with naming(path), suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        with naming(path), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def read_file(self, path: str) -> bytes | None:
        with naming(path):
            try:
                with open(path, "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write_file(self, path: str, content: bytes) -> None:
        with self.writers.alone(path), naming(path):
            with open(path + ".tmp", "wb", opener=create_private if is_private(path) else None) as file:
                file.write(content)
            os.replace(path + ".tmp", path)

    def save(self, path: str, content: bytes) -> None:
        with self.writers.saving(path):
            self.replace(path, content)

    def saves(self, path: str) -> int:
        return self.writers.saves(path)

    def save_since(self, path: str, content: bytes, since: int) -> None:
        assert since >= 0
        with self.writers.taking_turns(path):
            if self.saves(path) == since:
                self.replace(path, content)

    def replace(self, path: str, content: bytes) -> None:
        """The content is on disk before the name points at it, and the name before this returns. Blocks."""
        assert self.writers.is_mine(path), "a path has one writer at a time"
        with naming(path):
            with open(path + ".tmp", "wb", opener=create_private if is_private(path) else None) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(path + ".tmp", path)
        self.sync([os.path.dirname(path) or "."])

    def usage(self, path: str) -> tuple[int, int]:
        with naming(path):
            found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def boot_id(self) -> str:
        try:
            with open(BOOT_ID) as file:
                return file.read().strip()
        except OSError:  # no Linux
            return ""

    def sync(self, paths: Sequence[str]) -> None:
        for error in self.sync_each(paths).values():
            raise error

    def sync_each(self, paths: Sequence[str]) -> dict[str, DiskError]:
        """Make each durable; what went wrong, by path. Many are flushed at the same time: a journal's commit then
        serves several of them."""
        if len(paths) < PATHS_AT_ONCE_MIN:
            outcomes = [sync_one(path) for path in paths]
        else:
            with ThreadPoolExecutor(SYNC_THREADS, "sync") as threads:
                outcomes = list(threads.map(sync_one, paths))
        return {path: error for path, error in zip(paths, outcomes, strict=True) if error is not None}


def sync_one(path: str) -> DiskError | None:
    """No lack of room counts as such here: what could not be made durable may be gone, whatever the reason."""
    try:
        with naming(path), suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    except DiskError as error:
        return DiskError(str(error))
    return None
