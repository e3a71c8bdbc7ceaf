"""A replica moves to another log directory of its broker (KIP-113): a *future* log grows beside the current one, and
takes its place once it has all that the current one has.

Steps of one move:
  1. The future log copies the current one, a bounded number of bytes at a time; where the current log was cut since,
     the future one is cut as a follower's would be, by leader epochs.
  2. Caught up, it is made durable.
  3. The controller is told that the replica lies in the new directory: from then on a failure of that directory, and
     no longer of the old one alone, takes the replica offline. Until metadata says so the current log stays in place.
  4. In one step the rest is copied, the future log gets the partition's name, durably, and the old log is deleted.

A stop before the new name is durable leaves the current log in place, and the move begins anew. A crash after it leaves
two logs of one name: that one counts which metadata names (`Storage.chosen`), and it has named the new one.

Which move was asked for last stands in a small file beside the current log, for a directory that was offline may come
back with the future log of a move that has ended: those that nobody asks for are deleted. Where no current log is found
the future log takes its place, if metadata names its directory and the current one cannot lie in one that is offline.
"""

from msgspec.structs import replace

from strandline.base.effects import Effect, Report, Sync, Synced, SyncFailed
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicIdPartition, TopicPartition, Uuid, parse_uuid, uuid_text
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.directory import PARTITION_METADATA, directory_name, future_name, write_partition_metadata
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.metadata.image import directory_of
from strandline.replica.config import LogDir
from strandline.replica.hosted import Host, Hosted
from strandline.replica.quota import Rate, rate_of
from strandline.replica.storage.assignments import Assignments
from strandline.replica.storage.cordoned import cordoned
from strandline.replica.storage.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, TOPIC_IDS
from strandline.replica.storage.storage import Storage
from strandline.replica.timers import Alarm
from strandline.wire.batch import batches

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
STEP_MS = 10
STEP_BYTES = 4 << 20  # of all moves together
READ_BYTES = 1 << 20
NAME_MAX = 255  # that a file system takes
PREFERRED_MAX = 10_000
WISH = "future-directory"  # in the current log's directory: the id of the directory that the replica is to go to
E = ErrorCode


class Future:
    """One replica's future log."""

    __slots__ = ("at", "directory", "is_durable", "is_syncing", "log", "name", "path")

    def __init__(self, at: TopicIdPartition, name: TopicPartition, directory: LogDir, path: str, log: Log) -> None:
        self.at = at
        self.name = name
        self.directory = directory
        self.path = path
        self.log = log
        self.is_syncing = False
        self.is_durable = False  # what it had when it first had caught up


class Futures:
    def __init__(self, host: Host, storage: Storage, assignments: Assignments) -> None:
        self.host = host
        self.storage = storage
        self.assignments = assignments
        self.moving: dict[TopicIdPartition, Future] = {}
        self.wake = Alarm(host.timers, self.go_on)
        config = host.config
        self.rate = Rate(config.alter_log_dirs_windows, config.alter_log_dirs_window_ms)

    # --- what is wished

    def alter(self, name: TopicPartition, path: str, now: Instant) -> ErrorCode:
        """Move a replica to the log directory `path`, or stay there; a move to another directory ends. As in Kafka, a
        name too long for a future log is refused first."""
        if len(future_name(name, ZERO_UUID)) > NAME_MAX:
            return E.INVALID_TOPIC_EXCEPTION
        directories = self.host.directories
        known = [*directories.live, *directories.offline.values()]
        log_dir = next((one for one in known if one.path == (path.rstrip("/") or "/")), None)
        if log_dir is None:
            return E.LOG_DIR_NOT_FOUND
        if not directories.is_live(log_dir):
            return E.KAFKA_STORAGE_ERROR
        if log_dir in cordoned(self.host):
            return E.INVALID_REPLICA_ASSIGNMENT
        hosted = self.host.named(*name)
        if hosted is None or hosted.role is None:
            topic = self.host.image.topic_named(name.topic)
            if topic is not None and TopicIdPartition(topic.topic_id, name.partition) in self.host.absent:
                return E.KAFKA_STORAGE_ERROR
            if len(self.storage.preferred) < PREFERRED_MAX:
                self.storage.preferred[name] = log_dir.path  # if it is ever created here
            return E.REPLICA_NOT_AVAILABLE
        future = self.moving.get(hosted.at)
        if future is not None and future.directory.path == log_dir.path:
            return E.NONE
        self.drop(hosted.at)
        if not self.wish(hosted, None if hosted.directory.path == log_dir.path else log_dir):
            return E.KAFKA_STORAGE_ERROR
        if hosted.directory.path == log_dir.path:
            return E.NONE
        try:
            self.begin(hosted, log_dir, now)
        except DiskError as error:
            self.wish(hosted, None)
            self.host.fail(log_dir, error)
            return E.KAFKA_STORAGE_ERROR
        return E.NONE

    def wish(self, hosted: Hosted, log_dir: LogDir | None) -> bool:
        """Note where the replica is to go, None: nowhere. False: its directory has failed."""
        path = f"{hosted.log.directory}/{WISH}"
        try:
            if log_dir is not None:
                self.storage.disk.write_file(path, uuid_text(log_dir.directory_id).encode())
            elif self.storage.disk.exists(path):
                self.storage.disk.remove(path)
            else:
                return True
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return False
        hosted.log.unsynced_others.add(path, hosted.log.directory)
        return True

    def wished(self, hosted: Hosted) -> Uuid | None:
        content = self.storage.disk.read_file(f"{hosted.log.directory}/{WISH}")
        try:
            return None if content is None else parse_uuid(content.decode("ascii", "replace"))
        except ValueError:
            return None

    def begin(self, hosted: Hosted, log_dir: LogDir, now: Instant) -> None:
        disk = self.storage.disk
        path = f"{log_dir.path}/{future_name(hosted.name, hosted.at.topic_id)}"
        disk.remove_tree(path)
        disk.make_directory(path)
        write_partition_metadata(disk, path, hosted.at.topic_id)
        log = Log.open(
            self.storage.disk,
            path,
            loading(hosted.log.config),
            now,
            clean=True,
            recovery_point=0,
            log_start_offset=hosted.log.log_start_offset,
            cleaned_to=hosted.log.log_start_offset if hosted.log.has_gaps else None,
            tail_budget=self.storage.tail_budget,
        )
        log.unsynced_others.add(f"{path}/{PARTITION_METADATA}")
        self.moving[hosted.at] = Future(hosted.at, hosted.name, log_dir, path, log)
        self.arm(now)

    # --- what a start finds

    def resume(self, now: Instant) -> list[Effect]:
        """The moves that are wished begin anew: nothing vouches for files of a copy that a start finds, and the records
        are here. Where no current log is found, metadata is waited for."""
        effects: list[Effect] = []
        for at, rows in list(self.storage.found_futures.items()):
            hosted = self.host.find(at)
            if hosted is None or not self.host.directories.is_live(hosted.directory):
                continue
            del self.storage.found_futures[at]
            try:
                wished = self.wished(hosted)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
                continue
            for log_dir, entry in rows:
                if not self.host.directories.is_live(log_dir):
                    continue
                if wished != log_dir.directory_id or hosted.directory.path == log_dir.path or at in self.moving:
                    effects += self.bury(at, log_dir, entry)
                    continue
                try:
                    self.begin(hosted, log_dir, now)
                except DiskError as error:
                    self.host.fail(log_dir, error)
        return effects

    def bury(self, at: TopicIdPartition, log_dir: LogDir, entry: str) -> list[Effect]:
        if not self.host.directories.is_live(log_dir):
            return []
        self.storage.bury(log_dir, entry, at)
        return [Report("warning", f"{log_dir.path}/{entry} is deleted: no move wants it")]

    def bury_strays(self) -> list[Effect]:
        """Once metadata is known: of partitions that are not this broker's."""
        effects: list[Effect] = []
        for at, rows in list(self.storage.found_futures.items()):
            partition = self.host.image.partition(at)
            if partition is None or self.host.me not in partition.replicas:
                del self.storage.found_futures[at]
                for log_dir, entry in rows:
                    effects += self.bury(at, log_dir, entry)
        return effects

    def waits_for_current(self, at: TopicIdPartition, is_new: bool) -> bool:
        """Is there a future log of a current one that may lie in a directory that is offline? What it lacks of that one
        may be committed."""
        return at in self.storage.found_futures and bool(self.host.directories.offline) and not is_new

    def drop(self, at: TopicIdPartition) -> None:
        """The move ends where it stands."""
        future = self.moving.pop(at, None)
        if future is None:
            return
        hosted, partition = self.host.find(at), self.host.image.partition(at)
        if hosted is not None and self.host.directories.is_live(hosted.directory):
            self.wish(hosted, None)
        if hosted is not None and partition is not None and self.host.directories.is_live(hosted.directory):
            self.assignments.lies(at, hosted.directory.directory_id, directory_of(partition, self.host.me))
        if not self.host.directories.is_live(future.directory):
            return
        try:
            future.log.abandon()
        except DiskError as error:
            self.host.fail(future.directory, error)
        else:
            self.storage.bury(future.directory, future_name(future.name, at.topic_id), at)

    def drop_offline(self) -> None:
        """Either directory of a move has failed."""
        for at, future in list(self.moving.items()):
            if at in self.host.absent or not self.host.directories.is_live(future.directory):
                self.drop(at)

    def known(self, at: TopicIdPartition) -> Uuid:
        partition = self.host.image.partition(at)
        assert partition is not None
        return directory_of(partition, self.host.me)

    def told(self, hosted: Hosted, known: Uuid) -> None:
        """Which directory the controller is to have: the new one as soon as the future log could take over (T41)."""
        future = self.moving.get(hosted.at)
        is_next = future is not None and (future.is_durable or known == future.directory.directory_id)
        log_dir = future.directory if future is not None and is_next else hosted.directory
        self.assignments.lies(hosted.at, log_dir.directory_id, known)

    # --- copying

    def arm(self, now: Instant) -> None:
        if self.moving:
            self.wake.set(now + STEP_MS)

    def go_on(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        left, has_taken_over = self.share(now), False
        for at, future in list(self.moving.items()):
            hosted = self.host.find(at)
            if hosted is None or hosted.role is None:
                continue  # its metadata is not known yet
            if hosted.directory.path == future.directory.path:
                self.drop(at)
                continue
            is_next = future.is_durable and self.known(at) == future.directory.directory_id
            must_wait = has_taken_over if is_next else left <= 0
            if must_wait:
                continue  # taking over waits for the disk, so it is done once in a step
            copied = self.copy(hosted, future, STEP_BYTES if is_next else left, now)
            self.rate.record(copied, now)
            left -= copied
            is_live = hosted.role is not None and self.host.directories.is_live(future.directory)
            if not is_live or future.log.log_end_offset != hosted.log.log_end_offset:
                continue
            if is_next:
                has_taken_over = True
                effects += self.take_over(hosted, future, now)
            elif future.is_durable:
                self.told(hosted, self.known(at))
            elif not future.is_syncing:
                effects.append(self.sync(future))
        # The first has had its turn.
        if self.moving:
            first = next(iter(self.moving))
            self.moving[first] = self.moving.pop(first)
        self.arm(now)
        return effects

    def share(self, now: Instant) -> int:
        """What may be copied in this step: the rate that is configured must not be exceeded by much."""
        return int(min(STEP_BYTES, self.bound - self.rate.measure(now)))

    @property
    def bound(self) -> int:
        return rate_of(self.host.image, self.host.me, RATE, self.host.config.alter_log_dirs_rate)

    def copy(self, hosted: Hosted, future: Future, limit: int, now: Instant) -> int:
        """Copy at most `limit` bytes, but always a batch; returns how many."""
        copied = 0
        current = hosted.log
        try:
            future.log.reconfigure(current.config)
            align(future.log, current)
        except DiskError as error:
            self.failed(future, error)
            return 0
        while future.log.log_end_offset < current.log_end_offset and (copied < limit or not copied):
            try:
                end = current.log_end_offset
                size = min(READ_BYTES, max(limit - copied, 1))
                read = current.read(future.log.log_end_offset, size, upto=end, min_one=True)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
                return copied
            if not isinstance(read, Read) or not read.size:
                return copied
            try:
                before = future.log.log_end_offset
                if current.gaps_end > before:
                    future.log.admit_gaps(current.gaps_end)
                for buffer in read.buffers:
                    start_at_batch(future.log, memoryview(buffer))
                    future.log.append_as_follower(buffer, current.latest_epoch, now)
                if future.log.log_end_offset == before:
                    return copied
                future.log.advance_log_start(current.log_start_offset)
            except DiskError as error:
                self.failed(future, error)
                return copied
            copied += read.size
        return copied

    def failed(self, future: Future, error: DiskError) -> None:
        self.host.fail(future.directory, error)

    def sync(self, future: Future) -> Effect:
        future.is_syncing = True
        end = future.log.log_end_offset
        paths = (*future.log.unsynced(), future.directory.path)
        return Sync(paths, ("replica", "future", future.at, (end, future.directory)))

    def synced(self, event: Synced | SyncFailed) -> None:
        _, _, at, (end, log_dir) = event.token
        if isinstance(event, SyncFailed):
            self.host.fail(log_dir, event.error)
            return
        future = self.moving.get(at)
        if future is None or future.directory != log_dir or not future.is_syncing:
            return
        future.is_syncing = False
        if future.log.log_end_offset >= end:  # or it was cut meanwhile, and is synced once more
            try:
                future.log.mark_synced(end)
            except DiskError as error:
                self.failed(future, error)
            else:
                future.is_durable = True

    # --- taking over

    def take_over(self, hosted: Hosted, future: Future, now: Instant) -> list[Effect]:
        """The future log becomes the current one. Its directory's checkpoints speak for it before it has the name."""
        storage, disk, new = self.storage, self.storage.disk, future.directory
        name, old, old_log = hosted.name, hosted.directory, hosted.log
        rows = {
            RECOVERY_POINTS: storage.recovery_points(new) | {name: future.log.recovery_point},
            LOG_STARTS: storage.log_starts(new) | {name: old_log.log_start_offset},
            HIGH_WATERMARKS: storage.high_watermarks(new) | {name: hosted.high_watermark},
        }
        if future.log.cleaned_to is not None:
            rows[CLEANED] = storage.cleaned(new) | {name: future.log.cleaned_to}
            storage.cleaner_files[new.path] = None
        ids = storage.topic_ids(new, {name: hosted.at.topic_id})
        if not storage.write_now(new, TOPIC_IDS, *ids):  # first: there may be a row of an earlier topic
            return []
        for file, offsets in rows.items():
            if not storage.save_now(new, file, offsets):
                return []
        try:
            future.log.settle()
            future.log.close()
            path = f"{new.path}/{directory_name(name)}"
            disk.remove_tree(path)
            disk.rename(future.path, path)
            disk.sync([new.path])
            log = Log.open(
                disk,
                path,
                loading(old_log.config),
                now,
                clean=True,
                recovery_point=0,
                log_start_offset=old_log.log_start_offset,
                cleaned_to=future.log.cleaned_to,
                tail_budget=storage.tail_budget,
            )
            log.reconfigure(old_log.config)
            log.recovery_point = min(future.log.recovery_point, log.log_end_offset)
            for entry in old_log.epochs.entries:
                if entry.epoch > log.latest_epoch:
                    log.assign_epoch(entry.epoch, entry.start_offset)  # that have no records yet
            log.unsynced_others.add(path, *(f"{path}/{entry}" for entry in disk.list(path)))
        except DiskError as error:
            self.failed(future, error)
            return []
        assert log.log_end_offset == old_log.log_end_offset, f"{name} was not copied as a whole"
        del self.moving[hosted.at]
        storage.flushing.pop(hosted.at, None)
        hosted.log = log
        hosted.directory = new
        hosted.moves += 1
        assert hosted.role is not None
        hosted.role.log = log
        storage.retire(old_log, old, name, hosted.at)
        self.assignments.lies(hosted.at, new.directory_id, self.known(hosted.at))
        return [Report("info", f"{name} has moved from {old.path} to {new.path}")]

    # --- the end of the process

    def settle(self) -> None:
        for future in list(self.moving.values()):
            if self.host.directories.is_live(future.directory):
                try:
                    self.storage.disk.sync(future.log.settle())
                    future.log.close()
                except DiskError as error:
                    self.host.fail(future.directory, error)


def loading(config: LogConfig) -> LogConfig:
    """For a log that lies on disk: how dense its indexes are was settled when they were written."""
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


def start_at_batch(future: Log, buffer: memoryview) -> None:
    """An empty log begins with a whole batch, also where the current log starts in the middle of one."""
    if future.size_bytes or future.log_start_offset != future.log_end_offset:
        return
    first = next(iter(batches(buffer)), None)
    if first is not None and first.base_offset < future.log_end_offset < first.next_offset:
        future.truncate_fully_and_start_at(first.base_offset)
