"""The format of Kafka's `.snapshot` files, beside the segments: what was known of producers at an offset.

A producer has one row for each batch that is remembered of it, in order. Kafka writes the last one only, and of several
rows it believes the last; so each reads what the other wrote, and here a restart forgets nothing.
"""

from collections.abc import Iterable
from struct import Struct

from strandline.base.crc32c import crc32c
from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.log.producers.producers import Producer, Producers, Remembered, step_back
from strandline.log.segment import file_name

SUFFIX = ".snapshot"
VERSION = 1
HEAD = Struct(">hI")
COUNT = Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the
# transaction
ROW = Struct(">qhiqiqiq")
NONE = -1


class Damaged(ValueError):
    """A snapshot that is not whole, or not in Kafka's format."""


def encode(producers: Producers) -> bytes:
    rows = b"".join(  # guard: snapshot-without-open-transactions
        row
        for producer_id, producer in sorted(producers.known.items())
        for row in rows_of(producer_id, producer, producers.transactions.open.get(producer_id, NONE))
    )
    assert len(rows) % ROW.size == 0
    body = COUNT.pack(len(rows) // ROW.size) + rows
    return HEAD.pack(VERSION, crc32c(body)) + body


def rows_of(producer_id: int, producer: Producer, first_offset: int) -> Iterable[bytes]:
    rest = producer.coordinator_epoch, first_offset
    if not producer.batches:
        yield ROW.pack(producer_id, producer.epoch, NONE, NONE, 0, NONE, *rest)
    for one in producer.batches:
        delta = one.last_offset - one.base_offset
        yield ROW.pack(producer_id, producer.epoch, one.last_sequence, one.last_offset, delta, one.timestamp, *rest)


def decode(content: bytes, now: Instant) -> Producers:
    """`now` counts as the time when each of them was last heard of."""
    if len(content) < HEAD.size + COUNT.size:
        raise Damaged("cut off")
    version, crc = HEAD.unpack_from(content)
    body = content[HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        raise Damaged(f"version {version}, checksum {crc:08x}")
    (count,) = COUNT.unpack_from(body)
    if count * ROW.size != len(body) - COUNT.size:
        raise Damaged(f"{count} rows in {len(body)} bytes")
    producers = Producers()
    for producer_id, epoch, sequence, offset, delta, timestamp, *rest in ROW.iter_unpack(body[COUNT.size :]):
        batches = []
        if offset >= 0:
            batches = [Remembered(step_back(sequence, delta), sequence, offset - delta, offset, timestamp)]
        producers.restore(producer_id, epoch, batches, now, *rest)
    producers.transactions.sort()
    return producers


def path_of(directory: str, offset: int) -> str:
    assert offset >= 0
    return f"{directory}/{file_name(offset, SUFFIX)}"


def offsets_in(disk: Disk, directory: str) -> list[int]:
    stems = [name.removesuffix(SUFFIX) for name in disk.list(directory) if name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())
