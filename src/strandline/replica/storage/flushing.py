"""Logs are made durable, by an effect each, and their recovery points follow.

Invariant: a flush counts only for the log that it was of: in the same role, not cut since, not moved to another
directory.

A flush that failed is never repeated: the kernel may have dropped what it could not write, and would call the next one
done. The log directory has failed.
"""

from typing import NamedTuple

from strandline.base.effects import Effect, Sync, SyncFailed
from strandline.base.ids import TopicIdPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted, Role
from strandline.replica.storage.checkpoints import Checkpoints
from strandline.replica.tokens import CheckpointSaved, LogFlushed


class Flush(NamedTuple):
    """One that is under way: up to which offset, in which role, after how many truncations."""

    end: int
    role: Role | None
    cuts: int


class Flushing:
    def __init__(self, host: Host, checkpoints: Checkpoints) -> None:
        self.host = host
        self.checkpoints = checkpoints
        self.in_flight: dict[TopicIdPartition, Flush] = {}
        self.dirty_since: dict[TopicIdPartition, Instant] = {}  # when `flush_due` first saw that a log is not durable

    def flush(self, now: Instant) -> list[Effect]:
        """Make the logs durable, a partition at a time; their recovery points follow in `flushed`."""
        return [effect for hosted in self.host.partitions.all() for effect in self.flush_one(hosted)]

    def flush_one(self, hosted: Hosted) -> list[Effect]:
        if hosted.at in self.in_flight or not self.host.directories.is_live(hosted.directory):
            return []
        paths = hosted.log.unsynced()
        if not paths:
            return []
        end = hosted.log.log_end_offset
        assert not hosted.gone, hosted.name
        assert hosted.log.recovery_point <= end, hosted.name
        self.in_flight[hosted.at] = Flush(end, hosted.role, cuts_of(hosted))
        return [Sync(tuple(paths), LogFlushed(hosted.at, end, hosted.moves, hosted.directory))]

    def check(self) -> None:
        for at, flush in self.in_flight.items():
            assert flush.end >= 0, at
            assert flush.cuts >= 0, at

    def flush_due(self, now: Instant) -> list[Effect]:
        """Flush the logs whose oldest record that is not durable was seen flush.ms ago."""
        effects: list[Effect] = []
        before, self.dirty_since = self.dirty_since, {}
        for hosted in self.host.partitions.all():
            if hosted.log.recovery_point == hosted.log.log_end_offset:
                continue
            since = before.get(hosted.at, now)
            if now - since >= hosted.log.config.flush_ms:
                effects += self.flush_one(hosted)
            else:
                self.dirty_since[hosted.at] = since
        return effects

    def forget(self, at: TopicIdPartition) -> None:
        """Its log is gone, or another one: what the disk answers says nothing of it."""
        self.in_flight.pop(at, None)

    def flushed(self, token: LogFlushed) -> list[Effect]:
        end = token.end
        hosted = self.host.partitions.find(token.at)
        if hosted is not None and hosted.moves != token.moves:
            return []  # of the log that was its before it moved
        was = self.in_flight.pop(token.at, None)
        if hosted is not None and was is not None and was == (end, hosted.role, cuts_of(hosted)):
            assert end <= hosted.log.log_end_offset, hosted.name
            try:
                hosted.log.mark_synced(end)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
        return [] if self.in_flight else self.checkpoints.save_recovery_points()

    def sync_failed(self, event: SyncFailed) -> None:
        token: LogFlushed | CheckpointSaved = event.token
        if type(token) is LogFlushed:
            self.in_flight.pop(token.at, None)  # guard: failed-flush-taken-for-done
        self.host.fail(token.directory, event.error)


def cuts_of(hosted: Hosted) -> int:
    return hosted.role.cuts if type(hosted.role) is Follower else 0
