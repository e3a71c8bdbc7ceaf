"""Log directories whose brokers stopped in order, and the markers that say how the stop left each log.

A broker takes its marker away before it changes anything. So what is read between two looks at the same marker was
read while the broker was down.
"""

import os
from typing import NamedTuple, Self

from strandline.base.ids import uuid_text
from strandline.base.ports import DiskError
from strandline.log.directory import DirectoryMeta, read_meta
from strandline.log.evidence.clean_shutdown import FILE, Marker, whole_marker
from strandline.server.storage.disk import RealDisk, RealFile, naming


class ReadFile(RealFile):
    """A file that is there, and stays as it is."""

    def __init__(self, path: str) -> None:
        self.path = path
        with naming(path):
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.end = os.fstat(self.fd).st_size


class ReadDisk(RealDisk):
    """Makes no file: a directory may be mounted so that it can only be read, and is not ours."""

    def open(self, path: str) -> ReadFile:
        return ReadFile(path)


class Stopped(NamedTuple):
    directory: str
    content: bytes
    meta: DirectoryMeta
    marker: Marker

    @classmethod
    def at(cls, directory: str) -> Self | None:
        """None if its broker runs, was killed, or left a marker that says nothing, or is of another directory."""
        try:
            content, meta = RealDisk().read_file(f"{directory}/{FILE}"), read_meta(RealDisk(), directory)
        except DiskError:
            return None
        marker = None if content is None else whole_marker(content)
        if content is None or marker is None or meta is None or not is_of(marker, meta):
            return None
        return cls(directory, content, meta, marker)

    def is_still(self) -> bool:
        try:
            return RealDisk().read_file(f"{self.directory}/{FILE}") == self.content
        except DiskError:
            return False


def is_of(marker: Marker, meta: DirectoryMeta) -> bool:
    whose = (marker.cluster_id, marker.node_id, marker.directory_id)
    return whose == (meta.cluster_id, meta.node_id, uuid_text(meta.directory_id))
