"""The committed metadata, applied: from the quorum's log to this node's image.

All of the log is replayed once at the start, also what is not known to be committed yet: a voter must know that it can
apply what it has before it stands for election. What comes later is checked when it is committed. Where a record cannot
be applied (`metadata/fitting.py`) the image stays as it is before that record's batch; what becomes of the node is
decided in `quorum/damage/unfit.py` and by `Node.give_up`.

A step applies a bounded number of records, since everybody else waits for it; what is left over, `has_more`, is applied
in steps soon after. The bound counts records and no time, so that a run of the simulator stays the same. A batch
with more records than that is applied to a draft, and counts when the draft is whole.

Invariants:
  - the image is the replay of a prefix of the committed log, `end` records long and made of whole batches; it never
    runs ahead of the high watermark;
  - nothing is skipped: where something cannot be read or applied the image ends, and no snapshot reaches further;
  - no snapshot ends within a transaction (KIP-868), whose records are not yet in the image.
"""

from msgspec import Struct

from strandline.base.effects import Effect, Report
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker.draft import Draft, why_not_applied
from strandline.metadata.framing import encode_record
from strandline.metadata.image import Image
from strandline.quorum.ports import CommittedBatch, EpochEnd, SnapshotId, Unfit
from strandline.quorum.storage.metadata_log import QUORUM_STATE, MetadataLog

SNAPSHOT_BYTES = 20 << 20  # metadata.log.max.record.bytes.between.snapshots
SNAPSHOT_MS = 3_600_000  # metadata.log.max.snapshot.interval.ms
STEP_RECORDS = 500  # about 10 ms of them


class ReplayedAhead(Struct):
    """The log, replayed to its end before anybody knew how much of it is committed."""

    image: Image
    start: int
    end: EpochEnd
    size: int  # bytes of records


class Committed:
    def __init__(self, log: MetadataLog, snapshot_bytes: int = SNAPSHOT_BYTES, snapshot_ms: int = SNAPSHOT_MS) -> None:
        """Raises DiskError if there is nothing that the log could be replayed from."""
        self.log = log
        self.image = Image()
        self.end = 0
        self.step_records = STEP_RECORDS
        self.draft: Draft | None = None
        self.has_more = False  # more is committed than the last step applied
        self.unfit: Unfit | None = None  # what keeps the image from going on
        self.faults = 0  # how often something could not be applied
        self.bytes_since_snapshot = 0
        self.snapshot_bytes = snapshot_bytes
        self.snapshot_ms = snapshot_ms  # 0: age alone is no reason
        self.new_since: Instant | None = None  # when the oldest record was applied that no snapshot has
        self.news: list[Effect] = []
        self.loaded: tuple[SnapshotId | None, Image] | None = None  # where the replay at the start began
        self.ahead: ReplayedAhead | None = None
        self.found = self.replay_ahead()  # what the start found that cannot be applied, committed or not

    def advance(self, high_watermark: int, now: Instant) -> list[Effect]:
        """Apply what is below `high_watermark`, as much of it as one step may; the image's delta says what it changed.
        If it `has_more` then, call this again soon."""
        self.has_more = False
        if self.is_stuck:
            return []
        effects, self.news = self.news, []
        before = self.end
        snapshot = self.log.latest_snapshot()
        if snapshot is not None and snapshot.end_offset > self.end and self.log.log_start_offset > self.end:
            if not self.load_snapshot(snapshot):
                return effects
            effects.append(Report("info", f"loaded the metadata snapshot at offset {self.end}"))
        self.take_ahead(high_watermark)
        self.go_on(high_watermark)
        assert self.is_stuck or self.end >= before, "the image never goes back"
        assert self.end <= max(before, high_watermark), "nor ahead of what is committed"
        if self.bytes_since_snapshot and self.new_since is None:
            self.new_since = now
        if self.is_snapshot_due(now):
            self.save_snapshot(now)
            effects.append(Report("info", f"wrote a metadata snapshot at offset {self.end}"))
        return effects

    @property
    def is_stuck(self) -> bool:
        return self.unfit is not None

    def is_snapshot_due(self, now: Instant) -> bool:
        assert (self.new_since is not None) == (self.bytes_since_snapshot > 0), "what no snapshot has is as old as that"
        if self.image.transaction is not None:
            return False
        if self.bytes_since_snapshot >= self.snapshot_bytes:
            return True
        is_old = self.new_since is not None and now - self.new_since >= self.snapshot_ms
        return is_old and self.snapshot_ms > 0

    # --- replay

    def replay_ahead(self) -> Unfit | None:
        snapshot, image = self.begun()
        self.loaded = (snapshot, image)
        start, end = 0 if snapshot is None else snapshot.end_offset, self.log.log_end_offset
        if end == start:
            return None
        image = image.copy()
        size, unfit = self.apply(image, start, end)
        if unfit is None:
            self.ahead = ReplayedAhead(image, start, self.log.sound_below(end), size)
            assert self.ahead.end.end_offset == end
        return unfit

    def take_ahead(self, high_watermark: int) -> None:
        """By now all of it is committed, if the log still has it."""
        assert high_watermark >= 0
        ahead = self.ahead
        if ahead is None or high_watermark < ahead.end.end_offset:
            return
        self.ahead = None
        if self.end == ahead.start and self.log.sound_below(ahead.end.end_offset) == ahead.end:
            ahead.image.take_place_of(self.image)
            self.image, self.end = ahead.image, ahead.end.end_offset
            self.bytes_since_snapshot += ahead.size

    def begun(self) -> tuple[SnapshotId | None, Image]:
        """What lies below the log, from the newest snapshot that can be applied."""
        while self.log.log_start_offset > 0:
            snapshot = self.log.latest_snapshot()
            assert snapshot is not None, "the log begins at a snapshot"
            draft = Draft(Image(), self.log.read_snapshot(snapshot), snapshot)
            unfit = self.unfit_in_snapshot(snapshot, draft, draft.go_on())
            if unfit is None:
                return snapshot, draft.image
            if not self.log.set_aside(snapshot):
                text = f"{unfit.text}. Move all of {self.log.directory} but {QUORUM_STATE} elsewhere"
                raise DiskError(f"{text}: then this node copies it from the others")
            self.news.append(Report("error", f"{unfit.text}; an earlier snapshot takes its place"))
        return None, Image()

    def apply(self, image: Image, start: int, upto: int) -> tuple[int, Unfit | None]:
        """Returns how many bytes of records were applied, and what keeps the rest from it. Of that one's batch a part
        is applied, too."""
        assert start >= 0
        size = 0
        for batch in self.log.committed_batches(start, upto):
            unfit = self.apply_batch(image, batch)
            if unfit is not None:
                return size, unfit
            size += sum(map(len, batch.records))
        return size, None

    def apply_batch(self, image: Image, batch: CommittedBatch) -> Unfit | None:
        if batch.fault:
            return self.unfit_in(batch, batch.base_offset, batch.fault)
        first = batch.last_offset + 1 - len(batch.records)
        for at, payload in enumerate(batch.records):
            why = why_not_applied(image, payload)
            if why is not None:
                return self.unfit_in(batch, first + at, why)
        return None

    # --- in steps

    def go_on(self, high_watermark: int) -> None:
        """One step of what is committed, in whole batches."""
        if self.draft is not None:
            self.go_on_with(self.draft, high_watermark)
            return
        left = self.step_records
        for batch in self.log.committed_batches(self.end, high_watermark):
            if len(batch.records) > left:
                self.has_more = True
                if len(batch.records) > self.step_records and left == self.step_records:
                    self.draft = Draft(self.image.copy(), batch.records, batch)
                    self.go_on_with(self.draft, high_watermark)
                return
            self.unfit = self.apply_batch(self.image, batch)
            if self.unfit is not None:
                self.take_back(self.unfit)
                return
            left -= len(batch.records)
            self.end = batch.last_offset + 1
            self.bytes_since_snapshot += sum(map(len, batch.records))
        self.end = max(self.end, high_watermark)  # control batches hold no records but take offsets

    def go_on_with(self, draft: Draft, high_watermark: int) -> None:
        """One step of a batch that takes several. If it does not fit, nothing of it is in the image."""
        batch = draft.source
        assert isinstance(batch, CommittedBatch)
        assert batch.base_offset >= self.end, "nothing else is applied meanwhile"
        why = draft.go_on(self.step_records)
        if why is not None:
            self.draft = None
            self.unfit = self.unfit_in(batch, batch.last_offset + 1 - len(batch.records) + draft.applied, why)
            self.end = self.unfit.sound.end_offset
        elif draft.is_whole:
            self.draft = None
            self.image.take_over(draft.image)
            self.end = batch.last_offset + 1
            self.bytes_since_snapshot += draft.size
        self.has_more = self.unfit is None and self.end < high_watermark

    def take_back(self, unfit: Unfit) -> None:
        """Of the batch that does not fit a part was applied."""
        assert self.draft is None
        self.end = unfit.sound.end_offset
        old = self.image
        start, self.image = self.begun()
        self.apply(self.image, 0 if start is None else start.end_offset, self.end)
        self.image.take_place_of(old)

    def unfit_in(self, batch: CommittedBatch, offset: int, why: str) -> Unfit:
        assert why
        assert offset >= batch.base_offset
        self.faults += 1
        text = f"the metadata record at offset {offset} cannot be applied: {why}"
        return Unfit(self.log.sound_below(batch.base_offset), offset, text)

    # --- snapshots

    def load_snapshot(self, snapshot: SnapshotId) -> bool:
        """Is all of it loaded? If not, there is more to load, or it does not fit."""
        assert snapshot.end_offset > self.end, "the image never goes back"
        loaded, self.loaded = self.loaded, None
        if loaded is not None and loaded[0] == snapshot:
            image = loaded[1]
        else:
            draft = self.draft
            if draft is None or draft.source != snapshot:
                draft = self.draft = Draft(Image(), self.log.read_snapshot(snapshot), snapshot)
            self.unfit = self.unfit_in_snapshot(snapshot, draft, draft.go_on(self.step_records))
            self.has_more = self.unfit is None and not draft.is_whole
            if self.unfit is not None or self.has_more:
                return False
            image = draft.image
        self.draft = None
        image.take_delta()
        image.take_place_of(self.image)
        self.image = image
        self.end = snapshot.end_offset
        self.bytes_since_snapshot, self.new_since = 0, None
        return True

    def unfit_in_snapshot(self, snapshot: SnapshotId, draft: Draft, why: str | None) -> Unfit | None:
        if why is None:
            return None
        self.faults += 1
        path = self.log.snapshot_path(snapshot)
        text = f"record {draft.applied} of the metadata snapshot {path} cannot be applied: {why}"
        return Unfit(EpochEnd(snapshot.epoch, self.end), snapshot.end_offset, text)

    def save_snapshot(self, now: Instant) -> None:
        """A snapshot is named after the last record below its end, which may be a leader's first one: under another
        epoch it would not fit the log, and the next start would throw away what lies behind it."""
        assert self.end > 0
        epoch = self.log.epoch_of_record(self.end - 1)
        assert epoch is not None, "what was applied is in the log"
        self.log.write_snapshot(self.end, epoch, (encode_record(r) for r in self.image.records()), now)
        self.bytes_since_snapshot, self.new_since = 0, None
        assert not self.is_snapshot_due(now), "it is written once"
