"""Where a log is cut: truncation at its end, deletion of records and retention at its start.

Rules:
  - a truncation is named among what must be synced, so that a power loss after the next sync cannot undo it;
  - a truncation that takes batches of idempotent producers takes them from what is known of these;
  - the epochs are cut with the records, also where an epoch begins at the log's end and has none;
  - a crash in the middle leaves a log without a hole;
  - retention takes nothing above the high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.time import Instant
from strandline.log.epochs import Epochs
from strandline.log.producers import producer_snapshot
from strandline.log.segment import Segment

if TYPE_CHECKING:
    from strandline.log.log import Log


def truncate_to(log: Log, offset: int) -> None:
    """Cut everything from `offset` on (from the batch that holds it)."""
    if log.epochs.cut_end(offset):
        log.save_epochs()
    if offset >= log.log_end_offset:
        return
    if offset <= log.bases[0]:
        truncate_fully_and_start_at(log, max(offset, 0))
        return
    log.tail.clear()
    log.cuts += 1
    while log.active.base_offset >= offset and len(log.segments) > 1:
        log.bases.pop()
        log.segments.pop().delete()
        log.unsynced_others[log.directory] = None
    ends_in_gap = log.active.truncate_to(offset)
    # The next append may go to a new segment: then nothing but this makes the cut durable, and undone by a power
    # loss it would bring old batches back in front of newer ones.
    log.unsynced_others[log.active.path] = None
    log.warm = None
    log.log_end_offset = log.active.next_offset
    log.recovery_point = min(log.recovery_point, log.log_end_offset)
    cut_cleaned(log)
    log.log_start_offset = min(log.log_start_offset, log.log_end_offset)
    if log.epochs.cut_end(log.log_end_offset):
        log.save_epochs()
    producer_snapshot.cut_end(log)
    if ends_in_gap:
        log.roll(log.log_end_offset)  # or a start would find the log shorter: it has no other record of where it ends


def truncate_fully_and_start_at(log: Log, offset: int) -> None:
    """Throw everything away; the next record has `offset`."""
    log.tail.clear()
    log.cuts += 1
    producer_snapshot.cut_all(log)
    log.warm = None
    for segment in reversed(log.segments):  # a crash in the middle leaves a prefix, never a hole at the start
        segment.delete()
    log.segments = [Segment(log.disk, log.directory, offset, log.config.index_interval_bytes)]
    log.bases = [offset]
    log.log_start_offset = log.log_end_offset = log.recovery_point = offset
    cut_cleaned(log)
    log.epochs = Epochs()
    log.save_epochs()


def cut_cleaned(log: Log) -> None:
    """What comes in the place of what went has not been cleaned."""
    if log.cleaned_to is not None:
        log.cleaned_to = min(log.cleaned_to, log.log_end_offset)
    log.gaps_to = min(log.gaps_to, log.log_end_offset)


def advance_log_start(log: Log, offset: int) -> bool:
    """Records below `offset` are deleted (DeleteRecords); whole segments go at the next retention run."""
    if not log.log_start_offset < offset <= log.log_end_offset:
        return False
    log.log_start_offset = offset
    if log.epochs.cut_start(offset):
        log.save_epochs()
    return True


def delete_old_segments(log: Log, now: Instant, high_watermark: int) -> int:
    """Retention by log start, time and size; returns how many segments went. Nothing above the high watermark
    goes."""
    deletes = "delete" in log.config.cleanup_policy
    if deletes and log.active.size and is_expired(log, log.active, now) and log.log_end_offset <= high_watermark:
        log.roll(log.log_end_offset)
    size = log.size_bytes
    count = 0
    while len(log.segments) > 1 and log.bases[1] <= high_watermark:
        first = log.segments[0]
        too_large = 0 <= log.config.retention_bytes <= size - first.size
        due = log.bases[1] <= log.log_start_offset
        if not due and not (deletes and (too_large or is_expired(log, first, now))):
            break
        size -= first.size
        first.delete()
        log.unsynced_others[log.directory] = None
        del log.segments[0], log.bases[0]
        count += 1
    if count:
        log.log_start_offset = max(log.log_start_offset, log.bases[0])
        if log.epochs.cut_start(log.log_start_offset):
            log.save_epochs()
        producer_snapshot.cut_start(log)
    log.producers.forget_idle(now, log.config.producer_id_expiration_ms)
    return count


def is_expired(log: Log, segment: Segment, now: Instant) -> bool:
    newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.first_append
    return 0 <= log.config.retention_ms < now - newest
