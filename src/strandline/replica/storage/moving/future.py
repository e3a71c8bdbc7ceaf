"""The future log of one replica, which copies the current one (KIP-113)."""

from msgspec.structs import replace

from strandline.base.ids import TopicIdPartition, TopicPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.wire.batch import batches

READ_BYTES = 1 << 20


class Future:
    """One replica's future log."""

    __slots__ = ("at", "directory", "is_durable", "is_syncing", "log", "name", "path")

    def __init__(self, at: TopicIdPartition, name: TopicPartition, directory: LogDir, path: str, log: Log) -> None:
        assert log.directory == path
        self.at = at
        self.name = name
        self.directory = directory
        self.path = path
        self.log = log
        self.is_syncing = False  # a sync of it is under way
        self.is_durable = False  # what it had when it first had caught up

    def sync_begins(self) -> tuple[str, ...]:
        """The paths to be made durable."""
        assert not self.is_syncing and not self.is_durable
        self.is_syncing = True
        return (*self.log.unsynced(), self.directory.path)

    def synced(self, end: int) -> None:
        """What it had up to `end` is durable, unless it was cut meanwhile: then it is synced once more. Raises
        DiskError."""
        assert self.is_syncing
        self.is_syncing = False
        if self.log.log_end_offset >= end:
            self.log.mark_synced(end)
            self.is_durable = True

    def copy(self, host: Host, hosted: Hosted, limit: int, now: Instant) -> int:
        """Copy at most `limit` bytes, but always a batch; returns how many."""
        assert limit > 0
        copied = 0
        current = hosted.log
        try:
            self.log.reconfigure(current.config)
            align(self.log, current)  # guard: future-log-not-cut
        except DiskError as error:
            host.fail(self.directory, error)
            return 0
        while self.log.log_end_offset < current.log_end_offset and (copied < limit or not copied):
            try:
                end = current.log_end_offset
                size = min(READ_BYTES, max(limit - copied, 1))
                read = current.read(self.log.log_end_offset, size, upto=end, min_one=True)
            except DiskError as error:
                host.fail(hosted.directory, error)
                return copied
            if not isinstance(read, Read) or not read.size:
                return copied
            try:
                before = self.log.log_end_offset
                if current.gaps_end > before:
                    self.log.admit_gaps(current.gaps_end)
                for buffer in read.buffers:
                    start_at_batch(self.log, memoryview(buffer))
                    self.log.append_as_follower(buffer, current.latest_epoch, now)
                if self.log.log_end_offset == before:
                    return copied
                self.log.advance_log_start(current.log_start_offset)
            except DiskError as error:
                host.fail(self.directory, error)
                return copied
            copied += read.size
        assert self.log.log_end_offset <= current.log_end_offset, self.name
        return copied


def as_written(config: LogConfig) -> LogConfig:
    """For a log that lies on disk: how dense its indexes are was decided when they were written."""
    return replace(config, index_interval_bytes=LogConfig().index_interval_bytes)


def align(future: Log, current: Log) -> None:
    """Cut the future log where the current one has become another since (KIP-279): an epoch that both have is the same
    up to the earlier of its two ends."""
    while future.latest_epoch >= 0:
        epoch, end = current.end_offset_for_epoch(future.latest_epoch)
        if epoch == future.latest_epoch and future.log_end_offset <= end:
            break
        if epoch < 0:
            future.truncate_fully_and_start_at(current.log_start_offset)
            break
        own_epoch, own_end = future.end_offset_for_epoch(epoch)
        target = min(own_end, end) if own_epoch == epoch else own_end
        if target <= future.log_start_offset:
            future.truncate_fully_and_start_at(current.log_start_offset)
            break
        future.truncate_to(target)
    if not current.log_start_offset <= future.log_end_offset <= current.log_end_offset:
        future.truncate_fully_and_start_at(current.log_start_offset)
    future.advance_log_start(current.log_start_offset)
    assert future.log_end_offset <= current.log_end_offset


def start_at_batch(future: Log, buffer: memoryview) -> None:
    """An empty log begins with a whole batch, also where the current log starts in the middle of one."""
    if future.size_bytes or future.log_start_offset != future.log_end_offset:
        return
    first = next(iter(batches(buffer)), None)
    if first is not None and first.base_offset < future.log_end_offset < first.next_offset:
        future.truncate_fully_and_start_at(first.base_offset)
        assert future.log_start_offset == future.log_end_offset == first.base_offset
