"""The files of a metadata folder. A running node changes them meanwhile: what is gone when it is read is not there."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from strandline.base.ids import METADATA_TOPIC
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import DIRECTORY, SUFFIX, parse_snapshot_name, snapshot_name
from strandline.wire.batch import BatchHeader, Tail, scan, why_invalid
from strandline_spark.jobs.audit.rows import Key


class Segment(NamedTuple):
    base_offset: int
    headers: list[BatchHeader]  # the whole batches in front
    why: str | None  # the rest is not a batch


def folder_in(directory: str) -> str:
    return f"{directory}/{DIRECTORY}"


def place(node: int, directory: str) -> Key:
    return (node, directory, METADATA_TOPIC, "", 0)


def snapshots(folder: str) -> Iterator[tuple[SnapshotId, str, bytes]]:
    """Each with its name and content, oldest first."""
    found = [snapshot for name in names_in(folder) if (snapshot := parse_snapshot_name(name)) is not None]
    for snapshot in sorted(found, key=lambda one: one.end_offset):
        name = f"{snapshot_name(snapshot)}{SUFFIX}"
        content = content_of(f"{folder}/{name}")
        if content is not None:
            yield snapshot, name, content


def segments(folder: str) -> list[Segment]:
    """In order. Empty if there is no log."""
    found = []
    for base in sorted(int(name[:20]) for name in names_in(folder) if name.endswith(".log") and name[:20].isdigit()):
        content = content_of(f"{folder}/{base:020d}.log")
        if content is not None:
            found.append(segment(base, content))
    return found


def segment(base: int, content: bytes) -> Segment:
    scanned = scan(content)
    for count, header in enumerate(scanned.headers):
        if why_invalid(header, content) is not None:
            return Segment(base, scanned.headers[:count], "a batch is damaged")
    why = None if scanned.tail is Tail.COMPLETE else "it does not end with a batch"
    return Segment(base, scanned.headers, why)


def names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def content_of(path: str) -> bytes | None:
    """None if it is not there, or no more. What cannot be read was reported before (`files`)."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
