"""What a log knows of idempotent producers, and the snapshot files in which that is written down (`producer_snapshot`).

With it goes the index of aborted transactions: both follow from the batches, and are read from them together.

A snapshot only saves reading: what it says, the batches below its offset said. One is written where a segment begins
and at a clean stop, so what is read of a log at its start, or after a truncation, is a segment's headers at most.

Invariants (executed by `check`, but for the second):
  - no snapshot is ahead of the log: those above its end are removed before anything is appended;
  - after an unclean stop none is believed that is not below the recovery point: that moves past a snapshot only when
    its file, and the removal of one that had its name before, are durable;
  - one that is damaged counts as none, and so do all if a batch is not where one of them says;
  - what is known of producers are batches that the log had.
"""

from collections.abc import Iterable

from strandline.base.time import Instant
from strandline.log.indexes.aborted import SUFFIX as INDEX_SUFFIX
from strandline.log.indexes.aborted import AbortedTransaction
from strandline.log.producers.producer_snapshot import SUFFIX, Damaged, decode, encode, offsets_in, path_of
from strandline.log.producers.producers import Producers
from strandline.log.producers.transactions import Ended
from strandline.log.segments import Segments
from strandline.wire.batch import BatchHeader


class ProducerState:
    def __init__(self, segments: Segments, expiration_ms: int) -> None:
        self.segments = segments
        self.disk = segments.disk
        self.directory = segments.directory
        self.unsynced = segments.unsynced
        self.expiration_ms = expiration_ms
        self.producers = Producers()
        self.has_aborted = False  # may there be entries in the indexes of aborted transactions?
        self.snapshots: list[int] = []  # the offsets at which `producers` was written down, sorted

    def take(self, offset: int) -> None:
        """Write down what is known at the log's end, unless that was done; `offset` is the next that is written, which
        may lie behind a gap. The file is synced with what the log has so far."""
        is_first = offset == self.segments.bases[0] and not self.producers.known
        if is_first or (self.snapshots and self.snapshots[-1] == offset):
            return
        assert not self.snapshots or self.snapshots[-1] < offset
        path = path_of(self.directory, offset)
        self.disk.write_file(path, encode(self.producers))
        self.snapshots.append(offset)
        self.unsynced.add(path, self.directory)

    def keep(self, kept: Iterable[int]) -> None:
        """Remove all other snapshots, the last ones first: a crash in the middle leaves those that are older."""
        kept = list(kept)
        for offset in reversed(self.snapshots):
            if offset not in kept:
                self.disk.remove(path_of(self.directory, offset))
                self.unsynced.add(self.directory)
        assert kept == sorted(set(kept)), "snapshots stay in order"
        self.snapshots = kept

    def drop(self, gone: Iterable[int]) -> None:
        """Segments with these base offsets are there no more."""
        without = set(gone)
        assert without.isdisjoint(self.segments.bases), "a segment that is there keeps its snapshot"
        self.keep([offset for offset in self.snapshots if offset not in without])

    # --- at a start

    def load(self, start: int, end: int, now: Instant, *, believed_below: int) -> None:
        """Find the snapshots, drop those that cannot be believed or belong to no segment, and learn the state of a log
        that begins at `start` and ends at `end`."""
        assert start <= end
        assert not self.producers.known and not self.snapshots, "loaded once"
        for name in self.disk.list(self.directory):
            self.has_aborted |= name.endswith(INDEX_SUFFIX)
            if name.endswith(f"{SUFFIX}.tmp"):
                self.disk.remove(f"{self.directory}/{name}")
        self.snapshots = offsets_in(self.disk, self.directory)
        # guard: producer-snapshot-ahead-of-the-log
        sound = [offset for offset in self.snapshots if offset <= end and offset < believed_below]
        bases = self.segments.bases
        # The newest may be of a clean stop, in the middle of the last segment.
        self.keep([offset for offset in sound if offset in bases or offset == sound[-1] > bases[-1]])
        self.rebuild(start, end, now)

    def rebuild(self, start: int, end: int, now: Instant) -> None:
        """From the newest snapshot that is not damaged, and from the headers behind it."""
        assert 0 <= start <= end
        assert not self.snapshots or self.snapshots[-1] <= end, "it would say more than the log"
        before = self.producers.transactions
        self.producers = Producers()
        unread = start
        while self.snapshots:
            offset = self.snapshots[-1]
            content = self.disk.read_file(path_of(self.directory, offset))
            try:
                found = decode(content or b"", now)
                if found.end_offset > offset:
                    raise Damaged(f"it names a batch that ends at {found.end_offset}")
                self.producers = found
            except Damaged:
                self.keep(self.snapshots[:-1])
                continue
            if any(producer.coordinator_epoch >= 0 for producer in found.known.values()):
                # guard: cut-marker-still-ends
                found.end_offset = offset  # where their markers are is not written down: a cut may take one
            self.producers.forget_gone(start, now, self.expiration_ms)
            unread = offset
            break
        self.producers.transactions.are_used |= before.are_used
        self.producers.transactions.ended = [one for one in before.ended if one.last_offset < unread]
        self.cut_aborted(unread, is_all=not self.snapshots)
        if unread < end:
            for header, marker in self.segments.marked_headers(unread):
                if header.producer_id >= 0:
                    self.ended(self.producers.appended(header, header.base_offset, now, marker=marker))

    def wait_for_markers(self, high_watermark: int, start: int, end: int, now: Instant) -> None:
        """A snapshot does not say of an ended transaction where it began, or where its marker is. If a marker may not
        be committed, what it ended is read from the batches."""
        if not any(producer.coordinator_epoch >= 0 for producer in self.producers.known.values()):
            return
        first = max(high_watermark, start)
        markers = (marker for _, marker in self.segments.marked_headers(first)) if first < end else ()
        if any(marker is not None for marker in markers):
            self.keep([offset for offset in self.snapshots if offset <= first])
            self.rebuild(start, end, now)

    def distrust(self, start: int, end: int, now: Instant) -> None:
        """A batch is not where it is remembered: only the log itself is believed."""
        self.keep([])
        self.rebuild(start, end, now)

    # --- following the log

    def mend(
        self, patch: Iterable[BatchHeader], start: int, end: int, now: Instant, log_start: int, log_end: int
    ) -> None:
        """Damaged batches in [start, end) were repaired with those of `patch`. What was learned from the damaged ones
        may be written down."""
        assert start < end
        patch = list(patch)
        if self.has_aborted or self.producers.transactions.are_used or any(header.is_transactional for header in patch):
            # Which transactions there are follows from the order of all batches.
            self.keep([offset for offset in self.snapshots if offset <= start])
            self.rebuild(log_start, log_end, now)
        elif self.producers.mend(patch, start, end, now):
            self.keep([offset for offset in self.snapshots if offset <= start])

    def cut_end(self, start: int, end: int, now: Instant) -> None:
        """The log was truncated to `end`. Only if a batch of a producer went must something be read."""
        # guard: producer-snapshot-survives-truncation
        self.keep([offset for offset in self.snapshots if offset <= end])
        self.cut_aborted(end)
        if self.producers.end_offset > end:  # guard: cut-batches-stay-open
            self.rebuild(start, end, now)

    def cut_start(self) -> None:
        """Segments were deleted. A producer that wrote to them is remembered until it is idle, and by the snapshots
        that remain."""
        self.keep([offset for offset in self.snapshots if offset >= self.segments.bases[0]])

    def cut_all(self) -> None:
        """Before the whole log goes."""
        self.keep([])
        self.producers = Producers()

    # --- aborted transactions

    def ended(self, transaction: Ended | None) -> None:
        """A marker was appended. An aborted transaction is entered beside the segment that has the marker."""
        if transaction is None or not transaction.is_aborted:
            return
        first_open = self.producers.transactions.first_open
        stable_end = transaction.last_offset + 1 if first_open is None else first_open
        segment = self.segments.from_offset(transaction.last_offset)[0]
        entry = AbortedTransaction(
            transaction.producer_id, transaction.first_offset, transaction.last_offset, stable_end
        )
        segment.aborted.append(entry)
        self.has_aborted = True
        self.unsynced.add(segment.aborted.path, self.directory)

    def cut_aborted(self, offset: int, *, is_all: bool = False) -> None:
        """Forget the aborted transactions whose markers lie at `offset` or behind it. `is_all`: nothing is wanted of
        those before it, in its segment, either."""
        # guard: aborted-index-outlives-truncation
        for segment in self.segments.from_offset(offset) if self.has_aborted else ():
            index = segment.aborted
            if index.clear() if is_all or segment.base_offset >= offset else index.truncate(offset):
                self.unsynced.add(segment.aborted.path, self.directory)

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start, end), by their markers' offsets.

        The markers may lie far behind `end`. An entry says up to where everything was decided when it was written: no
        later one is about earlier records."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.from_offset(start):
            for entry in segment.aborted.ended_from(start):
                if entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return found
        return found

    def forget_idle(self, now: Instant) -> None:
        self.producers.forget_idle(now, self.expiration_ms)

    def reconfigure(self, expiration_ms: int) -> None:
        assert expiration_ms > 0
        self.expiration_ms = expiration_ms

    def check(self, log_end_offset: int) -> None:
        self.producers.check()
        assert self.snapshots == sorted(set(self.snapshots)), "snapshots are out of order"
        assert not self.snapshots or self.snapshots[-1] <= log_end_offset, "a snapshot is ahead of the log"
        assert self.producers.end_offset <= log_end_offset, "a producer's batch lies behind the log's end"
