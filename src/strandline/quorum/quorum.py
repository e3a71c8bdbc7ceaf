"""Who leads the metadata log, and how far is it committed? KRaft's Raft (KIP-595, KIP-996) as a pure machine.

This file has the machine's frame and *every* transition between roles, with its cause; `voting`, `leading` and
`following` answer requests and handle answers, and call the transitions.

Invariants (executed by `check`):
  - the epoch and the high watermark never fall; the epoch is not below the log's;
  - high_watermark <= log_end_offset, durable_end <= log_end_offset;
  - nothing leaves this node (Send, Reply) before the epoch and the vote that it rests on are durable;
  - a leader counts its own records, and a follower claims records by its next Fetch, only once they are synced;
  - at most one Save and one Sync are on their way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from strandline.base.effects import (
    Answered,
    Disconnected,
    Effect,
    Endpoint,
    Event,
    Failed,
    Failure,
    Probed,
    Received,
    Reply,
    Report,
    Save,
    Send,
    Sync,
    Synced,
)
from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.base.ports import Rng
from strandline.base.time import NEVER, Instant, after
from strandline.quorum import describing, dispatch, following, invariants, leading, voting
from strandline.quorum.config import QuorumConfig
from strandline.quorum.elections import outreach, tally
from strandline.quorum.epochs import EPOCH_MAX, Allowance, repaired
from strandline.quorum.messages import Leading
from strandline.quorum.ports import EpochEnd, RaftLog, Unfit
from strandline.quorum.roles import (
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
    deadline_of,
    leader_of,
)
from strandline.quorum.storage import impaired
from strandline.quorum.storage.election_state import ElectionState, encode_election
from strandline.quorum.storage.unfit import begin, report
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumResponse

FIRST_ELECTION_MS = (50, 300)  # after a start: a pre-vote disturbs nobody, so there is no need to wait longer
LOST_LEADER_MS = (0, 51)  # between the proof that the leader is gone and the pre-vote
STILL_LOST_MS = (50, 101)  # when others still believe in it, and for peers that refuse connections
CHECK_QUORUM_FACTOR = 1.5


class Quorum:
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
        unfit: Unfit | None = None,
    ) -> None:
        assert voters, "a quorum has voters"
        self.me = me
        self.directory_id = directory_id
        self.cluster_id = cluster_id
        self.voters = dict(sorted(voters.items()))
        self.others = tuple(voter for voter in self.voters if voter != me)
        self.log = log
        self.config = config
        self.rng = rng
        stored, self.evidence = impaired.read(log, me, tuple(self.voters), now)
        self.unfit = unfit  # what of the log cannot be applied, as long as it is there
        self.verdict = ""  # why this node cannot go on
        self.election = repaired(stored, log.last_epoch)
        self.allowance = Allowance(now)
        snapshot = log.latest_snapshot()
        self.high_watermark = snapshot.end_offset if snapshot else 0
        self.durable_end = log.log_end_offset  # what was found on disk at start is durable
        self.syncing: int | None = None  # the Sync on its way, and where the log ended when it left
        self.promises = 0  # counts changes of epoch or vote
        self.promises_durable = 0
        self.saving: tuple[int, ElectionState, int] | None = None  # the Save on its way, with the evidence
        self.saved = stored
        self.held: list[tuple[int, Effect]] = []  # what must wait for promises to be durable
        self.out: list[Effect] = []
        self.count = 0  # numbers rounds of voting and requests
        self.lost_elections = 0  # since a leader was last heard
        self.refusals = 0  # proofs, since a leader was last heard, that it is gone
        begin(self, now)
        self.role: Role = self.leaderless(Instant(now + self.draw(*FIRST_ELECTION_MS)), now)

    # --- what the node calls

    def start(self, now: Instant) -> list[Effect]:
        impaired.report(self, now)
        report(self)
        if self.is_voter and not self.others:
            self.become_prospective(now)
        return self.settle(now)

    def step(self, event: Event, now: Instant) -> list[Effect]:
        match event:
            case Received():
                dispatch.received(self, event, now)
            case Answered() | Failed():
                dispatch.answered(self, event, now)
            case Synced():
                self.synced(event, now)
            case Probed() | Disconnected():
                raise AssertionError(f"not for the quorum: {event}")
        return self.settle(now)

    def deadline(self) -> Instant:
        impairment = self.evidence.impairment
        census = NEVER if impairment is None else impairment.census.deadline()
        return min(deadline_of(self.role, may_fetch=self.is_log_durable), census)

    def expire(self, now: Instant) -> list[Effect]:
        match self.role:
            case Unattached() | Voted() if self.role.election_deadline <= now:
                self.become_prospective(now)
            case Prospective() | Candidate() if self.role.election_deadline <= now:
                self.lose_election(now)
            case Resigned() if self.role.election_deadline <= now:
                self.become_leaderless(self.backoff(now), now)
            case Follower() if self.role.fetch_deadline <= now:
                self.become_prospective(now)
            case Observing() if self.role.fetch_deadline <= now:
                self.become_leaderless(now, now)
            case Leader() if self.role.check_quorum_deadline() <= now:
                self.become_resigned(now, now_shutting_down=False)
            case Leader():
                leading.release_expired(self, self.role, now)
            case _:
                pass
        return self.settle(now)

    def append(self, records: Sequence[bytes], now: Instant) -> tuple[int, list[Effect]]:
        """Write `records` as one batch; returns the offset of the last. They are committed when the high watermark
        has passed it."""
        assert isinstance(self.role, Leader), "only the leader appends"
        last = leading.append(self, self.role, records, now)
        return last, self.settle(now)

    def resign(self, now: Instant) -> list[Effect]:
        """Give up leadership before a shutdown, so that the others need not wait for a timeout."""
        match self.role:
            case Leader():
                self.become_resigned(now, now_shutting_down=True)
            case _:
                pass
        return self.settle(now)

    def close(self, now: Instant) -> list[Effect]:
        """Before a stop in order: save how far the log is committed here. Then `is_closed` holds."""
        if self.is_voter:
            self.evidence.close()
        return self.settle(now)

    @property
    def is_closed(self) -> bool:
        return self.saving is None and not self.evidence.is_wanted

    @property
    def leader_id(self) -> NodeId:
        leader = leader_of(self.role, self.me)
        return NOBODY if leader is None else leader

    @property
    def leader_epoch(self) -> int:
        return self.election.epoch

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def epoch_start_offset(self) -> int:
        """Where my leadership starts in the log."""
        assert isinstance(self.role, Leader)
        return self.role.epoch_start_offset

    def describe(self, now: Instant) -> DescribeQuorumResponse:
        return describing.describe(self, now)

    def check(self) -> None:
        invariants.check(self)

    # --- what the parts of the machine share

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def has_a_say(self) -> bool:
        """May it vote, and stand? Else it acts as an observer."""
        return self.is_voter and self.evidence.impairment is None

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def is_log_durable(self) -> bool:
        return self.syncing is None and self.durable_end == self.log.log_end_offset

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
        return self.rng.randrange(start, max(stop, start + 1))

    def number(self) -> int:
        self.count += 1
        return self.count

    def reply(self, received: Received, message: Any) -> None:
        self.out.append(Reply(received.to, message))

    def send(self, peer: NodeId, message: Any, version: int, *token: Any, channel: str = "raft") -> None:
        timeout_ms = self.config.request_timeout_ms
        self.out.append(Send(self.voters[peer], channel, message, version, timeout_ms, ("quorum", *token)))

    def retry_at(self, why: Failure, now: Instant) -> Instant:
        """When to ask a peer again that did not answer. Nobody is hammered: a new cluster's nodes start one by one."""
        match why:
            case Failure.TIMED_OUT:
                return now
            case Failure.REFUSED | Failure.CLOSED | Failure.MALFORMED:
                return after(now, self.draw(*STILL_LOST_MS))

    # --- transitions

    def become(self, role: Role) -> None:
        match self.role:
            case Leader():
                former, self.role = self.role, role
                leading.release_all(self, former)
            case _:
                self.role = role

    def promise(self, election: ElectionState) -> None:
        """Change what must not be forgotten. A changed epoch or vote must be durable before anyone hears of it."""
        old, self.election = self.election, election
        assert election.epoch >= old.epoch
        if election.epoch != old.epoch or election.voted != old.voted:
            self.promises += 1

    def leaderless(self, election_deadline: Instant, now: Instant) -> Role:
        """The role of a node that knows no living leader of its epoch."""
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
        self.promise(ElectionState(epoch))
        self.become_leaderless(self.election_timeout(now), now)

    def give_vote(self, candidate: NodeId, now: Instant) -> None:
        assert self.election.voted in (NOBODY, candidate)
        self.promise(ElectionState(self.epoch, self.election.leader, candidate))
        self.become(Voted(candidate, self.election_timeout(now)))

    def become_follower(self, epoch: int, leader: NodeId, now: Instant) -> None:
        """A leader of our epoch, or of a later one, is known."""
        assert epoch >= self.epoch
        assert leader != self.me
        self.allowance.take(epoch - self.epoch, now)
        voted = self.election.voted if epoch == self.epoch else NOBODY
        self.promise(ElectionState(epoch, leader, voted))
        fetch_deadline = after(now, self.config.fetch_timeout_ms)
        if self.has_a_say:
            self.become(Follower(leader, Fetching(now), fetch_deadline))
        else:
            self.become(Observing(leader, Fetching(now), fetch_deadline))

    def become_whole(self, role: Observing) -> None:
        """An impaired voter has what is committed."""
        self.become(Follower(role.leader, role.fetching, role.fetch_deadline, has_fetched=True))

    def lose_leader(self, now: Instant) -> None:
        """There is proof that the leader of this epoch leads no more: its process is gone, or it says so itself.
        Then there is no need to wait for the fetch timeout, and others may have our pre-vote."""
        self.refusals += 1
        span = LOST_LEADER_MS if self.refusals == 1 else STILL_LOST_MS
        self.become_leaderless(after(now, self.draw(*span)), now)

    def succeed(self, rank: int, now: Instant) -> None:
        """The leader resigned and would like us to follow it; the first in its list begins at once."""
        self.become_leaderless(after(now, rank * LOST_LEADER_MS[1] + self.draw(0, 10 if rank else 1)), now)

    def become_prospective(self, now: Instant) -> None:
        if self.verdict:
            self.become_leaderless(self.election_timeout(now), now)
            return
        if self.epoch >= EPOCH_MAX:
            self.become_leaderless(self.election_timeout(now), now)
            self.tell(f"no election can begin: the metadata quorum has used up all epochs, up to {EPOCH_MAX}", now)
            return
        if not self.others:
            self.become_candidate(now)
            return
        role = Prospective(self.number(), tally(self.voters), outreach(self.others, now), self.election_timeout(now))
        role.tally.grant(self.me)
        self.become(role)

    def become_candidate(self, now: Instant) -> None:
        """Our own vote counts, like everybody's, once it is durable: see `synced`."""
        assert self.epoch < EPOCH_MAX
        self.promise(ElectionState(self.epoch + 1, NOBODY, self.me))
        timeout = self.election_timeout(now)
        self.become(Candidate(self.number(), tally(self.voters), outreach(self.others, now), timeout))

    def lose_election(self, now: Instant) -> None:
        """Others did not want us, or did not answer in time: wait a little, at random, then ask again."""
        self.lost_elections += 1
        self.become_leaderless(self.backoff(now), now)

    def become_leader(self, candidate: Candidate, now: Instant) -> None:
        assert candidate.tally.is_won()
        self.promise(ElectionState(self.epoch, self.me, self.me))
        self.lost_elections = self.refusals = 0
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
        leading.append_leader_change(self, role, now)

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
        if epoch - self.epoch <= self.allowance.steps(now):
            return True
        self.tell(f"a peer's epoch {epoch} is refused: no voter can be so far ahead of {self.epoch}", now)
        return False

    def tell(self, text: str, now: Instant) -> None:
        if self.allowance.is_news(now):
            self.out.append(Report("error", text))

    def heard_of(self, epoch: int, leader: NodeId, now: Instant) -> bool:
        """An answer told of an epoch and perhaps its leader. Is it newer than what we know, so that our question is
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

    # --- events

    def synced(self, event: Synced, now: Instant) -> None:
        match event.token[1]:
            case "election":
                assert self.saving is not None
                self.promises_durable, self.saved, self.evidence.saved = self.saving
                self.saving = None
                match self.role:
                    case Candidate() if self.promises_durable == self.promises:
                        self.role.tally.grant(self.me)
                        voting.count(self, self.role, now)
                    case _:
                        pass
            case "log":
                assert self.syncing is not None
                self.log.mark_synced(self.syncing)
                self.durable_end, self.syncing = min(self.syncing, self.log.log_end_offset), None
            case "part":
                following.part_synced(self, event, now)
            case other:
                raise AssertionError(f"nothing of this name was synced: {other}")

    # --- consequences

    def settle(self, now: Instant) -> list[Effect]:
        """Do what has become due, then let out what is proven."""
        self.sync_log()
        impaired.drive(self, now)
        match self.role:
            case Leader():
                leading.drive(self, self.role, now)
            case Follower() | Observing() | Seeking():
                following.drive(self, self.role, now)
            case Prospective() | Candidate():
                voting.ask(self, self.role, now)
            case Resigned():
                voting.tell_end(self, self.role, now)
            case Unattached() | Voted():
                pass
        return self.release(now)

    def sync_log(self) -> None:
        if self.syncing is not None:
            return
        paths = self.log.take_unsynced()
        if paths:
            self.syncing = self.log.log_end_offset
            self.out.append(Sync(paths, ("quorum", "log")))

    def release(self, now: Instant) -> list[Effect]:
        out, self.out = self.out, []
        effects: list[Effect] = []
        while self.held and self.held[0][0] <= self.promises_durable:
            effects.append(self.held.pop(0)[1])
        for effect in out:
            match effect:
                case Send() | Reply() if self.promises > self.promises_durable:
                    self.held.append((self.promises, effect))
                case _:
                    effects.append(effect)
        effects += self.save(now)
        return effects

    def save(self, now: Instant) -> list[Effect]:
        known = self.evidence.now_known(self.high_watermark, self.durable_end)
        snapshot = self.log.latest_snapshot()
        is_due = self.is_voter and self.evidence.is_due(known, snapshot.end_offset if snapshot is not None else 0, now)
        is_promise = self.election != self.saved or self.promises > self.promises_durable
        if self.saving is not None or not (is_promise or is_due):
            return []
        self.saving = (self.promises, self.election, known)
        self.evidence.leaves(now)
        content = encode_election(self.election, self.cluster_id, self.voters, known)
        # Nobody saves this file in a step: none of its saves is ever outdated, and so none says since when it counts.
        return [Save(self.log.quorum_state_path, content, ("quorum", "election"))]
