"""What must hold where not everybody may do everything.

- nothing is answered that was not permitted at some moment between the arrival of the request and its answer, by the
  ACLs that the node had applied then
- who was permitted all that it asked, all that time, is not refused
- no answer names a topic that the client may not describe, unless its request did
- what only nodes may ask is refused to everybody without the cluster's secret, with an authorizer and without one
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from strandline.base.effects import Caller, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, Uuid
from strandline.broker.node import Node
from strandline.metadata.security.acls import ResourceType
from strandline.sim.laws.clients.claims import CLAIMS
from strandline.sim.laws.clients.naive import ANY, Acls, Need, hidden, is_met
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import SUPER_USERS
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest
from strandline.wire.messages.records.fetch import FetchRequest, FetchResponse
from strandline.wire.messages.records.produce import ProduceResponse
from strandline.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest

E = ErrorCode
OF_NODES = {
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    BrokerRegistrationRequest,
    BrokerHeartbeatRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    AllocateProducerIdsRequest,
}
BROKERS_FORM = 4  # of AddPartitionsToTxn
REFUSALS = {
    E.TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
    E.GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResourceType.TRANSACTIONAL_ID,
    E.CLUSTER_AUTHORIZATION_FAILED: ResourceType.CLUSTER,
}
WORD = re.compile(r"[\w.-]+")
DONE = (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER)
Asked = tuple[int, int]  # connection and sequence


def is_forged(event: Received) -> bool:
    """Only nodes ask this, and whoever asks it here proved to be none."""
    message = event.message
    if event.caller.is_node:
        return False
    if type(message) is FetchRequest:
        return event.caller.listener == "CONTROLLER" or max(message.replica_id, message.replica_state.replica_id) >= 0
    if type(message) is AddPartitionsToTxnRequest:
        return event.to.api_version >= BROKERS_FORM
    return type(message) in OF_NODES


class Life:
    """Of one process: the ACLs that it has had, and what it was asked and has not answered."""

    def __init__(self) -> None:
        self.version = -1
        self.states: list[Acls] = []
        self.asked: dict[Asked, tuple[Received, int]] = {}  # with the number of the state at that time


class Permissions:
    def __init__(self, world: Subject) -> None:
        self.world = world
        self.lives: dict[str, Life] = {}
        self.names: dict[Uuid, str] = {}  # of all topics that ever were
        self.decided: dict[tuple[Acls, str, str, Need], bool] = {}
        self.is_guarded = world.options.authorizer

    def starts(self, machine: Machine) -> None:
        self.lives[machine.name] = Life()

    def look(self, machine: Machine, node: Node) -> None:
        if self.is_guarded:
            self.take_state(self.lives[machine.name], node)

    def take_state(self, life: Life, node: Node) -> None:
        if node.image.acls_version != life.version or not life.states:
            life.version = node.image.acls_version
            life.states.append(tuple(node.image.acls.values()))

    # --- requests and answers

    def received(self, machine: Machine, event: Received) -> None:
        caller = event.caller
        if caller.is_node or machine.node is None or not (self.is_guarded or is_forged(event)):
            return
        if caller.principal not in SUPER_USERS or is_forged(event):
            life = self.lives[machine.name]
            self.take_state(life, machine.node)
            life.asked[event.to.connection, event.to.sequence] = event, len(life.states) - 1

    def replies(self, machine: Machine, reply: Reply) -> None:
        life = self.lives[machine.name]
        found = life.asked.pop((reply.to.connection, reply.to.sequence), None)
        if found is None or reply.message is None or reply.to.connection not in machine.inbound:
            return  # an answer for a connection that is closed reaches nobody, and the gate does not complete it
        event, since = found
        assert machine.node is not None
        if is_forged(event):
            self.is_disbelieved(machine, event, reply)
        if self.is_guarded:
            self.take_state(life, machine.node)
            self.world.seen["answers judged by the ACLs"] += 1
            self.judge(machine, event, reply.message, life.states[since:])

    def is_disbelieved(self, machine: Machine, event: Received, reply: Reply) -> None:
        code = getattr(reply.message, "error_code", E.NONE)
        self.world.seen["forged"] += 1
        assert code == E.CLUSTER_AUTHORIZATION_FAILED, (
            f"{machine.name} answers {type(event.message).__name__} of {event.caller.host}, which does not know the"
            f" cluster's secret: {str(reply.message)[:300]}"
        )

    def judge(self, machine: Machine, event: Received, answer: Any, states: Sequence[Acls]) -> None:
        caller, claims = event.caller, CLAIMS.get(type(answer))
        if claims is not None and not is_forged(event):
            for code, needs in claims(event.message, answer, self.name_of):
                self.judge_row(machine, event, code, needs, states)
        if type(answer) not in (ProduceResponse, FetchResponse):
            disclosed = self.named(answer) - self.named(event.message) - {*INTERNAL_TOPICS}
            for topic in sorted(disclosed):
                assert not hidden(states, caller.principal, caller.host, topic), (
                    f"{machine.name} names {topic!r} to {caller.principal}, which may not describe it: {answer}"
                )

    def judge_row(
        self, machine: Machine, event: Received, code: int, needs: tuple[Need, ...], states: Sequence[Acls]
    ) -> None:
        caller, what = event.caller, type(event.message).__name__.removesuffix("Request")
        needs = tuple(
            need for need in needs if all(name for _, _, name in need)
        )  # of topics that nobody knows, nothing
        if code in DONE:
            for need in needs:
                assert any(self.is_met(acls, caller, need) for acls in states), (
                    f"{machine.name} answers {what} of {caller.principal}, which was never permitted {need}"
                )
            return
        kind = REFUSALS.get(E(code))
        if kind is None:
            return
        self.world.seen["refused for lack of a right"] += 1
        asked = [need for need in needs if any(right[1] == kind for right in need)]
        sure = [tuple(right for right in need if right[2] != ANY) for need in asked]
        assert not asked or not all(self.is_met(acls, caller, need) for acls in states for need in sure), (
            f"{machine.name} refuses {what} to {caller.principal}, which was permitted {asked} all the time"
        )

    def is_met(self, acls: Acls, caller: Caller, need: Need) -> bool:
        key = (acls, caller.principal, caller.host, need)
        if key not in self.decided:
            self.decided[key] = is_met(*key)
        return self.decided[key]

    # --- topics

    def name_of(self, topic: Any) -> str:
        """Empty: nobody knows it."""
        name = getattr(topic, "name", "") or getattr(topic, "topic", "")
        topic_id = getattr(topic, "topic_id", None)
        if not name and topic_id is not None:
            known = self.world.committed.image.topics.get(topic_id)
            if known is not None:
                self.names[topic_id] = known.name
            name = self.names.get(topic_id, "")
        return str(name)

    def named(self, message: Any) -> set[str]:
        """The topics whose names are anywhere in the message. (A stranger calls its own by numbers.)"""
        known = self.world.committed.image.topic_ids
        words = {word for text in texts(message) for word in WORD.findall(text)}
        return {topic for topic in words if topic in known and topic[0].isalpha()}


def texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from texts(one)
    elif hasattr(part, "__struct_fields__"):
        for name in part.__struct_fields__:
            yield from texts(getattr(part, name))
