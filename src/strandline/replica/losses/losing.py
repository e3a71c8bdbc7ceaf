"""When a replica loses records that were committed, or may have lost them: what is noted in the ledger, and when.

  - A follower is about to cut its log below its high watermark, or to begin it anew: `Notes`, asked by `Follower`.
  - A log that is opened ends below the high watermark that its checkpoint has, or is not there at all: `Findings`.
  - A leader begins that was elected though it may lack what was committed (its recovery state says so), or that comes
    from an unclean stop and was elected all the same, as the only one: `at_beginning`.

Each is durable before it is done. Where the disk does not take it, it is not done: the directory has failed.
"""

from collections.abc import Iterable

from strandline.base.effects import Effect, Report
from strandline.base.ids import NOBODY, TopicIdPartition, TopicPartition
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.evidence.clean_shutdown import LogsLeft
from strandline.log.evidence.inventory import Left, State
from strandline.log.log import Log
from strandline.metadata.image import Partition
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END, UNKNOWN, Cause, Evidence, loss_of
from strandline.metadata.records import LossEvent
from strandline.metadata.registrations import RECOVERING
from strandline.replica.config import LogDir
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.found_log import FoundLog
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.hosting.ledger import Lost
from strandline.replica.hosting.rows import Rows
from strandline.replica.hosting.withdrawals import Withdrawn


class Notes:
    """What one partition's follower notes, in the ledger of the directory in which its log lies just then."""

    def __init__(self, host: Host, hosted: Hosted) -> None:
        self.host = host
        self.hosted = hosted

    def note(self, events: Iterable[LossEvent]) -> None:
        """Raises DiskError if that is not durable now."""
        hosted = self.hosted
        assert not hosted.gone, hosted.name
        self.host.ledger.write(hosted.directory.path, [lost_by(self.host, hosted, event) for event in events])


def lost_by(host: Host, hosted: Hosted, event: LossEvent) -> Lost:
    return Lost(hosted.at, hosted.name.topic, replaced(event, host.me))


def replaced(event: LossEvent, replica: int) -> LossEvent:
    """With the id of this broker, which its machines need not know."""
    return LossEvent(
        start=event.start,
        end=event.end,
        certainty=event.certainty,
        replica=replica,
        old_epoch=event.old_epoch,
        new_epoch=event.new_epoch,
        time_ms=event.time_ms,
        cause=event.cause,
    )


def note_together(host: Host, losing: Iterable[tuple[Hosted, Iterable[LossEvent]]]) -> None:
    """Write what many partitions are about to lose with one wait for each disk. What is then noted one by one is there.
    A directory that does not take it has failed."""
    by_directory: dict[str, list[Lost]] = {}
    directories = {}
    for hosted, events in losing:
        directories[hosted.directory.path] = hosted.directory
        rows = by_directory.setdefault(hosted.directory.path, [])
        rows += [lost_by(host, hosted, event) for event in events]
    for path, lost in by_directory.items():
        if host.directories.is_live(directories[path]):
            try:
                host.ledger.write(path, lost)
            except DiskError as error:
                host.fail(directories[path], error)


# --- opening


class Findings:
    """What a start finds to be lost. As long as a ledger does not have it, the checkpoints stay that show it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.is_clean = True  # the stop before this start
        # How it left the logs, if it was clean and said so. Two directories may have a log of one replica each.
        self.left: dict[TopicIdPartition, list[Left]] | None = None
        self.vouched: tuple[str, ...] = ()  # directories that it then left in order
        self.lost: list[Lost] = []  # what logs lack that were opened, and no ledger has yet
        # High watermarks of logs that were not found: the directory whose checkpoint has it, log start, high watermark.
        self.unfound: dict[TopicPartition, tuple[LogDir, int, int]] = {}

    def begin(self, log_dir: LogDir, rows: Rows) -> list[Effect]:
        """Before the logs in a directory are opened. Raises DiskError if its ledger cannot be read."""
        self.lost = []  # of a directory that has failed meanwhile
        for name, high_watermark in rows.high_watermarks.items():
            start = rows.log_starts.get(name, 0)
            assert start >= 0, name
            if start < high_watermark:
                self.unfound[name] = (log_dir, start, high_watermark)
        return [Report("error", text) for text in self.host.ledger.load(log_dir.path)]

    def opened(self, hosted: Hosted, high_watermark: int, *, clean: bool, as_left: bool, now: Instant) -> None:
        """The checkpoint is never ahead of what this replica had: what it lacks now, it has lost. `as_left`: after a
        clean stop, is the log the one that the stop left?"""
        if not clean:
            hosted.doubt()
        assert hosted.role is None, hosted.name
        assert high_watermark >= 0, hosted.name
        self.unfound.pop(hosted.name, None)
        log = hosted.log
        start = max(log.log_end_offset, log.log_start_offset)
        if not as_left or (clean and start < high_watermark):
            self.judge(hosted, high_watermark, now, clean=clean)
        if start >= high_watermark:
            return
        assert 0 <= start < high_watermark, hosted.name
        stop = "a clean stop" if clean else "an unclean stop"
        event = LossEvent(
            start=start,
            end=high_watermark,
            certainty=EXACTLY,
            old_epoch=log.latest_epoch,
            time_ms=now,
            cause=f"after {stop} the log ended below its high watermark",
        )
        self.lost.append(lost_by(self.host, hosted, event))

    def is_another(self, hosted: Hosted) -> None:
        """A log that was opened is not the one of its name: that one is not there."""
        if hosted.log.log_start_offset < hosted.start:
            self.unfound[hosted.name] = (hosted.directory, hosted.log.log_start_offset, hosted.start)

    def stopped(self, clean: bool, logs: LogsLeft | None) -> None:
        self.is_clean, self.left = clean, None
        if clean and logs is not None:
            self.left, self.vouched = {}, tuple(logs)
            for row in (row for rows in logs.values() for row in rows):
                self.left.setdefault(row.at, []).append(row)

    def vouches_for(self, log_dir: LogDir) -> bool:
        """Did the last stop leave the logs in this directory in order? One that was offline then was left as a crash
        leaves it."""
        return self.is_clean and (self.left is None or log_dir.path in self.vouched)

    def is_as_left(self, at: TopicIdPartition, found: FoundLog, log: Log) -> bool:
        """Is the log the one that the last stop left? Where that was not clean, it is not known."""
        if self.left is None or found.state is None:
            return True
        ends = [row.end for row in self.left.get(at, ()) if not row.is_in_doubt]
        return found.state in (State.WHOLE, State.FINDERS_CHANGED) and log.log_end_offset in ends

    def judge(self, hosted: Hosted, high_watermark: int, now: Instant, *, clean: bool) -> None:
        """The log is another one than a clean stop left, or it is not known how it was left: the replica must not be
        elected as if it had everything."""
        log, rows = hosted.log, () if self.left is None else self.left.get(hosted.at, ())
        start = min([log.log_start_offset, *(left.start for left in rows)])
        end = max([high_watermark, *(left.end for left in rows)])
        lost = Withdrawn(start, max(end, log.log_end_offset), Cause.ANOTHER if clean else Cause.OFFLINE, now)
        if clean and log.log_end_offset < end:
            lost = Withdrawn(log.log_end_offset, end, Cause.SHORT, now)
        assert lost.start <= lost.end, hosted.name
        hosted.doubt()
        self.host.withdrawals.add(hosted.at, lost)

    def all_opened(self, now: Instant) -> None:
        """All logs that there are were opened. One of which the last stop says that it had records, and that is not
        there, has lost them. If it had none, an empty one is as good."""
        for at, rows in (self.left or {}).items():
            end = max(left.end for left in rows)
            if self.host.partitions.find(at) is None and end != 0:
                self.host.withdrawals.add(at, Withdrawn(min(left.start for left in rows), end, Cause.MISSING, now))

    def end(self, log_dir: LogDir) -> list[Effect]:
        """Logs in this directory were opened. Raises DiskError if its ledger cannot be written."""
        lost, self.lost = self.lost, []
        assert all(one.event.replica == self.host.me for one in lost)
        new = self.host.ledger.write(log_dir.path, lost)
        return [Report("error", f"{one.name}: {describe(one.event)}") for one in new]

    def begun_anew(self, at: TopicIdPartition, name: TopicPartition, *, is_new: bool, now: Instant) -> list[Effect]:
        """Before a log is begun that was not found. Checkpoints know logs by name alone: it may have been another
        topic's."""
        missing = self.unfound.pop(name, None)
        if missing is None or is_new or not self.host.directories.is_live(missing[0]):
            return []
        log_dir, start, end = missing
        assert start < end, name
        event = LossEvent(
            start=start,
            end=end,
            certainty=AT_MOST,
            replica=self.host.me,
            time_ms=now,
            cause="a log of this name was there before the stop, and was not found after it",
        )
        try:
            new = self.host.ledger.write(log_dir.path, [Lost(at, name.topic, event)])
        except DiskError as error:
            self.host.fail(log_dir, error)
            return []
        return [Report("error", f"{one.name}: {describe(one.event)}") for one in new]


# --- leading


def at_beginning(hosted: Hosted, partition: Partition, now: Instant, *, is_whole: bool) -> list[LossEvent]:
    """What may be lost because this replica begins to lead now."""
    role, log = hosted.role, hosted.log
    if type(role) is Leader:
        return []  # it goes on
    epoch = partition.leader_epoch
    if partition.lossless_epoch == epoch:
        return []
    if began_uncleanly(partition):
        # Somebody led in the epoch before this one, as far as can be known here, unless it was seen to have no leader.
        was_leaderless = type(role) is Follower and role.leader == NOBODY and role.epoch == epoch - 1
        last_led = epoch - 2 if was_leaderless else epoch - 1
        end = log.log_end_offset
        evidence = Evidence(log.epochs.last_written(end), end, hosted.high_watermark)
        why = "it was elected to lead without being in sync or eligible"
        return [loss_of(NOBODY, last_led, epoch - 1, evidence, now, why)]
    if hosted.is_doubtful and not is_whole:
        return [
            LossEvent(
                start=log.log_end_offset,
                end=NO_END,
                certainty=UNKNOWN,
                old_epoch=epoch - 1,
                new_epoch=epoch,
                time_ms=now,
                cause="it leads again after an unclean stop: records that were not flushed may be lost",
            )
        ]
    return []


def began_uncleanly(partition: Partition) -> bool:
    """Did its leader's epoch begin with an unclean election? A partition with one replica stays marked, and its leader
    may since have stopped in order, and have been elected as it should be: that loses nothing more."""
    began = max([partition.lossless_epoch, *(loss.new_epoch for loss in partition.losses[-1:])])
    return partition.leader_recovery_state == RECOVERING and not 0 <= began < partition.leader_epoch


def begins(host: Host, hosted: Hosted, partition: Partition, now: Instant) -> tuple[bool, list[Effect]]:
    """To be called before a replica leads. Was it elected without being in sync or eligible? Raises DiskError if the
    ledger cannot be written; then nothing has changed."""
    events = at_beginning(hosted, partition, now, is_whole=hosted.at in host.whole.logs)
    assert partition.leader == host.me, hosted.name
    if not events:
        return False, []
    Notes(host, hosted).note(events)
    # That nothing is known is only noted: after a process was killed it is so of every log that has one replica.
    reports: list[Effect] = [
        Report("warning", f"{hosted.name}: {describe(one)}") for one in events if one.certainty != UNKNOWN
    ]
    return partition.leader_recovery_state == RECOVERING, reports


def expect_beginnings(host: Host, changed: Iterable[TopicIdPartition], now: Instant) -> None:
    """Before many of them begin in one step. A replica without a role may have a second log: it notes its own later."""
    losing = []
    for at in changed:
        hosted, partition = host.partitions.find(at), host.image.partition(at)
        if hosted is not None and partition is not None and partition.leader == host.me and hosted.role is not None:
            events = at_beginning(hosted, partition, now, is_whole=at in host.whole.logs)
            if events:
                losing.append((hosted, events))
    if len(losing) > 1:
        note_together(host, losing)


def describe(event: LossEvent) -> str:
    """For an operator."""
    assert event.end == NO_END or event.start <= event.end
    if event.certainty == EXACTLY:
        return f"offsets {event.start} to {event.end - 1} are lost here: {event.cause}"
    what = f"offsets from {event.start} on" if event.end == NO_END else f"offsets {event.start} to {event.end - 1}"
    return f"{what} may be lost: {event.cause}"
