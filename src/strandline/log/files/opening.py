"""Which files of a log on disk may be trusted? Segments are loaded here, or checked and cut.

Invariants:
  - after a clean stop nothing is read but indexes and the end of the last segment, unless these do not fit together;
  - after an unclean one every batch from the recovery point on is checked, and nothing is kept behind the first that is
    not right;
  - the epochs that remain are those of the batches. After a clean stop the inventory has shown that the file is as it
    was; after another one it is compared with the batches.
"""

from collections.abc import Iterable

from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.epochs import Epochs, EpochStart
from strandline.log.files.epoch_file import read_epochs
from strandline.log.files.proof import contradiction
from strandline.log.files.swapping import finish_swaps
from strandline.log.gaps import Gaps
from strandline.log.segment import Segment
from strandline.log.segments import Segments
from strandline.wire.batch import BatchHeader


class Loaded(Value, frozen=True):
    """What was found beside the segments."""

    epochs: Epochs  # that count
    entries: list[EpochStart]  # as the file had them
    was_cut: bool  # what lay on disk was not whole


def load_segments(
    segments: Segments,
    gaps: Gaps,
    interval_bytes: int,
    now: Instant,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
) -> Loaded:
    """Add to `segments` what lies on disk, as far as it can be trusted."""
    assert not segments
    disk, directory, unsynced = segments.disk, segments.directory, segments.unsynced
    if finish_swaps(disk, directory):  # guard: swap-not-finished-at-start
        unsynced.add(directory)
    bases = list_segments(disk, directory)
    epochs = read_epochs(disk, directory)
    entries = list(epochs.entries)
    is_believed = bool(entries)
    for at, base in enumerate(bases):
        segment = Segment(disk, directory, base, interval_bytes)
        following = bases[at + 1] if at + 1 < len(bases) else None
        segments.add(segment)
        if is_believed and not clean:
            proved = contradiction(epochs, segments, log_start_offset)
            epochs, is_believed = (epochs, True) if proved is None else (proved, False)
        # A segment that begins at the recovery point itself may be a leftover of before a truncation to there, so the
        # one in front of it is checked. This is a second guard: were that one trusted, `ends_at` below would still see
        # that its batches do not go on to the leftover.
        is_trusted = clean or (following is not None and following < recovery_point)
        # Even then the disk may be older than what the stop left on it, or rotten. After a clean stop the inventory has
        # shown that segments have their sizes; after another one the end of each is read.
        whole = is_trusted and segment.load(next_base=following, gaps=gaps.are_possible)
        if whole and following is not None and not clean:
            whole = ends_at(segment, gaps, following)
        if not whole:
            whole = recover(segment, epochs, gaps, following)
        elif not is_believed:
            learn_epochs(epochs, segment.headers(0))
        segment.started(now)
        if following is not None:
            # Indexes that were built anew must be as durable as the segment before it is trusted again: the medium may
            # still have others, of batches that a truncation took.
            unsynced.add(*segment.flush_indexes())
            segment.release()
        if not whole:
            drop_files(segments, bases[at + 1 :], interval_bytes)
            return Loaded(epochs, entries, was_cut=True)
    assert segments.bases == bases, "what was not cut is there"
    return Loaded(epochs, entries, was_cut=False)


def list_segments(disk: Disk, directory: str) -> list[int]:
    """Base offsets, sorted; leftovers of deletions and indexes without a segment are removed."""
    names = disk.list(directory)
    stems = {name.removesuffix(".log") for name in names if name.endswith(".log")}
    for name in names:
        orphan = name.endswith((".index", ".timeindex", ".txnindex")) and name.split(".")[0] not in stems
        if orphan or name.endswith(".deleted"):
            disk.remove(f"{directory}/{name}")
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())


def learn_epochs(epochs: Epochs, headers: Iterable[BatchHeader]) -> None:
    for header in headers:
        if header.partition_leader_epoch > epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)


def recover(segment: Segment, epochs: Epochs, gaps: Gaps, following: int | None) -> bool:
    """Check a segment; False if what lies behind it can not be continued: because something was cut off here, was lost,
    or because the next segment is a leftover of before a truncation that begins in the middle of this one."""
    size = segment.size
    epochs.cut_end(segment.base_offset)  # from here on the batches know better than the file
    learn_epochs(epochs, segment.recover(epochs.latest, gaps=gaps.are_possible))
    assert segment.size <= size
    if segment.size < size:
        return False
    return following is None or is_continued(gaps, segment.next_offset, following)


def ends_at(segment: Segment, gaps: Gaps, following: int) -> bool:
    """Do the batches of a trusted segment go on to where the next one begins?"""
    assert segment.base_offset < following
    if not segment.walk_on(gaps=gaps.are_possible):
        return False
    found, segment.next_offset = segment.next_offset, following
    return is_continued(gaps, found, following)


def is_continued(gaps: Gaps, end: int, following: int) -> bool:
    """Only where a cleaner was may a segment end before the next one begins."""
    return end == following or gaps.may_separate(end, following)  # guard: lost-segment-taken-for-a-gap


def drop_files(segments: Segments, bases: list[int], interval_bytes: int) -> None:
    assert all(base > segments.active.base_offset for base in bases), "only what lies behind the cut is dropped"
    for base in reversed(bases):
        Segment(segments.disk, segments.directory, base, interval_bytes).delete()
    segments.unsynced.add(segments.directory)
