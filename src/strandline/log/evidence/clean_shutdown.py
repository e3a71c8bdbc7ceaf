"""The clean-shutdown marker (KIP-966): written last at a controlled stop, with the broker epoch, and taken away first
at the next start.

A stop was clean if every log directory has a marker of that same stop, and they are the directories that stopped then.
A marker says whose it is, for a disk can come here from elsewhere: out of a backup, or swapped between two nodes (T28).
A directory that is no longer there, dead or alive, took replicas along that will begin empty in another one.

A directory that was offline at the stop has no marker of it. The others' markers name it and the replicas in it. When
it is back, the stop is still a clean one for the others, and its own logs are as after a crash.

A marker also says how the stop left each log (`inventory`). What the next start finds otherwise has lost records, or
may have: a truncated or deleted file, a folder out of a backup. The checkpoints cannot say that, since they can come
out of the same backup.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Self
from zlib import crc32

import msgspec

from strandline.base.ids import Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk, DiskError
from strandline.base.value import Value
from strandline.log.evidence.inventory import Left

FILE = ".kafka_cleanshutdown"


class Place(Value, frozen=True):
    """The log directories that a node has, by path."""

    cluster_id: str
    node_id: int
    directories: tuple[tuple[str, Uuid], ...]
    dead: int = 0  # directories that cannot be read, or written


LogsLeft = dict[str, tuple[Left, ...]]  # by the path of their log directory


class Stop(Value, frozen=True):
    """The last stop, which was clean."""

    broker_epoch: int
    logs: LogsLeft


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
    offline: dict[str, tuple[Left, ...]] = {}  # by the id of a directory that was offline: what lies there, in doubt

    @classmethod
    def of(cls, place: Place, directory_id: Uuid, broker_epoch: int) -> Self:
        together = tuple(sorted(uuid_text(each) for _, each in place.directories))
        # guard: marker-names-all-directories
        return cls(0, broker_epoch, place.cluster_id, place.node_id, uuid_text(directory_id), together, place.dead)


def checksum(logs: tuple[Left, ...], offline: Mapping[str, tuple[Left, ...]]) -> int:
    found = 1 + crc32(msgspec.json.encode(logs + tuple(row for rows in offline.values() for row in rows)))
    assert found > 0, "0 says that nothing is known"
    return found


def write_clean_shutdown(
    disk: Disk,
    place: Place,
    broker_epoch: int,
    logs: Mapping[str, tuple[Left, ...]] | None = None,
    offline: Mapping[Uuid, tuple[Left, ...]] | None = None,
) -> tuple[Uuid, DiskError] | None:
    """`logs`: those in each directory, by its path. `offline`: of directories that are offline, by their ids. Returns
    the first directory that takes no marker, and why: the stop is in order for none then."""
    assert place.directories, "a node has a log directory"
    assert broker_epoch >= -1
    absent = {uuid_text(directory_id): rows for directory_id, rows in (offline or {}).items()}
    for path, directory_id in place.directories:
        left = () if logs is None else logs.get(path, ())
        marker = Marker.of(place, directory_id, broker_epoch)
        marker = msgspec.structs.replace(marker, logs=left, logs_checksum=checksum(left, absent), offline=absent)
        try:
            disk.save(f"{path}/{FILE}", msgspec.json.encode(marker))
        except DiskError as error:
            return directory_id, error
    return None


def take_clean_shutdown(disk: Disk, place: Place) -> Stop | None:
    """Remove the markers, durably; None unless they are all of the same stop, and of all that stopped then. What lies
    in a directory that is back stands, in doubt, beside the logs of one that stopped."""
    assert place.directories, "a node has a log directory"
    found: dict[str, Marker] = {}
    for directory, directory_id in place.directories:
        path = f"{directory}/{FILE}"
        content = disk.read_file(path)
        marker = None if content is None else marker_in(content, place, directory_id)
        if marker is not None:
            found[directory] = marker
        if content is not None:
            disk.remove(path)  # guard: marker-outlives-the-start
            disk.sync([directory])
    epochs = [marker.broker_epoch for marker in found.values()]
    together = tuple(sorted(uuid_text(each) for directory, each in place.directories if directory in found))
    if len(set(epochs)) != 1 or any(marker.directory_ids != together for marker in found.values()):
        return None
    logs = {directory: marker.logs for directory, marker in found.items()}
    assert found, "a stop has left one marker at least"
    first, marker = next(iter(found.items()))
    for _, directory_id in place.directories:
        logs[first] += marker.offline.get(uuid_text(directory_id), ())
    return Stop(epochs[0], logs)


def marker_in(content: bytes, place: Place, directory_id: Uuid) -> Marker | None:
    """None if it makes no sense here."""
    marker = whole_marker(content)
    if marker is None:
        return None
    of_here = Marker.of(as_it_was(place, marker), directory_id, marker.broker_epoch)
    is_ours = msgspec.structs.replace(marker, logs=(), logs_checksum=0, offline={}) == of_here
    return marker if is_ours else None


def as_it_was(place: Place, marker: Marker) -> Place:
    """At the stop: a directory that was offline then, and is back, was a dead one."""
    there = tuple(row for row in place.directories if uuid_text(row[1]) not in marker.offline)
    dead = place.dead + len(place.directories) - len(there)
    assert dead >= place.dead
    return Place(place.cluster_id, place.node_id, there, dead)


def whole_marker(content: bytes) -> Marker | None:
    """None if it is damaged, or does not say how the stop left the logs."""
    try:
        marker = msgspec.json.decode(content, type=Marker)
        for row in chain(marker.logs, *marker.offline.values()):
            parse_uuid(row.topic_id)
    except (msgspec.MsgspecError, ValueError):
        return None
    return marker if marker.logs_checksum == checksum(marker.logs, marker.offline) else None
