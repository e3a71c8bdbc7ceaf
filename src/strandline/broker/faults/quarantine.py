"""Requests that stopped a node, which nothing of this cluster handles again.

A request is known by a digest of what it asks: the API, its version and its fields, but not the client or the
correlation id, so that it is known when a client sends it again, or when a broker passes it on. A Produce is known by
its producer and records, since a leader writes offsets and times into the batches themselves.

Each node keeps the list in a file of its own, and gets the digests that other nodes find. The list holds for one
version of Strandline: another one may handle the request well.
"""

from contextlib import suppress
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from strandline.base import VERSION
from strandline.base.ports import Buffer, Disk, DiskError
from strandline.base.value import Value
from strandline.wire.batch import HEADER_SIZE
from strandline.wire.codec import encode_bytes
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.schema import Message

FILE = "quarantined-requests"  # in the directory of the metadata log
KEPT_MAX = 1_000
PRODUCER_AT, COUNT_AT = 43, 57  # of a batch's header: producer id, epoch and first sequence


class Quarantined(Value, frozen=True):
    api_key: int
    version: int
    digest: str


class Listed(Value, frozen=True):
    """The file."""

    strandline: str
    requests: tuple[Quarantined, ...]


def fingerprint(api_key: int, version: int, message: Message) -> Quarantined:
    digest = blake2b(digest_size=16)
    if isinstance(message, ProduceRequest):
        for topic in message.topic_data:
            digest.update(f"{topic.name} {topic.topic_id!r}".encode())
            for data in topic.partition_data:
                digest.update(f" {data.index}:".encode())
                for part in as_sent(data.records):
                    digest.update(part)
        topics = tuple(replace(topic, partition_data=()) for topic in message.topic_data)
        message = replace(message, topic_data=topics)
    digest.update(encode_bytes(message, version))
    return Quarantined(api_key, version, digest.hexdigest())


def as_sent(records: Any) -> tuple[Buffer, ...]:
    """The parts of a batch that a leader does not change."""
    view = memoryview(records or b"")
    return (view[PRODUCER_AT:COUNT_AT], view[HEADER_SIZE:]) if len(view) >= HEADER_SIZE else (view,)


class Quarantine:
    def __init__(self, disk: Disk, folder: str) -> None:
        self.disk = disk
        self.path = f"{folder}/{FILE}"
        self.found: dict[Quarantined, None] = dict.fromkeys(read(disk, self.path))

    def holds(self, api_key: int, version: int, message: Any) -> bool:
        return fingerprint(api_key, version, message) in self.found

    def names(self, api_key: int) -> bool:
        """Is there any request of this API? If not, nothing needs to be compared."""
        return any(one.api_key == api_key for one in self.found)

    def add(self, requests: tuple[Quarantined, ...]) -> bool:
        """False if all are known. The newest are kept."""
        if all(one in self.found for one in requests):
            return False
        for one in requests:
            self.found.pop(one, None)
            self.found[one] = None
        for one in list(self.found)[:-KEPT_MAX]:
            del self.found[one]
        assert len(self.found) <= KEPT_MAX
        with suppress(DiskError):  # then this process alone remembers
            self.disk.save(self.path, msgspec.json.encode(Listed(VERSION, tuple(self.found))))
        return True


def read(disk: Disk, path: str) -> tuple[Quarantined, ...]:
    """An unreadable list counts as empty: without it a request may stop this node once more, and is listed again."""
    try:
        content = disk.read_file(path)
        listed = None if content is None else msgspec.json.decode(content, type=Listed)
    except (DiskError, msgspec.DecodeError, msgspec.ValidationError):
        return ()
    return () if listed is None or listed.strandline != VERSION else listed.requests[-KEPT_MAX:]
