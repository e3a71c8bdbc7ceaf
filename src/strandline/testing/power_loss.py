"""A disk for demonstrations and tests: real files, and a loss of power that really costs what was not synced.

A killed process loses nothing, since the kernel keeps what it had written. So beside the files that the process reads
and writes lies a second copy of them, `durable`, which gets only what a loss of power would leave: the bytes of a file
when that is synced, and names when their directory is. Power is cut from outside: SIGKILL, then `restore`, which makes
the files what the durable copy says. Nothing in the process knows of it.

What a system may write back by itself it writes back on request: all of it on SIGUSR1; with a period in the
environment, again and again a random part. A process finds at its start only what is durable.

Strict where a file system may be: a file that was synced, in a directory that was not, is gone. Names and cuts are one
journal: unless synced, they become durable in order. Nothing is flushed in earnest: this is not for data that matters.

Invariants:
  - the durable copy changes by syncs and write-backs alone;
  - whenever the process is killed, the durable copy is one that a real disk might hold: what was synced before, and any
    part of the sync in flight.
"""

import json
import logging
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from strandline.base.ports import Buffer, DiskError
from strandline.server.storage.disk import RealDisk, RealFile, naming

DURABLE = "STRANDLINE_POWER_LOSS_DURABLE"  # the folder of the durable copy
WRITE_BACK_MS = "STRANDLINE_POWER_LOSS_WRITE_BACK_MS"  # on average, between two random write-backs
CHANGES_MAX = 256  # a journal commits by itself sooner or later
CHUNK = 1 << 20
CLEAN = -1

log = logging.getLogger("strandline")


class Content:
    """A file, whatever its name is."""

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self.dirty_from = 0  # bytes from here on may not be durable; CLEAN: all are
        self.links = 0  # durable names

    def touch(self, position: int) -> None:
        self.dirty_from = position if self.dirty_from == CLEAN else min(position, self.dirty_from)


class Directory:
    """Its names as they are, and as a loss of power would leave them."""

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self.names: dict[str, Content | Directory] = {}
        self.durable: dict[str, Content | Directory] = {}


class Cut:
    def __init__(self, content: Content, size: int) -> None:
        self.content = content
        self.size = size


Entry = Content | Directory
Edit = tuple[Directory, str, Entry | None]  # None: the name goes
Change = tuple[Edit, ...] | Cut


class PowerLossFile(RealFile):
    def __init__(self, path: str, disk: "PowerLossDisk") -> None:
        super().__init__(path)
        self.disk = disk
        self.content = Content(0)  # of nobody, outside the roots

    def append(self, buffers: Sequence[Buffer]) -> int:
        with self.disk.lock:
            self.content.touch(self.end)
            return super().append(buffers)

    def write_at(self, position: int, data: Buffer) -> None:
        with self.disk.lock:
            self.content.touch(min(position, self.end))
            super().write_at(position, data)

    def truncate(self, size: int) -> None:
        with self.disk.lock:
            self.content.touch(min(size, self.end))
            is_cut = size < self.end
            super().truncate(size)
            if is_cut and self.content.serial:
                self.disk.journal(Cut(self.content, size))


class PowerLossDisk(RealDisk):
    """What lies below `roots` can be lost. One at a time in a process, over the same `durable` folder."""

    def __init__(self, roots: Sequence[str], durable: Path) -> None:
        super().__init__()
        self.lock = threading.RLock()  # syncs come from threads of their own
        self.pending: list[Change] = []  # changes of names, and cuts, that are not durable; oldest first
        self.serial = 0
        self.roots = {root: self.directory() for root in dict.fromkeys(map(os.path.abspath, roots))}
        fresh = durable.with_name(durable.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        self.durable = fresh
        lines = [json.dumps({root: directory.serial for root, directory in self.roots.items()})]
        for root, directory in self.roots.items():
            lines += [self.line((edit,)) for edit in self.scan(root, directory)]
        (fresh / "journal.tmp").write_text("".join(f"{line}\n" for line in lines))
        (fresh / "journal.tmp").rename(fresh / "journal")
        shutil.rmtree(durable, ignore_errors=True)
        fresh.rename(durable)
        self.durable = durable
        self.names = os.open(durable / "journal", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def boot_id(self) -> str:
        """Power goes without the system's knowing."""
        return ""

    def scan(self, path: str, directory: Directory) -> Iterator[Edit]:
        """All that lies there is durable."""
        for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
            below = f"{path}/{name}"
            entry: Entry
            if os.path.isdir(below):
                entry = self.directory()
                yield directory, name, entry
                yield from self.scan(below, entry)
            else:
                entry = self.content()
                entry.links, entry.dirty_from = 1, CLEAN
                shutil.copy(below, self.durable / str(entry.serial))
                yield directory, name, entry
            directory.names[name] = directory.durable[name] = entry

    def directory(self) -> Directory:
        self.serial += 1
        return Directory(self.serial)

    def content(self) -> Content:
        self.serial += 1
        return Content(self.serial)

    # --- names

    def find(self, path: str) -> Entry | None:
        path = os.path.abspath(path)
        for root, directory in self.roots.items():
            if path == root:
                return directory
            if path.startswith(f"{root}/"):
                entry: Entry | None = directory
                for name in path[len(root) + 1 :].split("/"):
                    entry = entry.names.get(name) if isinstance(entry, Directory) else None
                return entry
        return None

    def place(self, path: str) -> tuple[Directory, str] | None:
        """Its directory, and its name there; None outside the roots."""
        parent = self.find(os.path.dirname(os.path.abspath(path)))
        return (parent, os.path.basename(path)) if isinstance(parent, Directory) else None

    def edit(self, *edits: Edit) -> None:
        for directory, name, entry in edits:
            if entry is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = entry
        self.journal(edits)

    def journal(self, change: Change) -> None:
        self.pending.append(change)
        if len(self.pending) > CHANGES_MAX:
            self.make_durable([self.pending.pop(0)])

    def created(self, path: str) -> Content | None:
        """The file at this path, which may be a new one."""
        found = self.find(path)
        place = self.place(path)
        if found is None and place is not None:
            found = self.content()
            self.edit((*place, found))
        assert not isinstance(found, Directory)
        return found

    def open(self, path: str) -> PowerLossFile:
        with self.lock:
            file = self.new_file(path)
            self.files.add(file)
            file.content = self.created(path) or file.content
            return file

    def new_file(self, path: str) -> PowerLossFile:
        return PowerLossFile(path, self)

    def make_directory(self, path: str) -> None:
        with self.lock:
            super().make_directory(path)
            self.made(os.path.abspath(path))

    def made(self, path: str) -> None:
        if self.find(path) is None and path != os.path.dirname(path):
            self.made(os.path.dirname(path))
            place = self.place(path)
            if place is not None:
                self.edit((*place, self.directory()))

    def rename(self, old: str, new: str) -> None:
        with self.lock:
            super().rename(old, new)
            entry, source, target = self.find(old), self.place(old), self.place(new)
            if entry is not None and source is not None and target is not None and source != target:
                self.edit((*source, None), (*target, entry))

    def remove(self, path: str) -> None:
        with self.lock:
            super().remove(path)
            self.removed(path)

    def removed(self, path: str) -> None:
        entry, place = self.find(path), self.place(path)
        if entry is not None and place is not None:
            self.edit((*place, None))

    def remove_tree(self, path: str) -> None:
        with self.lock:
            super().remove_tree(path)
            entry = self.find(path)
            for below, _ in list(walk(path, entry))[::-1] if entry is not None else ():
                self.removed(below)
            self.removed(path)

    def write_file(self, path: str, content: bytes) -> None:
        with self.writers.alone(path), self.lock:
            self.write_beside(path, content)
            self.rename(f"{path}.tmp", path)

    def write_beside(self, path: str, content: bytes) -> None:
        file = self.open(f"{path}.tmp")
        try:
            file.truncate(0)
            file.append([content])
        finally:
            file.close()

    def replace(self, path: str, content: bytes) -> None:
        with self.lock:
            self.write_beside(path, content)
            self.sync([f"{path}.tmp"])
            self.rename(f"{path}.tmp", path)
            self.sync([os.path.dirname(path) or "."])

    # --- durability

    def sync_each(self, paths: Sequence[str]) -> dict[str, DiskError]:
        errors = {}
        for path in paths:
            try:
                with self.lock, naming(path), suppress(FileNotFoundError):
                    os.stat(path)
                    self.sync_entry(path, self.find(path))
            except DiskError as error:
                errors[path] = DiskError(str(error))
        return errors

    def sync_entry(self, path: str, entry: Entry | None) -> None:
        if isinstance(entry, Content):
            self.copy(path, entry)
        elif entry is not None:
            self.sync_names(path, entry)

    def copy(self, path: str, content: Content, at_most: int | None = None) -> None:
        """The file's bytes become durable, or the first of those that are not."""
        cuts = [change.size for change in self.pending if isinstance(change, Cut) and change.content is content]
        if content.dirty_from == CLEAN and not cuts:
            return
        self.pending = [c for c in self.pending if not (isinstance(c, Cut) and c.content is content)]
        with open(path, "rb") as live, open(self.opened(content), "rb+") as durable:
            end = live.seek(0, os.SEEK_END)
            shorten(durable.fileno(), min(cuts, default=end))
            start = end if content.dirty_from == CLEAN else content.dirty_from
            until = end if at_most is None else min(end, start + at_most)
            live.seek(start)
            durable.seek(start)
            while piece := live.read(min(CHUNK, max(0, until - live.tell()))):
                durable.write(piece)
            durable.flush()
            if until == end:
                shorten(durable.fileno(), end)
            content.dirty_from = CLEAN if until == end else until

    def opened(self, content: Content) -> Path:
        path = self.durable / str(content.serial)
        path.touch()
        return path

    def sync_names(self, path: str, directory: Directory) -> None:
        """All changes in this directory become durable, those that gave it its own name, and what these rest upon."""
        above = self.place(path)
        keys = {above} if above is not None else set()
        kept: list[Change] = []
        due: list[Change] = []
        for change in reversed(self.pending):
            touched = [] if isinstance(change, Cut) else [(where, name) for where, name, _ in change]
            if any(where is directory or (where, name) in keys for where, name in touched):
                keys.update(touched)
                due.append(change)
            else:
                kept.append(change)
        self.pending = kept[::-1]
        self.make_durable(due[::-1])

    def make_durable(self, changes: Sequence[Change]) -> None:
        """These are durable now, in one piece."""
        lines = [self.line(change) for change in changes if not isinstance(change, Cut)]
        if lines:
            os.write(self.names, "".join(f"{line}\n" for line in lines).encode())
        for change in changes:
            if isinstance(change, Cut):
                if (self.durable / str(change.content.serial)).exists():
                    with open(self.opened(change.content), "rb+") as durable:
                        shorten(durable.fileno(), change.size)
            else:
                self.relink(change)

    def line(self, change: tuple[Edit, ...]) -> str:
        return json.dumps(
            [
                [where.serial, name, None if entry is None else entry.serial, isinstance(entry, Directory)]
                for where, name, entry in change
            ]
        )

    def relink(self, change: tuple[Edit, ...]) -> None:
        unlinked: list[Content] = []
        for where, name, entry in change:
            before = where.durable.pop(name, None)
            if isinstance(before, Content):
                before.links -= 1
                unlinked.append(before)
            if isinstance(entry, Content):
                entry.links += 1
            if entry is not None:
                where.durable[name] = entry
        for content in unlinked:
            if not content.links:
                content.touch(0)
                (self.durable / str(content.serial)).unlink(missing_ok=True)

    def write_back(self, rng: random.Random | None = None) -> None:
        """As a system does by itself: everything, or a random part."""
        with self.lock:
            count = len(self.pending) if rng is None else rng.randrange(len(self.pending) + 1)
            due, self.pending = self.pending[:count], self.pending[count:]
            self.make_durable(due)
            for root, directory in self.roots.items():
                for path, entry in walk(root, directory):
                    if isinstance(entry, Content) and (rng is None or rng.random() < 0.5):
                        with suppress(FileNotFoundError):
                            size = os.path.getsize(path)
                            self.copy(path, entry, None if rng is None else rng.randrange(size + 1))

    def close(self) -> None:
        os.close(self.names)

    def write_back_on_signal(self, period_ms: int) -> None:
        """A thread of its own waits for the signal, so that nothing is interrupted. Call it before there are others."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        rng = random.Random()

        def wait() -> None:
            while True:
                span_s = rng.uniform(0, 2 * period_ms / 1000) if period_ms else 3600.0
                received = signal.sigtimedwait([signal.SIGUSR1], span_s)
                self.write_back(rng if received is None else None)

        threading.Thread(target=wait, name="write-back", daemon=True).start()


def walk(path: str, entry: Entry) -> Iterator[tuple[str, Entry]]:
    """What is below, a directory before what is in it."""
    if isinstance(entry, Directory):
        for name, inner in sorted(entry.names.items()):
            yield f"{path}/{name}", inner
            yield from walk(f"{path}/{name}", inner)


def shorten(fd: int, size: int) -> None:
    if os.fstat(fd).st_size > size:
        os.ftruncate(fd, size)


def power_loss_disk(roots: Sequence[str], make: Callable[[Sequence[str], Path], PowerLossDisk]) -> RealDisk:
    """The disk of this process, as its environment says where the durable copy is."""
    durable = os.environ[DURABLE]
    log.warning("TEST MODE: data is not flushed; what a loss of power would leave is kept in %s", durable)
    disk = make(roots, Path(durable))
    disk.write_back_on_signal(int(os.environ.get(WRITE_BACK_MS, "0")))
    return disk


# --- from outside, while no process uses the files


def durable_files(durable: Path) -> dict[str, Path | None]:
    """What a loss of power leaves: by path, where its bytes are; None for a directory, which comes before what is in
    it."""
    journal = durable / "journal"
    if not journal.exists():
        journal = durable.with_name(durable.name + ".new") / "journal"
        if not journal.exists():
            return {}
    first, *lines = journal.read_bytes().decode().split("\n")[:-1]  # a line that was not finished does not count
    directories: dict[int, dict[str, tuple[int, bool]]] = {}
    for line in lines:
        for where, name, serial, is_directory in json.loads(line):
            names = directories.setdefault(where, {})
            names.pop(name, None)
            if serial is not None:
                names[name] = (serial, is_directory)
    found: dict[str, Path | None] = {}

    def collect(path: str, serial: int) -> None:
        found[path] = None
        for name, (inner, is_directory) in sorted(directories.get(serial, {}).items()):
            if is_directory:
                collect(f"{path}/{name}", inner)
            else:
                found[f"{path}/{name}"] = journal.parent / str(inner)

    for root, serial in json.loads(first).items():
        collect(root, serial)
    return found


def restore(durable: Path) -> None:
    """After a SIGKILL: the power was gone. Files that were never synced are found empty where their names survive."""
    files = durable_files(durable)
    for path, content in files.items():
        if content is None:
            target = Path(path)
            if target.is_dir() and str(target.parent) not in files:
                for inner in target.iterdir():
                    shutil.rmtree(inner) if inner.is_dir() else inner.unlink()
            target.mkdir(parents=True, exist_ok=True)
        elif content.exists():
            shutil.copy(content, path)  # with its mode: a secret stays one
        else:
            Path(path).touch()
