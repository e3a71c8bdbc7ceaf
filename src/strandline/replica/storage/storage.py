"""Where the replicas' logs lie: created, found, made durable and deleted.

An operation of the disk that fails takes its directory offline (`Host.fail`), and the others go on.
"""

from strandline.base.effects import Effect
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.base.timers import Every
from strandline.log.directory import PARTITION_METADATA, directory_name, write_partition_metadata
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.log import Log
from strandline.log.tail import TailBudget
from strandline.replica.config import LogDir
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.storage.checkpoints import Checkpoints
from strandline.replica.storage.deleted_logs import DeletedLogs
from strandline.replica.storage.flushing import Flushing
from strandline.replica.storage.log_configs import LogConfigs
from strandline.replica.storage.opening.loading import Loading
from strandline.replica.storage.opening.owners import make_room
from strandline.replica.storage.placement import Placement


class Storage:
    def __init__(self, host: Host, disk: Disk) -> None:
        self.host = host
        self.disk = disk
        self.tail_budget = TailBudget()
        self.configs = LogConfigs(host)
        self.placement = Placement(host)
        self.checkpoints = Checkpoints(host, disk)
        self.flushing = Flushing(host, self.checkpoints)
        self.deleted = DeletedLogs(host, disk)
        self.loading = Loading(host, disk, self.configs, self.checkpoints, self.tail_budget)
        self.findings = self.loading.findings

    def tasks(self) -> list[Every]:
        config = self.host.config
        return [
            Every(config.high_watermark_checkpoint_interval_ms, self.checkpoints.save_high_watermarks),
            Every(config.recovery_point_checkpoint_interval_ms, self.flushing.flush),
            Every(config.log_start_checkpoint_interval_ms, self.checkpoints.save_log_starts),
            Every(config.flush_scheduler_interval_ms, self.flushing.flush_due),
        ]

    # --- logs that are found

    def load(self, now: Instant, clean: bool, left: LogsLeft | None) -> list[Effect]:
        return self.loading.load(now, clean, left)

    def choose(self, hosted: Hosted, directory_id: Uuid, now: Instant) -> Hosted | None:
        """A replica may have two logs: that one counts which metadata names, and the other is deleted. Where it names
        neither, the first that was found counts, and the other is left alone. None: it cannot be read."""
        host, second_logs = self.host, self.loading.second_logs
        second = second_logs.get(hosted.at)
        if second is None or directory_id not in (hosted.directory.directory_id, second.directory.directory_id):
            return hosted
        del second_logs[hosted.at]
        if directory_id == hosted.directory.directory_id:
            self.deleted.rename(second.directory, directory_name(hosted.name), hosted.at)
            return hosted
        try:
            other = self.loading.open(hosted.at, second, now)
            self.findings.end(second.directory)
        except DiskError as error:
            host.fail(second.directory, error)
            host.absent[hosted.at] = directory_id
            return None
        assert (other.at, other.name) == (hosted.at, hosted.name)
        self.delete(hosted)
        hosted.leave()
        host.partitions.put(other)
        return other

    # --- logs that are created

    def create(self, at: TopicIdPartition, name: TopicPartition, directory_id: Uuid, now: Instant) -> Hosted:
        """Begin an empty log; in another directory, if the first one fails over it."""
        while True:
            log_dir = self.placement.place(name, directory_id)
            try:
                return self.create_in(log_dir, at, name, now)
            except DiskError as error:
                self.host.fail(log_dir, error)

    def create_in(self, log_dir: LogDir, at: TopicIdPartition, name: TopicPartition, now: Instant) -> Hosted:
        path = f"{log_dir.path}/{directory_name(name)}"
        assert name not in self.checkpoints.listed, "an earlier log's checkpoints would speak for the new one"
        make_room(self.disk, path)
        self.disk.make_directory(path)
        write_partition_metadata(self.disk, path, at.topic_id)
        log = Log.create(self.disk, path, self.configs.of(name.topic), now, self.tail_budget)
        # Without its topic id the log would have no owner after a power loss.
        log.unsynced_others.add(f"{path}/{PARTITION_METADATA}", log_dir.path)
        if log.has_gaps:
            self.checkpoints.gaps_may_come()
        assert log.log_start_offset == log.log_end_offset, name
        return Hosted(at, name, log, log_dir, log.log_start_offset)

    def reconfigure(self, hosted: Hosted) -> None:
        had_gaps = hosted.log.has_gaps
        hosted.log.reconfigure(self.configs.of(hosted.name.topic))
        if hosted.log.has_gaps != had_gaps:
            assert hosted.log.has_gaps, "a log that may have gaps may have them for good"
            self.checkpoints.gaps_may_come()

    # --- logs that go

    def delete(self, hosted: Hosted) -> None:
        """In a directory that is offline nothing is done: metadata will know when it is back."""
        self.flushing.forget(hosted.at)
        if self.host.directories.is_live(hosted.directory):
            self.deleted.delete(hosted.log, hosted.directory, hosted.name, hosted.at)

    def flush_now(self, now: Instant) -> None:
        """At shutdown: everything durable, and the checkpoints say so."""
        for log_dir in list(self.host.directories.live):
            # All at once: one disk can make many files durable in hardly more time than one.
            here = self.checkpoints.in_directory(log_dir)
            try:
                paths = dict.fromkeys(path for hosted in here for path in hosted.log.write_all())
                self.disk.sync(list(paths))
                for hosted in here:
                    hosted.log.mark_synced(hosted.log.log_end_offset)
            except DiskError as error:
                self.host.fail(log_dir, error)
            else:
                assert all(hosted.log.recovery_point == hosted.log.log_end_offset for hosted in here)
        self.checkpoints.save_all()
        self.host.whole.save(durably=True)
