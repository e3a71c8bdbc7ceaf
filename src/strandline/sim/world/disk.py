"""A simulated disk: it forgets what was not synced when the power goes, fills up, fails, and rots.

It behaves as `server.storage.disk` does, errors included, and obeys the same conformance suite. All that is by chance
is drawn from the rng that a call is given; whatever else goes wrong was asked for:

  - `crash`: the power goes. What was not synced is lost, torn, or kept in part, contents and names alike;
  - `capacity`: a write that does not fit is cut off where the room ends, and fails;
  - `fail_next_sync`: a sync fails. What it was to make durable is lost or not at the next loss of power, whatever is
    synced after it (`disk_content` says why). While the machine runs on, all of it is read as if nothing had been;
  - `fail` and `mend`: every operation below a root fails;
  - `rot`: one synced bit changes, and nothing reports it;
  - `tamper`: a file is what somebody else made of it;
  - `wipe`, and `snapshot` with `restore`: an empty disk in the place of an old one, and the content of another day.

How long anything takes is the driver's affair. The cost of an operation depends on the bytes that it moves and on the
depth of its path, neither on how many files there are, nor on their sizes.
"""

from collections.abc import Callable, Mapping, Sequence

from strandline.base.ports import DiskError, Rng
from strandline.base.value import Value
from strandline.sim.world.disk_content import Content
from strandline.sim.world.disk_file import SimFile
from strandline.sim.world.disk_names import Directory, Entry, Names

EIO = "Input/output error"
ENOENT = "No such file or directory"
EISDIR = "Is a directory"
ENOTDIR = "Not a directory"
ENOTEMPTY = "Directory not empty"
ENAMETOOLONG = "File name too long"
NAME_BYTES_MAX = 255  # as of nearly all file systems


def is_topic_segment(path: str) -> bool:
    """A file of records that clients wrote: not the metadata log."""
    return path.endswith(".log") and "/__cluster_metadata-" not in path


def everything(path: str) -> bool:
    return True


def has_long_name(path: str) -> bool:
    if len(path) <= NAME_BYTES_MAX and path.isascii():
        return False
    return any(len(name.encode()) > NAME_BYTES_MAX for name in path.split("/"))


class Image(Value, frozen=True):
    """What a disk held once: files, and directories (None), a directory before what is in it."""

    entries: Mapping[str, bytes | None]


class PowerLost(BaseException):
    """The power failed in the middle of what the process was doing. No error that it could handle."""


class SimDisk:
    def __init__(self, roots: Sequence[str] = ("/d",), capacity: int | None = None) -> None:
        self.roots = tuple(roots)
        self.capacity = capacity  # bytes in all files together; None: endless
        self.used = 0
        self.filled: dict[str, None] = {}  # roots that are file systems of their own, and full
        self.bytes_read = 0
        self.opened: dict[int, SimFile] = {}  # files that are open now
        self.serial = 0
        self.failing: dict[str, None] = {}  # roots
        self.broken: dict[str, None] = {}  # those of which a process has met an error that was no lack of room
        self.sync_faults: list[Callable[[str], bool]] = []
        self.fuse = -1  # operations that still succeed before the power fails; −1: it does not
        self.tinder = ("", 0)  # what sets the fuse, and to what
        self.counts: dict[str, int] = {}  # how often each file was saved
        self.boots = 0  # how often the system began anew
        self.rewrites = 0  # grows whenever bytes of a file become others, whoever does it: not by an append
        self.restore(Image({}))
        self.is_of_another_day = False  # its content was brought back
        self.draw_cached: Callable[[], bool] = lambda: True  # is what a Fetch asks for in the page cache?

    # --- files

    def open(self, path: str) -> SimFile:
        self.refuse(path)
        directory, name = self.names.directory_of(path)
        entry = directory.names.get(name)
        if entry is None:
            entry = Content()
            self.names.edit((directory, name, entry))
        self.serial += 1
        file = SimFile(path, as_file(path, entry), self, self.serial)
        self.opened[self.serial] = file
        return file

    def read_file(self, path: str) -> bytes | None:
        self.refuse(path)
        entry = self.names.find(path)
        if entry is None:
            return None
        content = bytes(as_file(path, entry).data)
        self.bytes_read += len(content)
        return content

    def write_file(self, path: str, content: bytes) -> None:
        self.write_beside(path, content)
        self.rename(f"{path}.tmp", path)

    def write_beside(self, path: str, content: bytes) -> None:
        file = self.open(f"{path}.tmp")
        try:
            file.truncate(0)
            file.append([content])
            file.content.is_small = True
        finally:
            file.close()

    def save(self, path: str, content: bytes) -> None:
        """Replace the file atomically and durably, as the real disk does."""
        self.counts[path] = self.saves(path) + 1
        self.replace(path, content)

    def saves(self, path: str) -> int:
        return self.counts.get(path, 0)

    def save_since(self, path: str, content: bytes, since: int) -> None:
        if self.saves(path) == since:
            self.replace(path, content)

    def replace(self, path: str, content: bytes) -> None:
        self.write_beside(path, content)
        self.sync([f"{path}.tmp"])
        self.rename(f"{path}.tmp", path)
        self.sync([path.rpartition("/")[0]])

    # --- names

    def exists(self, path: str) -> bool:
        if has_long_name(path):
            return False
        self.refuse(path)
        return self.names.find(path) is not None

    def list(self, path: str) -> list[str]:
        self.refuse(path)
        entry = self.names.find(path)
        if isinstance(entry, Content):
            raise DiskError(f"{path}: {ENOTDIR}")
        return [] if entry is None else sorted(entry.names)

    def make_directory(self, path: str) -> None:
        self.burn()
        self.refuse(path)
        self.names.make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self.burn(new.rpartition(".")[2])
        self.refuse(old)
        self.refuse(new)
        both = f"{old} -> {new}"
        directory, name = self.names.directory_of(old)
        entry = directory.names.get(name)
        if entry is None:
            raise DiskError(f"{both}: {ENOENT}")
        target_directory, target = self.names.directory_of(new)
        replaced = target_directory.names.get(target)
        if replaced is entry:
            return
        if isinstance(replaced, Content) and isinstance(entry, Directory):
            raise DiskError(f"{both}: {ENOTDIR}")
        if isinstance(replaced, Directory) and (isinstance(entry, Content) or replaced.names):
            raise DiskError(f"{both}: {EISDIR if isinstance(entry, Content) else ENOTEMPTY}")
        self.names.edit((directory, name, None), (target_directory, target, entry))
        self.unlinked(replaced)

    def remove(self, path: str) -> None:
        self.burn()
        self.refuse(path)
        entry = self.names.find(path)
        if entry is not None:
            as_file(path, entry)
            self.take(path, entry)

    def remove_tree(self, path: str) -> None:
        self.burn()
        self.refuse(path)
        entry = self.names.find(path)
        if isinstance(entry, Content):
            raise DiskError(f"{path}: {ENOTDIR}")
        if entry is not None:
            self.take_all(path)

    def take_all(self, path: str) -> None:
        for below, inner in reversed(list(self.names.walk(path))):
            self.take(below, inner)
        entry = self.names.find(path)
        assert entry is not None, path
        self.take(path, entry)

    def take(self, path: str, entry: Entry) -> None:
        directory, name = self.names.directory_of(path)
        self.names.edit((directory, name, None))
        self.unlinked(entry)

    # --- durability

    def burn(self, what: str = "") -> None:
        """Before each operation that changes something."""
        if what and what == self.tinder[0]:
            (_, self.fuse), self.tinder = self.tinder, ("", 0)
        if self.fuse >= 0:
            self.fuse -= 1
            if self.fuse < 0:
                raise PowerLost

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.refuse(path)
            self.burn()
            entry = self.names.find(path)
            if entry is None:
                continue
            if self.sync_faults and self.is_sync_to_fail(path):
                if isinstance(entry, Content):
                    entry.fail_sync()
                self.break_down(path)
                raise DiskError(f"{path}: {EIO}")
            if isinstance(entry, Content):
                entry.sync()
            else:
                self.names.sync(path, entry)

    def is_sync_to_fail(self, path: str) -> bool:
        for fault in self.sync_faults:
            if fault(path):
                self.sync_faults.remove(fault)
                return True
        return False

    def boot_id(self) -> str:
        return f"boot {self.boots}"

    # --- room

    def usage(self, path: str) -> tuple[int, int]:
        self.refuse(path)
        if self.is_filled(path):
            return self.used, 0
        return (-1, -1) if self.capacity is None else (self.capacity, self.room)

    @property
    def is_limited(self) -> bool:
        return self.capacity is not None or bool(self.filled)

    def is_filled(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}/") for root in self.filled)

    def room_for(self, path: str) -> int:
        return 0 if self.is_filled(path) else self.room

    @property
    def room(self) -> int:
        return max(0, self.capacity - self.used) if self.capacity is not None else 1 << 62

    def resized(self, content: Content, before: int) -> None:
        if content.is_linked:
            self.used += len(content.data) - before

    def unlinked(self, entry: Entry | None) -> None:
        if isinstance(entry, Content):
            self.used -= len(entry.data)
            entry.is_linked = False

    def recount(self) -> None:
        """After names changed as a whole."""
        self.rewrites += 1
        self.used = 0
        for _, content in self.names.files():
            content.is_linked = True
            self.used += len(content.data)

    # --- faults

    def abandon(self) -> None:
        """The process died: its files are closed, and all that it wrote is there."""
        for file in tuple(self.opened.values()):
            file.close()

    def crash(self, rng: Rng) -> None:
        """The power goes. Names survive up to some change, in order; then each file loses what it may."""
        self.abandon()
        self.boots += 1
        self.fuse, self.tinder = -1, ("", 0)
        self.names.crash(rng)
        for _, content in self.names.files():
            content.crash(rng)
        self.recount()

    def fail_next_sync(self, which: Callable[[str], bool] = everything) -> None:
        """The next sync of a path that `which` accepts fails, once."""
        self.sync_faults.append(which)

    def fail(self, root: str) -> None:
        self.failing[root] = None

    def mend(self, root: str) -> None:
        """What is on the disk is what was there."""
        self.failing.pop(root, None)

    def refuse(self, path: str) -> None:
        if has_long_name(path):
            raise DiskError(f"{path}: {ENAMETOOLONG}")
        for root in self.failing:
            if path == root or path.startswith(f"{root}/"):
                self.break_down(path)
                raise DiskError(f"{path}: {EIO}")

    def break_down(self, path: str) -> None:
        self.broken |= dict.fromkeys(root for root in self.roots if path == root or path.startswith(f"{root}/"))

    def rot(self, rng: Rng, which: Callable[[str], bool] = is_topic_segment) -> tuple[str, int] | None:
        """Change one synced bit of one file that `which` accepts, and return where; None if there is none.

        A checksum need not cover it: in a batch the base offset and the leader epoch are outside."""
        found = [(path, content) for path, content in self.names.files() if which(path) and content.synced_size]
        if not found:
            return None
        path, content = found[rng.randrange(0, len(found))]
        position = rng.randrange(0, content.synced_size)
        content.flip(position, rng.randrange(0, 8))
        self.rewrites += 1
        return path, position

    def flip(self, path: str, position: int, bit: int) -> None:
        """Change this bit of this file, in silence."""
        entry = self.names.find(path)
        assert entry is not None, path
        as_file(path, entry).flip(position, bit)
        self.rewrites += 1

    def tamper(self, path: str, data: bytes | None) -> None:
        """Somebody else writes this file as a whole, or removes it (None; a folder with all that is in it), durably. A
        process that has it open does not notice."""
        self.names.make_all_durable()
        if data is None:
            if self.names.find(path) is not None:
                self.take_all(path)
        else:
            directory, name = self.names.directory_of(path)
            entry = directory.names.get(name)
            if entry is None:
                entry = Content()
                self.names.edit((directory, name, entry))
            content = as_file(path, entry)
            content.sync()
            content.forget_doubts(0, len(content.data))
            content.data[:] = data
        self.names.make_all_durable()
        self.recount()

    def wipe(self, root: str) -> None:
        """A new disk in the place of the one at `root`: nothing is there, and nothing of it fails."""
        assert root in self.roots, root
        self.mend(root)
        for file in tuple(self.opened.values()):
            if file.path.startswith(f"{root}/"):
                file.close()
        self.names.empty(root)
        self.recount()

    def snapshot(self) -> Image:
        """All that is there now, synced or not: the machine stands still while an image is made."""
        entries = {p: bytes(e.data) if isinstance(e, Content) else None for p, e in self.names.walk()}
        return Image(entries)

    def restore(self, image: Image) -> None:
        """The content of that day, and nothing else, all of it durable."""
        self.abandon()
        self.is_of_another_day = True
        self.names = Names()
        for root in self.roots:
            self.names.make_directory(root)
        for path, data in image.entries.items():
            if data is None:
                self.names.make_directory(path)
            else:
                content = Content()
                content.data += data
                directory, name = self.names.directory_of(path)
                self.names.edit((directory, name, content))
        self.names.make_all_durable()
        self.recount()

    # --- questions

    def observed(self) -> "Observed":
        """Somebody who is not the process looks at its files: faults do not concern them."""
        return Observed(self)

    def write_back(self) -> None:
        """So much time has passed that the system has written what no process synced, also if its writer is gone."""
        for _, content in self.names.files():
            content.changes.clear()

    @property
    def form(self) -> tuple[Names, int, int]:
        """If it is the same as before, each name has the file that it had, and files were changed by appends alone."""
        return self.names, self.names.version, self.rewrites

    def lossy(self, path: str) -> bool:
        """Might a loss of power now change what is found under this name?"""
        entry = self.names.find(path)
        return (isinstance(entry, Content) and entry.lossy) or self.names.is_lossy(path)

    def doubtful(self) -> tuple[str, ...]:
        """Files with bytes that no sync will write any more, though they may not be on the medium."""
        return tuple(path for path, content in self.names.files() if content.doubts)

    def peek(self, path: str) -> bytes | None:
        """What a file has now, for somebody who is not the process."""
        entry = self.names.find(path)
        return bytes(entry.data) if isinstance(entry, Content) else None

    def contents(self) -> dict[str, bytes]:
        """All files, to compare before and after."""
        return {path: bytes(content.data) for path, content in self.names.files()}


class Observed:
    """A generator would do, and cost more: laws look after each event."""

    __slots__ = ("disk", "failing")

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.failing = disk.failing

    def __enter__(self) -> None:
        self.failing, self.disk.failing = self.disk.failing, {}

    def __exit__(self, *_: object) -> None:
        self.disk.failing = self.failing


def as_file(path: str, entry: Entry) -> Content:
    if isinstance(entry, Directory):
        raise DiskError(f"{path}: {EISDIR}")
    return entry
