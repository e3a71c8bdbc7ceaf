"""Replicas of this broker that are known to have lost records: none of them may be elected as if it had everything.

A start finds what the logs lack of what the last stop left (`Findings`); a running broker finds what could not be
repaired (`withdraw`). The registration reports it to the controller, or a heartbeat does, at once and until the
controller has answered. The controller takes the replica, and no other of this broker, from ISR and ELR.

Until metadata says so, a replica that is held here has no role: it is neither led nor followed. Then it takes part
again, with what of its log is certainly right. One that took part waits for that word where it is in neither, too: by
what it fetched before, its leader may have proposed it. The word opens a leader epoch, and nothing of before counts.

Invariants:
  - a replica that is held is in no fetcher, and leads nothing
  - a loss is reported until the controller has answered, and a stop in between leaves it in the marker
"""

from strandline.base.effects import Effect, Report
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, TopicIdPartition
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.log.evidence.inventory import Left, left
from strandline.metadata.losses import CAUSES, EXACTLY, Cause
from strandline.metadata.records import LossEvent
from strandline.replica.config import LogDir
from strandline.replica.following.fetchers import Fetchers
from strandline.replica.hosting.found_log import FoundLog
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.withdrawals import Withdrawn
from strandline.replica.losses.losing import Notes
from strandline.replica.serving.fetching import Fetching
from strandline.replica.storage.storage import Storage


class Withdrawing:
    def __init__(self, host: Host, storage: Storage, fetchers: Fetchers, fetching: Fetching) -> None:
        self.host = host
        self.storage = storage
        self.fetchers = fetchers
        self.fetching = fetching

    def withdraw(self, at: TopicIdPartition, start: int, end: int, now: Instant) -> list[Effect]:
        """Records from `start` below `end` are damaged in this replica's log, and no replica could repair them: it
        leads or follows no longer, from this moment on. Where no other broker has a replica, it goes on."""
        assert start < end, at
        host = self.host
        hosted, partition = host.partitions.find(at), host.image.partition(at)
        if hosted is None or hosted.role is None or partition is None or len(partition.replicas) == 1:
            return []
        self.fetchers.leave(hosted)
        hosted.lose_role()
        hosted.doubt()
        host.whole.discard(at)
        effects = hosted.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
        effects += self.fetching.role_changed(hosted, now)
        assert not hosted.waiting, hosted.name
        host.withdrawals.add(at, Withdrawn(start, end, Cause.DAMAGED, now, cut_at=start))
        what = f"offsets {start} to {end - 1} are damaged here, and could not be repaired"
        return [*effects, Report("error", f"{hosted.name}: {what}; this replica leaves ISR and ELR")]

    def release(self, at: TopicIdPartition, now: Instant) -> list[Effect] | None:
        """To be asked before a replica gets its role; None: it is held, and gets none yet. Metadata may have it out of
        ISR and ELR: then it begins from what is right. One that leads all the same, since no other replica may, keeps
        the rest of its log."""
        host, partition = self.host, self.host.image.partition(at)
        assert partition is not None
        lost = host.withdrawals.held.get(at)
        if lost is None:
            return []
        if host.withdrawals.holds(at, partition):
            return None
        effects: list[Effect] = []
        hosted = host.partitions.find(at)
        if hosted is not None and lost.cut_at is not None and partition.leader not in (host.me, NOBODY):
            try:
                self.begin_again(hosted, lost, now)
            except DiskError as error:
                host.fail(hosted.directory, error)
                return None
            effects = self.storage.checkpoints.truncated()
        host.withdrawals.forget(at)
        return effects

    def begin_again(self, hosted: Hosted, lost: Withdrawn, now: Instant) -> None:
        """Everything from the damage on is checked as after a crash, and cut where it is not right; it is copied
        again."""
        assert hosted.role is None
        assert lost.cut_at is not None
        if lost.cut_at < hosted.start:
            event = LossEvent(
                start=lost.cut_at,
                end=hosted.start,
                certainty=EXACTLY,
                old_epoch=hosted.log.latest_epoch,
                time_ms=now,
                cause=CAUSES[lost.cause],
            )
            Notes(self.host, hosted).note([event])
        storage, log = self.storage, hosted.log
        storage.flushing.forget(hosted.at)
        log.abandon()
        recovery_point, high_watermark = min(log.recovery_point, lost.cut_at), min(hosted.start, lost.cut_at)
        whence = (recovery_point, log.log_start_offset, log.cleaned_to, high_watermark)
        opened = storage.loading.open(hosted.at, FoundLog(hosted.directory, hosted.name, *whence, clean=False), now)
        opened.log.truncate_to(lost.cut_at)
        assert opened.log.log_end_offset <= lost.cut_at, hosted.name
        hosted.leave()
        self.host.partitions.put(opened)


def left_in(host: Host, disk: Disk, log_dir: LogDir) -> tuple[Left, ...]:
    """How a stop leaves the logs in a directory, for its marker, after the last write to any. The next start must find
    again what is held, also where there is no log. Raises DiskError."""
    assert host.directories.is_live(log_dir), log_dir.path
    held = host.withdrawals.held
    logs = sorted(
        (one for one in host.partitions.all() if one.directory.path == log_dir.path), key=lambda one: one.name
    )
    rows = [left(disk, one.name, one.at.topic_id, one.log, one.high_watermark) for one in logs if one.at not in held]
    if log_dir is host.directories.live[0]:
        rows += [Left.in_doubt(at, lost.start, lost.end) for at, lost in held.items()]
    return tuple(rows)
