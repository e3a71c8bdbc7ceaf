"""What follows where a log directory has failed: no request waits for its replicas, and nothing is copied to them."""

from strandline.base.effects import AwaitRoom, Effect, Report
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, Uuid
from strandline.base.ports import DiskError, DiskFull
from strandline.base.time import Instant
from strandline.log.evidence.inventory import Left
from strandline.log.files.room import mib, needed_room
from strandline.metadata.image import LOST_DIRECTORY, directory_of
from strandline.metadata.losses import NO_END
from strandline.replica.following.fetchers import Fetchers
from strandline.replica.hosting.host import Host
from strandline.replica.serving.fetching import Fetching
from strandline.replica.storage.moving.futures import Futures
from strandline.replica.storage.storage import Storage


class OfflineReplicas:
    def __init__(self, host: Host, storage: Storage, futures: Futures, fetchers: Fetchers, fetching: Fetching) -> None:
        self.host = host
        self.storage = storage
        self.futures = futures
        self.assignments = futures.assignments
        self.fetchers = fetchers
        self.fetching = fetching

    def take_offline(self, now: Instant) -> list[Effect]:
        """The replicas of directories that have just failed are hosted no longer. Their files stay open, since to close
        them would write to them. What is answered here may find that another directory fails: that is news again."""
        effects: list[Effect] = []
        host = self.host
        for log_dir, why in host.directories.take_news():
            assert not host.directories.is_live(log_dir), log_dir.path
            effects.append(Report("error", self.described(log_dir.path, why)))
            for hosted in [h for h in host.partitions.all() if h.directory.path == log_dir.path]:
                assert hosted.role is None, hosted.name
                host.drop(hosted)
                self.storage.flushing.forget(hosted.at)
                hosted.log.tail.clear()
                self.fetchers.forget(hosted.at)
                effects += hosted.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR, now)
                effects += self.fetching.role_changed(hosted, now)
        self.futures.drop_offline()
        effects.append(AwaitRoom(host.directories.awaited))
        return effects

    def described(self, path: str, why: DiskError) -> str:
        if not isinstance(why, DiskFull):
            return f"the log directory {path} is offline from now on: {why}"
        try:
            total, free = self.storage.disk.usage(path)
        except DiskError:
            total = free = -1
        rest = f"; {mib(free)} of {mib(total)} are free, {mib(needed_room(total))} are needed" if total >= 0 else ""
        is_awaited = path in self.host.directories.awaited
        then = "must be restarted: another one has failed"
        if is_awaited:
            then = "restarts by itself when there is space"
        return (
            f"the log directory {path} is full, and offline from now on: {why}{rest}. Free space there; this broker"
            f" goes on with the others, and {then}"
        )

    def is_absent(self, at: TopicIdPartition, directory: Uuid, *, is_new: bool) -> bool:
        """Does a replica that metadata has in `directory` lie in one that is offline, or may it?"""
        host, directories = self.host, self.host.directories
        if at in host.absent:
            return True
        if host.partitions.find(at) is not None:
            return False
        if not directories.holds_offline(directory, is_new=is_new) and not self.futures.waits_for_current(at, is_new):
            return False
        host.absent[at] = directory if directory in directories.offline_ids else LOST_DIRECTORY
        return True

    def report_absent(self) -> None:
        """A replica in an offline directory that the controller takes for one in another would be elected. Those that
        metadata assigns to other brokers are not reported."""
        host = self.host
        for at, directory in list(host.absent.items()):
            partition = host.image.partition(at)
            if partition is None or host.me not in partition.replicas:
                del host.absent[at]
            else:
                self.assignments.lies(at, directory, directory_of(partition, host.me))

    def left(self) -> dict[Uuid, tuple[Left, ...]]:
        """What lies in each directory that is offline at a stop, for its marker: the next start may find it again, and
        what it does not find there is lost."""
        absent = self.host.absent.items()
        return {
            offline: tuple(Left.in_doubt(at, 0, NO_END) for at, where in absent if where in (offline, LOST_DIRECTORY))
            for offline in self.host.directories.offline_ids
        }
