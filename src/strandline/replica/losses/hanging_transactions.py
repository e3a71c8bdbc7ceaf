"""Hanging transactions (KIP-664) that an unclean election has left: the lost tail may have had their end markers (T42).

The coordinator takes such a transaction for ended, and never ends it again: consumers that read what is committed would
wait for ever. So a leader that was elected though it may lack records looks through its log, a bounded part in a step,
for producers whose last transaction has no end there. What it finds is noted in the loss ledger, and reported. Then
`opened` is told, which has aborted what no coordinator ends.

Invariant: a log is looked through only up to its end when the leadership began; the writer knows what comes later.
"""

from collections.abc import Callable

from strandline.base.effects import Effect, Report
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.log.log import Log
from strandline.metadata.losses import NO_END, UNKNOWN
from strandline.metadata.records import LossEvent
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.losses.losing import lost_by

STEP_MS = 10
STEP_BYTES = 1 << 20
NOTED_MAX = 100  # open transactions of one partition; of more, how many


class Look:
    """How far one log is looked through."""

    __slots__ = ("end", "hosted", "log", "offset", "open")

    def __init__(self, hosted: Hosted, end: int) -> None:
        assert end <= hosted.log.log_end_offset, hosted.name
        self.hosted = hosted
        self.end = end
        self.log: Log | None = None
        self.offset = 0
        self.open: dict[int, int] = {}  # producers, and where their transactions begin

    def begin(self) -> Log:
        """Anew, where the log has moved to another directory."""
        if self.log is not self.hosted.log:
            self.log = self.hosted.log
            self.offset = self.log.log_start_offset
            self.open = {}
        return self.log

    def go_on(self, limit: int) -> bool:
        """Look at `limit` bytes of batches, and at one batch at least. Is that all?"""
        assert limit > 0
        log = self.begin()
        seen = 0
        for header in log.headers(max(self.offset, log.log_start_offset)):
            if header.base_offset >= self.end:
                return True
            if header.is_transactional and header.is_control:
                self.open.pop(header.producer_id, None)
            elif header.is_transactional:
                self.open.setdefault(header.producer_id, header.base_offset)
            self.offset = header.next_offset
            seen += header.size
            if seen >= limit:
                return False
        return True


class HangingTransactions:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.looks: dict[Hosted, Look] = {}
        self.wake = Alarm(host.timers, self.go_on)
        self.opened: Callable[[Hosted, dict[int, int], Instant], None] = lambda hosted, found, now: None

    def suspect(self, hosted: Hosted, now: Instant) -> None:
        """To be called when a leader begins that may have lost records."""
        if hosted.log.log_end_offset > hosted.log.log_start_offset:
            self.looks[hosted] = Look(hosted, hosted.log.log_end_offset)
            self.wake.set(now + STEP_MS)

    def go_on(self, now: Instant) -> list[Effect]:
        assert self.looks
        effects: list[Effect] = []
        hosted, look = next(iter(self.looks.items()))
        try:
            if self.is_over(hosted):
                del self.looks[hosted]
            elif look.go_on(STEP_BYTES):
                del self.looks[hosted]
                effects += self.found(look, now)
        except DiskError as error:
            self.looks.pop(hosted, None)
            self.host.fail(hosted.directory, error)
        if self.looks:
            self.wake.set(now + STEP_MS)
        return effects

    def is_over(self, hosted: Hosted) -> bool:
        """The next leader looks anew, if there is reason to."""
        return hosted.gone or type(hosted.role) is not Leader or not self.host.directories.is_live(hosted.directory)

    def found(self, look: Look, now: Instant) -> list[Effect]:
        if not look.open:
            return []
        hosted = look.hosted
        assert type(hosted.role) is Leader
        assert all(offset < look.end for offset in look.open.values()), hosted.name
        epoch = hosted.role.epoch
        found = sorted(look.open.items(), key=lambda row: row[1])
        causes = [
            (offset, f"open transaction of producer {producer} since offset {offset}") for producer, offset in found
        ]
        if len(causes) > NOTED_MAX:
            rest = len(causes) - NOTED_MAX
            assert rest > 0
            causes = [*causes[:NOTED_MAX], (causes[NOTED_MAX][0], f"{rest} more open transactions since this offset")]
        events = [
            LossEvent(
                start=offset,
                end=NO_END,
                certainty=UNKNOWN,
                old_epoch=epoch - 1,
                new_epoch=epoch,
                time_ms=now,
                cause=cause,
            )
            for offset, cause in causes
        ]
        self.host.ledger.write(hosted.directory.path, [lost_by(self.host, hosted, event) for event in events])
        self.opened(hosted, look.open, now)
        return [
            Report("warning", f"{hosted.name}: {cause}, and its end may be among what was lost") for _, cause in causes
        ]
