"""What a node is in the quorum of the metadata log, and *every* transition between roles, with its cause.

`voting`, `leading` and `following` answer requests and handle answers, and call the transitions; `quorum.py` carries
out what follows. What a node must not forget is the business of `Promises`, how much of its log is durable that of
`Durability`.

Invariants (executed by `invariants.check`):
  - the epoch and the high watermark never fall; the epoch is not below the log's;
  - a role follows another only as `TRANSITIONS` says;
  - high_watermark <= log_end_offset.
"""

from collections.abc import Mapping
from typing import Any

from strandline.base.effects import Effect, Endpoint, Failure, Received, Reply, Report, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.base.ports import Rng
from strandline.base.time import Instant, after
from strandline.quorum import messages
from strandline.quorum.config import QuorumConfig
from strandline.quorum.elections.election_state import ElectionState
from strandline.quorum.elections.elections import outreach, tally
from strandline.quorum.elections.epochs import EPOCH_MAX, Allowance
from strandline.quorum.messages import Leading
from strandline.quorum.ports import EpochEnd, RaftLog, Unfit
from strandline.quorum.roles import (
    TRANSITIONS,
    Candidate,
    Fetching,
    Follower,
    Leader,
    Observing,
    Progress,
    Prospective,
    Resigned,
    Role,
    Seeking,
    Unattached,
    Voted,
)
from strandline.quorum.storage.durability import Durability
from strandline.quorum.storage.evidence import Evidence
from strandline.quorum.storage.promises import Promises
from strandline.quorum.tokens import QuorumToken

FIRST_ELECTION_MS = (50, 300)  # after a start: a pre-vote disturbs nobody, so there is no need to wait longer
LOST_LEADER_MS = (0, 51)  # between the proof that the leader is gone and the pre-vote
STILL_LOST_MS = (50, 101)  # when others still believe in it, and for peers that refuse connections
CHECK_QUORUM_FACTOR = 1.5


class QuorumState:
    def __init__(
        self,
        me: NodeId,
        directory_id: Uuid,
        cluster_id: str,
        voters: Mapping[NodeId, Endpoint],
        log: RaftLog,
        config: QuorumConfig,
        rng: Rng,
        now: Instant,
        promises: Promises,
        evidence: Evidence,
        unfit: Unfit | None,
        verdict: str,
    ) -> None:
        assert voters, "a quorum has voters"
        self.me = me
        self.directory_id = directory_id
        self.cluster_id = cluster_id
        self.voters = voters
        self.others = tuple(voter for voter in self.voters if voter != me)
        self.log = log
        self.config = config
        self.rng = rng
        self.promises = promises
        self.evidence = evidence
        self.durability = Durability(log)
        self.unfit = unfit  # what of the log cannot be applied, as long as it is there
        self.verdict = verdict  # why this node cannot go on
        self.allowance = Allowance(now)
        snapshot = log.latest_snapshot()
        self.high_watermark = min(snapshot.end_offset if snapshot else 0, self.log_end.end_offset)
        self.out: list[Effect] = []
        self.count = 0  # numbers rounds of voting and requests
        self.lost_elections = 0  # since a leader was last heard
        self.refusals = 0  # proofs, since a leader was last heard, that it is gone
        self.role: Role = self.leaderless(Instant(now + self.draw(*FIRST_ELECTION_MS)), now)

    # --- what all parts of the machine ask

    @property
    def leader_id(self) -> NodeId:
        """Whom this node's role follows, itself for a leader; NOBODY if it knows no leader."""
        role = self.role
        if type(role) is Leader:
            return self.me
        if type(role) is Follower or type(role) is Observing:
            return role.leader
        return NOBODY

    @property
    def is_leader(self) -> bool:
        return type(self.role) is Leader

    @property
    def epoch_start_offset(self) -> int:
        """Where my leadership starts in the log."""
        assert isinstance(self.role, Leader)
        return self.role.epoch_start_offset

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def has_a_say(self) -> bool:
        """May it vote, and stand? Else it acts as an observer."""
        return self.is_voter and self.evidence.impairment is None  # guard: damaged-voter-votes

    @property
    def election(self) -> ElectionState:
        return self.promises.election

    @property
    def epoch(self) -> int:
        return self.promises.election.epoch

    @property
    def committed_end(self) -> int:
        """What is known to be committed; to an earlier process too, if nothing of that is lost."""
        return self.high_watermark if self.evidence.impairment else max(self.high_watermark, self.evidence.applied)

    @property
    def leading(self) -> Leading:
        """What answers say of the leader."""
        leader = self.leader_id
        return Leading(leader, self.epoch, self.voters.get(leader))

    @property
    def log_end(self) -> EpochEnd:
        """What this node vouches for."""
        return self.unfit.sound if self.unfit else EpochEnd(self.log.last_epoch, self.log.log_end_offset)

    def draw(self, start: int, stop: int) -> int:
        assert start >= 0
        return self.rng.randrange(start, max(stop, start + 1))

    def number(self) -> int:
        self.count += 1
        return self.count

    def reply(self, received: Received, message: Any) -> None:
        self.out.append(Reply(received.to, message))

    def send(self, peer: NodeId, message: Any, version: int, token: QuorumToken, channel: str = "raft") -> None:
        assert peer != self.me
        timeout_ms = self.config.request_timeout_ms
        self.out.append(Send(self.voters[peer], channel, message, version, timeout_ms, token, peer))

    def retry_at(self, why: Failure, now: Instant) -> Instant:
        """When to ask a peer again that did not answer. Nobody is hammered: a new cluster's nodes start one by one."""
        match why:
            case Failure.TIMED_OUT:
                return now
            case Failure.REFUSED | Failure.CLOSED | Failure.MALFORMED:
                return after(now, self.draw(*STILL_LOST_MS))

    def commit_to(self, end: int) -> None:
        """Everything below `end` is committed, and in our log."""
        assert self.high_watermark <= end <= self.log.log_end_offset
        self.high_watermark = end

    # --- transitions

    def become(self, role: Role) -> None:
        former, self.role = self.role, role
        assert type(role) in TRANSITIONS[type(former)], f"{type(former).__name__} never becomes {type(role).__name__}"
        if isinstance(former, Leader):
            # Whoever waits must look elsewhere.
            for waiting in former.parked.values():
                message = messages.fetch_response(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.leading)
                self.out.append(Reply(waiting.to, message))
            former.parked.clear()

    def leaderless(self, election_deadline: Instant, now: Instant) -> Role:
        """The role of a node that knows no living leader of its epoch."""
        assert election_deadline >= now
        if not self.has_a_say:
            return Seeking(self.draw(0, len(self.others)), Fetching(now))
        if self.election.voted != NOBODY:
            return Voted(self.election.voted, election_deadline)
        return Unattached(election_deadline)

    def become_leaderless(self, election_deadline: Instant, now: Instant) -> None:
        self.become(self.leaderless(election_deadline, now))

    def enter_epoch(self, epoch: int, now: Instant) -> None:
        """A peer is in a later epoch, and its leader is not known to us."""
        assert epoch > self.epoch
        self.allowance.take(epoch - self.epoch, now)
        self.promises.promise(ElectionState(epoch))
        self.become_leaderless(self.election_timeout(now), now)
        assert self.leader_id == NOBODY, "nobody leads an epoch that was just entered"

    def give_vote(self, candidate: NodeId, now: Instant) -> None:
        assert self.has_a_say
        assert candidate in self.others
        assert self.election.voted in (NOBODY, candidate)
        self.promises.promise(ElectionState(self.epoch, self.election.leader, candidate))
        self.become(Voted(candidate, self.election_timeout(now)))

    def become_follower(self, epoch: int, leader: NodeId, now: Instant) -> None:
        """A leader of our epoch, or of a later one, is known."""
        assert leader in self.others
        assert epoch >= self.epoch
        assert leader != self.me
        self.allowance.take(epoch - self.epoch, now)
        voted = self.election.voted if epoch == self.epoch else NOBODY
        self.promises.promise(ElectionState(epoch, leader, voted))
        fetch_deadline = after(now, self.config.fetch_timeout_ms)
        if self.has_a_say:
            self.become(Follower(leader, Fetching(now), fetch_deadline))
        else:
            self.become(Observing(leader, Fetching(now), fetch_deadline))

    def become_whole(self, role: Observing) -> None:
        """An impaired voter has what is committed."""
        assert self.has_a_say
        assert self.role is role
        self.become(Follower(role.leader, role.fetching, role.fetch_deadline, has_fetched=True))

    def lose_leader(self, now: Instant) -> None:
        """There is proof that the leader of this epoch leads no more: its process is gone, or it says so itself.
        Then there is no need to wait for the fetch timeout, and others may have our pre-vote."""
        assert not self.is_leader, "the leader does not lose itself"
        self.refusals += 1
        span = LOST_LEADER_MS if self.refusals == 1 else STILL_LOST_MS
        self.become_leaderless(after(now, self.draw(*span)), now)

    def succeed(self, rank: int, now: Instant) -> None:
        """The leader resigned and would like us to follow it; the first in its list begins at once."""
        assert rank >= 0
        self.become_leaderless(after(now, rank * LOST_LEADER_MS[1] + self.draw(0, 10 if rank else 1)), now)

    def hear_leader(self) -> None:
        """There is a leader: what was counted without one is over."""
        self.lost_elections = self.refusals = 0

    def become_fit(self) -> None:
        """What could not be applied is no longer in the log."""
        assert self.unfit is not None
        self.unfit = None

    def stop_for(self, verdict: str) -> None:
        """This node cannot go on."""
        assert verdict
        self.verdict = verdict

    def become_prospective(self, now: Instant) -> None:
        assert self.has_a_say
        if self.verdict:
            self.become_leaderless(self.election_timeout(now), now)
            return
        if self.epoch >= EPOCH_MAX:
            self.become_leaderless(self.election_timeout(now), now)
            self.report_error(
                f"no election can begin: the metadata quorum has used up all epochs, up to {EPOCH_MAX}", now
            )
            return
        if not self.others:
            self.become_candidate(now)
            return
        role = Prospective(self.number(), tally(self.voters), outreach(self.others, now), self.election_timeout(now))
        role.tally.grant(self.me)
        self.become(role)

    def become_candidate(self, now: Instant) -> None:
        """Our own vote counts, like everybody's, once it is durable: see `Quorum.synced`."""
        assert self.has_a_say
        assert self.epoch < EPOCH_MAX
        self.promises.promise(ElectionState(self.epoch + 1, NOBODY, self.me))
        timeout = self.election_timeout(now)
        self.become(Candidate(self.number(), tally(self.voters), outreach(self.others, now), timeout))

    def lose_election(self, now: Instant) -> None:
        """Others did not want us, or did not answer in time: wait a little, at random, then ask again."""
        assert isinstance(self.role, Prospective | Candidate)
        self.lost_elections += 1
        self.become_leaderless(self.backoff(now), now)

    def become_leader(self, candidate: Candidate, now: Instant) -> None:
        assert self.role is candidate
        assert self.election.voted == self.me
        assert candidate.tally.is_won()
        self.promises.promise(ElectionState(self.epoch, self.me, self.me))
        self.hear_leader()
        role = Leader(
            me=self.me,
            voters=tuple(self.voters),
            epoch_start_offset=self.log.log_end_offset,
            granting=tuple(sorted(candidate.tally.granted)),
            check_quorum_ms=int(self.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR),
            since=now,
            begin=outreach(self.others, now),
            progress={voter: Progress(Uuid(bytes(16))) for voter in self.others},
            parked={},
        )
        self.become(role)
        # The first record of the epoch: only with it are records of earlier epochs committed.
        start = self.log.log_end_offset
        assert role.epoch_start_offset == start
        self.log.append_as_leader(messages.leader_change(self.me, role.voters, role.granting, start, self.epoch, now))

    def become_resigned(self, now: Instant, *, now_shutting_down: bool) -> None:
        assert isinstance(self.role, Leader)
        wait = self.election_timeout(now) if now_shutting_down else self.backoff(now)
        self.become(Resigned(outreach(self.others, now), self.role.successors(), wait))

    def election_timeout(self, now: Instant) -> Instant:
        span = self.config.election_timeout_ms
        return after(now, span + self.draw(0, span))

    def backoff(self, now: Instant) -> Instant:
        span = min(self.config.election_backoff_max_ms, 50 << min(self.lost_elections, 10))
        return after(now, 10 + self.draw(0, span))

    def can_reach(self, epoch: int, now: Instant) -> bool:
        """May a peer's message move us to this epoch?"""
        if epoch - self.epoch <= self.allowance.steps(now):  # guard: any-epoch-is-believed
            return True
        self.report_error(f"a peer's epoch {epoch} is refused: no voter can be so far ahead of {self.epoch}", now)
        return False

    def report_error(self, text: str, now: Instant) -> None:
        assert text
        if self.allowance.is_news(now):
            self.out.append(Report("error", text))

    def heard_of(self, epoch: int, leader: NodeId, now: Instant) -> bool:
        """An answer names an epoch and perhaps its leader. Is it newer than what we know, so that our question is
        moot?"""
        if epoch < self.epoch or not self.can_reach(epoch, now):
            return False
        is_leader_known = leader in self.voters and leader != self.me
        if epoch > self.epoch:
            if is_leader_known:
                self.become_follower(epoch, leader, now)
            else:
                self.enter_epoch(epoch, now)
            return True
        if is_leader_known and self.leader_id == NOBODY and not isinstance(self.role, Resigned):
            self.become_follower(epoch, leader, now)
            return True
        return False
