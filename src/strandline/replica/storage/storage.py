"""Where the replicas' logs lie: opening, placing, deleting, and what is known of them after a restart.

Per log directory Kafka's two checkpoints: `replication-offset-checkpoint` has the high watermarks, a lower bound that
only saves work; `recovery-point-offset-checkpoint` has the offsets below which everything is durable, and is saved
only after what it promises has been synced. Its `cleaner-offset-checkpoint` says how far logs are compacted: one with
a row may have gaps, so that the row is durable before a gap can come. One of our own, `topic-id-checkpoint`, says whose
the logs are, once more (`owners.py`).

An operation of the disk that fails takes its directory offline (`Host.fail`), and the others go on.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from strandline.base.effects import Effect, Remove, Report, Save, Sync, SyncFailed, Token
from strandline.base.ids import METADATA_TOPIC, ZERO_UUID, TopicIdPartition, TopicPartition, Uuid
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.log.checkpoints import format_offsets, format_topic_ids
from strandline.log.config import DAY_MS, LogConfig
from strandline.log.directory import (
    DELETED_SUFFIX,
    PARTITION_METADATA,
    directory_name,
    parse_directory_name,
    parse_future_name,
    write_partition_metadata,
)
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left, State
from strandline.log.log import Log
from strandline.log.tail import TailBudget
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.replica.config import LogDir
from strandline.replica.following.follower import Follower
from strandline.replica.hosted import Host, Hosted
from strandline.replica.losses.losing import Findings
from strandline.replica.storage.cordoned import cordoned
from strandline.replica.storage.double import Double
from strandline.replica.storage.owners import ENTRY_MAX, make_room, refuse_other_name, topic_of
from strandline.replica.storage.rows import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    TOPIC_IDS,
    Offsets,
    read_rows,
)
from strandline.replica.storage.vouched import Inventory
from strandline.replica.timers import Every

PRODUCER_ID_EXPIRATION = "producer.id.expiration.ms"


class Storage:
    def __init__(self, host: Host, disk: Disk) -> None:
        self.host = host
        self.disk = disk
        self.directories = host.directories
        # Two directories may each have a log of one name, if one of them was offline for a while.
        self.namesakes: dict[TopicPartition, list[Hosted]] = {}
        self.doubles: dict[TopicIdPartition, Double] = {}
        self.found_futures: dict[TopicIdPartition, list[tuple[LogDir, str]]] = {}  # directories and entries
        self.preferred: dict[TopicPartition, str] = {}  # where an operator wants what is still to be created
        self.configs: dict[str, LogConfig] = {}  # as the present metadata has them
        self.graves: list[str] = []  # deleted logs whose files are still there
        self.graves_dug = 0
        self.tail_budget = TailBudget()
        self.saved: dict[str, bytes] = {}  # checkpoints as last written, so that an idle broker writes nothing
        self.compacted_anew = False  # a log is compacted that was not, and no checkpoint says so yet
        self.cleaner_files: dict[str, None] = {}  # directories that have a cleaner's checkpoint
        self.listed: dict[TopicPartition, None] = {}  # what a checkpoint on disk may have a row for
        self.findings = Findings(host)
        # The syncs in flight: up to which offset, in which role, after how many truncations.
        self.flushing: dict[TopicIdPartition, tuple[int, object, int]] = {}
        self.dirty_since: dict[TopicIdPartition, Instant] = {}  # when `flush_due` first saw that a log is not durable

    def tasks(self) -> list[Every]:
        config = self.host.config
        return [
            Every(config.high_watermark_checkpoint_interval_ms, self.save_high_watermarks),
            Every(config.recovery_point_checkpoint_interval_ms, self.flush),
            Every(config.log_start_checkpoint_interval_ms, self.save_log_starts),
            Every(config.flush_scheduler_interval_ms, self.flush_due),
        ]

    # --- opening

    def load(self, now: Instant, clean: bool, left: LogsLeft | None) -> list[Effect]:
        effects: list[Effect] = []
        self.findings.stopped(clean, left)
        # Of two logs of one replica that one is first which the stop vouches for.
        for log_dir in sorted(self.directories.live, key=lambda one: not self.findings.vouches_for(one)):
            rows = left.get(log_dir.path) if clean and left is not None else None
            try:
                self.load_directory(log_dir, now, self.findings.vouches_for(log_dir), rows, effects)
            except DiskError as error:
                self.host.fail(log_dir, error)
        self.findings.all_opened(now)
        self.host.whole.all_opened()
        return effects

    def load_directory(
        self, log_dir: LogDir, now: Instant, clean: bool, left: Sequence[Left] | None, effects: list[Effect]
    ) -> None:
        """`left`: how the last stop left its logs, if it was clean and said so."""
        self.disk.make_directory(log_dir.path)
        inventory = None if left is None else Inventory(self.disk, log_dir.path, left)
        rows = read_rows(self.disk, log_dir.path, effects, is_vouched=inventory is not None)
        if inventory is not None:
            rows = inventory.instead_of(rows)
        effects += self.findings.begin(log_dir, rows)
        if rows.cleaned:
            self.cleaner_files[log_dir.path] = None
        self.listed |= dict.fromkeys(rows.names())
        for entry in self.disk.list(log_dir.path):
            path = f"{log_dir.path}/{entry}"
            if entry.endswith(DELETED_SUFFIX):
                self.disk.remove_tree(path)
                continue
            coming = parse_future_name(entry)
            name = coming or parse_directory_name(entry)
            if name is None or name.topic == METADATA_TOPIC:
                continue  # not ours: a checkpoint, the metadata log, something of the user's
            state = State.OFFLINE if self.findings.is_clean and not clean else None
            if inventory is not None and coming is None:
                state = inventory.state_of(entry, name, effects)
                if state is None:
                    continue
            durable_below = None if clean else rows.durable_below(name)
            if coming is not None:
                durable_below = 0  # only a copy, and never synced in parts
            topic_id = topic_of(self.disk, log_dir.path, entry, rows.topic_ids, durable_below, effects)
            if topic_id is None:
                continue
            if coming is not None:
                self.found_futures.setdefault(TopicIdPartition(topic_id, coming.partition), []).append((log_dir, entry))
                continue
            found = Double(
                log_dir,
                name,
                rows.durable_below(name) or 0,
                rows.log_starts.get(name, 0),
                rows.cleaned.get(name),
                rows.high_watermarks.get(name, 0),
                clean,
                state,
            )
            at = TopicIdPartition(topic_id, name.partition)
            first = self.host.find(at)
            if first is not None:
                refuse_other_name(first, path)
                self.doubles[at] = found
                self.host.whole.forget(at)
                effects.append(Report("warning", f"{path} is a second log of {name}; metadata will say which counts"))
                continue
            hosted = self.open(at, found, now)
            namesake = self.host.named(*name)
            if namesake is not None:
                self.namesakes.setdefault(name, [namesake]).append(hosted)
            self.host.put(hosted)
        effects += self.findings.end(log_dir)
        saved, recovered = rows.recovery_points or {}, self.recovery_points(log_dir)
        if any(recovered[name] < saved.get(name, 0) for name in recovered):  # as after a cut, see `truncated`
            self.save_now(log_dir, RECOVERY_POINTS, saved | recovered)
        if self.host.ledger.is_news(log_dir.path):  # or another start soon would find it again, as a further loss
            self.save_now(log_dir, HIGH_WATERMARKS, rows.high_watermarks | self.high_watermarks(log_dir))

    def open(self, at: TopicIdPartition, found: Double, now: Instant) -> Hosted:
        """Open a log that lies on disk."""
        log_dir, name = found.directory, found.name
        config = LogConfig(producer_id_expiration_ms=self.producer_id_expiration_ms)
        log = found.open(self.disk, config, now, self.tail_budget)
        as_left = self.findings.is_as_left(at, found, log)
        if not as_left and found.is_trusted:
            log.abandon()
            log = replace(found, recovery_point=0, clean=False).open(self.disk, config, now, self.tail_budget)
        if not (found.clean and as_left):
            log.unsynced_others.add(log_dir.path)  # the process before may not have synced its name
        high_watermark = min(max(found.high_watermark, log.log_start_offset), log.log_end_offset)
        hosted = Hosted(at, name, log, log_dir, high_watermark)
        self.findings.opened(hosted, found.high_watermark, clean=found.clean, as_left=as_left, now=now)
        is_sound = as_left and not log.was_cut and log.log_end_offset >= found.known_end
        self.host.whole.opened(at, log_dir.path, is_sound=is_sound)
        return hosted

    def namesakes_of(self, hosted: Hosted | None, name: TopicPartition) -> list[Hosted]:
        """Logs of other topics that had this name."""
        found = [other for other in self.namesakes.pop(name, ()) if not other.gone]
        named = self.host.named(*name)
        if named is not None and named not in found:
            found.append(named)
        return [other for other in found if other is not hosted]

    def create(self, at: TopicIdPartition, name: TopicPartition, directory_id: Uuid, now: Instant) -> Hosted:
        """Begin an empty log; in another directory, if the first one fails over it."""
        while True:
            log_dir = self.place(directory_id, self.preferred.pop(name, None))
            try:
                return self.create_in(log_dir, at, name, now)
            except DiskError as error:
                self.host.fail(log_dir, error)

    def create_in(self, log_dir: LogDir, at: TopicIdPartition, name: TopicPartition, now: Instant) -> Hosted:
        path = f"{log_dir.path}/{directory_name(name)}"
        assert name not in self.listed, "an earlier log's checkpoints would speak for the new one"
        make_room(self.disk, path)
        self.disk.make_directory(path)
        write_partition_metadata(self.disk, path, at.topic_id)
        log = Log.create(self.disk, path, self.config_of(name.topic), now, self.tail_budget)
        # Without its topic id the log would count as nobody's after a power loss.
        log.unsynced_others.add(f"{path}/{PARTITION_METADATA}", log_dir.path)
        self.compacted_anew = self.compacted_anew or log.has_gaps
        return Hosted(at, name, log, log_dir, log.log_start_offset)

    def forget(self, name: TopicPartition) -> None:
        """Before a log is created under a name that had one. Checkpoints know logs by name alone: after a crash, the
        rows of a deleted topic would vouch for records of its namesake that are not committed, or not whole. All rows
        of logs that are gone go durably; the disk is waited for, as in `truncated`."""
        if name not in self.listed:
            return
        self.listed = {}
        for log_dir in list(self.directories.live):
            rows = self.checkpoints(log_dir)
            self.write_now(log_dir, TOPIC_IDS, *self.topic_ids(log_dir))
            for file, offsets in rows.items():
                self.save_now(log_dir, file, offsets)

    def place(self, directory_id: Uuid, preferred: str | None = None) -> LogDir:
        """The live directory that metadata names, else the preferred one, else the one with the fewest logs of those
        that are not cordoned: if all are, the replica was placed here just before, and goes into the first."""
        live = self.directories.live
        for log_dir in live:
            if log_dir.directory_id == directory_id and directory_id != ZERO_UUID:
                return log_dir
        if len(live) == 1:
            return live[0]
        for log_dir in live:
            if log_dir.path == preferred:
                return log_dir
        closed = [log_dir.path for log_dir in cordoned(self.host)]
        free = [log_dir for log_dir in live if log_dir.path not in closed] or live[:1]
        counts = {log_dir.path: 0 for log_dir in free}
        for hosted in self.host.all():
            if hosted.directory.path in counts:
                counts[hosted.directory.path] += 1
        return min(free, key=lambda log_dir: counts[log_dir.path])

    def config_of(self, topic: str) -> LogConfig:
        """One for all logs of the topic, until metadata moves."""
        config = self.configs.get(topic)
        if config is None:
            config = self.configs[topic] = self.read_config(topic)
        return config

    def read_config(self, topic: str) -> LogConfig:
        host, me = self.host, str(self.host.me)

        def setting(key: str) -> object:
            if key == PRODUCER_ID_EXPIRATION:
                return self.producer_id_expiration_ms
            return host.image.topic_config(topic, key, host.static, me)

        return LogConfig.of(setting)

    @property
    def producer_id_expiration_ms(self) -> int:
        span = dynamic_value(self.host.image.configs, str(self.host.me), PRODUCER_ID_EXPIRATION)
        if span is None:
            span = self.host.static.get(PRODUCER_ID_EXPIRATION, DAY_MS)
        assert isinstance(span, int)
        return span

    def reconfigure(self, hosted: Hosted) -> None:
        had_gaps = hosted.log.has_gaps
        hosted.log.reconfigure(self.config_of(hosted.name.topic))
        self.compacted_anew = self.compacted_anew or hosted.log.has_gaps != had_gaps

    def delete(self, hosted: Hosted) -> None:
        """In a directory that is offline nothing is done: metadata will know when it is back."""
        self.flushing.pop(hosted.at, None)
        if not self.directories.is_live(hosted.directory):
            return
        self.retire(hosted.log, hosted.directory, hosted.name, hosted.at)

    def retire(self, log: Log, log_dir: LogDir, name: TopicPartition, at: TopicIdPartition) -> None:
        try:
            log.abandon()
        except DiskError as error:
            self.host.fail(log_dir, error)
        else:
            self.bury(log_dir, directory_name(name), at)

    def bury(self, log_dir: LogDir, entry: str, at: TopicIdPartition) -> None:
        """Only renamed, so that nothing is left that looks like a log; a topic's many files are not waited for. No two
        graves have one name: a partition may come back and go again before the first is removed."""
        self.graves_dug += 1
        grave = f"{entry[:ENTRY_MAX]}.{at.topic_id.hex()}.{self.graves_dug}{DELETED_SUFFIX}"
        try:
            self.disk.rename(f"{log_dir.path}/{entry}", f"{log_dir.path}/{grave}")
        except DiskError as error:
            self.host.fail(log_dir, error)
        else:
            self.graves.append(f"{log_dir.path}/{grave}")

    def clear_graves(self) -> list[Effect]:
        if not self.graves:
            return []
        graves, self.graves = self.graves, []
        return [Remove(tuple(graves))]

    # --- durability

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

    def save(self, log_dir: LogDir, file: str, offsets: Offsets) -> list[Effect]:
        return self.write(log_dir, file, format_offsets(offsets), offsets)

    def write(self, log_dir: LogDir, file: str, content: bytes, names: Iterable[TopicPartition]) -> list[Effect]:
        path = f"{log_dir.path}/{file}"
        if self.saved.get(path) == content:
            return []
        self.saved[path] = content
        self.listed |= dict.fromkeys(names)
        return [Save(path, content, ("replica", "saved", log_dir), self.disk.saves(path))]

    def save_now(self, log_dir: LogDir, file: str, offsets: Offsets) -> bool:
        return self.write_now(log_dir, file, format_offsets(offsets), offsets)

    def write_now(self, log_dir: LogDir, file: str, content: bytes, names: Iterable[TopicPartition]) -> bool:
        """The disk is waited for. A save that is still on its way is older, and is not written after this one."""
        path = f"{log_dir.path}/{file}"
        self.saved.pop(path, None)
        try:
            self.disk.save(path, content)
        except DiskError as error:
            self.host.fail(log_dir, error)
            return False
        self.saved[path] = content
        self.listed |= dict.fromkeys(names)
        return True

    def in_directory(self, log_dir: LogDir) -> list[Hosted]:
        return [hosted for hosted in self.host.all() if hosted.directory.path == log_dir.path]

    def topic_ids(
        self, log_dir: LogDir, more: dict[TopicPartition, Uuid] | None = None
    ) -> tuple[bytes, list[TopicPartition]]:
        ids = {hosted.name: hosted.at.topic_id for hosted in self.in_directory(log_dir)} | (more or {})
        return format_topic_ids(ids), list(ids)

    def high_watermarks(self, log_dir: LogDir) -> Offsets:
        return {hosted.name: hosted.high_watermark for hosted in self.in_directory(log_dir)}

    def recovery_points(self, log_dir: LogDir) -> Offsets:
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

    def checkpoints(self, log_dir: LogDir) -> dict[str, Offsets]:
        rows = {
            HIGH_WATERMARKS: self.high_watermarks(log_dir),
            RECOVERY_POINTS: self.recovery_points(log_dir),
            LOG_STARTS: self.log_starts(log_dir),
        }
        cleaned = self.cleaned(log_dir)
        if cleaned or log_dir.path in self.cleaner_files:
            rows[CLEANED] = cleaned
        return rows

    def save_compacted(self) -> None:
        """After metadata has named logs that are to be compacted: the disk is waited for, once for all of them."""
        self.host.whole.save_changes()
        if self.compacted_anew:
            self.compacted_anew = False
            self.save_cleaned()

    def save_cleaned(self) -> None:
        for log_dir in list(self.directories.live):
            offsets = self.cleaned(log_dir)
            if not offsets or self.saved.get(f"{log_dir.path}/{CLEANED}") == format_offsets(offsets):
                continue
            self.cleaner_files[log_dir.path] = None
            self.save_now(log_dir, CLEANED, offsets)

    def flush(self, now: Instant) -> list[Effect]:
        """Make the logs durable, a partition at a time; their recovery points follow in `flushed`."""
        return [effect for hosted in self.host.all() for effect in self.flush_one(hosted)]

    def flush_one(self, hosted: Hosted) -> list[Effect]:
        if hosted.at in self.flushing or not self.directories.is_live(hosted.directory):
            return []
        paths = hosted.log.unsynced()
        if not paths:
            return []
        end = hosted.log.log_end_offset
        self.flushing[hosted.at] = (end, hosted.role, cuts_of(hosted))
        which = (end, hosted.moves, hosted.directory)
        return [Sync(tuple(paths), ("replica", "flushed", hosted.at, which))]

    def flush_due(self, now: Instant) -> list[Effect]:
        """Flush the logs whose oldest record that is not durable was seen flush.ms ago."""
        effects: list[Effect] = []
        before, self.dirty_since = self.dirty_since, {}
        for hosted in self.host.all():
            if hosted.log.recovery_point == hosted.log.log_end_offset:
                continue
            since = before.get(hosted.at, now)
            if now - since >= hosted.log.config.flush_ms:
                effects += self.flush_one(hosted)
            else:
                self.dirty_since[hosted.at] = since
        return effects

    def flushed(self, rest: Token) -> list[Effect]:
        at, (end, moves, _) = rest
        hosted = self.host.find(at)
        if hosted is not None and hosted.moves != moves:
            return []  # of the log that was its before it moved
        was = self.flushing.pop(at, None)
        if hosted is not None and was is not None and was == (end, hosted.role, cuts_of(hosted)):
            try:
                hosted.log.mark_synced(end)
            except DiskError as error:
                self.host.fail(hosted.directory, error)
        return [] if self.flushing else self.save_recovery_points()

    def sync_failed(self, event: SyncFailed) -> None:
        """Never repeated: the kernel may have dropped what it could not write, and would call the next one done."""
        match event.token:
            case (_, "flushed", at, (_, _, log_dir)):
                self.flushing.pop(at, None)
                self.host.fail(log_dir, event.error)
            case (_, "saved", log_dir):
                self.host.fail(log_dir, event.error)

    def save_recovery_points(self) -> list[Effect]:
        """What a flush has proven, or what is left of it. First whose logs these are."""
        effects: list[Effect] = []
        for log_dir in self.directories.live:
            effects += self.write(log_dir, TOPIC_IDS, *self.topic_ids(log_dir))
            effects += self.save(log_dir, RECOVERY_POINTS, self.recovery_points(log_dir))
            effects += self.save(log_dir, LOG_STARTS, self.log_starts(log_dir))
        return effects

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

    def flush_now(self, now: Instant) -> None:
        """At shutdown: everything durable, and the checkpoints say so."""
        for log_dir in list(self.directories.live):
            # All at once: one disk can make many files durable in hardly more time than one.
            settled = self.in_directory(log_dir)
            try:
                paths = dict.fromkeys(path for hosted in settled for path in hosted.log.settle())
                self.disk.sync(list(paths))
                for hosted in settled:
                    hosted.log.mark_synced(hosted.log.log_end_offset)
            except DiskError as error:
                self.host.fail(log_dir, error)
        for log_dir in list(self.directories.live):
            if not self.write_now(log_dir, TOPIC_IDS, *self.topic_ids(log_dir)):
                continue
            for file, offsets in self.checkpoints(log_dir).items():
                if not self.save_now(log_dir, file, offsets):
                    break
        self.host.whole.save(durably=True)


def cuts_of(hosted: Hosted) -> int:
    return hosted.role.cuts if isinstance(hosted.role, Follower) else 0
