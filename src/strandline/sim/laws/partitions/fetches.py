"""Fetches, their answers, and the replicas that a leader proposes because of them (KIP-903).

- every Fetch of a follower bears the broker epoch of a registration of this process, once its own metadata has one
- who is to enter an ISR is active in the leader's metadata, and is proposed as the incarnation that is registered there
- each member of a proposed ISR is named as an incarnation that has fetched from this leader, or as none; and the leader
  as the one that proposes
- no incarnation is served that the leader's metadata has replaced
- no answer names a last stable offset above its high watermark
"""

from types import NoneType
from typing import Any

from strandline.base.effects import Received, Reply, Send
from strandline.base.ids import NodeId
from strandline.broker.node import Node
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.isr import Pending
from strandline.replica.tokens import ReplicaToken
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.records.fetch import FetchRequest, FetchResponse

Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence
NAMELESS = -1  # before a broker knows that it is registered


class Fetches:
    HEARS = ((Received, FetchRequest),)
    ANSWERS = (FetchResponse, NoneType)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.heard: dict[tuple[str, int, int], dict[int, None]] = {}  # by machine, its life and follower: broker epochs
        self.registered: dict[tuple[str, int], int] = {}  # by machine and its life: the first broker epoch
        self.asked: dict[Asked, tuple[int, int]] = {}  # by followers, with the broker epoch of each

    def sends(self, machine: Machine, effect: Send) -> None:
        """What replicas ask. (A voter fetches metadata before it is registered.)"""
        assert isinstance(effect.token, ReplicaToken)
        if machine.node is None or machine.node.broker is None:
            return
        if type(effect.message) is AlterPartitionRequest:
            self.names_itself(machine, effect.message)
        if type(effect.message) is not FetchRequest:
            return
        said = effect.message.replica_state
        known = machine.node.image.brokers.get(machine.node_id)
        if said.replica_id != machine.node_id or known is None:
            return  # a repair asks as consumers do
        lifecycle = machine.node.broker.lifecycle
        if known.incarnation_id == lifecycle.identity.incarnation_id:
            # Who was unregistered registers again, and may hear of that from its metadata first.
            first = self.registered.get((machine.name, machine.life), NAMELESS)
            if first == NAMELESS:
                first = min(epoch for epoch in (known.epoch, lifecycle.last_epoch) if epoch != NAMELESS)
                self.registered[machine.name, machine.life] = first
            assert said.replica_epoch >= first, (
                f"{machine.name} fetches as broker epoch {said.replica_epoch}, and is registered in {known.epoch}"
            )

    def received(self, machine: Machine, event: Any) -> None:
        said = event.message.replica_state
        if said.replica_id >= 0:
            self.heard.setdefault((machine.name, machine.life, said.replica_id), {})[said.replica_epoch] = None
            which = (machine.name, machine.life, event.to.connection, event.to.sequence)
            self.asked[which] = (said.replica_id, said.replica_epoch)

    def replies(self, machine: Machine, reply: Reply) -> None:
        asked = self.asked.pop((machine.name, machine.life, reply.to.connection, reply.to.sequence), None)
        if type(reply.message) is not FetchResponse or machine.node is None:
            return
        is_replaced = False
        if asked is not None and asked[1] != NAMELESS:
            broker = machine.node.image.brokers.get(NodeId(asked[0]))
            is_replaced = broker is not None and asked[1] < broker.epoch
        for topic in reply.message.responses:
            for row in topic.partitions:
                assert row.last_stable_offset <= row.high_watermark, (
                    f"{machine.name} names the last stable offset {row.last_stable_offset} and the high watermark"
                    f" {row.high_watermark} of partition {row.partition_index}"
                )
                assert row.error_code or not is_replaced, (
                    f"{machine.name} serves broker {asked}, and its metadata has a later incarnation of that"
                )

    def proposes(self, machine: Machine, node: Node, hosted: Hosted, pending: Pending) -> None:
        """In the event in which the leader wants it."""
        for member, epoch in pending.proposal:
            if member == machine.node_id:
                continue
            who = f"{machine.name} wants {member} in the ISR of {hosted.name}"
            heard = self.heard.get((machine.name, machine.life, member), {})
            assert epoch == NAMELESS or epoch in heard, (
                f"{who} as of broker epoch {epoch}, and has heard of it in {list(heard)}"
            )
            if member in pending.isr:
                continue
            broker = node.image.brokers.get(member)
            assert broker is not None and broker.is_active, f"{who}, and its metadata has it fenced, or leaving"
            assert epoch in (NAMELESS, broker.epoch), (
                f"{who} as of broker epoch {epoch}, and its metadata has epoch {broker.epoch}"
            )
            assert epoch != NAMELESS or not any(one != NAMELESS for one in heard), (
                f"{who} as of no broker epoch, and it has fetched in epochs {list(heard)}"
            )

    def names_itself(self, machine: Machine, request: AlterPartitionRequest) -> None:
        own = [
            member.broker_epoch
            for topic in request.topics
            for row in topic.partitions
            for member in row.new_isr_with_epochs
            if member.broker_id == machine.node_id
        ]
        wrong = [epoch for epoch in own if epoch != request.broker_epoch]
        assert not wrong, (
            f"{machine.name} proposes itself as of broker epochs {wrong}, and is in {request.broker_epoch}"
        )
