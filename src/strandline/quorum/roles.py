"""What a node may be, one type per role; each stores only what that role knows.

Voters:     Unattached, Voted, Prospective (asks for pre-votes), Candidate (asks for votes), Leader, Follower, Resigned.
Observers:  Seeking (knows no leader), Observing (follows one). An observer is not a voter: it follows and never votes.

The epoch, the vote in it and its leader are the quorum's (`ElectionState`), because they outlive every role.
`TRANSITIONS` says which role may follow which; the causes are in `state.py` and nowhere else.
"""

from msgspec import Struct

from strandline.base.effects import ReplyTo
from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.base.time import NEVER, Instant
from strandline.quorum.elections.elections import Outreach, Tally, majority
from strandline.quorum.ports import SnapshotId


class Download(Struct):
    """A snapshot on its way here. `position` bytes of it are written."""

    snapshot: SnapshotId
    position: int = 0
    is_named: bool = False


class Fetching(Struct):
    """A follower's or observer's way to the leader's log: one request at a time."""

    retry_at: Instant  # NEVER while a request is on its way
    request: int = 0  # the number of the request on its way; 0 if none
    failures: int = 0  # in a row
    download: Download | None = None


class Unattached(Struct):
    """Knows no leader of this epoch that may be alive, and has not voted in it."""

    election_deadline: Instant


class Voted(Struct):
    """Gave its vote of this epoch to `candidate`, perhaps itself in an election that it lost."""

    candidate: NodeId
    election_deadline: Instant


class Prospective(Struct):
    """Asks whether it could win (KIP-996) before it disturbs anyone with a new epoch."""

    round: int
    tally: Tally
    outreach: Outreach
    election_deadline: Instant


class Candidate(Struct):
    """Asks for votes in an epoch that it has begun."""

    round: int
    tally: Tally
    outreach: Outreach
    election_deadline: Instant


class Follower(Struct):
    """Fetches from the leader of this epoch."""

    leader: NodeId
    fetching: Fetching
    fetch_deadline: Instant
    has_fetched: bool = False  # the leader has answered


class Resigned(Struct):
    """Led this epoch and does not any more; sends this to the others until they know."""

    outreach: Outreach
    successors: tuple[NodeId, ...]
    election_deadline: Instant


class Seeking(Struct):
    """An observer that asks one voter after the other who leads."""

    asked: int  # index of the voter to ask
    fetching: Fetching


class Observing(Struct):
    """An observer that fetches from the leader of this epoch."""

    leader: NodeId
    fetching: Fetching
    fetch_deadline: Instant


class Progress(Struct):
    """What the leader knows of one replica."""

    directory_id: Uuid
    end_offset: int = -1  # the replica has, durably, everything below; -1 unknown
    last_fetch: Instant = Instant(-1)
    last_caught_up: Instant = Instant(-1)
    sent_high_watermark: int = -1  # by the last answer


class Parked(Struct, frozen=True):
    """A Fetch that waits for something new."""

    to: ReplyTo
    offset: int
    known_high_watermark: int
    until: Instant


class Leader(Struct):
    """Leads this epoch. The high watermark passes the epoch's start only by records of this epoch."""

    me: NodeId
    voters: tuple[NodeId, ...]
    epoch_start_offset: int
    granting: tuple[NodeId, ...]
    check_quorum_ms: int
    since: Instant
    begin: Outreach  # BeginQuorumEpoch: to whom, when
    progress: dict[NodeId, Progress]  # voters (without me) and observers
    parked: dict[NodeId, Parked]

    def committed(self, durable_end: int) -> int | None:
        """The offset that a majority of voters have, durably; None while none of this epoch's records is among them."""
        assert self.me in self.voters
        ends = [durable_end if voter == self.me else self.progress[voter].end_offset for voter in self.voters]
        reached = sorted(ends, reverse=True)[majority(len(ends)) - 1]  # guard: minority-commits
        assert reached <= max(ends)
        return reached if reached > self.epoch_start_offset else None  # guard: older-epoch-committed-by-counting

    def check_quorum_deadline(self) -> Instant:
        """When this leader must give up, unless more voters are heard: most would have been silent for too long."""
        needed = majority(len(self.voters)) - 1
        if needed == 0:
            return NEVER
        heard = [self.progress[voter].last_fetch for voter in self.voters if voter != self.me]
        assert needed <= len(heard), "a majority without this leader is among the others"
        last = max(heard) if needed == 1 else sorted(heard, reverse=True)[needed - 1]
        return Instant(max(last, self.since) + self.check_quorum_ms)

    def successors(self) -> tuple[NodeId, ...]:
        """The other voters, who has most first."""
        assert self.me in self.voters
        others = [voter for voter in self.voters if voter != self.me]
        return tuple(sorted(others, key=lambda voter: (-self.progress[voter].end_offset, voter)))

    def deadline(self) -> Instant:
        first = min(self.begin.deadline(), self.check_quorum_deadline())
        return min(first, *[fetch.until for fetch in self.parked.values()]) if self.parked else first


Role = Unattached | Voted | Prospective | Candidate | Leader | Follower | Resigned | Seeking | Observing

LEADERLESS = (Unattached, Voted)
# Which role may follow which. Each voter's role but the leader's may be begun anew, in a later epoch or after a pause.
# A later epoch makes everybody Unattached, or the Follower of its leader.
TRANSITIONS: dict[type, tuple[type, ...]] = {
    Unattached: (*LEADERLESS, Prospective, Candidate, Follower),  # Candidate at once: a voter without others
    Voted: (*LEADERLESS, Prospective, Candidate, Follower),
    Prospective: (*LEADERLESS, Candidate, Follower),
    Candidate: (*LEADERLESS, Leader, Follower),
    Leader: (Unattached, Resigned, Follower),
    Follower: (*LEADERLESS, Prospective, Follower),
    Resigned: (*LEADERLESS, Follower),
    Seeking: (Seeking, Observing),
    Observing: (Seeking, Observing, Follower),  # Follower: a voter that is whole again
}


def deadline_of(role: Role, *, may_fetch: bool) -> Instant:
    """When something is due. Fetches are not due while the log has unsynced bytes."""
    match role:
        case Leader():
            return role.deadline()
        case Follower() | Observing():
            return min(role.fetch_deadline, role.fetching.retry_at if may_fetch else NEVER)
        case Unattached() | Voted():
            return role.election_deadline
        case Prospective() | Candidate() | Resigned():
            return min(role.election_deadline, role.outreach.deadline())
        case Seeking():
            return role.fetching.retry_at if may_fetch else NEVER


def why_not_vote(role: Role, *, candidate: NodeId, voted: NodeId, has_leader: bool, is_up_to_date: bool) -> str | None:
    """Why does a node in this role, which voted for `voted` in this epoch, not vote for `candidate`? None: it does."""
    assert candidate != NOBODY
    match role:
        case Leader() | Follower() | Resigned():
            return "the epoch has a leader"
        case Candidate():
            return "votes for itself"
        case Seeking() | Observing():
            return "is not a voter"
        case Unattached() | Voted() | Prospective():
            if has_leader:
                return "the epoch has a leader"
            if voted != NOBODY:
                return None if voted == candidate else "has voted for another"  # guard: votes-twice
            return None if is_up_to_date else "the candidate lacks records"


def why_not_pre_vote(role: Role, *, is_up_to_date: bool) -> str | None:
    """Why does a node in this role not believe that `candidate` could win? None: it does (KIP-996)."""
    match role:
        case Leader():
            return "leads"
        case Follower() if role.has_fetched:
            return "hears from the leader"
        case Seeking() | Observing():
            return "is not a voter"
        case _:
            return None if is_up_to_date else "the candidate lacks records"
