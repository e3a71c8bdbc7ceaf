"""The checkpoints of each log directory, as they are saved.

Kafka's two: `replication-offset-checkpoint` has the high watermarks, a lower bound that only saves work;
`recovery-point-offset-checkpoint` has the offsets below which everything is durable, and is saved only after what it
promises has been synced. Its `cleaner-offset-checkpoint` says how far logs are compacted: one with a row may have gaps,
so that the row is durable before a gap can come. One of our own, `topic-id-checkpoint`, says whose the logs are, once
more (`owners.py`).

Invariants:
  - whose a log is, is saved before its recovery point
  - no row of an earlier log stands when a new log of its name is created (`forget`)
"""

from collections.abc import Iterable

from strandline.base.effects import Effect, Save
from strandline.base.ids import TopicPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.log.checkpoints import format_offsets, format_topic_ids
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    TOPIC_IDS,
    Offsets,
    Rows,
)
from strandline.replica.tokens import CheckpointSaved


class Checkpoints:
    def __init__(self, host: Host, disk: Disk) -> None:
        self.host = host
        self.disk = disk
        self.directories = host.directories
        self.saved: dict[str, bytes] = {}  # as last written, so that an idle broker writes nothing
        self.listed: dict[TopicPartition, None] = {}  # what a checkpoint on disk may have a row for
        self.cleaner_files: dict[str, None] = {}  # directories that have a cleaner's checkpoint
        self.has_new_gaps = False  # a log may have gaps that had none, and no checkpoint says so yet

    def found(self, log_dir: LogDir, rows: Rows) -> None:
        """What a start has read from them."""
        assert self.directories.is_live(log_dir), log_dir.path
        if rows.cleaned:
            self.expect_cleaner_file(log_dir)
        self.listed |= dict.fromkeys(rows.names())

    def expect_cleaner_file(self, log_dir: LogDir) -> None:
        """Once a directory has one, it is kept up to date, also where it has no rows any more."""
        self.cleaner_files[log_dir.path] = None

    # --- what they are to say

    def in_directory(self, log_dir: LogDir) -> list[Hosted]:
        return [hosted for hosted in self.host.partitions.all() if hosted.directory.path == log_dir.path]

    def topic_ids(
        self, log_dir: LogDir, more: dict[TopicPartition, Uuid] | None = None
    ) -> tuple[bytes, list[TopicPartition]]:
        ids = {hosted.name: hosted.at.topic_id for hosted in self.in_directory(log_dir)} | (more or {})
        return format_topic_ids(ids), list(ids)

    def high_watermarks(self, log_dir: LogDir) -> Offsets:
        return {hosted.name: hosted.high_watermark for hosted in self.in_directory(log_dir)}

    def recovery_points(self, log_dir: LogDir) -> Offsets:
        # guard: recovery-point-runs-ahead
        return {hosted.name: hosted.log.recovery_point for hosted in self.in_directory(log_dir)}

    def log_starts(self, log_dir: LogDir) -> Offsets:
        """Only those that the first segment's name does not say."""
        return {
            hosted.name: hosted.log.log_start_offset
            for hosted in self.in_directory(log_dir)
            if hosted.log.log_start_offset > 0
        }

    def cleaned(self, log_dir: LogDir) -> Offsets:
        """Up to where the logs are compacted that ever were to be."""
        found = {hosted.name: hosted.log.cleaned_to for hosted in self.in_directory(log_dir)}
        return {name: offset for name, offset in found.items() if offset is not None}

    def offsets(self, log_dir: LogDir) -> dict[str, Offsets]:
        rows = {
            HIGH_WATERMARKS: self.high_watermarks(log_dir),
            RECOVERY_POINTS: self.recovery_points(log_dir),
            LOG_STARTS: self.log_starts(log_dir),
        }
        cleaned = self.cleaned(log_dir)
        assert all(offset >= 0 for offsets in rows.values() for offset in offsets.values()), log_dir.path
        if cleaned or log_dir.path in self.cleaner_files:
            rows[CLEANED] = cleaned
        return rows

    # --- saving

    def save_high_watermarks(self, now: Instant) -> list[Effect]:
        return [
            effect
            for log_dir in self.directories.live
            for effect in self.save(log_dir, HIGH_WATERMARKS, self.high_watermarks(log_dir))
        ]

    def save_log_starts(self, now: Instant) -> list[Effect]:
        return [
            effect
            for log_dir in self.directories.live
            for effect in self.save(log_dir, LOG_STARTS, self.log_starts(log_dir))
        ]

    def save_recovery_points(self) -> list[Effect]:
        """What a flush has proven, or what is left of it. First whose logs these are."""
        effects: list[Effect] = []
        for log_dir in self.directories.live:
            effects += self.write(log_dir, TOPIC_IDS, *self.topic_ids(log_dir))
            effects += self.save(log_dir, RECOVERY_POINTS, self.recovery_points(log_dir))
            effects += self.save(log_dir, LOG_STARTS, self.log_starts(log_dir))
        return effects

    def save(self, log_dir: LogDir, file: str, offsets: Offsets) -> list[Effect]:
        return self.write(log_dir, file, format_offsets(offsets), offsets)

    def write(self, log_dir: LogDir, file: str, content: bytes, names: Iterable[TopicPartition]) -> list[Effect]:
        assert self.directories.is_live(log_dir), log_dir.path
        path = f"{log_dir.path}/{file}"
        if self.saved.get(path) == content:
            return []
        self.saved[path] = content
        self.listed |= dict.fromkeys(names)
        return [Save(path, content, CheckpointSaved(log_dir), self.disk.saves(path))]

    def save_now(self, log_dir: LogDir, file: str, offsets: Offsets) -> bool:
        assert all(offset >= 0 for offset in offsets.values()), log_dir.path
        return self.write_now(log_dir, file, format_offsets(offsets), offsets)

    def write_now(self, log_dir: LogDir, file: str, content: bytes, names: Iterable[TopicPartition]) -> bool:
        """The disk is waited for. A save that is still on its way is older, and is not written after this one. False:
        the directory has failed, now or in a write just before this one."""
        if not self.directories.is_live(log_dir):
            return False
        path = f"{log_dir.path}/{file}"
        self.saved.pop(path, None)
        try:
            self.disk.save(path, content)  # guard: older-checkpoint-overtakes
        except DiskError as error:
            self.host.fail(log_dir, error)
            return False
        self.saved[path] = content
        self.listed |= dict.fromkeys(names)
        return True

    # --- when the disk is waited for

    def truncated(self) -> list[Effect]:
        """A log was cut. A saved recovery point above its new end would vouch, after a power loss, for batches that it
        gets next, so it is lowered durably before anything is appended: this once, the disk is waited for."""
        for log_dir in list(self.directories.live):
            content, names = self.topic_ids(log_dir)
            if self.saved.get(f"{log_dir.path}/{TOPIC_IDS}") != content:
                self.write_now(log_dir, TOPIC_IDS, content, names)
            self.save_now(log_dir, RECOVERY_POINTS, self.recovery_points(log_dir))
            if self.host.ledger.is_news(log_dir.path):  # or a start would find the loss a second time
                self.save_now(log_dir, HIGH_WATERMARKS, self.high_watermarks(log_dir))
        self.save_cleaned()
        return self.save_recovery_points()

    def forget(self, name: TopicPartition) -> None:
        """Before a log is created under a name that had one. Checkpoints know logs by name alone: after a crash, the
        rows of a deleted topic would vouch for records of its namesake that are not committed, or not whole. All rows
        of logs that are gone go durably; the disk is waited for, as in `truncated`."""
        if name not in self.listed:
            return
        self.listed = {}
        for log_dir in list(self.directories.live):
            rows = self.offsets(log_dir)
            self.write_now(log_dir, TOPIC_IDS, *self.topic_ids(log_dir))
            for file, offsets in rows.items():
                self.save_now(log_dir, file, offsets)
        assert name not in self.listed, "its row would speak for the new log"

    def gaps_may_come(self) -> None:
        """A log is to be compacted that was not. To be called before anything of it is."""
        self.has_new_gaps = True

    def save_compacted(self) -> None:
        """After metadata has named logs that are to be compacted: the disk is waited for, once for all of them."""
        self.host.whole.save_changes()
        if self.has_new_gaps:
            self.has_new_gaps = False
            self.save_cleaned()
        assert not self.has_new_gaps

    def save_cleaned_to(self, log_dir: LogDir) -> list[Effect]:
        """A pass of the cleaner has ended."""
        return self.save(log_dir, CLEANED, self.cleaned(log_dir))

    def save_cleaned(self) -> None:
        for log_dir in list(self.directories.live):
            offsets = self.cleaned(log_dir)
            if not offsets or self.saved.get(f"{log_dir.path}/{CLEANED}") == format_offsets(offsets):
                continue
            self.expect_cleaner_file(log_dir)
            self.save_now(log_dir, CLEANED, offsets)

    def save_all(self) -> None:
        """At shutdown, with everything durable."""
        for log_dir in list(self.directories.live):
            if not self.write_now(log_dir, TOPIC_IDS, *self.topic_ids(log_dir)):
                continue
            for file, offsets in self.offsets(log_dir).items():
                if not self.save_now(log_dir, file, offsets):
                    break
