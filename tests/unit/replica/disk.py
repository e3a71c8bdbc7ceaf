"""A disk that is a dictionary: nothing is lost, nothing is slow. Paths are keys, directories are implied or named.
Names are no longer than a real disk takes."""

from collections.abc import Sequence

from strandline.base.ports import Buffer, DiskError
from strandline.sim.world.disk import has_long_name


class DictFile:
    def __init__(self, path: str, disk: "DictDisk") -> None:
        self.path = path
        self.disk = disk
        self.content = bytearray()

    def append(self, buffers: Sequence[Buffer]) -> int:
        before = len(self.content)
        for buffer in buffers:
            self.content += buffer
        return len(self.content) - before

    def write_at(self, position: int, data: Buffer) -> None:
        self.content[position : position + len(data)] = data

    def read(self, position: int, size: int) -> memoryview:
        return memoryview(bytes(self.content[position : position + size]))

    def is_cached(self, position: int, size: int) -> bool:
        return self.path not in self.disk.cold

    def size(self) -> int:
        return len(self.content)

    def truncate(self, size: int) -> None:
        del self.content[size:]

    def close(self) -> None:
        pass


class DictDisk:
    def __init__(self) -> None:
        self.files: dict[str, DictFile] = {}
        self.directories: dict[str, None] = {}
        self.synced: list[str] = []
        self.counts: dict[str, int] = {}
        self.boot = "boot 1"
        self.cold: set[str] = set()  # files that are not in the page cache

    def open(self, path: str) -> DictFile:
        refuse(path)
        assert path.rpartition("/")[0] in self.directories, path
        return self.files.setdefault(path, DictFile(path, self))

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def list(self, path: str) -> list[str]:
        below = [key[len(path) + 1 :] for key in [*self.files, *self.directories] if key.startswith(path + "/")]
        return sorted({key.split("/")[0] for key in below})

    def make_directory(self, path: str) -> None:
        refuse(path)
        parts = path.split("/")
        for end in range(2, len(parts) + 1):
            self.directories["/".join(parts[:end])] = None

    def rename(self, old: str, new: str) -> None:
        refuse(new)
        for paths in (self.files, self.directories):
            for key in [key for key in paths if key == old or key.startswith(old + "/")]:
                paths[new + key[len(old) :]] = paths.pop(key)  # type: ignore[index, attr-defined]

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def remove_tree(self, path: str) -> None:
        refuse(path)
        for paths in (self.files, self.directories):
            for key in [key for key in paths if key == path or key.startswith(path + "/")]:
                del paths[key]  # type: ignore[attr-defined]

    def read_file(self, path: str) -> bytes | None:
        file = self.files.get(path)
        return None if file is None else bytes(file.content)

    def write_file(self, path: str, content: bytes) -> None:
        refuse(f"{path}.tmp")
        file = self.files[path] = DictFile(path, self)
        file.content += content

    def save(self, path: str, content: bytes) -> None:
        self.counts[path] = self.saves(path) + 1
        self.write_file(path, content)
        self.sync([path])

    def saves(self, path: str) -> int:
        return self.counts.get(path, 0)

    def save_since(self, path: str, content: bytes, since: int) -> None:
        if self.saves(path) == since:
            self.write_file(path, content)

    def boot_id(self) -> str:
        return self.boot

    def sync(self, paths: Sequence[str]) -> None:
        self.synced += paths


def refuse(path: str) -> None:
    if has_long_name(path):
        raise DiskError(f"{path}: File name too long")
