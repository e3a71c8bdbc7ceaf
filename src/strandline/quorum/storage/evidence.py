"""What `quorum-state` says of the log: the evidence of a loss, and why a voter is impaired (`impaired.py`).

Invariants: what is saved as applied was committed and durable; it never falls while the voter is whole.
"""

from msgspec import Struct

from strandline.base.ids import NodeId
from strandline.base.time import Instant, after
from strandline.quorum.elections.election_state import (
    SHORT,
    VOTES_LOST,
    DamagedFileError,
    ElectionState,
    decode_quorum_state,
)
from strandline.quorum.elections.elections import Outreach, outreach
from strandline.quorum.ports import RaftLog, Unfit

SAVE_EVERY_MS = 2000  # the evidence, while nothing else is to be saved: what came later can be lost unnoticed


class Impairment(Struct):
    why: str
    mark: int  # what the file says in place of an offset
    census: Outreach  # the voters that have not said their epoch yet
    heard: tuple[int, int] = (-1, -1)  # epoch and high watermark, by its leader


class Evidence(Struct):
    """What `quorum-state` says of the log, and when it was written."""

    applied: int  # committed and durable here up to this offset, for certain
    saved: int  # what the file says
    at: Instant  # when the last Save left
    impairment: Impairment | None = None
    loss: str = ""  # what to report at the start
    leaving: int = VOTES_LOST - 1  # what the Save on its way says
    is_wanted: bool = False  # the evidence is to be saved now
    is_closing: bool = False

    def now_known(self, high_watermark: int, durable_end: int) -> int:
        """What the file should say."""
        if self.impairment is not None:
            return self.impairment.mark
        before, self.applied = self.applied, max(self.applied, min(high_watermark, durable_end))
        assert self.applied >= before, "what was committed stays committed"
        return self.applied

    def is_due(self, known: int, snapshot_end: int, now: Instant) -> bool:
        """Now and then, and after each snapshot: a log that is cut below it would begin anew at its end."""
        assert known >= VOTES_LOST
        self.is_wanted = known != self.saved and (self.is_wanted or self.saved < snapshot_end <= known)
        return self.is_wanted or (known != self.saved and after(self.at, SAVE_EVERY_MS) <= now)

    def doubt(self, unfit: Unfit, now: Instant, *, is_voter: bool) -> None:
        """A record of the log cannot be applied, and others may have another one in its place."""
        self.applied = min(self.applied, unfit.sound.end_offset)
        if is_voter and self.impairment is None:
            self.impairment = Impairment(unfit.text, self.saved, outreach((), now))

    def note_loss(self) -> bool:
        """Must the file say first, durably, that metadata is lost? If so, it is to be saved now."""
        if self.impairment is None or self.saved in (SHORT, VOTES_LOST):
            return False
        if self.impairment.mark != VOTES_LOST:
            self.impairment.mark = SHORT
        return True

    def becomes_whole(self) -> None:
        assert self.impairment is not None
        self.impairment, self.is_wanted = None, True

    def close(self) -> None:
        self.is_wanted, self.is_closing = self.is_wanted or not self.is_closing, True

    def leaves(self, known: int, now: Instant) -> None:
        assert known >= VOTES_LOST
        self.leaving, self.at, self.is_wanted = known, now, False

    def synced(self) -> None:
        assert self.leaving >= VOTES_LOST, "a Save has left"
        self.saved = self.leaving


def read(log: RaftLog, me: NodeId, voters: tuple[NodeId, ...], now: Instant) -> tuple[ElectionState, Evidence]:
    """What is stored, and whether it can be all that this voter promised."""
    content = log.read_quorum_state()
    can_wait = me in voters and len(voters) > 1
    election, applied, why, mark = ElectionState(), 0, "", SHORT
    try:
        election, applied = decode_quorum_state(content, log.quorum_state_path)
    except DamagedFileError as error:
        if not can_wait:
            raise
        why, mark = str(error), VOTES_LOST
    if applied in (SHORT, VOTES_LOST):
        why, mark, applied = "it lost metadata before, and has not copied all of it yet", applied, 0
    elif not why and election.epoch < log.last_epoch:
        what = "is missing" if content is None else f"is of epoch {election.epoch}"
        why = f"{log.quorum_state_path} {what}, and the metadata log beside it has records of epoch {log.last_epoch}"
        mark = VOTES_LOST
    elif not why and log.log_end_offset < applied:  # guard: lost-metadata-unnoticed
        why = f"the metadata log ends at {log.log_end_offset}, and it was committed and durable here up to {applied}"
    evidence = Evidence(min(applied, log.log_end_offset), applied, now)
    assert evidence.applied >= VOTES_LOST
    if why and me in voters:
        evidence.loss = why
        evidence.is_wanted = True
        if can_wait:
            others = [voter for voter in voters if voter != me]
            evidence.impairment = Impairment(why, mark, outreach(others if mark == VOTES_LOST else (), now))
    return election, evidence
