"""The follower of one partition: what to ask its leader for, and what to do with the answer.

Rules:
  - an answer counts only if epoch and offset are still those that it was asked with (T31);
  - the last epoch of the log always goes along, so that the leader can name a divergence (T35);
  - truncate first, then raise the high watermark, to min(leader's, own end) (T22); any cut clamps it (T23);
  - only batches of the asked epoch or older are appended (T32): the log refuses the others;
  - what is cut below the old high watermark is in the loss ledger before it is cut (T38): where that cannot be written,
    nothing is cut.

Invariant (executed by `check`): log start ≤ high watermark ≤ log end.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Protocol

from msgspec import Struct

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX, LeaderEpoch, NodeId
from strandline.base.ports import Buffer
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.log import Log
from strandline.log.refusals import Refused
from strandline.metadata.image import Partition
from strandline.metadata.losses import AT_MOST, EXACTLY
from strandline.metadata.records import LossEvent
from strandline.wire.batch import batches


class Position(Struct, frozen=True, gc=False):
    """What a follower asks for: exactly what its answer must still fit."""

    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int


class Served(Struct, frozen=True, gc=False):
    """One partition of a leader's answer."""

    error: ErrorCode
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: int = -1
    diverging_end: int = -1
    records: Buffer | tuple[Buffer, ...] | None = None
    gaps_end: int = -1


class Next(Enum):
    """What the fetcher does with the partition now."""

    GO_ON = "ask on"
    STALE = "the answer fits no longer: ask again"
    RETRY_SOON = "the leader is just not there yet"
    BACK_OFF = "wait, or for metadata"


# Metadata reaches brokers one after another: the leader that we know may not know it yet.
NOT_YET = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class Notes(Protocol):
    """The loss ledger, as a follower sees it."""

    def note(self, events: Iterable[LossEvent]) -> None:
        """Durable when it returns; raises DiskError if that cannot be."""
        ...


class Cut(Value, frozen=True):
    """What an answer asks a follower to do with its log."""

    target: int
    is_all: bool  # the log begins anew there; else it ends there
    why: str


class Follower:
    """`leader` is NOBODY while the partition is offline."""

    def __init__(self, name: str, log: Log, partition: Partition, high_watermark: int, notes: Notes) -> None:
        self.name = name
        self.log = log
        self.notes = notes
        self.leader: NodeId = partition.leader
        self.leader_high_watermark = -1  # as it said last
        self.epoch: LeaderEpoch = partition.leader_epoch
        self.isr = partition.isr
        self.high_watermark = high_watermark
        self.cuts = 0  # how often the log was truncated: what was being made durable meanwhile may be gone
        self.losses: list[str] = []  # for the operator; taken by `take_losses`

    def reassigned(self, partition: Partition) -> None:
        """Metadata of the same leader and leader epoch."""
        assert (partition.leader, partition.leader_epoch) == (self.leader, self.epoch), self.name
        self.isr = partition.isr

    @property
    def last_stable_offset(self) -> int:
        """As the leader's, by what this replica has copied."""
        return self.log.last_stable_offset(self.high_watermark)  # guard: followers-stable-is-the-high-watermark

    def position(self) -> Position:
        log = self.log
        return Position(self.epoch, log.log_end_offset, log.latest_epoch, log.log_start_offset)

    def fits(self, asked: Position) -> bool:
        """Is an answer to that question of any use now?"""
        # guard: answer-fits-the-question
        return asked.leader_epoch == self.epoch and asked.offset == self.log.log_end_offset

    def served(self, asked: Position, answer: Served, now: Instant) -> Next:
        log = self.log
        if not self.fits(asked):
            return Next.STALE
        cut = self.cut_by(answer)
        if cut is not None:
            self.perform(cut, now)
            return Next.GO_ON
        if answer.error is not ErrorCode.NONE:
            return Next.RETRY_SOON if answer.error in NOT_YET else Next.BACK_OFF
        if answer.diverging_epoch >= 0:
            return Next.BACK_OFF  # an epoch that ends before all offsets: no leader of ours
        self.leader_high_watermark = answer.high_watermark
        if answer.gaps_end > log.log_end_offset and answer.high_watermark >= 0:
            log.admit_gaps(min(answer.gaps_end, answer.high_watermark))
        for records in buffers_of(answer.records):
            self.align(records)
            appended = log.append_as_follower(records, self.epoch, now)
            if log.must_flush:
                log.flush_if_due()
            if isinstance(appended, Refused):
                self.losses.append(f"{self.name}: records of leader {self.leader} refused: {appended.message}")
                self.clamp()
                return Next.BACK_OFF
        end = log.log_end_offset
        if end == asked.offset and buffers_of(answer.records):
            return Next.RETRY_SOON  # nothing of it may be appended in this epoch: metadata must say more first
        high_watermark = min(answer.high_watermark, end)  # guard: follower-raises-high-watermark-past-its-log
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            log.transactions.committed(high_watermark)
        assert self.high_watermark <= end, self.name
        if answer.log_start_offset > log.log_start_offset:
            log.advance_log_start(min(answer.log_start_offset, self.high_watermark))
        return Next.GO_ON

    def align(self, records: Buffer) -> None:
        """An empty log begins with the leader's first batch, also where DeleteRecords has made the log start in the
        middle of it. What lies below the log start goes: another leader may have written it."""
        log = self.log
        if log.log_start_offset != log.log_end_offset:
            return
        first = next(iter(batches(memoryview(records))), None)
        if first is not None and first.base_offset < log.log_end_offset < first.next_offset:
            self.cuts += 1
            log.truncate_fully_and_start_at(first.base_offset)
            self.clamp()

    # --- cutting

    def cut_by(self, answer: Served) -> Cut | None:
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and 0 <= answer.log_start_offset <= OFFSET_MAX:
            return Cut(answer.log_start_offset, True, "the leader's log has none of its offsets")
        if answer.error is ErrorCode.NONE and answer.diverging_epoch >= 0 and answer.diverging_end >= 0:
            target = self.divergence(answer.diverging_epoch, answer.diverging_end)
            return Cut(max(target, self.log.log_start_offset), False, "the leader's log differs")
        return None

    def divergence(self, epoch: int, end: int) -> int:
        """Where to cut, if the leader's largest epoch up to ours is `epoch` and ends at `end` (KIP-279, T37).

        1. Our log has that epoch: both agree up to the earlier of its two ends.
        2. Our largest epoch up to it is older: cut at its end, and ask again with that one.
        3. Our log has no epoch as old: only the leader's end says anything.
        """
        assert epoch >= 0
        assert end >= 0
        own_epoch, own_end = self.log.end_offset_for_epoch(epoch)
        assert own_epoch <= epoch
        if own_epoch < 0:
            return min(end, self.log.log_end_offset)
        if own_epoch == epoch:
            return min(own_end, end)
        return min(own_end, self.log.log_end_offset)  # guard: kip-101-truncation

    def expected_losses(self, asked: Position, answer: Served, now: Instant) -> list[LossEvent]:
        """What `served` is going to note."""
        cut = self.cut_by(answer) if self.fits(asked) else None
        return [] if cut is None else self.losses_by(cut, now)

    def losses_by(self, cut: Cut, now: Instant) -> list[LossEvent]:
        """What the cut takes of what was committed here, at most. A cut takes the batch that holds its target as a
        whole: what lies before the target in it is copied anew."""
        assert cut.target >= 0, self.name
        high_watermark = self.high_watermark
        events: list[LossEvent] = []
        if cut.is_all:
            if cut.target < high_watermark:
                events.append(self.loss(cut.target, high_watermark, AT_MOST, f"{cut.why}: it is copied anew", now))
            return events
        first = next(self.log.headers(cut.target), None) if cut.target < self.log.log_end_offset else None
        begin = cut.target if first is None else min(first.base_offset, cut.target)
        if begin < min(cut.target, high_watermark):
            end = min(cut.target, high_watermark)
            events.append(self.loss(begin, end, AT_MOST, f"{cut.why} within a batch: it is copied anew", now))
        if cut.target < high_watermark:
            events.append(self.loss(cut.target, high_watermark, EXACTLY, cut.why, now))
        return events

    def loss(self, start: int, end: int, certainty: int, why: str, now: Instant) -> LossEvent:
        assert 0 <= start < end <= self.high_watermark, self.name
        return LossEvent(
            start=start,
            end=end,
            certainty=certainty,
            old_epoch=self.log.latest_epoch,
            new_epoch=self.epoch,
            time_ms=now,
            cause=f"it followed broker {self.leader}, and {why}",
        )

    def perform(self, cut: Cut, now: Instant) -> None:
        """Raises DiskError, with the log as it was, if the ledger cannot be written."""
        events = self.losses_by(cut, now)
        if events:
            self.notes.note(events)
        for event in events:
            what = "cut" if event.certainty == EXACTLY else "copied anew"
            self.losses.append(
                f"{self.name}: offsets {event.start} to {event.end - 1} were committed here and are {what},"
                f" because {cut.why}"
            )
        self.cuts += 1
        if cut.is_all:
            self.log.truncate_fully_and_start_at(cut.target)
            self.high_watermark = cut.target  # guard: high-watermark-survives-a-fresh-start
            return
        self.log.truncate_to(cut.target)  # also where nothing is cut: an epoch that starts there goes (T33)
        self.clamp()  # guard: high-watermark-survives-truncation
        assert self.high_watermark <= self.log.log_end_offset <= cut.target, self.name

    def clamp(self) -> None:
        log = self.log
        self.high_watermark = max(log.log_start_offset, min(self.high_watermark, log.log_end_offset))
        assert log.log_start_offset <= self.high_watermark <= log.log_end_offset, self.name

    def take_losses(self) -> list[str]:
        losses, self.losses = self.losses, []
        return losses

    def check(self) -> None:
        assert self.log.log_start_offset <= self.high_watermark <= self.log.log_end_offset, self.name


def buffers_of(records: Buffer | tuple[Buffer, ...] | None) -> tuple[Buffer, ...]:
    """A real answer has one buffer; an answer that never was encoded, as in a simulator, may have several."""
    if records is None:
        return ()
    if isinstance(records, tuple):
        return tuple(part for part in records if len(part))
    return (records,) if len(records) else ()
