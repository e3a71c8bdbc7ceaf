"""The committed metadata, applied: from the quorum's log to this node's image.

Invariant: the image is the replay of a prefix of the committed log, `end` records long; it never runs ahead of the
high watermark.
"""

from strandline.base.effects import Effect, Report
from strandline.base.time import Instant
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image
from strandline.quorum.metadata_log import MetadataLog

SNAPSHOT_BYTES = 20 << 20  # metadata.log.max.record.bytes.between.snapshots
SNAPSHOT_MS = 3_600_000  # metadata.log.max.snapshot.interval.ms


class Committed:
    def __init__(self, log: MetadataLog, snapshot_bytes: int = SNAPSHOT_BYTES, snapshot_ms: int = SNAPSHOT_MS) -> None:
        self.log = log
        self.image = Image()
        self.end = 0
        self.bytes_since_snapshot = 0
        self.snapshot_bytes = snapshot_bytes
        self.snapshot_ms = snapshot_ms  # 0: age alone is no reason
        self.new_since: Instant | None = None  # when the oldest record was applied that no snapshot has

    def advance(self, high_watermark: int, now: Instant) -> list[Effect]:
        """Apply everything below `high_watermark`; the image's delta says what it changed."""
        effects: list[Effect] = []
        snapshot = self.log.latest_snapshot()
        if snapshot is not None and snapshot.end_offset > self.end and self.log.log_start_offset > self.end:
            self.load_snapshot()
            effects.append(Report("info", f"loaded the metadata snapshot at offset {self.end}"))
        for batch in self.log.committed_batches(self.end, high_watermark):
            for payload in batch.records:
                self.image.apply(decode_record(payload))
                self.bytes_since_snapshot += len(payload)
        self.end = max(self.end, high_watermark)  # control batches hold no records but take offsets
        if self.bytes_since_snapshot and self.new_since is None:
            self.new_since = now
        if self.is_snapshot_due(now):
            self.save_snapshot(now)
            effects.append(Report("info", f"wrote a metadata snapshot at offset {self.end}"))
        return effects

    def is_snapshot_due(self, now: Instant) -> bool:
        if self.bytes_since_snapshot >= self.snapshot_bytes:
            return True
        is_old = self.new_since is not None and now - self.new_since >= self.snapshot_ms
        return is_old and self.snapshot_ms > 0

    def load_snapshot(self) -> None:
        snapshot = self.log.latest_snapshot()
        assert snapshot is not None
        image = Image()
        for payload in self.log.read_snapshot(snapshot):
            image.apply(decode_record(payload))
        image.take_delta()
        image.delta.reloaded = True
        self.image = image
        self.end = snapshot.end_offset
        self.bytes_since_snapshot, self.new_since = 0, None

    def save_snapshot(self, now: Instant) -> None:
        """A snapshot is named after the last record below its end, which may be a leader's first one: under another
        epoch it would not fit the log, and the next start would throw away what lies behind it."""
        epoch = self.log.epoch_of_record(self.end - 1)
        assert epoch is not None, "what was applied is in the log"
        self.log.write_snapshot(self.end, epoch, (encode_record(r) for r in self.image.records()), now)
        self.bytes_since_snapshot, self.new_since = 0, None
