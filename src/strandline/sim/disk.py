"""A disk in memory that knows what a power cut would take.

Every file is a node with two contents: what was written, and what was synced. Every name has two meanings: what the
directory says, and what it said when it was synced last. `crash(rng)` is a power cut: each file keeps what was synced
and any part of what came after it, each directory its synced names and any first part of the changes since.

It is strict where a file system may be: a file that was synced, in a directory that was not, may be gone.
"""

from collections.abc import Sequence

from strandline.base.ports import Buffer, DiskError, Rng


class Node:
    """What one file holds, whatever its name is."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.synced = b""
        self.unchanged = 0  # the first bytes of `synced` that no later write or cut has touched

    def touched(self, position: int) -> None:
        self.unchanged = min(self.unchanged, position)

    def sync(self) -> None:
        self.synced = bytes(self.content)
        self.unchanged = len(self.synced)

    def crash(self, rng: Rng) -> None:
        """Half of the time what was written survives up to some byte; else at most a part that is torn."""
        fate = rng.randrange(0, 4)
        if self.unchanged < len(self.synced) and fate == 0:
            self.content = bytearray(self.synced)  # a cut or an overwriting that never reached the disk
        elif len(self.content) > self.unchanged and fate < 3:
            del self.content[rng.randrange(self.unchanged, len(self.content) + 1) :]
        if fate == 2 and len(self.content) > self.unchanged:
            self.content[-1] ^= 1 << rng.randrange(0, 8)
        self.sync()


class MemoryFile:
    def __init__(self, path: str, node: Node) -> None:
        self.path = path
        self.node = node

    def append(self, buffers: Sequence[Buffer]) -> int:
        before = len(self.node.content)
        for buffer in buffers:
            self.node.content += buffer
        return len(self.node.content) - before

    def write_at(self, position: int, data: Buffer) -> None:
        content = self.node.content
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data
        self.node.touched(position)

    def read(self, position: int, size: int) -> memoryview:
        return memoryview(bytes(self.node.content[position : position + size]))

    def size(self) -> int:
        return len(self.node.content)

    def truncate(self, size: int) -> None:
        content = self.node.content
        content.extend(bytes(max(0, size - len(content))))
        del content[size:]
        self.node.touched(size)

    def close(self) -> None:
        pass


Names = dict[str, Node | None]  # None: a directory


class SimDisk:
    def __init__(self, roots: Sequence[str] = ("/d",)) -> None:
        self.names: Names = dict.fromkeys(roots)
        self.synced_names: Names = dict.fromkeys(roots)
        self.changes: list[tuple[str, Node | None, bool]] = []  # (path, node, is it there) since the last sync
        self.bytes_read = 0
        self.opened: dict[int, str] = {}  # files that are open now
        self.serial = 0

    # --- names

    def put(self, path: str, node: Node | None) -> None:
        self.names[path] = node
        self.changes.append((path, node, True))

    def take(self, path: str) -> Node | None:
        node = self.names.pop(path)
        self.changes.append((path, node, False))
        return node

    def below(self, path: str) -> list[str]:
        return [name for name in self.names if name.startswith(f"{path}/")]

    def in_directory(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if self.names.get(parent, path) is not None:
            raise DiskError(f"{path}: there is no such directory")

    def node(self, path: str) -> Node:
        node = self.names.get(path)
        if node is None:
            raise DiskError(f"{path}: no file")
        return node

    # --- the port

    def open(self, path: str) -> "CountedFile":
        self.in_directory(path)
        if path not in self.names:
            self.put(path, Node())
        return CountedFile(path, self.node(path), self)

    def exists(self, path: str) -> bool:
        return path in self.names

    def list(self, path: str) -> list[str]:
        return sorted({name[len(path) + 1 :].split("/")[0] for name in self.below(path)})

    def make_directory(self, path: str) -> None:
        parts = path.split("/")
        for end in range(2, len(parts) + 1):
            part = "/".join(parts[:end])
            if part not in self.names:
                self.put(part, None)

    def rename(self, old: str, new: str) -> None:
        if old not in self.names:
            raise DiskError(f"{old}: no such file")
        self.in_directory(new)
        for name in [old, *self.below(old)]:
            self.put(new + name[len(old) :], self.take(name))

    def remove(self, path: str) -> None:
        if path in self.names:
            self.take(path)

    def remove_tree(self, path: str) -> None:
        for name in [*reversed(self.below(path)), path]:
            self.remove(name)

    def read_file(self, path: str) -> bytes | None:
        if self.names.get(path) is None:
            return None
        content = bytes(self.node(path).content)
        self.bytes_read += len(content)
        return content

    def write_file(self, path: str, content: bytes) -> None:
        self.in_directory(path)
        node = Node()
        node.content += content
        self.put(path, node)

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            node = self.names.get(path)
            if node is not None:
                node.sync()
            elif path in self.names:
                self.sync_names(path)

    def sync_names(self, directory: str) -> None:
        """The names in one directory become durable; so does the directory itself, as journals have it."""
        kept = []
        for path, node, there in self.changes:
            if path.rpartition("/")[0] != directory and path != directory:
                kept.append((path, node, there))
            elif there:
                self.synced_names[path] = node
            else:
                self.synced_names.pop(path, None)
        self.changes = kept

    # --- faults

    def crash(self, rng: Rng) -> None:
        """The power goes. Names survive up to some change, in order; then each file loses what it may."""
        survived = rng.randrange(0, len(self.changes) + 1)
        names = dict(self.synced_names)
        for path, node, there in self.changes[:survived]:
            if there:
                names[path] = node
            else:
                names.pop(path, None)
        self.names = {p: n for p, n in names.items() if p.rpartition("/")[0] in names or p.count("/") == 1}
        for path in sorted(self.names):
            node = self.names[path]
            if node is not None:
                node.crash(rng)
        self.synced_names, self.changes = dict(self.names), []
        self.opened.clear()

    def contents(self) -> dict[str, bytes]:
        """All files, to compare before and after."""
        return {path: bytes(node.content) for path, node in self.names.items() if node is not None}


class CountedFile(MemoryFile):
    """Tells its disk when it is open and how much was read."""

    def __init__(self, path: str, node: Node, disk: SimDisk) -> None:
        super().__init__(path, node)
        self.disk = disk
        disk.serial += 1
        self.serial = disk.serial
        disk.opened[self.serial] = path

    def read(self, position: int, size: int) -> memoryview:
        found = super().read(position, size)
        self.disk.bytes_read += len(found)
        return found

    def close(self) -> None:
        self.disk.opened.pop(self.serial, None)
