"""Votes, pre-votes, and the beginnings and ends of epochs: what is answered, and what an answer changes.

Invariants:
  - a vote is given at most once in an epoch; a node that hears from a leader grants no pre-vote;
  - a pre-vote changes nobody's epoch (KIP-996), and a request that is refused changes nothing at all.
"""

from typing import Any

from strandline.base.effects import Answered, Failed, Failure, Received
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import Instant, after
from strandline.quorum import messages
from strandline.quorum.roles import Candidate, Follower, Leader, Prospective, Resigned, why_not_pre_vote, why_not_vote
from strandline.quorum.state import QuorumState
from strandline.quorum.tokens import BeginSent, EndSent, VoteSent

CHANNEL = "raft-election"  # a connection of its own: answers come in order, and a Fetch may be parked for long


def why_request_refused(quorum: QuorumState, request: Any) -> ErrorCode | None:
    """What makes a request between voters wrong as a whole. A voter of ours always names the cluster."""
    if request.cluster_id != quorum.cluster_id:  # guard: other-clusters-voters-count
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if messages.only_partition(request.topics) is None:
        return ErrorCode.INVALID_REQUEST
    return None


def why_sender_refused(
    quorum: QuorumState, *, addressee: int, sender: int, epoch: int, now: Instant
) -> ErrorCode | None:
    if addressee not in (-1, quorum.me):
        return ErrorCode.INVALID_VOTER_KEY
    if not quorum.is_voter or sender not in quorum.others:
        return ErrorCode.INCONSISTENT_VOTER_SET
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return None if quorum.can_reach(epoch, now) else ErrorCode.INVALID_REQUEST


# --- Vote


def vote(quorum: QuorumState, received: Received, now: Instant) -> None:
    request = received.message
    refused = why_request_refused(quorum, request)
    if refused is not None:
        quorum.reply(received, messages.vote_refused(refused))
        return
    asked: Any = messages.only_partition(request.topics)
    refused = why_sender_refused(
        quorum, addressee=request.voter_id, sender=asked.replica_id, epoch=asked.replica_epoch, now=now
    ) or why_vote_malformed(asked)
    if refused is not None:
        quorum.reply(received, messages.vote_response(refused, quorum.leading, granted=False))
        return
    if asked.replica_epoch > quorum.epoch and not asked.pre_vote:
        quorum.enter_epoch(asked.replica_epoch, now)
    if asked.replica_id == quorum.leader_id:
        quorum.lose_leader(now)  # who asks for votes in its own epoch leads it no more: it was restarted
    granted = pre_vote(quorum, asked) if asked.pre_vote else grant_vote(quorum, asked, now)
    quorum.reply(received, messages.vote_response(ErrorCode.NONE, quorum.leading, granted))


def why_vote_malformed(asked: Any) -> ErrorCode | None:
    newest = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if asked.last_offset < 0 or asked.last_offset_epoch < 0 or asked.last_offset_epoch > newest:
        return ErrorCode.INVALID_REQUEST
    return None


def is_up_to_date(quorum: QuorumState, asked: Any) -> bool:
    mine = quorum.log_end
    # guard: log-is-up-to-date
    return bool((asked.last_offset_epoch, asked.last_offset) >= (mine.epoch, mine.end_offset))


def pre_vote(quorum: QuorumState, asked: Any) -> bool:
    assert asked.replica_epoch >= quorum.epoch, "else it was refused"
    return why_not_pre_vote(quorum.role, is_up_to_date=is_up_to_date(quorum, asked)) is None


def grant_vote(quorum: QuorumState, asked: Any, now: Instant) -> bool:
    assert asked.replica_epoch == quorum.epoch, "else it was refused, or entered"
    why = why_not_vote(
        quorum.role,
        candidate=asked.replica_id,
        voted=quorum.election.voted,
        has_leader=quorum.election.leader != NOBODY,
        is_up_to_date=is_up_to_date(quorum, asked),
    )
    if why is None:
        quorum.give_vote(NodeId(asked.replica_id), now)
    return why is None


def ask(quorum: QuorumState, role: Prospective | Candidate, now: Instant) -> None:
    """Ask whoever is due."""
    assert role is quorum.role
    is_pre_vote = isinstance(role, Prospective)
    for voter in role.outreach.take(now):
        request = messages.vote_request(
            cluster_id=quorum.cluster_id,
            voter=voter,
            me=quorum.me,
            directory_id=quorum.directory_id,
            epoch=quorum.epoch,
            last=quorum.log_end,
            pre_vote=is_pre_vote,
        )
        quorum.send(voter, request, messages.VOTE, VoteSent(voter, role.round), channel=CHANNEL)


def vote_answered(quorum: QuorumState, event: Answered | Failed, now: Instant) -> None:
    asked: VoteSent = event.token
    voter, number = asked.voter, asked.round
    match event, quorum.role:
        case Failed(), (Prospective() | Candidate()) as role if role.round == number:
            role.outreach.again(voter, quorum.retry_at(event.why, now))
            if event.why is Failure.REFUSED and voter not in role.tally.absent:
                role.tally.absent.append(voter)
                count(quorum, role, now)
        case Answered(), _:
            vote_counted(quorum, voter, number, event.message, now)
        case _:
            pass


def vote_counted(quorum: QuorumState, voter: NodeId, number: int, response: Any, now: Instant) -> None:
    assert voter in quorum.others
    answer = messages.only_partition(response.topics)
    is_granted = False
    if answer is not None:
        is_granted = answer.error_code == ErrorCode.NONE and answer.vote_granted
        # A grant counts even if it names a leader: two followers that doubt the same leader would else send each other
        # back to it forever.
        is_evidence = not is_granted or answer.leader_epoch > quorum.epoch
        if is_evidence and quorum.heard_of(answer.leader_epoch, NodeId(answer.leader_id), now):
            return
    match quorum.role:
        case (Prospective() | Candidate()) as role if role.round == number:
            role.outreach.done(voter)
            if voter in role.tally.absent:
                role.tally.absent.remove(voter)
            if is_granted:
                role.tally.grant(voter)
            else:
                role.tally.reject(voter)
            count(quorum, role, now)
        case _:
            pass


def count(quorum: QuorumState, role: Prospective | Candidate, now: Instant) -> None:
    assert role is quorum.role
    if role.tally.is_lost():
        quorum.lose_election(now)
    elif role.tally.is_won():
        match role:
            case Prospective():
                quorum.become_candidate(now)
            case Candidate():
                quorum.become_leader(role, now)
    elif isinstance(role, Candidate) and role.tally.is_hopeless():
        quorum.lose_election(now)  # a pre-vote may wait for voters to come up; an epoch should not


# --- BeginQuorumEpoch


def begin_epoch(quorum: QuorumState, received: Received, now: Instant) -> None:
    request = received.message
    refused = why_request_refused(quorum, request)
    if refused is not None:
        quorum.reply(received, messages.begin_refused(refused))
        return
    begun: Any = messages.only_partition(request.topics)
    leader, epoch = NodeId(begun.leader_id), begun.leader_epoch
    refused = why_sender_refused(quorum, addressee=request.voter_id, sender=leader, epoch=epoch, now=now)
    if refused is None and epoch == quorum.epoch and quorum.election.leader not in (NOBODY, leader):
        refused = ErrorCode.INVALID_REQUEST  # an epoch has one leader
    if refused is None and (epoch > quorum.epoch or quorum.leader_id == NOBODY):
        quorum.become_follower(epoch, leader, now)
    assert refused is not None or (quorum.epoch, quorum.leader_id) == (epoch, leader)
    quorum.reply(received, messages.begin_response(refused or ErrorCode.NONE, quorum.leading))


def send_begin(quorum: QuorumState, role: Leader, now: Instant) -> None:
    assert role is quorum.role
    for voter in role.begin.take(now):
        request = messages.begin_request(
            cluster_id=quorum.cluster_id,
            voter=voter,
            me=quorum.me,
            epoch=quorum.epoch,
            endpoint=quorum.voters[quorum.me],
        )
        quorum.send(voter, request, messages.BEGIN, BeginSent(voter, quorum.epoch), channel=CHANNEL)


def begin_answered(quorum: QuorumState, event: Answered | Failed, now: Instant) -> None:
    sent: BeginSent = event.token
    voter, epoch = sent.voter, sent.epoch
    match event, quorum.role:
        case Failed(), Leader() as role if epoch == quorum.epoch:
            role.begin.again(voter, quorum.retry_at(event.why, now))
        case Answered(), Leader() as role if epoch == quorum.epoch:
            answer = messages.only_partition(event.message.topics)
            if answer is None or not quorum.heard_of(answer.leader_epoch, NodeId(answer.leader_id), now):
                # Sent again when it has not fetched for a while: it may have been restarted.
                role.begin.again(voter, after(now, quorum.config.fetch_timeout_ms // 2))
        case _:
            pass


# --- EndQuorumEpoch


def end_epoch(quorum: QuorumState, received: Received, now: Instant) -> None:
    request = received.message
    refused = why_request_refused(quorum, request)
    if refused is not None:
        quorum.reply(received, messages.end_refused(refused))
        return
    ended: Any = messages.only_partition(request.topics)
    leader, epoch = NodeId(ended.leader_id), ended.leader_epoch
    refused = why_sender_refused(quorum, addressee=-1, sender=leader, epoch=epoch, now=now)
    if refused is None:
        if epoch > quorum.epoch:
            quorum.enter_epoch(epoch, now)
        match quorum.role:
            case Follower() if quorum.role.leader == leader:
                quorum.succeed(rank_of(quorum.me, ended), now)
            case _ if quorum.leader_id == NOBODY and not isinstance(quorum.role, Prospective | Candidate | Resigned):
                quorum.succeed(rank_of(quorum.me, ended), now)
            case _:
                pass
    quorum.reply(received, messages.end_response(refused or ErrorCode.NONE, quorum.leading))


def rank_of(me: NodeId, ended: Any) -> int:
    order = [candidate.candidate_id for candidate in ended.preferred_candidates] or list(ended.preferred_successors)
    rank = order.index(me) if me in order else len(order)
    assert 0 <= rank <= len(order)
    return rank


def send_end(quorum: QuorumState, role: Resigned, now: Instant) -> None:
    assert role is quorum.role
    for voter in role.outreach.take(now):
        request = messages.end_request(
            cluster_id=quorum.cluster_id,
            me=quorum.me,
            epoch=quorum.epoch,
            successors=role.successors,
            endpoint=quorum.voters[quorum.me],
        )
        quorum.send(voter, request, messages.END, EndSent(voter, quorum.epoch), channel=CHANNEL)


def end_answered(quorum: QuorumState, event: Answered | Failed, now: Instant) -> None:
    sent: EndSent = event.token
    voter, epoch = sent.voter, sent.epoch
    match event, quorum.role:
        case Failed(), Resigned() as role if epoch == quorum.epoch:
            role.outreach.again(voter, quorum.retry_at(event.why, now))
        case Answered(), Resigned() as role if epoch == quorum.epoch:
            role.outreach.done(voter)
            answer = messages.only_partition(event.message.topics)
            if answer is not None:
                quorum.heard_of(answer.leader_epoch, NodeId(answer.leader_id), now)
        case _:
            pass
