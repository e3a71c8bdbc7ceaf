"""The committed metadata, applied: from the quorum's log to this node's image.

All of the log is replayed once at the start, also what is not known to be committed yet: a voter must know that it can
apply what it has before it stands for election. What comes later is checked when it is committed. Where a record cannot
be applied (`metadata/fitting.py`) the image stays as it is before that record's batch; what becomes of the node is
decided in `quorum/damage/unfit.py` and by `Node.give_up`.

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
from strandline.metadata.fitting import described, why_unfit
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image
from strandline.quorum.ports import CommittedBatch, EpochEnd, SnapshotId, Unfit
from strandline.quorum.storage.metadata_log import QUORUM_STATE, MetadataLog
from strandline.wire.compress import Corrupt

SNAPSHOT_BYTES = 20 << 20  # metadata.log.max.record.bytes.between.snapshots
SNAPSHOT_MS = 3_600_000  # metadata.log.max.snapshot.interval.ms


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
        """Apply everything below `high_watermark`; the image's delta says what it changed."""
        if self.unfit is not None:
            return []
        effects, self.news = self.news, []
        snapshot = self.log.latest_snapshot()
        if snapshot is not None and snapshot.end_offset > self.end and self.log.log_start_offset > self.end:
            if not self.load_snapshot(snapshot):
                return effects
            effects.append(Report("info", f"loaded the metadata snapshot at offset {self.end}"))
        self.take_ahead(high_watermark)
        before = self.end
        size, self.unfit = self.apply(self.image, self.end, high_watermark)
        self.bytes_since_snapshot += size
        if self.unfit is None:
            self.end = max(self.end, high_watermark)  # control batches hold no records but take offsets
        else:
            self.end = self.unfit.sound.end_offset
            old = self.image  # of the batch a part is applied to it
            start, self.image = self.begun()
            self.apply(self.image, 0 if start is None else start.end_offset, self.end)
            self.image.take_place_of(old)
        assert self.unfit is not None or self.end >= before, "the image never goes back"
        assert self.end <= max(before, high_watermark), "nor ahead of what is committed"
        if self.bytes_since_snapshot and self.new_since is None:
            self.new_since = now
        if self.is_snapshot_due(now):
            self.save_snapshot(now)
            effects.append(Report("info", f"wrote a metadata snapshot at offset {self.end}"))
        return effects

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
            image = Image()
            unfit = self.apply_snapshot(image, snapshot)
            if unfit is None:
                return snapshot, image
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
            first = batch.last_offset + 1 - len(batch.records)
            if batch.fault:
                return size, self.unfit_in(batch, batch.base_offset, batch.fault)
            for at, payload in enumerate(batch.records):
                why = why_not_applied(image, payload)
                if why is not None:
                    return size, self.unfit_in(batch, first + at, why)
                size += len(payload)
        return size, None

    def unfit_in(self, batch: CommittedBatch, offset: int, why: str) -> Unfit:
        assert why
        assert offset >= batch.base_offset
        self.faults += 1
        text = f"the metadata record at offset {offset} cannot be applied: {why}"
        return Unfit(self.log.sound_below(batch.base_offset), offset, text)

    # --- snapshots

    def load_snapshot(self, snapshot: SnapshotId) -> bool:
        assert snapshot.end_offset > self.end, "the image never goes back"
        loaded, self.loaded = self.loaded, None
        image = Image()
        if loaded is not None and loaded[0] == snapshot:
            image = loaded[1]
        else:
            self.unfit = self.apply_snapshot(image, snapshot)
            if self.unfit is not None:
                return False
        image.take_delta()
        image.take_place_of(self.image)
        self.image = image
        self.end = snapshot.end_offset
        self.bytes_since_snapshot, self.new_since = 0, None
        return True

    def apply_snapshot(self, image: Image, snapshot: SnapshotId) -> Unfit | None:
        count, why = 0, None
        try:
            for payload in self.log.read_snapshot(snapshot):
                why = why_not_applied(image, payload)
                if why is None and image.transaction is not None:
                    why = "no snapshot has a transaction"
                if why is not None:
                    break
                count += 1
        except Corrupt as error:
            why = str(error)
        if why is None:
            return None
        self.faults += 1
        text = f"record {count} of the metadata snapshot {self.log.snapshot_path(snapshot)} cannot be applied: {why}"
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


def why_not_applied(image: Image, payload: bytes) -> str | None:
    """None: it is applied now."""
    try:
        record = decode_record(payload)
    except Corrupt as error:
        return str(error)
    why = why_unfit(image, record)
    if why is None:
        image.apply(record)
        return None
    return f"{why}: {described(record)}"
