"""Which paths of a log must be synced beside its segments: small files, indexes, and directories whose names changed.

A sync runs while the log goes on. So each path has the offset at which the log ended when a sync named it first:
a path that was added since is still there when that sync has ended.
"""

from collections.abc import Iterator


class Unsynced:
    def __init__(self) -> None:
        self.ends: dict[str, int | None] = {}  # None: no sync has named it yet

    def __iter__(self) -> Iterator[str]:
        return iter(self.ends)

    def add(self, *paths: str) -> None:
        """These were changed: a sync that began before does not count for them."""
        for path in paths:
            self.ends[path] = None

    def name(self, log_end_offset: int) -> tuple[str, ...]:
        """What a sync that begins now must name."""
        assert log_end_offset >= 0
        for path, end in self.ends.items():
            if end is None:
                self.ends[path] = log_end_offset
            else:
                assert end >= 0, f"{path} was named at an offset that no log ends at"
        return tuple(self.ends)

    def synced(self, offset: int) -> None:
        """The sync that named everything when the log ended at `offset` is done."""
        assert offset >= 0
        if self.ends:
            self.ends = {path: end for path, end in self.ends.items() if end is None or end > offset}
