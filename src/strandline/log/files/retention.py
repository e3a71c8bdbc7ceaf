"""Which segments retention deletes: by the log's start, by time, and by size.

Invariants:
  - nothing above the high watermark goes, and never the active segment;
  - segments go from the front, so no hole is left.
"""

from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.segment import Segment
from strandline.log.segments import Segments


def count_due(segments: Segments, config: LogConfig, log_start_offset: int, high_watermark: int, now: Instant) -> int:
    """How many of the first segments may go, and should."""
    deletes = "delete" in config.cleanup_policy
    size = segments.size_bytes
    count = 0
    for segment, following in zip(segments, segments.bases[1:], strict=False):
        if following > high_watermark:
            break
        too_large = 0 <= config.retention_bytes <= size - segment.size
        due = following <= log_start_offset
        if not due and not (deletes and (too_large or is_expired(segment, config, now))):
            break
        size -= segment.size
        count += 1
    assert count < len(segments), "the active segment stays"
    assert count == 0 or segments.bases[count] <= high_watermark
    return count


def is_active_due(active: Segment, config: LogConfig, high_watermark: int, now: Instant) -> bool:
    """Are all records of the active segment expired? Then it is sealed, so that it can go."""
    if "delete" not in config.cleanup_policy or not active.size:
        return False
    return is_expired(active, config, now) and active.next_offset <= high_watermark


def is_expired(segment: Segment, config: LogConfig, now: Instant) -> bool:
    newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.first_append
    return 0 <= config.retention_ms < now - newest
