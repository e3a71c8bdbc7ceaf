"""The clean-shutdown marker (KIP-966): written last at a controlled stop, with the broker epoch, and taken away first
at the next start.

A stop was clean if every log directory has a marker of that same stop, and they are the directories that stopped then.
A marker says whose it is, for a disk can come here from elsewhere: out of a backup, or swapped between two nodes (T28).
A directory that is no longer there, dead or alive, took replicas along that will begin empty in another one.

A marker also says how the stop left each log: where it begins and ends, its size, and checksums of its epochs and its
last batch. What the next start finds otherwise has lost records, or may have: a truncated or deleted file, a folder out
of a backup. The checkpoints cannot say that, since they can come out of the same backup.
"""

from collections.abc import Mapping
from typing import Self
from zlib import crc32

import msgspec

from strandline.base.ids import TopicIdPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk
from strandline.base.value import Value
from strandline.log.checkpoints import format_epochs
from strandline.log.epochs import Epochs
from strandline.log.log import Log

FILE = ".kafka_cleanshutdown"


class Place(Value, frozen=True):
    """The log directories that a node has, by path."""

    cluster_id: str
    node_id: int
    directories: tuple[tuple[str, Uuid], ...]
    dead: int = 0  # directories that cannot be read, or written


class Left(msgspec.Struct, frozen=True, array_like=True):
    """How a stop left a log."""

    topic_id: str
    partition: int
    start: int
    end: int
    size: int  # of all its batches, in bytes
    epochs: int  # a checksum of its epochs
    last: int  # the checksum of its last batch

    @classmethod
    def of(cls, at: TopicIdPartition, log: Log) -> Self:
        epochs = Epochs(log.epochs.entries)
        # One that has no record yet goes at the next start, and the first begins where the log does.
        epochs.cut_end(log.log_end_offset)
        epochs.cut_start(log.log_start_offset)
        last = next((header.crc for header in log.headers(log.log_end_offset - 1)), 0)
        return cls(
            topic_id=uuid_text(at.topic_id),
            partition=at.partition,
            start=log.log_start_offset,
            end=log.log_end_offset,
            size=log.size_bytes,
            epochs=crc32(format_epochs(epochs.entries)),
            last=last,
        )

    @classmethod
    def in_doubt(cls, at: TopicIdPartition, start: int, end: int) -> Self:
        """Of a log that has lost records already, or is not there: no log is like that."""
        return cls(uuid_text(at.topic_id), at.partition, start, end, -1, 0, 0)

    @property
    def at(self) -> TopicIdPartition:
        return TopicIdPartition(parse_uuid(self.topic_id), self.partition)


Logs = dict[TopicIdPartition, list[Left]]  # two directories may have a log of one replica each


class Stop(Value, frozen=True):
    """The last stop, which was clean."""

    broker_epoch: int
    logs: Logs


class Marker(msgspec.Struct, frozen=True, rename="camel"):
    """Kafka has the first two fields. What lacks the others is of another place, for all that anybody knows."""

    version: int
    broker_epoch: int
    cluster_id: str = ""
    node_id: int = -1
    directory_id: str = ""
    directory_ids: tuple[str, ...] = ()  # of all that stopped together
    dead_directories: int = 0
    logs: tuple[Left, ...] = ()
    logs_checksum: int = 0  # never 0 where a stop said how it left the logs

    @classmethod
    def of(cls, place: Place, directory_id: Uuid, broker_epoch: int) -> Self:
        together = tuple(sorted(uuid_text(each) for _, each in place.directories))
        return cls(0, broker_epoch, place.cluster_id, place.node_id, uuid_text(directory_id), together, place.dead)


def checksum(logs: tuple[Left, ...]) -> int:
    return 1 + crc32(msgspec.json.encode(logs))


def write_clean_shutdown(
    disk: Disk, place: Place, broker_epoch: int, logs: Mapping[str, tuple[Left, ...]] | None = None
) -> None:
    """`logs`: those in each directory, by its path."""
    for path, directory_id in place.directories:
        left = () if logs is None else logs.get(path, ())
        marker = Marker.of(place, directory_id, broker_epoch)
        marker = msgspec.structs.replace(marker, logs=left, logs_checksum=checksum(left))
        disk.save(f"{path}/{FILE}", msgspec.json.encode(marker))


def take_clean_shutdown(disk: Disk, place: Place) -> Stop | None:
    """Remove the markers, durably; None unless they are all of the same stop."""
    found: list[Marker | None] = []
    for directory, directory_id in place.directories:
        path = f"{directory}/{FILE}"
        content = disk.read_file(path)
        found.append(None if content is None else marker_in(content, place, directory_id))
        if content is not None:
            disk.remove(path)
            disk.sync([directory])
    markers = [marker for marker in found if marker is not None]
    if not markers or len(markers) < len(found) or len({marker.broker_epoch for marker in markers}) > 1:
        return None
    logs: Logs = {}
    try:
        for left in (left for marker in markers for left in marker.logs):
            logs.setdefault(left.at, []).append(left)
    except ValueError:
        return None
    return Stop(markers[0].broker_epoch, logs)


def marker_in(content: bytes, place: Place, directory_id: Uuid) -> Marker | None:
    """None if it makes no sense here."""
    try:
        marker = msgspec.json.decode(content, type=Marker)
    except msgspec.MsgspecError:
        return None
    of_here = Marker.of(place, directory_id, marker.broker_epoch)
    is_whole = marker.logs_checksum == checksum(marker.logs)
    is_ours = msgspec.structs.replace(marker, logs=(), logs_checksum=0) == of_here
    return marker if is_whole and is_ours else None
