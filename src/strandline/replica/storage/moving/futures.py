"""A replica moves to another log directory of its broker (KIP-113): a *future* log grows beside the current one, and
takes its place once it has all that the current one has.

Steps of one move:
  1. The future log copies the current one, a bounded number of bytes at a time; where the current log was cut since,
     the future one is cut as a follower's would be, by leader epochs.
  2. Caught up, it is made durable.
  3. It is reported to the controller as a replica in the new directory: from then on a failure of that directory, and
     no longer of the old one alone, takes the replica offline. Until metadata says so the current log stays in place.
  4. In one step the rest is copied, the future log gets the partition's name, durably, and the old log is deleted.

A stop before the new name is durable leaves the current log in place, and the move begins anew. A crash after it leaves
two logs of one name: that one counts which metadata names (`Storage.chosen`), and it has named the new one.

Which move was asked for last stands in a small file beside the current log, for a directory that was offline may come
back with the future log of a move that has ended: those that are not asked for are deleted. Where no current log is
found the future log takes its place, if metadata names its directory and the current one cannot lie in one that is
offline.
"""

from strandline.base.effects import Effect, Report, Sync, Synced, SyncFailed
from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.log.directory import PARTITION_METADATA, directory_name, future_name, write_partition_metadata
from strandline.log.log import Log
from strandline.metadata.image import directory_of
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, TOPIC_IDS
from strandline.replica.quota import Rate, rate_of
from strandline.replica.storage.cordoned import cordoned
from strandline.replica.storage.moving.assignments import Assignments
from strandline.replica.storage.moving.future import Future, as_written
from strandline.replica.storage.moving.requested_moves import request_move, requested_move
from strandline.replica.storage.storage import Storage
from strandline.replica.tokens import FutureSynced

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
STEP_MS = 10
STEP_BYTES = 4 << 20  # of all moves together
NAME_MAX = 255  # that a file system takes
E = ErrorCode


class Futures:
    def __init__(self, host: Host, storage: Storage, assignments: Assignments) -> None:
        self.host = host
        self.storage = storage
        self.assignments = assignments
        self.moving: dict[TopicIdPartition, Future] = {}
        self.wake = Alarm(host.timers, self.go_on)
        config = host.config
        self.rate = Rate(config.alter_log_dirs_windows, config.alter_log_dirs_window_ms)

    # --- what is asked for

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
        hosted = self.host.partitions.named(*name)
        if hosted is None or hosted.role is None:
            topic = self.host.image.topic_named(name.topic)
            if topic is not None and TopicIdPartition(topic.topic_id, name.partition) in self.host.absent:
                return E.KAFKA_STORAGE_ERROR
            self.storage.placement.prefer(name, log_dir.path)
            return E.REPLICA_NOT_AVAILABLE
        future = self.moving.get(hosted.at)
        if future is not None and future.directory.path == log_dir.path:
            return E.NONE
        self.drop(hosted.at)
        if not self.request(hosted, None if hosted.directory.path == log_dir.path else log_dir):
            return E.KAFKA_STORAGE_ERROR
        if hosted.directory.path == log_dir.path:
            return E.NONE
        try:
            self.begin(hosted, log_dir, now)
        except DiskError as error:
            self.request(hosted, None)
            self.host.fail(log_dir, error)
            return E.KAFKA_STORAGE_ERROR
        return E.NONE

    def begin(self, hosted: Hosted, log_dir: LogDir, now: Instant) -> None:
        assert hosted.at not in self.moving, hosted.name
        assert hosted.directory.path != log_dir.path, hosted.name
        disk = self.storage.disk
        path = f"{log_dir.path}/{future_name(hosted.name, hosted.at.topic_id)}"
        disk.remove_tree(path)
        disk.make_directory(path)
        write_partition_metadata(disk, path, hosted.at.topic_id)
        log = Log.open(
            self.storage.disk,
            path,
            as_written(hosted.log.config),
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

    def request(self, hosted: Hosted, log_dir: LogDir | None) -> bool:
        assert log_dir is None or log_dir.path != hosted.directory.path, hosted.name
        return request_move(self.host, self.storage.disk, hosted, log_dir)

    # --- what a start finds

    def resume(self, now: Instant) -> list[Effect]:
        """The moves that were asked for begin anew: nothing vouches for files of a copy that a start finds, and the
        records are here. Where no current log is found, metadata is waited for."""
        effects: list[Effect] = []
        for at, rows in list(self.storage.loading.futures.items()):
            hosted = self.host.partitions.find(at)
            if hosted is None or not self.host.directories.is_live(hosted.directory):
                continue
            del self.storage.loading.futures[at]
            try:
                requested = requested_move(self.storage.disk, hosted)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
                continue
            for log_dir, entry in rows:
                if not self.host.directories.is_live(log_dir):
                    continue
                if requested != log_dir.directory_id or hosted.directory.path == log_dir.path or at in self.moving:
                    effects += self.delete(at, log_dir, entry)
                    continue
                try:
                    self.begin(hosted, log_dir, now)
                except DiskError as error:
                    self.host.fail(log_dir, error)
        return effects

    def delete(self, at: TopicIdPartition, log_dir: LogDir, entry: str) -> list[Effect]:
        if not self.host.directories.is_live(log_dir):
            return []
        self.storage.deleted.rename(log_dir, entry, at)
        return [Report("warning", f"{log_dir.path}/{entry} is deleted: no move wants it")]

    def delete_strays(self) -> list[Effect]:
        """Once metadata is known: of partitions that are not this broker's."""
        effects: list[Effect] = []
        for at, rows in list(self.storage.loading.futures.items()):
            partition = self.host.image.partition(at)
            if partition is None or self.host.me not in partition.replicas:
                del self.storage.loading.futures[at]
                for log_dir, entry in rows:
                    effects += self.delete(at, log_dir, entry)
        return effects

    def waits_for_current(self, at: TopicIdPartition, is_new: bool) -> bool:
        """Is there a future log of a current one that may lie in a directory that is offline? What it lacks of that one
        may be committed."""
        return at in self.storage.loading.futures and bool(self.host.directories.offline) and not is_new

    def drop(self, at: TopicIdPartition) -> None:
        """The move ends where it stands."""
        future = self.moving.pop(at, None)
        if future is None:
            return
        assert future.at == at
        hosted, partition = self.host.partitions.find(at), self.host.image.partition(at)
        if hosted is not None and self.host.directories.is_live(hosted.directory):
            self.request(hosted, None)
        if hosted is not None and partition is not None and self.host.directories.is_live(hosted.directory):
            self.assignments.lies(at, hosted.directory.directory_id, directory_of(partition, self.host.me))
        if not self.host.directories.is_live(future.directory):
            return
        try:
            future.log.abandon()
        except DiskError as error:
            self.host.fail(future.directory, error)
        else:
            self.storage.deleted.rename(future.directory, future_name(future.name, at.topic_id), at)

    def drop_offline(self) -> None:
        """Either directory of a move has failed."""
        for at, future in list(self.moving.items()):
            if at in self.host.absent or not self.host.directories.is_live(future.directory):
                self.drop(at)

    def known(self, at: TopicIdPartition) -> Uuid:
        partition = self.host.image.partition(at)
        assert partition is not None
        return directory_of(partition, self.host.me)

    def report_directory(self, hosted: Hosted, known: Uuid) -> None:
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
            hosted = self.host.partitions.find(at)
            if hosted is None or hosted.role is None:
                continue  # its metadata is not known yet
            if hosted.directory.path == future.directory.path:
                self.drop(at)
                continue
            is_next = future.is_durable and self.known(at) == future.directory.directory_id
            must_wait = has_taken_over if is_next else left <= 0
            if must_wait:
                continue  # taking over waits for the disk, so it is done once in a step
            copied = future.copy(self.host, hosted, STEP_BYTES if is_next else left, now)
            assert copied >= 0
            self.rate.record(copied, now)
            left -= copied
            is_live = hosted.role is not None and self.host.directories.is_live(future.directory)
            if not is_live or future.log.log_end_offset != hosted.log.log_end_offset:
                continue
            if is_next:
                has_taken_over = True
                effects += self.take_over(hosted, future, now)
            elif future.is_durable:
                self.report_directory(hosted, self.known(at))
            elif not future.is_syncing:
                effects.append(self.sync(future))
        # The first has had its turn.
        if self.moving:
            first = next(iter(self.moving))
            assert self.moving[first].at == first
            self.moving[first] = self.moving.pop(first)
        self.arm(now)
        return effects

    def share(self, now: Instant) -> int:
        """What may be copied in this step: the rate that is configured must not be exceeded by much."""
        return int(min(STEP_BYTES, self.bound - self.rate.measure(now)))

    @property
    def bound(self) -> int:
        return rate_of(self.host.image, self.host.me, RATE, self.host.config.alter_log_dirs_rate)

    def sync(self, future: Future) -> Effect:
        end = future.log.log_end_offset
        return Sync(future.sync_begins(), FutureSynced(future.at, end, future.directory))

    def synced(self, event: Synced | SyncFailed) -> None:
        token: FutureSynced = event.token
        log_dir = token.directory
        if isinstance(event, SyncFailed):
            self.host.fail(log_dir, event.error)
            return
        future = self.moving.get(token.at)
        if future is None or future.directory != log_dir or not future.is_syncing:
            return
        try:
            future.synced(token.end)
        except DiskError as error:
            self.host.fail(log_dir, error)

    # --- taking over

    def take_over(self, hosted: Hosted, future: Future, now: Instant) -> list[Effect]:
        """The future log becomes the current one. Its directory's checkpoints speak for it before it has the name."""
        assert future.is_durable, hosted.name
        assert future.log.log_end_offset == hosted.log.log_end_offset, hosted.name
        storage, new = self.storage, future.directory
        name, old, old_log = hosted.name, hosted.directory, hosted.log
        assert old.path != new.path, "else the move has ended"
        if not self.save_checkpoints(hosted, future):
            return []
        try:
            log = self.renamed(hosted, future, now)
        except DiskError as error:
            self.host.fail(new, error)
            return []
        del self.moving[hosted.at]
        storage.flushing.forget(hosted.at)
        hosted.move(log, new)
        assert hosted.directory.path == new.path and hosted.at not in self.moving
        storage.deleted.delete(old_log, old, name, hosted.at)
        self.assignments.lies(hosted.at, new.directory_id, self.known(hosted.at))
        return [Report("info", f"{name} has moved from {old.path} to {new.path}")]

    def save_checkpoints(self, hosted: Hosted, future: Future) -> bool:
        checkpoints, name, new = self.storage.checkpoints, hosted.name, future.directory
        rows = {
            RECOVERY_POINTS: checkpoints.recovery_points(new) | {name: future.log.recovery_point},
            LOG_STARTS: checkpoints.log_starts(new) | {name: hosted.log.log_start_offset},
            HIGH_WATERMARKS: checkpoints.high_watermarks(new) | {name: hosted.high_watermark},
        }
        if future.log.cleaned_to is not None:
            rows[CLEANED] = checkpoints.cleaned(new) | {name: future.log.cleaned_to}
            checkpoints.expect_cleaner_file(new)
        ids = checkpoints.topic_ids(new, {name: hosted.at.topic_id})
        # First, since there may be a row of an earlier topic.
        is_saved = checkpoints.write_now(new, TOPIC_IDS, *ids)
        return is_saved and all(checkpoints.save_now(new, file, offsets) for file, offsets in rows.items())

    def renamed(self, hosted: Hosted, future: Future, now: Instant) -> Log:
        """The future log under the partition's name, durably. Raises DiskError."""
        disk, directory, current = self.storage.disk, future.directory.path, hosted.log
        future.log.write_all()
        future.log.close()
        path = f"{directory}/{directory_name(hosted.name)}"
        disk.remove_tree(path)
        disk.rename(future.path, path)
        disk.sync([directory])
        log = Log.open(
            disk,
            path,
            as_written(current.config),
            now,
            clean=True,
            recovery_point=0,
            log_start_offset=current.log_start_offset,
            cleaned_to=future.log.cleaned_to,
            high_watermark=hosted.high_watermark,
            tail_budget=self.storage.tail_budget,
        )
        log.reconfigure(current.config)
        log.recovery_point = min(future.log.recovery_point, log.log_end_offset)
        for entry in current.epochs.entries:
            if entry.epoch > log.latest_epoch:
                log.assign_epoch(entry.epoch, entry.start_offset)  # that have no records yet
        log.unsynced_others.add(path, *(f"{path}/{entry}" for entry in disk.list(path)))
        return log

    def check(self) -> None:
        assert all(future.at == at for at, future in self.moving.items())
        assert not self.moving or not self.wake.done, "a move goes on"

    # --- the end of the process

    def close(self) -> None:
        """With everything that the moves have copied durable."""
        for future in list(self.moving.values()):
            if self.host.directories.is_live(future.directory):
                try:
                    self.storage.disk.sync(future.log.write_all())
                    future.log.close()
                except DiskError as error:
                    self.host.fail(future.directory, error)
