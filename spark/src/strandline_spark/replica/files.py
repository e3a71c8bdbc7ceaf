"""The rows of the levels that are about a log's other files: segments, indexes, checkpoints, epochs."""

import os
from collections.abc import Callable, Iterator
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.base.ports import DiskError
from strandline.log.checkpoints import Unreadable, parse_epochs, parse_offsets
from strandline.log.evidence.clean_shutdown import FILE as CLEAN_SHUTDOWN
from strandline.log.indexes.sparse import TIME_ENTRY
from strandline.log.producers.producer_snapshot import SUFFIX as SNAPSHOT
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from strandline.server.storage.disk import RealDisk
from strandline_spark.replica.errors import LogChanged
from strandline_spark.replica.located import Replica, SegmentFile
from strandline_spark.replica.places import content_of, epochs_content, segments
from strandline_spark.replica.planning import index_entries, is_batch, raw_entries
from strandline_spark.replica.windows import File, end_offset_of

Row = dict[str, Any]


def segment_rows(replica: Replica) -> Iterator[Row]:
    """One for each segment. What an index says is taken as it is."""
    for file in segments(replica):
        offsets = raw_entries(content_of(file.beside(".index")))
        yield {
            "segment": file.base,
            "size": file.size,
            "is_active": file.is_active,
            "index_entries": len(offsets),
            "index_last_offset": file.base + offsets[-1][0] if offsets else None,
            "time_index_entries": time_entries(file),
            "producer_snapshot": os.path.exists(file.beside(SNAPSHOT)),
        }


def time_entries(file: SegmentFile) -> int:
    """Without the zeros that Kafka allots before it needs them."""
    content = content_of(file.beside(".timeindex")) or b""
    found = list(TIME_ENTRY.iter_unpack(content[: len(content) - len(content) % TIME_ENTRY.size]))
    while found and found[-1] == (0, 0):
        found.pop()
    return len(found)


def index_rows(replica: Replica) -> Iterator[Row]:
    """One for each entry of the offset indexes, also where it makes no sense; offsets are absolute."""
    for file in segments(replica):
        for entry, (offset, position) in enumerate(raw_entries(content_of(file.beside(".index")))):
            yield {"segment": file.base, "entry": entry, "offset": file.base + offset, "position": position}


def checkpoint_rows(replica: Replica) -> Iterator[Row]:
    """One for each log: what its directory's checkpoints say of it; null if they do not, or cannot be read."""
    at = TopicPartition(replica.topic, replica.partition)
    disk = RealDisk()

    def of(file: str) -> int | None:
        try:
            content = disk.read_file(f"{replica.directory}/{file}")
            return None if content is None else parse_offsets(content).get(at)
        except (DiskError, Unreadable):
            return None

    high_watermark, recovery_point, log_start = of(HIGH_WATERMARKS), of(RECOVERY_POINTS), of(LOG_STARTS)
    cleaned_to = of(CLEANED)
    files = segments(replica)  # after the checkpoints: the log only grows
    yield {
        "high_watermark": high_watermark,
        "recovery_point": recovery_point,
        "log_start_offset": files[0].base if log_start is None and files else log_start,
        "clean_shutdown": os.path.exists(f"{replica.directory}/{CLEAN_SHUTDOWN}"),
        "log_end_offset": log_end_offset(files[-1]) if files else None,
        "cleaned_to": cleaned_to,
    }


def log_end_offset(file: SegmentFile) -> int | None:
    """The offset after the last complete batch, from the last entry of the index on that can be believed. None if the
    log is deleted just now."""
    start = 0
    try:
        with File(file) as opened:
            start = next((p for o, p in reversed(index_entries(file)) if is_batch(opened, p, o)), 0)
    except LogChanged:
        pass
    try:
        return end_offset_of(file.path, file.base, start)
    except (LogChanged, FileNotFoundError):
        return None


def epoch_rows(replica: Replica) -> Iterator[Row]:
    """One for each entry of the log's epochs' checkpoint; none if it cannot be read."""
    content = epochs_content(replica)
    try:
        entries = parse_epochs(content) if content is not None else []
    except Unreadable:
        entries = []
    for entry in entries:
        yield {"leader_epoch": entry.epoch, "start_offset": entry.start_offset}


ROWS_OF: dict[str, Callable[[Replica], Iterator[Row]]] = {
    "segment": segment_rows,
    "index": index_rows,
    "checkpoint": checkpoint_rows,
    "epoch": epoch_rows,
}
