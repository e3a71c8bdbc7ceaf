"""The quorum's promises, as others see them.

- one voter gives one candidate its vote in an epoch, whatever happens to its process or its power between
- what the leader calls committed is durable on a majority of the voters
"""

from typing import TYPE_CHECKING, Any

from strandline.base.effects import Received, Reply
from strandline.broker.node import Node
from strandline.wire.messages.vote import VoteRequest, VoteResponse

if TYPE_CHECKING:
    from strandline.sim.machine import Machine
    from strandline.sim.world import World

Ballot = tuple[int, int]  # epoch, candidate


class Votes:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.asked: dict[tuple[str, int, int], Ballot] = {}  # by machine, connection and sequence; not pre-votes
        self.given: dict[tuple[str, int], int] = {}  # by voter and epoch

    def received(self, machine: "Machine", event: Any) -> None:
        if isinstance(event, Received) and type(event.message) is VoteRequest:
            row = event.message.topics[0].partitions[0] if event.message.topics else None
            if row is not None and not row.pre_vote:
                self.asked[machine.name, event.to.connection, event.to.sequence] = (row.replica_epoch, row.replica_id)

    def replies(self, machine: "Machine", reply: Reply) -> None:
        if type(reply.message) is not VoteResponse:
            return
        ballot = self.asked.pop((machine.name, reply.to.connection, reply.to.sequence), None)
        if ballot is not None and reply.message.topics and reply.message.topics[0].partitions[0].vote_granted:
            self.gives(machine.name, *ballot)

    def gives(self, voter: str, epoch: int, candidate: int) -> None:
        first = self.given.setdefault((voter, epoch), candidate)
        assert first == candidate, f"{voter} votes for {candidate} in epoch {epoch}, and has voted for {first}"

    def look(self, machine: "Machine", node: Node) -> None:
        quorum = node.quorum
        machine.metadata_durable = min(machine.metadata_durable, node.metadata_log.log_end_offset)
        if not quorum.is_leader:
            return
        self.gives(machine.name, quorum.leader_epoch, machine.node_id)
        durable = sorted((self.world.machines[voter].metadata_durable for voter in node.voters), reverse=True)
        majority = durable[len(durable) // 2]
        assert quorum.high_watermark <= majority, (
            f"{machine.name} calls metadata up to {quorum.high_watermark} committed, and a majority has {majority} on"
            f" its disks: {durable}"
        )
