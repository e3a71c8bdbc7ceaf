"""What of a log that lies on disk may be trusted? Its segments are loaded here, or checked and cut.

Invariants:
  - after a clean stop nothing is read but indexes and the end of the last segment, unless these do not fit together;
  - after an unclean one every batch from the recovery point on is checked, and nothing is kept behind the first that is
    not right;
  - the epochs that remain are those of the batches. After a clean stop the inventory has shown that the file is as it
    was; after another one it is compared with the batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.log.checkpoints import Unreadable, parse_epochs
from strandline.log.cleaning.swapping import finish_swaps
from strandline.log.epochs import Epochs, EpochStart
from strandline.log.evidence.proof import is_proved
from strandline.log.segment import Segment
from strandline.wire.batch import BatchHeader

if TYPE_CHECKING:
    from strandline.log.log import Log

EPOCHS_FILE = "leader-epoch-checkpoint"


def load_segments(
    log: Log, now: Instant, *, clean: bool, recovery_point: int, log_start_offset: int
) -> list[EpochStart]:
    """Give `log` its segments and epochs; returns the epochs as the file had them."""
    if finish_swaps(log.disk, log.directory):
        log.unsynced_others[log.directory] = None
    bases = list_segments(log.disk, log.directory)
    log.epochs = read_epochs(log.disk, log.directory)
    entries = list(log.epochs.entries)
    is_believed = bool(entries)
    for at, base in enumerate(bases):
        segment = Segment(log.disk, log.directory, base, log.config.index_interval_bytes)
        following = bases[at + 1] if at + 1 < len(bases) else None
        log.add(segment)
        if is_believed and not clean:
            is_believed = is_proved(log, log_start_offset)
        # A segment that begins at the recovery point itself may be a leftover of before a truncation to there, so the
        # one in front of it is checked. This is a second guard: were that one trusted, `ends_at` below would still see
        # that its batches do not go on to the leftover.
        is_trusted = clean or (following is not None and following < recovery_point)
        # Even then the disk may be older than what the stop left on it, or rotten. After a clean stop the inventory has
        # shown that segments have their sizes; after another one the end of each is read.
        whole = is_trusted and segment.load(next_base=following, gaps=log.has_gaps)
        if whole and following is not None and not clean:
            whole = ends_at(log, segment, following)
        if not whole:
            whole = recover(log, segment, following)
        elif not is_believed:
            learn_epochs(log.epochs, segment.headers(0))
        segment.started(now)
        if following is not None:
            # Indexes that were built anew must be as durable as the segment before it is trusted again: the medium may
            # still have others, of batches that a truncation took.
            log.unsynced_others |= dict.fromkeys(segment.settle())
            segment.release()
        if not whole:
            log.was_cut = True
            drop_files(log, bases[at + 1 :])
            break
    return entries


def list_segments(disk: Disk, directory: str) -> list[int]:
    """Base offsets, sorted; leftovers of deletions and indexes without a segment are removed."""
    names = disk.list(directory)
    stems = {name.removesuffix(".log") for name in names if name.endswith(".log")}
    for name in names:
        orphan = name.endswith((".index", ".timeindex")) and name.split(".")[0] not in stems
        if orphan or name.endswith(".deleted"):
            disk.remove(f"{directory}/{name}")
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())


def read_epochs(disk: Disk, directory: str) -> Epochs:
    """Empty if there is no file that can be read, or if it is out of order: then the batches tell."""
    content = disk.read_file(f"{directory}/{EPOCHS_FILE}")
    try:
        entries = [] if content is None else parse_epochs(content)
    except Unreadable:
        entries = []
    epochs = Epochs(entries)
    return epochs if epochs.entries == entries else Epochs()


def learn_epochs(epochs: Epochs, headers: Iterable[BatchHeader]) -> None:
    for header in headers:
        if header.partition_leader_epoch > epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)


def recover(log: Log, segment: Segment, following: int | None) -> bool:
    """Check a segment; False if what lies behind it can not be continued: because something was cut off here, was lost,
    or because the next segment is a leftover of before a truncation that begins in the middle of this one."""
    size = segment.size
    log.epochs.cut_end(segment.base_offset)  # from here on the batches know better than the file
    learn_epochs(log.epochs, segment.recover(log.epochs.latest, gaps=log.has_gaps))
    if segment.size < size:
        return False
    return following is None or is_continued(log, segment.next_offset, following)


def ends_at(log: Log, segment: Segment, following: int) -> bool:
    """Do the batches of a trusted segment go on to where the next one begins?"""
    if not segment.walk_on(gaps=log.has_gaps):
        return False
    found, segment.next_offset = segment.next_offset, following
    return is_continued(log, found, following)


def is_continued(log: Log, end: int, following: int) -> bool:
    """Only where a cleaner was may a segment end before the next one begins."""
    return end == following or end < following <= (log.cleaned_to or 0)


def drop_files(log: Log, bases: list[int]) -> None:
    for base in reversed(bases):
        Segment(log.disk, log.directory, base, log.config.index_interval_bytes).delete()
    log.unsynced_others[log.directory] = None
