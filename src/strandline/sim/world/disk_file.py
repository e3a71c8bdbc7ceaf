"""One open file of a simulated disk. Like the real one it knows its own end, and appends there."""

from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.ports import Buffer, DiskFull
from strandline.sim.world.disk_content import Content
from strandline.sim.world.disk_names import Names

ENOSPC = "No space left on device"


class Volume(Protocol):
    """What a file asks of its disk."""

    failing: dict[str, None]
    opened: dict[int, "SimFile"]
    bytes_read: int
    rewrites: int
    names: Names

    @property
    def is_limited(self) -> bool: ...
    def refuse(self, path: str) -> None: ...
    @property
    def draw_cached(self) -> Callable[[], bool]: ...
    def burn(self, what: str = "") -> None: ...
    def room_for(self, path: str) -> int: ...
    def resized(self, content: Content, before: int) -> None: ...


class SimFile:
    def __init__(self, path: str, content: Content, disk: Volume, serial: int) -> None:
        self.path = path
        self.content = content
        self.disk = disk
        self.serial = serial
        self.end = len(content.data)
        self.is_open = True

    def ready(self) -> None:
        assert self.is_open, f"{self.path} is closed"
        if self.disk.failing:
            self.disk.refuse(self.path)

    def changing(self, what: str = "") -> None:
        self.ready()
        self.disk.burn(what)

    def append(self, buffers: Sequence[Buffer]) -> int:
        self.changing()
        content, disk = self.content, self.disk
        before = len(content.data)
        if before != self.end or disk.is_limited:
            return self.write(self.end, b"".join(buffers))
        content.append(buffers)
        self.end = len(content.data)
        disk.resized(content, before)
        return self.end - before

    def write_at(self, position: int, data: Buffer) -> None:
        self.changing()
        self.write(position, bytes(data))

    def write(self, position: int, data: bytes) -> int:
        """What does not fit on the disk is left out, and then the file's end stays where it was."""
        content, disk = self.content, self.disk
        disk.rewrites += 1
        before = len(content.data)
        fits = len(data)
        if disk.is_limited:
            fits = min(fits, max(0, before + disk.room_for(self.path) - position))
        content.write_at(position, data[:fits])
        disk.resized(content, before)
        if fits < len(data):
            raise DiskFull(f"{self.path}: {ENOSPC}")
        self.end = max(self.end, position + len(data))
        return len(data)

    def read(self, position: int, size: int) -> memoryview:
        self.ready()
        with memoryview(self.content.data) as view:
            found = bytes(view[position : min(position + size, self.end)])
        self.disk.bytes_read += len(found)
        return memoryview(found)

    def is_cached(self, position: int, size: int) -> bool:
        return self.disk.draw_cached()

    def size(self) -> int:
        return self.end

    def truncate(self, size: int) -> None:
        self.changing("cut")
        self.disk.rewrites += 1
        before = len(self.content.data)
        if self.disk.is_limited and size - before > self.disk.room_for(self.path):
            raise DiskFull(f"{self.path}: {ENOSPC}")
        cut = self.content.truncate(size)
        if cut is not None:
            self.disk.names.journal(cut)
        self.disk.resized(self.content, before)
        self.end = size

    def close(self) -> None:
        """Closing twice is not an error."""
        self.is_open = False
        self.disk.opened.pop(self.serial, None)
