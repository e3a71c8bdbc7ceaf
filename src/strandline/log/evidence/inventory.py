"""What a log is at a clean stop: a row for each stands in the stop's marker (`clean_shutdown`).

After a clean stop no log is checked batch by batch, and a checkpoint is believed. So a file that somebody truncates,
deletes, swaps or restores from a backup while the node is down would be believed too. The marker is written after the
last write to any log, and names the broker epoch, so an older directory cannot pass for the present one.

A row has the offsets that the checkpoints have, and
  - of each segment its size and checksums of its first and last bytes. If they differ, records may be gone: a segment
    that begins as it did is this log's own, shorter or longer; one that does not may be another log's.
  - `finders`, a checksum of the log's other files, whole. If it differs, they are built again, and no record is gone.

A bit that flips in the middle of a segment changes neither; reads and the batches' own checksums find it.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Self

from msgspec.structs import replace

from strandline.base.crc32c import crc32c
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import Disk
from strandline.base.value import Value
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.log.log import Log

RECORDS = ".log"
FINDERS = (".index", ".timeindex", ".txnindex", ".snapshot", EPOCHS_FILE)
EDGE_BYTES = 64  # of a segment, at its beginning and its end: the header of its first batch, the end of its last
IN_DOUBT = -1


class State(Enum):
    """What a log is, beside its row."""

    WHOLE = "as it was"
    FINDERS_CHANGED = "indexes, epochs or producers are not as they were"
    RECORDS_CHANGED = "its records are not as they were"
    UNLISTED = "it was not there"
    OFFLINE = "its directory was offline"


class SegmentRow(Value, frozen=True, array_like=True):
    base_offset: int
    size: int
    first_bytes: int  # checksums
    last_bytes: int


class Left(Value, frozen=True, array_like=True):
    """How a clean stop left a log. `high_watermark` and `cleaned_to` are those of the checkpoints."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    high_watermark: int
    cleaned_to: int | None
    segments: tuple[SegmentRow, ...]
    finders: int

    @classmethod
    def in_doubt(cls, at: TopicIdPartition, start: int, end: int) -> Self:
        """For a log that has lost records already, or is not there: no log is equal to it."""
        return cls("", uuid_text(at.topic_id), at.partition, start, end, 0, None, (), IN_DOUBT)

    @property
    def is_in_doubt(self) -> bool:
        return self.finders == IN_DOUBT

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def at(self) -> TopicIdPartition:
        """Raises ValueError."""
        return TopicIdPartition(parse_uuid(self.topic_id), self.partition)


def left(disk: Disk, name: TopicPartition, topic_id: Uuid, log: Log, high_watermark: int) -> Left:
    """After the last write to the log. Each segment has the size that the process gave it: what somebody took from it
    meanwhile the next start misses, as if that had happened since."""
    assert log.log_start_offset <= log.log_end_offset
    assert 0 <= high_watermark <= log.log_end_offset
    assert log.cleaned_to is None or log.cleaned_to <= log.log_end_offset
    return Left(
        topic=name.topic,
        topic_id=uuid_text(topic_id),
        partition=name.partition,
        start=log.log_start_offset,
        end=log.log_end_offset,
        high_watermark=high_watermark,
        cleaned_to=log.cleaned_to,
        segments=tuple(segments_of(disk, log)),
        finders=finders_in(disk, log.directory),
    )


def state_of(disk: Disk, directory: str, row: Left) -> State:
    if tuple(segments_in(disk, directory)) != row.segments:
        return State.RECORDS_CHANGED
    return State.WHOLE if finders_in(disk, directory) == row.finders else State.FINDERS_CHANGED


def own_segments(disk: Disk, directory: str, row: Left) -> list[int]:
    """Base offsets of the segments up to the first that is not as it was: that one too, if it begins as it did."""
    there = {segment.base_offset: segment for segment in segments_in(disk, directory)}
    own: list[int] = []
    for was in row.segments:
        now = there.get(was.base_offset)
        if now is None or (now.first_bytes, was.size == 0) != (was.first_bytes, now.size == 0):
            break
        own.append(was.base_offset)
        if now != was:
            break
    assert own == [was.base_offset for was in row.segments[: len(own)]], "a beginning of what was there"
    return own


def segments_of(disk: Disk, log: Log) -> Iterator[SegmentRow]:
    there = {row.base_offset: row for row in segments_in(disk, log.directory)}
    for segment in log.segments:
        found = there.get(segment.base_offset, SegmentRow(segment.base_offset, 0, 0, 0))
        yield replace(found, size=segment.size)


def segments_in(disk: Disk, directory: str) -> Iterator[SegmentRow]:
    for name in disk.list(directory):
        stem = name.removesuffix(RECORDS)
        if name.endswith(RECORDS) and stem.isascii() and stem.isdigit():
            file = disk.open(f"{directory}/{name}")
            try:
                size = file.size()
                last = file.read(max(0, size - EDGE_BYTES), EDGE_BYTES)
                yield SegmentRow(int(stem), size, crc32c(file.read(0, EDGE_BYTES)), crc32c(last))
            finally:
                file.close()


def finders_in(disk: Disk, directory: str) -> int:
    checksum = 0
    for name in disk.list(directory):
        if name.endswith(FINDERS):
            checksum = crc32c(disk.read_file(f"{directory}/{name}") or b"", crc32c(name.encode(), checksum))
    return checksum
