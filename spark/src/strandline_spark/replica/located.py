"""A log and one of its files, as they were when their names were listed."""

import os
from typing import NamedTuple, Self

from strandline.log.segment import file_name
from strandline_spark.replica.errors import naming


class Replica(NamedTuple):
    """One partition's log in one log directory. `path` is its own directory."""

    broker: int | None
    directory: str
    topic: str
    topic_id: str | None
    partition: int
    path: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} in {self.directory}"


class SegmentFile(NamedTuple):
    """A file of records as it was when the names were listed."""

    path: str
    base: int  # its name: the first offset that it may have
    following: int | None  # the base of the next segment; None: it is the active one
    size: int
    inode: int
    modified_ns: int

    @property
    def is_active(self) -> bool:
        return self.following is None

    def beside(self, suffix: str) -> str:
        return f"{os.path.dirname(self.path)}/{file_name(self.base, suffix)}"

    @classmethod
    def of(cls, path: str, base: int, following: int | None) -> Self:
        """As it is now. Raises FileNotFoundError, `UnreadableLog`."""
        with naming(path):
            status = os.stat(path)
        return cls(path, base, following, status.st_size, status.st_ino, status.st_mtime_ns)
