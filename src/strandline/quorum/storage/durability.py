"""How much of the metadata log is durable here? Whoever cuts the log, or begins it anew, does it through this machine.

Invariants (executed by `check`): durable_end <= log_end_offset; at most one Sync is on its way.
"""

from strandline.base.effects import Effect, Sync
from strandline.quorum.ports import RaftLog, SnapshotId
from strandline.quorum.tokens import LogSynced


class Durability:
    def __init__(self, log: RaftLog) -> None:
        self.log = log
        self.end = log.log_end_offset  # what was found on disk at start is durable
        self.syncing: int | None = None  # the Sync on its way, and where the log ended when it left

    @property
    def is_complete(self) -> bool:
        return self.syncing is None and self.end == self.log.log_end_offset

    def sync(self) -> list[Effect]:
        if self.syncing is not None:
            return []
        paths = self.log.take_unsynced()
        if not paths:
            return []
        self.syncing = self.log.log_end_offset
        return [Sync(paths, LogSynced())]

    def synced(self) -> None:
        assert self.syncing is not None, "this Sync was asked for"
        # A snapshot may have taken the log's place since: what is below its end is durable.
        end = max(self.syncing, self.log.log_start_offset)
        self.log.mark_synced(end)
        self.end, self.syncing = min(end, self.log.log_end_offset), None

    def truncate_to(self, end_offset: int) -> None:
        assert end_offset <= self.log.log_end_offset, "a cut makes no log longer"
        self.log.truncate_to(end_offset)
        self.end = min(self.end, end_offset)

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        """Everything below its end is in the snapshot, which is durable."""
        self.log.install_snapshot(snapshot)
        assert self.log.log_end_offset == snapshot.end_offset
        self.end = self.log.log_end_offset

    def check(self) -> None:
        assert self.end <= self.log.log_end_offset
