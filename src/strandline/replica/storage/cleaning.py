"""The cleaner of a broker: one log at a time is compacted, in small steps between everything else.

The log with the largest part that was not compacted yet comes first. A step is a bounded number of bytes, and the next
one comes a moment later, so that nothing waits long for it; a copy is made durable by an effect, like all else. Where
there is nothing to do, the next look is after `log.cleaner.backoff.ms`. Only what is durable is compacted: a log that
waits for nothing else is flushed, since flushes by time may be a minute apart.

Each replica is compacted by its own broker: how far is in its directory's `cleaner-offset-checkpoint`.

Invariants:
  - no log is compacted while its replica moves to another directory: the future log would have the value, and never
    get the tombstone that has gone. So one that lies in a directory that is offline goes on no more;
  - what waits to be made durable counts only if the log is still the one that was copied;
  - a log that cannot be compacted is left as it is, and reported once.
"""

from strandline.base.effects import Effect, Report, Sync, Synced, SyncFailed
from strandline.base.ids import TopicIdPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.log.cleaning.cleanable import cleanable
from strandline.log.cleaning.compaction import Compaction, Uncleanable
from strandline.log.log import Log
from strandline.replica.cold import ColdReads
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.quota import Rate
from strandline.replica.storage.moving.futures import Futures
from strandline.replica.storage.storage import Storage
from strandline.replica.tokens import CleanedSynced

STEP_MS = 10
FLUSH_MS = 200  # the next look, while a flush that was asked for may be under way
STEP_BYTES = 32 << 10


class Run:
    """One pass over one log."""

    __slots__ = ("compaction", "directory", "hosted", "is_syncing")

    def __init__(self, hosted: Hosted, compaction: Compaction) -> None:
        assert compaction.log is hosted.log, hosted.name
        self.hosted = hosted
        self.directory = hosted.directory
        self.compaction = compaction
        self.is_syncing = False


class Cleaner:
    def __init__(self, host: Host, storage: Storage, futures: Futures, cold: ColdReads) -> None:
        self.host = host
        self.cold = cold
        self.storage = storage
        self.futures = futures
        self.run: Run | None = None
        self.count = 0  # of passes: an answer is for one of them
        self.wake = Alarm(host.timers, self.go_on)
        self.uncleanable: dict[TopicIdPartition, Log] = {}  # another log of the partition may be sound
        self.rate = Rate(count=10, window_ms=300)

    # --- when

    def rest(self, now: Instant) -> list[Effect]:
        """Until there may be something to do again."""
        self.wake.set(now + max(int(self.host.number("log.cleaner.backoff.ms")), STEP_MS))
        return []

    def share(self, now: Instant) -> int:
        """Work for how many bytes may be done now?"""
        return int(min(STEP_BYTES, self.host.number("log.cleaner.io.max.bytes.per.second") - self.rate.measure(now)))

    # --- what

    def filthiest(self, now: Instant) -> Run | None:
        best: tuple[float, Hosted, Compaction] | None = None
        map_bytes = int(self.host.number("log.cleaner.dedupe.buffer.size"))
        for hosted in self.candidates():
            role, log = hosted.role, hosted.log
            if role is None:
                continue  # its directory has failed over another log
            try:
                # guard: cleaned-above-the-stable-offset
                plan = cleanable(log, min(role.high_watermark, role.last_stable_offset), now)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
                continue
            is_more = best is None or plan.dirty_ratio > best[0]
            if plan.is_due(log.config.min_cleanable_dirty_ratio) and is_more:
                best = plan.dirty_ratio, hosted, Compaction(log, plan, role.high_watermark, now, map_bytes)
        if best is None or best[1].role is None or not self.futures.request(best[1], None):
            return None
        assert best[1].at not in self.futures.moving, best[1].name
        self.count += 1
        return Run(best[1], best[2])

    def flush_dirty(self, now: Instant) -> list[Effect]:
        """Flush the logs that would be compacted if they were durable. The first look after that finds them so."""
        effects: list[Effect] = []
        for hosted in self.candidates():
            if hosted.role is None:
                continue
            stable_end = min(hosted.role.high_watermark, hosted.role.last_stable_offset)
            if hosted.log.recovery_point >= stable_end:
                continue
            try:
                plan = cleanable(hosted.log, stable_end, now, durable_end=hosted.log.log_end_offset)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
                continue
            if plan.is_due(hosted.log.config.min_cleanable_dirty_ratio):
                effects += self.storage.flushing.flush_one(hosted)
        if effects:
            self.wake.set(now + FLUSH_MS)
        return effects

    def candidates(self) -> list[Hosted]:
        """What may be compacted at all."""
        if not self.host.number("log.cleaner.enable"):
            return []
        return [
            hosted
            for hosted in self.host.partitions.all()
            if hosted.role is not None
            and hosted.log.config.compacts
            and hosted.at not in self.futures.moving
            and self.uncleanable.get(hosted.at) is not hosted.log
        ]

    def is_over(self, run: Run) -> bool:
        """Has the log become another one, or another's, or is it to?"""
        hosted = run.hosted
        if hosted.at in self.futures.moving:
            return True
        is_same = not hosted.gone and hosted.log is run.compaction.log and hosted.role is not None
        return not is_same or not self.host.directories.is_live(run.directory) or run.compaction.is_stale

    # --- steps

    def go_on(self, now: Instant) -> list[Effect]:
        if self.run is not None and self.run.is_syncing:
            return []
        if self.run is None:
            self.run = self.filthiest(now)
        run = self.run
        if run is None:
            return self.flush_dirty(now) or self.rest(now)
        self.wake.set(now + STEP_MS)
        if self.is_over(run):
            return self.end(run)
        assert not run.is_syncing
        limit = self.share(now)
        if limit <= 0:
            return []
        try:
            if self.cold.must_wait(run.compaction.cold_part(limit), now):
                return []
            before = run.compaction.bytes_moved
            run.compaction.go_on(limit)
            self.rate.record(run.compaction.bytes_moved - before, now)
        except Uncleanable as why:
            self.uncleanable[run.hosted.at] = run.compaction.log
            return [*self.end(run), Report("error", f"{run.hosted.name} is not compacted any more: {why}")]
        except DiskError as error:
            self.host.fail(run.directory, error)
            return self.end(run)
        if not run.compaction.is_copied:
            return []
        assert not run.is_syncing
        run.is_syncing = True
        # guard: swapped-before-durable
        return [Sync(run.compaction.unsynced(), CleanedSynced(self.count, run.directory))]

    def synced(self, event: Synced | SyncFailed, now: Instant) -> list[Effect]:
        token: CleanedSynced = event.token
        if isinstance(event, SyncFailed):
            self.host.fail(token.directory, event.error)
        run = self.run
        if run is None or token.run != self.count:
            return []
        assert run.is_syncing
        run.is_syncing = False
        self.wake.set(now + STEP_MS)
        if self.is_over(run):
            return self.end(run)
        try:
            run.compaction.swap()
        except DiskError as error:
            self.host.fail(run.directory, error)
            return self.end(run)
        if not run.compaction.is_done:
            return []
        self.run = None
        return self.storage.checkpoints.save_cleaned_to(run.directory)

    def end(self, run: Run) -> list[Effect]:
        """The pass ends where it stands. In a directory that has failed nothing is touched."""
        assert run is self.run
        self.run = None
        if self.host.directories.is_live(run.directory):
            try:
                run.compaction.abandon()
            except DiskError as error:
                self.host.fail(run.directory, error)
        return []

    def stop(self) -> None:
        if self.run is not None:
            self.end(self.run)
        assert self.run is None
