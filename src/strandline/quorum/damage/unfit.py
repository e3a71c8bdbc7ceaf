"""The metadata log has a record that nobody here can apply, in a batch whose checksum is right. Whose fault is it?

It was found before this node does anything with its log (`broker/committed.py`). What lies before that batch is sound.
The node vouches for no more than that: a voter has no say, as one that lost metadata, and all Fetches claim that the
log ends there. So the leader sends what it has in that place. There are two cases:
  - It has something else, or nothing. Then ours is damaged, or was never committed: it is cut, and copied again. Before
    a voter cuts what others may have counted on, it notes in `quorum-state`, durably, that it lost metadata. From then
    on it is impaired like any other (`impaired`).
  - It has the very same. Then a majority may have it, and this program cannot go on. Nothing is cut, since another
    program may be able to read it: the node stops, and says so (`verdict`).
Without a leader nothing is cut either, and nothing is noted: the next start looks again.

Invariants: nothing is cut before the leader was heard, nor by a voter before it has noted its loss; the high watermark
stays below what does not fit.
"""

from typing import Any

from strandline.base.effects import Failure, Report
from strandline.base.time import Instant
from strandline.quorum.ports import RaftLog, Unfit
from strandline.quorum.roles import Follower, Observing
from strandline.quorum.state import QuorumState
from strandline.quorum.storage.evidence import Evidence
from strandline.wire.batch import HEADER_SIZE, read_header

STOP = "Start the version that wrote it, or bring back a copy of {} from before it"


def begin(
    unfit: Unfit | None, evidence: Evidence, log: RaftLog, now: Instant, *, is_voter: bool, is_alone: bool
) -> str:
    """Before the first step. Returns why this node cannot go on, or nothing."""
    assert is_voter or not is_alone, "an observer has somebody to follow"
    if unfit is None:
        return ""
    evidence.doubt(unfit, now, is_voter=is_voter and not is_alone)
    if is_alone:
        return f"{unfit.text}. There is no other voter to copy it from. {STOP.format(log.directory)}"
    return ""


def report(quorum: QuorumState) -> None:
    if quorum.unfit is not None and quorum.others:
        quorum.out.append(Report("error", f"{quorum.unfit.text}. {waiting(quorum)}"))


def waiting(quorum: QuorumState) -> str:
    return (
        f"This node compares it with the leader's before it goes on. If the others"
        f" ({', '.join(str(voter) for voter in quorum.others)}) report the same, no voter can lead: start the version"
        f" that wrote it"
    )


def may_take(quorum: QuorumState, role: Follower | Observing, answer: Any, now: Instant) -> bool:
    """The leader has answered a Fetch from where our log is sound. May its answer be taken?"""
    unfit = quorum.unfit
    assert unfit is not None
    is_elsewhere = answer.diverging_epoch.epoch >= 0 or answer.snapshot_id.epoch >= 0
    if not is_elsewhere and is_same(quorum, unfit.sound.end_offset, answer.records):
        what = f"{unfit.text}. Node {role.leader}, which leads, has the same"
        quorum.stop_for(f"{what}. {STOP.format(quorum.log.directory)}")
        return False
    if quorum.evidence.note_loss():
        role.fetching.retry_at = quorum.retry_at(Failure.MALFORMED, now)
        return False
    quorum.out.append(Report("warning", f"node {role.leader} has another record there: {unfit.offset} is copied again"))
    quorum.become_fit()
    quorum.durability.truncate_to(unfit.sound.end_offset)
    return True


def is_same(quorum: QuorumState, offset: int, theirs: Any) -> bool:
    """Do their records begin with the batch that we have at `offset`?"""
    assert offset >= 0
    if theirs is None or len(theirs) < HEADER_SIZE:
        return False
    size = read_header(theirs).size
    ours = quorum.log.read(offset, size) or b""
    content = b"".join(ours) if isinstance(ours, tuple) else bytes(ours)
    return content[:size] == bytes(theirs[:size])
