"""Which logs are whole: they have everything that was ever in them since their replica was in sync last.

A process that is killed loses nothing that it had written: the pages of its files are the system's, and only a loss of
power or a crash of the system takes them. So each log directory has a file that says in which run of the system (its
boot id) it was written, and which logs are whole. The next start takes it away first. It believes it where the system
has run on, or where the stop was in order, so that all is durable; and where all directories have it of one process.

An error of a disk ends that (`distrust`). The system may have dropped what it could not write, and a file system that
is mounted anew then shows logs that are shorter, and right as far as they go.

It counts within one run of the system alone, so that nobody waits for the disk: a loss of power ends that run. A log
that no file names is in doubt.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Self
from zlib import crc32

import msgspec

from strandline.base.ids import TopicIdPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk, DiskError
from strandline.base.value import Value
from strandline.log.evidence.clean_shutdown import Place

FILE = "whole-logs.json"
VERSION = 0


class Vouched(Value, frozen=True):
    """What the files say that a start finds."""

    process: Uuid  # the incarnation that was registered when they were written
    logs: Mapping[str, frozenset[TopicIdPartition]]  # by the path of their directory


class Page(msgspec.Struct, frozen=True, rename="camel"):
    """The file of one directory."""

    version: int
    boot_id: str
    process: str
    cluster_id: str
    node_id: int
    directory_id: str
    directory_ids: tuple[str, ...]  # of all that belong together
    dead_directories: int
    logs: dict[str, tuple[int, ...]]  # partitions, by topic id
    checksum: int = 0

    @classmethod
    def of(cls, place: Place, directory_id: Uuid, boot_id: str, process: str, logs: dict[str, tuple[int, ...]]) -> Self:
        together = tuple(sorted(uuid_text(each) for _, each in place.directories))
        assert uuid_text(directory_id) in together, "it is one of this node's directories"
        page = cls(
            VERSION,
            boot_id,
            process,
            place.cluster_id,
            place.node_id,
            uuid_text(directory_id),
            together,
            place.dead,
            logs,
        )
        return msgspec.structs.replace(page, checksum=crc32(msgspec.json.encode(page)))


def page_of(place: Place, directory_id: Uuid, boot_id: str, process: Uuid, logs: Iterable[TopicIdPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for at in sorted(logs):
        topics.setdefault(uuid_text(at.topic_id), []).append(at.partition)
    rows = {topic: tuple(partitions) for topic, partitions in topics.items()}
    return msgspec.json.encode(Page.of(place, directory_id, boot_id, uuid_text(process), rows))


def take_vouched(disk: Disk, place: Place, *, is_clean: bool) -> Vouched | None:
    """Remove the files: what a start finds, and cuts, must not be vouched for by the one before. None unless they can
    be believed. `is_clean`: was the last stop in order?"""
    pages: dict[str, Page | None] = {}
    for path, directory_id in place.directories:
        content = disk.read_file(f"{path}/{FILE}")
        if content is not None:
            disk.remove(f"{path}/{FILE}")
        pages[path] = None if content is None else page_in(content, place, directory_id)
    boot_id = disk.boot_id()
    vouched: dict[str, frozenset[TopicIdPartition]] = {}
    processes: dict[str, None] = {}
    for path, page in pages.items():
        if page is None or not (is_clean or (boot_id and page.boot_id == boot_id)):
            return None
        processes[page.process] = None
        vouched[path] = frozenset(logs_in(page))
    return Vouched(parse_uuid(next(iter(processes))), vouched) if len(processes) == 1 else None


def distrust(disk: Disk, paths: Iterable[str]) -> None:
    """Remove the files, also where only one disk has failed: it may keep its own, which counts for nothing without the
    others."""
    for directory in paths:
        with suppress(DiskError):
            disk.remove(f"{directory}/{FILE}")


def logs_in(page: Page) -> Iterable[TopicIdPartition]:
    for topic, partitions in page.logs.items():
        for partition in partitions:
            yield TopicIdPartition(parse_uuid(topic), partition)


def page_in(content: bytes, place: Place, directory_id: Uuid) -> Page | None:
    """None if it makes no sense here."""
    try:
        page = msgspec.json.decode(content, type=Page)
        parse_uuid(page.process)
        list(logs_in(page))
    except (msgspec.MsgspecError, ValueError):
        return None
    return page if page == Page.of(place, directory_id, page.boot_id, page.process, page.logs) else None
