"""The clean-shutdown marker (KIP-966): written last at a controlled stop, with the broker epoch, and taken away first
at the next start.

A stop was clean if every log directory has a marker of that same stop, and they are the directories that stopped then.
A marker says whose it is, for a disk can come here from elsewhere: out of a backup, or swapped between two nodes (T28).
A directory that is no longer there, dead or alive, took replicas along that will begin empty in another one.
"""

from typing import Self

import msgspec

from strandline.base.ids import Uuid, uuid_text
from strandline.base.ports import Disk
from strandline.base.value import Value

FILE = ".kafka_cleanshutdown"


class Place(Value, frozen=True):
    """The log directories that a node has, by path."""

    cluster_id: str
    node_id: int
    directories: tuple[tuple[str, Uuid], ...]
    dead: int = 0  # directories that cannot be read, or written


class Marker(msgspec.Struct, frozen=True, rename="camel"):
    """Kafka has the first two fields. What lacks the others is of another place, for all that anybody knows."""

    version: int
    broker_epoch: int
    cluster_id: str = ""
    node_id: int = -1
    directory_id: str = ""
    directory_ids: tuple[str, ...] = ()  # of all that stopped together
    dead_directories: int = 0

    @classmethod
    def of(cls, place: Place, directory_id: Uuid, broker_epoch: int) -> Self:
        together = tuple(sorted(uuid_text(each) for _, each in place.directories))
        return cls(0, broker_epoch, place.cluster_id, place.node_id, uuid_text(directory_id), together, place.dead)


def write_clean_shutdown(disk: Disk, place: Place, broker_epoch: int) -> None:
    for path, directory_id in place.directories:
        disk.save(f"{path}/{FILE}", msgspec.json.encode(Marker.of(place, directory_id, broker_epoch)))


def take_clean_shutdown(disk: Disk, place: Place) -> int | None:
    """Remove the markers, durably; return the broker epoch that they all name, else None."""
    epochs: list[int | None] = []
    for directory, directory_id in place.directories:
        path = f"{directory}/{FILE}"
        content = disk.read_file(path)
        epochs.append(None if content is None else epoch_in(content, place, directory_id))
        if content is not None:
            disk.remove(path)
            disk.sync([directory])
    return epochs[0] if epochs and len(set(epochs)) == 1 else None


def epoch_in(content: bytes, place: Place, directory_id: Uuid) -> int | None:
    """None if it makes no sense here."""
    try:
        marker = msgspec.json.decode(content, type=Marker)
    except msgspec.MsgspecError:
        return None
    return marker.broker_epoch if marker == Marker.of(place, directory_id, marker.broker_epoch) else None
