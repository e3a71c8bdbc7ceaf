"""The logs that a start finds in its directories: opened, or kept until metadata says what they are.

Two directories may each have a log of one replica, if one of them was offline for a while: of these that one counts
which metadata names. They may also have logs of two topics that had one name.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from strandline.base.effects import Effect, Report
from strandline.base.ids import METADATA_TOPIC, TopicIdPartition, TopicPartition
from strandline.base.ports import Disk, DiskError
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.directory import DELETED_SUFFIX, parse_directory_name, parse_future_name
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left, State
from strandline.log.tail import TailBudget
from strandline.replica.config import LogDir
from strandline.replica.hosting.found_log import FoundLog
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import HIGH_WATERMARKS, RECOVERY_POINTS, Rows, read_rows
from strandline.replica.losses.losing import Findings
from strandline.replica.storage.checkpoints import Checkpoints
from strandline.replica.storage.log_configs import LogConfigs
from strandline.replica.storage.opening.owners import refuse_other_name, topic_of
from strandline.replica.storage.opening.vouched import Inventory


class FoundDirectory(NamedTuple):
    """A log directory, and what its checkpoints and the last stop say of its logs."""

    log_dir: LogDir
    rows: Rows
    inventory: Inventory | None
    clean: bool


class Loading:
    def __init__(
        self, host: Host, disk: Disk, configs: LogConfigs, checkpoints: Checkpoints, tail_budget: TailBudget
    ) -> None:
        self.host = host
        self.disk = disk
        self.configs = configs
        self.checkpoints = checkpoints
        self.tail_budget = tail_budget
        self.findings = Findings(host)
        self.namesakes: dict[TopicPartition, list[Hosted]] = {}  # logs of other topics, under one name
        self.second_logs: dict[TopicIdPartition, FoundLog] = {}  # of replicas that have two
        self.futures: dict[TopicIdPartition, list[tuple[LogDir, str]]] = {}  # directories and entries

    def load(self, now: Instant, clean: bool, left: LogsLeft | None) -> list[Effect]:
        assert not any(self.host.partitions.all())
        effects: list[Effect] = []
        self.findings.stopped(clean, left)
        # If a replica has two logs, the one that the clean stop recorded comes first.
        for log_dir in sorted(self.host.directories.live, key=lambda one: not self.findings.vouches_for(one)):
            # guard: logs-compared-with-the-marker
            rows = left.get(log_dir.path) if clean and left is not None else None
            try:
                effects.extend(self.load_directory(log_dir, now, self.findings.vouches_for(log_dir), rows))
            except DiskError as error:
                self.host.fail(log_dir, error)
        self.findings.all_opened(now)
        self.host.whole.all_opened()
        return effects

    def load_directory(
        self, log_dir: LogDir, now: Instant, clean: bool, left: Sequence[Left] | None
    ) -> Iterator[Effect]:
        """`left`: how the last stop left its logs, if it was clean and said so. Yields each effect when it is
        due, so that none is forgotten if a later file raises DiskError."""
        self.disk.make_directory(log_dir.path)
        inventory = None if left is None else Inventory(self.disk, log_dir.path, left)
        rows = yield from read_rows(self.disk, log_dir.path, is_vouched=inventory is not None)
        if inventory is not None:
            rows = inventory.instead_of(rows)
        yield from self.findings.begin(log_dir, rows)
        self.checkpoints.found(log_dir, rows)
        found = FoundDirectory(log_dir, rows, inventory, clean)
        for entry in self.disk.list(log_dir.path):
            yield from self.load_entry(found, entry, now)
        yield from self.findings.end(log_dir)
        saved, recovered = rows.recovery_points or {}, self.checkpoints.recovery_points(log_dir)
        if any(recovered[name] < saved.get(name, 0) for name in recovered):  # as after a cut, see `truncated`
            self.checkpoints.save_now(log_dir, RECOVERY_POINTS, saved | recovered)
        if self.host.ledger.is_news(log_dir.path):  # or another start soon would find it again, as a further loss
            high_watermarks = rows.high_watermarks | self.checkpoints.high_watermarks(log_dir)
            self.checkpoints.save_now(log_dir, HIGH_WATERMARKS, high_watermarks)

    def load_entry(self, found: FoundDirectory, entry: str, now: Instant) -> Iterator[Effect]:
        log_dir, rows = found.log_dir, found.rows
        path = f"{log_dir.path}/{entry}"
        if entry.endswith(DELETED_SUFFIX):
            self.disk.remove_tree(path)
            return
        coming = parse_future_name(entry)
        name = coming or parse_directory_name(entry)
        if name is None or name.topic == METADATA_TOPIC:
            return  # not ours: a checkpoint, the metadata log, something of the user's
        state = State.OFFLINE if self.findings.is_clean and not found.clean else None
        if found.inventory is not None and coming is None:
            state = yield from found.inventory.state_of(entry, name)
            if state is None:
                return
        durable_below = None if found.clean else rows.durable_below(name)
        if coming is not None:
            durable_below = 0  # only a copy, and never synced in parts
        topic_id = yield from topic_of(self.disk, log_dir.path, entry, rows.topic_ids, durable_below)
        if topic_id is None:
            return
        at = TopicIdPartition(topic_id, name.partition)
        if coming is not None:
            self.futures.setdefault(at, []).append((log_dir, entry))
            return
        log = FoundLog(
            log_dir,
            name,
            rows.durable_below(name) or 0,
            rows.log_starts.get(name, 0),
            rows.cleaned.get(name),
            rows.high_watermarks.get(name, 0),
            found.clean,
            state,
        )
        first = self.host.partitions.find(at)
        if first is not None:
            refuse_other_name(first, path)
            self.second_logs[at] = log
            self.host.whole.forget(at)
            yield Report("warning", f"{path} is a second log of {name}; metadata will say which counts")
            return
        assert at not in self.second_logs
        hosted = self.open(at, log, now)
        namesake = self.host.partitions.named(*name)
        if namesake is not None:
            self.namesakes.setdefault(name, [namesake]).append(hosted)
        self.host.partitions.put(hosted)

    def open(self, at: TopicIdPartition, found: FoundLog, now: Instant) -> Hosted:
        """Open a log that lies on disk."""
        log_dir, name = found.directory, found.name
        config = LogConfig(producer_id_expiration_ms=self.configs.producer_id_expiration_ms)
        log = found.open(self.disk, config, now, self.tail_budget)
        as_left = self.findings.is_as_left(at, found, log)
        if not as_left and found.is_trusted:
            log.abandon()
            log = replace(found, recovery_point=0, clean=False).open(self.disk, config, now, self.tail_budget)
        if not (found.clean and as_left):
            log.unsynced_others.add(log_dir.path)  # the process before may not have synced its name
        high_watermark = min(max(found.high_watermark, log.log_start_offset), log.log_end_offset)
        assert log.log_start_offset <= high_watermark <= log.log_end_offset, name
        hosted = Hosted(at, name, log, log_dir, high_watermark)
        self.findings.opened(hosted, found.high_watermark, clean=found.clean, as_left=as_left, now=now)
        is_sound = as_left and not log.was_cut and log.log_end_offset >= found.known_end
        self.host.whole.opened(at, log_dir.path, is_sound=is_sound)
        return hosted

    def namesakes_of(self, hosted: Hosted | None, name: TopicPartition) -> list[Hosted]:
        """Logs of other topics that had this name."""
        found = [other for other in self.namesakes.pop(name, ()) if not other.gone]
        assert all(other.name == name for other in found)
        named = self.host.partitions.named(*name)
        if named is not None and named not in found:
            found.append(named)
        return [other for other in found if other is not hosted]
