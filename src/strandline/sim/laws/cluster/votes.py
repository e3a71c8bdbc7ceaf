"""The quorum's promises, as others see them.

- nobody is in an epoch that no voter began, whatever strangers say
- one voter gives one candidate its vote in an epoch, whatever happens to its process or its power between
- what the leader calls committed is durable on a majority of the voters, or was on one whose files were damaged, and
  which does not vote until it has that again
- who is elected has all that is committed, and calls no more of it committed before a record of its own epoch is
- what a follower appends is what its leader has there, and follows the same record
- who follows a leader that has answered it grants no pre-vote, nor does a leader (KIP-996)
- who has metadata that it cannot apply neither stands for election nor leads
"""

from typing import Any

from strandline.base.effects import Answered, Received, Reply
from strandline.base.ids import NOBODY
from strandline.broker.node import Node
from strandline.quorum.elections.election_state import SHORT, VOTES_LOST
from strandline.quorum.quorum import Quorum
from strandline.quorum.roles import Candidate, Follower, Leader, Prospective
from strandline.quorum.tokens import FetchSent
from strandline.sim.laws.logs.logs import content
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.quorum.vote import VoteRequest, VoteResponse
from strandline.wire.messages.records.fetch import FetchResponse

Ballot = tuple[int, int]  # epoch, candidate


class Votes:
    HEARS = ((Received, VoteRequest), (Answered, FetchResponse))
    ANSWERS = (VoteResponse,)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.asked: dict[tuple[str, int, int], Ballot] = {}  # by machine, connection and sequence; not pre-votes
        self.pre_votes: set[tuple[str, int, int]] = set()  # likewise, what was asked before that
        self.heard: dict[str, Ballot] = {}  # the epoch and the leader that a follower was answered by
        self.given: dict[tuple[str, int], int] = {}  # by voter and epoch
        self.began: dict[tuple[str, int], int] = {}  # the high watermark with which a leader began its epoch
        self.begun = {0}  # epochs in which somebody was a candidate
        self.ends: dict[str, int] = {}  # of the metadata logs
        self.had: dict[str, int] = {}  # what was durable on a voter before its files were damaged, until it is whole

    def received(self, machine: Machine, event: Any) -> None:
        if type(event) is Received:
            row = event.message.topics[0].partitions[0] if event.message.topics else None
            which = (machine.name, event.to.connection, event.to.sequence)
            if row is not None and row.pre_vote:
                self.pre_votes.add(which)
            elif row is not None:
                self.asked[which] = (row.replica_epoch, row.replica_id)
        elif type(event.token) is FetchSent:
            self.hears(machine, event)

    def hears(self, machine: Machine, event: Answered) -> None:
        """An answer that a follower waits for, from its leader: nobody else need lead."""
        node = machine.node
        role = None if node is None else node.quorum.state.role
        if node is None or type(role) is not Follower or role.fetching.request != event.token.number:
            return
        mine = (node.quorum.leader_epoch, role.leader)
        for row in (row for topic in event.message.responses for row in topic.partitions):
            theirs = (row.current_leader.leader_epoch, row.current_leader.leader_id)
            if not event.message.error_code and not row.error_code and theirs == mine:
                self.heard[machine.name] = mine

    def replies(self, machine: Machine, reply: Reply) -> None:
        if type(reply.message) is not VoteResponse:
            return
        which = (machine.name, reply.to.connection, reply.to.sequence)
        ballot, is_pre_vote = self.asked.pop(which, None), which in self.pre_votes
        self.pre_votes.discard(which)
        is_granted = reply.message.topics and reply.message.topics[0].partitions[0].vote_granted
        if is_granted and ballot is not None:
            self.gives(machine.name, *ballot)
        if is_granted and is_pre_vote and machine.node is not None:
            quorum = machine.node.quorum
            follows = (quorum.leader_epoch, quorum.leader_id)
            assert not quorum.is_leader and (quorum.leader_id == NOBODY or self.heard.get(machine.name) != follows), (
                f"{machine.name} grants a pre-vote, and hears from {follows[1]}, which leads in epoch {follows[0]}"
            )

    def gives(self, voter: str, epoch: int, candidate: int) -> None:
        first = self.given.setdefault((voter, epoch), candidate)
        assert first == candidate, f"{voter} votes for {candidate} in epoch {epoch}, and has voted for {first}"

    def forget(self, machine: Machine) -> None:
        self.heard.pop(machine.name, None)

    def damaged(self, machine: Machine) -> None:
        """Its metadata was. What it had counts until it is whole: nobody is elected with its vote before."""
        self.had[machine.name] = machine.metadata_durable

    def durable(self, machine: Machine) -> int:
        return max(machine.metadata_durable, self.had.get(machine.name, 0))

    def look(self, machine: Machine, node: Node) -> None:
        state, name = node.quorum.state, machine.name
        role, epoch, end = state.role, state.promises.election.epoch, node.metadata_log.log.log_end_offset
        if machine.metadata_durable > end:
            machine.metadata_durable = end
        if epoch not in self.begun:
            assert isinstance(role, Candidate | Leader), f"{machine.name} is in epoch {epoch}, which no voter has begun"
            self.begun.add(epoch)
        if name in self.heard and self.heard[name][1] != state.leader_id:
            del self.heard[name]
        assert state.unfit is None or not isinstance(role, Prospective | Candidate | Leader), (
            f"{machine.name} stands for election, and cannot apply its metadata: {state.unfit}"
        )
        if self.had and name in self.had and has_a_say_for_good(node.quorum):
            del self.had[name]
        if self.ends.get(name) != end:
            self.copies(machine, node, end)
        if type(role) is Leader:
            self.leads(machine, node, role)
            self.is_durable(machine, node)

    def is_durable(self, machine: Machine, node: Node) -> None:
        machines, high_watermark = self.world.machines, node.quorum.state.high_watermark
        lacking = 0
        for voter in node.voters:
            other = machines[voter]
            if other.metadata_durable < high_watermark and self.durable(other) < high_watermark:
                lacking += 1
        assert len(node.voters) - lacking > len(node.voters) // 2, (
            f"{machine.name} calls metadata up to {high_watermark} committed, and a majority has less on its disks:"
            f" {[self.durable(machines[voter]) for voter in node.voters]}"
        )

    def leads(self, machine: Machine, node: Node, role: Leader) -> None:
        quorum, state = node.quorum, node.quorum.state
        term = (machine.name, state.promises.election.epoch)
        began = self.began.get(term)
        if began is None:
            began = self.began[term] = quorum.high_watermark
            self.gives(machine.name, quorum.leader_epoch, machine.node_id)
            metadata = self.world.committed
            end, committed = node.metadata_log.log_end_offset, metadata.end
            is_latest = quorum.leader_epoch >= max(metadata.leaders, default=0)  # else its votes came late
            assert end >= committed or not is_latest, (
                f"{machine.name} was elected in epoch {quorum.leader_epoch} with metadata up to {end}, and {committed}"
                f" are committed"
            )
        assert state.high_watermark == began or state.high_watermark > role.epoch_start_offset, (
            f"{machine.name} calls metadata up to {quorum.high_watermark} committed, and its own epoch begins at"
            f" {quorum.epoch_start_offset}"
        )

    def copies(self, machine: Machine, node: Node, end: int) -> None:
        """What a follower has just appended, and the record before it."""
        log, quorum = node.metadata_log.log, node.quorum
        before = self.ends.get(machine.name, end)
        self.ends[machine.name] = end
        leader = self.world.machines.get(quorum.leader_id)
        if end <= before or quorum.is_leader or leader is None or leader.node is None:
            return
        other = leader.node
        start = max(before - 1, log.log_start_offset, other.metadata_log.log.log_start_offset)
        if not other.quorum.is_leader or other.quorum.leader_epoch != quorum.leader_epoch or start >= end:
            return
        with leader.disk.observed():
            ours, theirs = content(log, start, end), content(other.metadata_log.log, start, end)
        assert ours == theirs, (
            f"the metadata of {machine.name} between {start} and {end} is not that of its leader {leader.name}"
        )


def has_a_say_for_good(quorum: Quorum) -> bool:
    """Does it vote, and will it if it stops now?"""
    return quorum.state.has_a_say and quorum.state.evidence.saved not in (SHORT, VOTES_LOST)
