"""What the files beside a log's segments say of its batches, and which of these files cannot be right by themselves.

Kinds of rows:
  - flaw: an index or a snapshot that nobody can use; what a loss of power may leave lies above the recovery point;
  - time: the last entry of a time index, by which retention and the search for a timestamp choose a segment;
  - producer: a batch that the newest producer snapshot remembers.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.indexes.sparse import OFFSET_ENTRY, TIME_ENTRY
from strandline.log.producers.producer_snapshot import SUFFIX as SNAPSHOT
from strandline.log.producers.producer_snapshot import Damaged, decode, offsets_in
from strandline.log.producers.producers import Producers
from strandline.log.segment import file_name
from strandline.server.storage.disk import RealDisk
from strandline_spark.replica.errors import UnreadableLog
from strandline_spark.replica.located import Replica, SegmentFile
from strandline_spark.replica.places import content_of, segments

FLAW, TIME, PRODUCER = "flaw", "time", "producer"
REMEMBERED_MAX = 16  # of each log: the newest
TIMES = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
Row = dict[str, Any]


def beside_rows(replica: Replica) -> Iterator[Row]:
    """Raises `LogChanged`, `UnreadableLog`."""
    for file in segments(replica):
        yield from of_indexes(file)
    yield from of_snapshots(replica)


def of_indexes(file: SegmentFile) -> Iterator[Row]:
    offsets, times = content_of(file.beside(".index")), content_of(file.beside(".timeindex"))
    table = np.frombuffer(times or b"", TIMES, len(times or b"") // TIMES.itemsize)
    last = (int(table[-1]["timestamp"]), int(table[-1]["offset"])) if len(table) else (0, 0)
    if file.following is None:
        if last != (0, 0):  # Kafka allots zeros there before it needs them
            yield {"kind": TIME, "segment": file.base, "timestamp_ms": last[0], "offset": file.base + last[1]}
        return
    why = why_unusable(offsets, OFFSET_ENTRY.size)
    if why is not None:
        yield flaw("index", file.base, file.following, f"the offset index of segment {file.base} {why}")
    why = why_unusable(times, TIME_ENTRY.size) or why_disordered(table, file)
    if why is not None:
        yield flaw("time-index", file.base, file.following, f"the time index of segment {file.base} {why}")
    elif len(table):
        yield {"kind": TIME, "segment": file.base, "timestamp_ms": last[0], "offset": file.base + last[1]}


def why_unusable(content: bytes | None, entry: int) -> str | None:
    if content is None:
        return "is missing"
    return f"ends within an entry, at byte {len(content)}" if len(content) % entry else None


def why_disordered(table: np.ndarray[Any, Any], file: SegmentFile) -> str | None:
    offsets = table["offset"].astype(np.int64)
    if (np.diff(table["timestamp"].astype(np.int64)) <= 0).any() or (np.diff(offsets) <= 0).any():
        return "has an entry that is not above the one before it"
    assert file.following is not None
    if len(offsets) and not (offsets[0] >= 0 and file.base + offsets[-1] < file.following):
        return f"has offsets of other segments, up to {file.base + int(offsets[-1])}"
    return None


def of_snapshots(replica: Replica) -> Iterator[Row]:
    try:
        offsets = offsets_in(RealDisk(), replica.path)
    except DiskError as error:
        raise UnreadableLog(str(error)) from None
    for offset in offsets:
        name = file_name(offset, SNAPSHOT)
        content = content_of(f"{replica.path}/{name}")
        if content is None:
            continue  # retention took it, or the log is deleted just now
        try:
            producers = decode(content, Instant(0))
        except Damaged as error:
            yield flaw("producer-snapshot", offset, offset, f"{name} is damaged: {error}")
            continue
        if producers.end_offset > offset:
            what = f"{name} remembers a batch that ends at {producers.end_offset}, above it"
            yield flaw("producer-snapshot", offset, offset, what)
        elif offset == offsets[-1]:
            yield from remembered(offset, producers)


def remembered(snapshot: int, producers: Producers) -> Iterator[Row]:
    found = [(batch, each) for each, producer in producers.known.items() for batch in producer.batches]
    found.sort(key=lambda one: (-one[0].last_offset, one[1]))
    for batch, producer_id in found[:REMEMBERED_MAX]:
        yield {
            "kind": PRODUCER,
            "snapshot": snapshot,
            "remembered": batch.last_offset,
            "remembered_id": producer_id,
            "remembered_sequence": batch.last_sequence,
        }


def flaw(rule: str, offset: int, written_at: int, what: str) -> Row:
    """`written_at`: the file is durable if the recovery point is there, or above."""
    return {"kind": FLAW, "rule": rule, "offset": offset, "written_at": written_at, "what": what}
