"""Who leads the metadata log, and how far is it committed? KRaft's Raft (KIP-595, KIP-996) as a pure machine.

This file has the machine's frame: which part handles an event, and what follows from it. What the node is, and every
transition between roles, is in `state.py`; `voting`, `leading` and `following` answer requests and handle answers.
"""

from collections.abc import Mapping, Sequence

from strandline.base.effects import (
    Answered,
    Disconnected,
    Effect,
    Endpoint,
    Event,
    Failed,
    Probed,
    Received,
    Synced,
)
from strandline.base.ids import NodeId, Uuid
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.quorum import describing, dispatch, following, invariants, leading, voting
from strandline.quorum.config import QuorumConfig
from strandline.quorum.damage import impaired
from strandline.quorum.damage import unfit as unfitness
from strandline.quorum.ports import RaftLog, Unfit
from strandline.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Observing,
    Prospective,
    Resigned,
    Seeking,
    Unattached,
    Voted,
    deadline_of,
)
from strandline.quorum.state import QuorumState
from strandline.quorum.storage import evidence
from strandline.quorum.storage.promises import Promises
from strandline.quorum.tokens import ElectionSaved, LogSynced, PartSynced
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumResponse


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
        voters = dict(sorted(voters.items()))
        is_voter, is_alone = me in voters, not [voter for voter in voters if voter != me]
        stored, found = evidence.read(log, me, tuple(voters), now)
        verdict = unfitness.begin(unfit, found, log, now, is_voter=is_voter, is_alone=is_alone)
        promises = Promises(stored, log.last_epoch)
        assert is_voter or not is_alone, "an observer has somebody to follow"
        self.me = me
        self.state = QuorumState(
            me, directory_id, cluster_id, voters, log, config, rng, now, promises, found, unfit, verdict
        )
        self.due = self.first_due()  # when something is to be done, as the last event left it

    # --- what the node calls

    def start(self, now: Instant) -> list[Effect]:
        state = self.state
        impaired.report(state, now)
        unfitness.report(state)
        if state.is_voter and not state.others:
            state.become_prospective(now)
        return self.drive(now)

    def step(self, event: Event, now: Instant) -> list[Effect]:
        state = self.state
        match event:
            case Received():
                dispatch.received(state, event, now)
            case Answered() | Failed():
                dispatch.answered(state, event, now)
            case Synced():
                self.synced(event, now)
            case Probed() | Disconnected():
                raise AssertionError(f"not for the quorum: {event}")
        return self.drive(now)

    def deadline(self) -> Instant:
        """A node asks after each of its events, and few of these concern the quorum: so the quorum knows the answer."""
        return self.due

    def first_due(self) -> Instant:
        state = self.state
        impairment = state.evidence.impairment
        due = deadline_of(state.role, may_fetch=state.durability.is_complete)
        return due if impairment is None else min(due, impairment.census.deadline())

    def expire(self, now: Instant) -> list[Effect]:
        state = self.state
        if now < self.due and state.evidence.impairment is None:  # another part of the node is due
            state.out += state.durability.sync()
            return self.let_out(now)
        match state.role:
            case Unattached() | Voted() if state.role.election_deadline <= now:
                state.become_prospective(now)
            case Prospective() | Candidate() if state.role.election_deadline <= now:
                state.lose_election(now)
            case Resigned() if state.role.election_deadline <= now:
                state.become_leaderless(state.backoff(now), now)
            case Follower() if state.role.fetch_deadline <= now:
                state.become_prospective(now)
            case Observing() if state.role.fetch_deadline <= now:
                state.become_leaderless(now, now)
            case Leader() if state.role.check_quorum_deadline() <= now:
                state.become_resigned(now, now_shutting_down=False)
            case Leader():
                leading.release_expired(state, state.role, now)
            case _:
                pass
        return self.drive(now)

    def append(self, records: Sequence[bytes], now: Instant) -> tuple[int, list[Effect]]:
        """Write `records` as one batch; returns the offset of the last. They are committed when the high watermark
        has passed it."""
        state = self.state
        assert isinstance(state.role, Leader), "only the leader appends"
        last = leading.append(state, state.role, records, now)
        assert last >= state.role.epoch_start_offset
        return last, self.drive(now)

    def resign(self, now: Instant) -> list[Effect]:
        """Give up leadership before a shutdown, so that the others need not wait for a timeout."""
        state = self.state
        match state.role:
            case Leader():
                state.become_resigned(now, now_shutting_down=True)
            case _:
                pass
        return self.drive(now)

    def close(self, now: Instant) -> list[Effect]:
        """Before a stop in order: save how far the log is committed here. Then `is_closed` holds."""
        state = self.state
        if state.is_voter:
            state.evidence.close()
        return self.drive(now)

    @property
    def is_closed(self) -> bool:
        return self.state.promises.saving is None and not self.state.evidence.is_wanted

    @property
    def leader_id(self) -> NodeId:
        return self.state.leader_id

    @property
    def leader_epoch(self) -> int:
        return self.state.epoch

    @property
    def is_leader(self) -> bool:
        return type(self.state.role) is Leader

    @property
    def epoch_start_offset(self) -> int:
        return self.state.epoch_start_offset

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    def describe(self, now: Instant) -> DescribeQuorumResponse:
        return describing.describe(self.state, now)

    def check(self) -> None:
        invariants.check(self.state)
        assert self.due == self.first_due(), "only events of its own change what is due"

    # --- events

    def synced(self, event: Synced, now: Instant) -> None:
        state = self.state
        match event.token:
            case ElectionSaved():
                state.promises.synced()
                state.evidence.synced()
                match state.role:
                    case Candidate() as role if state.promises.are_durable:
                        role.tally.grant(state.me)
                        voting.count(state, role, now)
                    case _:
                        pass
            case LogSynced():
                state.durability.synced()
            case PartSynced() as part:
                following.part_synced(state, part, now)
            case other:
                raise AssertionError(f"nothing of this name was synced: {other}")

    # --- consequences

    def drive(self, now: Instant) -> list[Effect]:
        """Do what has become due, then let out what is proven."""
        state = self.state
        state.out += state.durability.sync()
        impaired.drive(state, now)
        match state.role:
            case Leader():
                leading.drive(state, state.role, now)
            case Follower() | Observing() | Seeking():
                following.drive(state, state.role, now)
            case Prospective() | Candidate():
                voting.ask(state, state.role, now)
            case Resigned():
                voting.send_end(state, state.role, now)
            case Unattached() | Voted():
                pass
        return self.let_out(now)

    def let_out(self, now: Instant) -> list[Effect]:
        state = self.state
        out, state.out = state.out, []
        assert state.high_watermark <= state.log.log_end_offset
        effects = [*state.promises.release(out), *self.save(now)]
        self.due = self.first_due()
        return effects

    def save(self, now: Instant) -> list[Effect]:
        state = self.state
        known = state.evidence.now_known(state.high_watermark, state.durability.end)
        snapshot = state.log.latest_snapshot()
        is_due = state.is_voter and state.evidence.is_due(
            known, snapshot.end_offset if snapshot is not None else 0, now
        )
        if state.promises.saving is not None or not (state.promises.is_save_due or is_due):
            return []
        state.evidence.leaves(known, now)
        return [state.promises.save(state.log.quorum_state_path, state.cluster_id, state.voters, known)]
