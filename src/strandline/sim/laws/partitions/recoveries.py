"""Elections of who is neither in sync nor eligible, where recoveries are managed (KIP-966): by what replicas answered.

- nobody is elected who has not said what it has, in the leader epoch that ends, as the broker that is registered
- but for who is designated, nobody who could lead has said more: the later epoch counts first, then the longer log
- a designation elects who was designated
- a Balanced recovery has the answers of all who were in sync, eligible, or eligible last
- an Aggressive one that has an answer when its time is up elects
"""

from typing import Any

from strandline.base.effects import Answered, Received
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.broker.node import Node
from strandline.controller.tokens import InquirySent
from strandline.metadata.image import TOPIC_RESOURCE, Image, Partition, directory_of
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoResponse
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest

AWAY_MS = 500  # a controller that was not heard of for so long stood still
SLACK_MS = 1500
BY_HAND_MS_MAX = 5000  # longer than the admin waits; a stranger may say anything
BY_HAND = "unclean election, asked for"  # of any replica, unasked


class Said(Value, frozen=True):
    """By one replica, of its log."""

    broker_epoch: int
    leader_epoch: int
    rank: tuple[int, int]  # the last leader epoch in it, and its end


class Term:
    """What one controller was answered of partitions that nobody leads."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.said: dict[TopicIdPartition, dict[NodeId, Said]] = {}
        self.before: dict[TopicIdPartition, Partition] = {}  # as nobody led it last
        self.since: dict[TopicIdPartition, int] = {}  # when enough was known for an Aggressive recovery
        self.looked_at = 0


class Recoveries:
    HEARS = ((Received, ElectLeadersRequest), (Answered, GetReplicaLogInfoResponse))

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.terms: dict[str, Term] = {}
        self.designated: set[tuple[str, NodeId]] = set()  # by anybody, ever
        self.asked: set[tuple[TopicIdPartition, NodeId, int]] = set()  # who has said what it has in which leader epoch
        self.by_hand: dict[tuple[str, str], int] = {}  # until when who asked a machine for an election may wait for it

    def received(self, machine: Machine, event: Any) -> None:
        if type(event) is Received:
            for asked in event.message.topic_partitions or ():
                pairs = zip(asked.partitions, asked.designated_leaders or (), strict=False)
                self.designated.update((f"{asked.topic}-{index}", NodeId(node)) for index, node in pairs)
                until = self.world.time.now + min(event.message.timeout_ms, BY_HAND_MS_MAX)
                for index in asked.partitions:
                    which = (machine.name, f"{asked.topic}-{index}")
                    self.by_hand[which] = max(until, self.by_hand.get(which, 0))
            return
        node = machine.node
        token: InquirySent = event.token
        replica = token.broker
        controller = None if node is None else node.controller
        if node is None or controller is None or controller.recoveries.inquiries.under_way.get(replica) != token.serial:
            return
        term = self.term(machine, node)
        for topic in event.message.topic_partition_log_info_list:
            for row in topic.partition_log_info:
                if not row.error_code:
                    at = TopicIdPartition(topic.topic_id, row.partition)
                    rank = (row.last_written_leader_epoch, row.log_end_offset)
                    said = Said(event.message.broker_epoch, row.current_leader_epoch, rank)
                    term.said.setdefault(at, {})[replica] = said
                    self.asked.add((at, replica, row.current_leader_epoch))

    def term(self, machine: Machine, node: Node) -> Term:
        found = self.terms.get(machine.name)
        if found is None or found.epoch != node.quorum.leader_epoch:
            found = self.terms[machine.name] = Term(node.quorum.leader_epoch)
        return found

    def look(self, machine: Machine, node: Node) -> None:
        if machine.name not in self.terms:
            return
        term, controller = self.terms[machine.name], node.controller
        if controller is None or not controller.is_active or term.epoch != node.quorum.leader_epoch:
            del self.terms[machine.name]
            return
        image, now = controller.image, self.world.time.now
        if now - term.looked_at > AWAY_MS:
            term.since.clear()
        term.looked_at = now
        for at in list(term.said):
            partition = image.partition(at)
            if partition is not None and partition.leader == NOBODY:
                term.before[at] = partition
                self.elects_in_time(machine, term, at, partition, image)
                continue
            before, said = term.before.pop(at, None), term.said.pop(at)
            term.since.pop(at, None)
            if before is not None and partition is not None and is_unclean(before, partition):
                self.elects(f"{image.topics[at.topic_id].name}-{at.partition}", said, before, partition, image)

    def elects(
        self, name: str, said: dict[NodeId, Said], before: Partition, partition: Partition, image: Image
    ) -> None:
        cause = cause_of(before, partition)
        if cause.startswith(BY_HAND) or not (self.world.is_recovery_managed or "asked for by" in cause):
            return
        who = partition.leader
        known = counting(said, before, image)
        assert who in known, f"{name}: {who} is elected, and has not said what it has; known is {known}"
        lacking = [node for node in (*before.isr, *before.elr, *before.last_known_elr) if node not in known]
        assert not lacking or "alanced" not in cause, f"{name}: {who} is elected, and {lacking} were not waited for"
        more = [node for node in known if known[node] > known[who] and node not in before.adding_replicas]
        assert not more or cause.startswith("designation"), f"{name}: {who} is elected, and {more} have more: {known}"

    def elects_in_time(
        self, machine: Machine, term: Term, at: TopicIdPartition, partition: Partition, image: Image
    ) -> None:
        topic = image.topics[at.topic_id].name
        is_aggressive = image.configs.get((TOPIC_RESOURCE, topic), {}).get("unclean.recovery.strategy") == "Aggressive"
        known = counting(term.said[at], partition, image)
        # What somebody asks for comes first: by another strategy, and for as long as it is waited for.
        is_by_hand = self.world.time.now <= self.by_hand.get((machine.name, f"{topic}-{at.partition}"), -1)
        is_due = is_aggressive and self.world.is_recovery_managed and not is_by_hand
        if not is_due or not set(known) - set(partition.adding_replicas):
            term.since.pop(at, None)
            return
        span = self.world.time.now - term.since.setdefault(at, self.world.time.now)
        limit = machine.config.integer("unclean.recovery.timeout.ms") + SLACK_MS
        assert span <= limit, f"{topic}-{at.partition}: nobody is elected for {span} ms, and {known} are there"

    def changed(self, name: str, at: TopicIdPartition, last: Partition, new: Partition) -> None:
        """In committed metadata."""
        if not is_unclean(last, new):
            return
        is_designation = cause_of(last, new).startswith("designation")
        assert not is_designation or (name, new.leader) in self.designated, f"{name}: nobody designated {new.leader}"
        if self.world.is_recovery_managed and not cause_of(last, new).startswith(BY_HAND):
            asked = (at, new.leader, last.leader_epoch) in self.asked
            assert asked, f"{name}: {new.leader} is elected uncleanly, and was not asked what it has"


def is_unclean(before: Partition, now: Partition) -> bool:
    return now.losses != before.losses or now.lossless_epoch != before.lossless_epoch


def cause_of(before: Partition, now: Partition) -> str:
    return now.losses[-1].cause if now.losses != before.losses else ""


def counting(said: dict[NodeId, Said], partition: Partition, image: Image) -> dict[NodeId, tuple[int, int]]:
    """What the answers say that are of this leader epoch and of incarnations that are registered and let in."""
    found = {}
    for node, one in said.items():
        broker = image.brokers.get(node)
        if broker is None or not broker.is_active or broker.epoch != one.broker_epoch:
            continue
        if one.leader_epoch == partition.leader_epoch and broker.is_online(directory_of(partition, node)):
            found[node] = one.rank
    return found
