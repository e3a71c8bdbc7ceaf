"""What of a log may be compacted, and how urgent that is (Kafka's LogCleanerManager).

Invariants:
  - whole segments only, and never the active one;
  - nothing at or above the high watermark or the last stable offset: it may yet be cut;
  - nothing that is not durable: or a loss of power could take the record for which older ones of its key went;
  - nothing younger than `min.compaction.lag.ms`.
"""

from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.config import LONG_MAX
from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.wire.batch import HEADER_SIZE, read_header


class Cleanable(Value, frozen=True):
    """[first_dirty, end) is to be compacted; `end` is where a segment begins."""

    first_dirty: int
    end: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int  # for how long a record has been older than `max.compaction.lag.ms`

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, min_ratio: float) -> bool:
        return self.dirty_bytes > 0 and (self.overdue_ms > 0 or self.dirty_ratio > min_ratio)


def cleanable(log: Log, stable_end: int, now: Instant, durable_end: int | None = None) -> Cleanable:
    """`stable_end`: the high watermark, or the last stable offset if that is lower. `durable_end`: below which offset
    all would be durable, to learn what a flush would allow."""
    first_dirty = log.log_start_offset if log.cleaned_to is None else log.cleaned_to
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    sealed = list(zip(log.segments, log.bases[1:], strict=False))
    bound = min(stable_end, log.recovery_point)  # guard: cleaned-above-the-high-watermark
    if durable_end is not None:
        bound = min(stable_end, durable_end)
    end = log.bases[0]
    clean = dirty = 0
    oldest = LONG_MAX
    for segment, following in sealed:
        is_dirty = following > first_dirty
        if following > bound or (is_dirty and is_too_young(log, segment, now)):
            break
        end = following
        clean += 0 if is_dirty else segment.size
        dirty += segment.size if is_dirty else 0
    overdue = 0
    if log.config.max_compaction_lag_ms < LONG_MAX:
        for segment, following in sealed:
            if following > first_dirty and segment.size:
                oldest = min(oldest, first_timestamp(segment))
                log.segments.rest(segment)
        overdue = max(0, now - log.config.max_compaction_lag_ms - oldest)
    assert end in log.bases and end <= max(bound, log.bases[0]), "whole segments, below what is durable and committed"
    assert clean >= 0 and dirty >= 0
    return Cleanable(first_dirty, max(end, first_dirty), clean, dirty, overdue)


def is_too_young(log: Log, segment: Segment, now: Instant) -> bool:
    assert segment is not log.active
    lag = log.config.min_compaction_lag_ms
    return lag > 0 and segment.max_timestamp > now - lag


def first_timestamp(segment: Segment) -> int:
    """The time of its first batch; a batch without a time is not waited for."""
    assert segment.size, "it has no batch"
    first = segment.file.read(0, HEADER_SIZE)
    if len(first) < HEADER_SIZE:
        return LONG_MAX  # damage: the pass will find it
    header = read_header(first)
    stamp = header.max_timestamp if header.has_delete_horizon or not header.record_count else header.base_timestamp
    return stamp if stamp > 0 else LONG_MAX
