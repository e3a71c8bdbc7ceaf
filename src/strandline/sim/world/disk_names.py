"""The names of a simulated disk: a tree of directories, and what a loss of power leaves of it.

Every directory has two meanings of its names: what it says, and what it would say after a loss of power. Changes of
names are a journal: in order, each one whole or not at all. Cuts of files stand in it too.

Strict where a file system may be: a file that was synced, in a directory that was not, may be gone.

Invariants:
  - a crash keeps the synced names and any first part of the changes since;
  - a synced directory is found again under its own name, with the names that it had.
"""

from collections.abc import Iterator

from strandline.base.ports import DiskError, Rng
from strandline.sim.world.disk_content import Change as Cut
from strandline.sim.world.disk_content import Content

CHANGES_MAX = 256  # a journal commits by itself sooner or later


class Directory:
    def __init__(self) -> None:
        self.names: dict[str, Entry] = {}
        self.synced: dict[str, Entry] = {}


Entry = Directory | Content
Edit = tuple[Directory, str, Entry | None]  # None: the name goes
Change = tuple[Edit, ...] | Cut


def split(path: str) -> tuple[str, str]:
    """Its directory and its name there."""
    parent, _, name = path.rpartition("/")
    return parent, name


class Names:
    def __init__(self) -> None:
        self.top = Directory()
        self.changes: list[Change] = []  # since they were synced, oldest first
        self.version = 0  # grows with all that may give a name another meaning

    # --- looking

    def find(self, path: str) -> Entry | None:
        entry: Entry | None = self.top
        for name in path.split("/")[1:]:
            if type(entry) is not Directory:
                return None
            entry = entry.names.get(name)
        return entry

    def directory_of(self, path: str) -> tuple[Directory, str]:
        """Where a path may be put, and its name there."""
        parent, name = split(path)
        entry = self.find(parent)
        if isinstance(entry, Directory):
            return entry, name
        raise DiskError(f"{path}: {'No such file or directory' if entry is None else 'Not a directory'}")

    def walk(self, path: str = "") -> Iterator[tuple[str, Entry]]:
        """Everything below `path` in the order of the names, a directory before what is in it."""
        entry = self.find(path)
        if isinstance(entry, Directory):
            for name in sorted(entry.names):
                below = f"{path}/{name}"
                yield below, entry.names[name]
                yield from self.walk(below)

    def files(self, path: str = "") -> Iterator[tuple[str, Content]]:
        for below, entry in self.walk(path):
            if isinstance(entry, Content):
                yield below, entry

    def is_lossy(self, path: str) -> bool:
        """May a loss of power take this name, or give it another meaning?"""
        keys = set()
        entry: Entry | None = self.top
        for name in path.split("/")[1:]:
            if not isinstance(entry, Directory):
                break
            keys.add((entry, name))
            entry = entry.names.get(name)
        return any((where, name) in keys for change in self.changes for where, name, _ in edits(change))

    def is_unsynced(self, path: str) -> bool:
        """The same of its last part alone, wherever the directory that it is in may turn up."""
        here = self.directory_of(path)
        return any((where, name) == here for change in self.changes for where, name, _ in edits(change))

    # --- changing

    def edit(self, *edits: Edit) -> None:
        self.version += 1
        for directory, name, entry in edits:
            if entry is None:
                del directory.names[name]
            else:
                directory.names[name] = entry
        self.journal(edits)

    def journal(self, change: Change) -> None:
        self.changes.append(change)
        if len(self.changes) > CHANGES_MAX:
            make_durable(self.changes.pop(0))

    def make_directory(self, path: str) -> None:
        directory = self.top
        for name in path.split("/")[1:]:
            entry = directory.names.get(name)
            if entry is None:
                entry = Directory()
                self.edit((directory, name, entry))
            if isinstance(entry, Content):
                raise DiskError(f"{path}: File exists")
            directory = entry

    # --- durability

    def sync(self, path: str, directory: Directory) -> None:
        """All changes in this directory are durable then; so are those that gave it its own name, as journals have it,
        and whatever these rest upon. Cuts are not: strict again, a cut has to be synced with its file."""
        if not self.changes:
            return
        parent, own = split(path)
        above = self.find(parent)
        keys = {(above, own)}
        kept: list[Change] = []
        synced: list[Change] = []
        for change in reversed(self.changes):
            if not isinstance(change, Cut):
                for where, name, _ in change:
                    if where is directory or (where, name) in keys:
                        keys.update([(where, name) for where, name, _ in change])
                        synced.append(change)
                        break
                else:
                    kept.append(change)
            else:
                kept.append(change)
        for change in reversed(synced):
            make_durable(change)
        self.changes = kept[::-1]

    def make_all_durable(self) -> None:
        for change in self.changes:
            make_durable(change)
        self.changes = []

    def empty(self, path: str) -> None:
        """Nothing is in this directory, nor was, nor will be after a loss of power."""
        self.version += 1
        directory = self.find(path)
        assert isinstance(directory, Directory)
        gone = {directory, *(entry for _, entry in self.walk(path) if isinstance(entry, Directory))}
        self.changes = [change for change in self.changes if all(where not in gone for where, _, _ in edits(change))]
        directory.names, directory.synced = {}, {}

    def crash(self, rng: Rng) -> None:
        self.version += 1
        for change in self.changes[: rng.randrange(0, len(self.changes) + 1)]:
            make_durable(change)
        self.changes = []
        restore_synced(self.top)


def edits(change: Change) -> tuple[Edit, ...]:
    return () if isinstance(change, Cut) else change


def make_durable(change: Change) -> None:
    if isinstance(change, Cut):
        change.is_journaled = True
    for directory, name, entry in edits(change):
        if entry is None:
            directory.synced.pop(name, None)
        else:
            directory.synced[name] = entry


def restore_synced(directory: Directory) -> None:
    directory.names = dict(directory.synced)
    for entry in directory.names.values():
        if isinstance(entry, Directory):
            restore_synced(entry)
