"""The laws of one world: what must hold after every event, and when faults have ended."""

import re
from collections.abc import Callable
from types import NoneType
from typing import Any

from strandline.base.effects import Answered, Received, Reply, Send
from strandline.base.ids import TopicIdPartition
from strandline.base.ports import DiskError
from strandline.broker.node import Node
from strandline.log.directory import parse_directory_name
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.tokens import ReplicaToken
from strandline.sim.laws.clients.answers import Answers
from strandline.sim.laws.clients.classics import Classics
from strandline.sim.laws.clients.groups import Groups
from strandline.sim.laws.clients.permissions import Permissions, is_forged
from strandline.sim.laws.clients.promises import Promises
from strandline.sim.laws.cluster.incarnations import Incarnations
from strandline.sim.laws.cluster.metadata import Metadata
from strandline.sim.laws.cluster.stops import Stops
from strandline.sim.laws.cluster.votes import Votes
from strandline.sim.laws.logs.checkpoints import Checkpoints
from strandline.sim.laws.logs.directories import look_at_directories, may_end_over, why_not_located
from strandline.sim.laws.logs.durable import Durable
from strandline.sim.laws.logs.indexes import check_indexes
from strandline.sim.laws.logs.logs import Logs
from strandline.sim.laws.logs.producers import check_producers
from strandline.sim.laws.partitions.fetches import Fetches
from strandline.sim.laws.partitions.offers import look_at_offers
from strandline.sim.laws.partitions.partitions import Partitions, Seen
from strandline.sim.laws.partitions.recoveries import Recoveries
from strandline.sim.laws.partitions.standing import Standing
from strandline.sim.laws.partitions.transactions import Transactions
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.sim.world.violation import Violation
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.records.fetch import FetchResponse

Hear = Callable[[Machine, Any], None]
Answer = Callable[[Machine, Reply], None]
CARRYING = (Received, Answered)  # events with a message
REFUSED_METADATA = re.compile(r"node \d+ (sent records that are|reports a divergence that is|offers a snapshot below)")
COMMITTED_CUT = re.compile(r"(\S+): offsets .* were committed here")


class Laws:
    def __init__(self, world: Subject) -> None:
        self.world = world
        self.votes = Votes(world)
        self.logs = Logs(world)
        self.incarnations = Incarnations(world)
        self.fetches = Fetches(world)
        self.answers = Answers(world)
        self.groups = Groups(world)
        self.promises = Promises(world, self.groups)
        self.classics = Classics(self.groups, self.promises)
        self.recoveries = Recoveries(world)
        self.standing = Standing(world)
        self.checkpoints = Checkpoints()
        self.durable = Durable(world)
        self.stops = Stops(world)
        self.partitions = Partitions(world, self.fetches, self.logs, self.answers)
        self.transactions = Transactions(world, self.partitions)
        self.metadata = Metadata(world, self.standing, self.recoveries, self.partitions)
        options = world.options
        self.permissions = Permissions(world) if options.authorizer or options.intruder_ms else None
        self.hearing: dict[tuple[type, type], list[Hear]] = {}
        self.answering: dict[type, list[Answer]] = {}
        self.listen()

    def listen(self) -> None:
        """Each law says which messages it hears of, and which answers, for the most have none for it."""
        for hearing in (
            self.votes,
            self.incarnations,
            self.fetches,
            self.answers,
            self.groups,
            self.promises,
            self.classics,
            self.recoveries,
            self.metadata.eligible,
            self.transactions,
        ):
            for which in hearing.HEARS:
                self.hearing.setdefault(which, []).append(hearing.received)
        for answering in (
            self.votes,
            self.fetches,
            self.answers,
            self.groups,
            self.promises,
            self.classics,
            self.standing,
            self.transactions,
        ):
            for kind in answering.ANSWERS:
                self.answering.setdefault(kind, []).append(answering.replies)
        if self.world.options.racks:
            self.answering.setdefault(FetchResponse, []).append(look_at_offers)

    def starts(self, machine: Machine) -> None:
        self.stops.starts(machine)
        if self.permissions is not None:
            self.permissions.starts(machine)

    def stopped(self, machine: Machine) -> None:
        self.stops.stopped(machine)

    def comes_back(self, machine: Machine) -> None:
        self.stops.comes_back(machine)

    def ends_over(self, machine: Machine, node: Node, error: DiskError) -> None:
        may_end_over(machine, node, error)

    def received(self, machine: Machine, event: Any) -> None:
        """Before a node takes an event. What a stranger sends in a node's name is nobody's word."""
        if self.permissions is not None and type(event) is Received:
            self.permissions.received(machine, event)
            if is_forged(event):
                return
        is_carrying = type(event) in CARRYING
        for hear in self.hearing.get((type(event), type(event.message) if is_carrying else NoneType), ()):
            hear(machine, event)
        self.logs.forget()
        if is_carrying and machine.node is not None:
            try:
                self.logs.received(machine, machine.node, event)
            except Violation:
                raise
            except Exception as error:
                raise self.world.breach(error, event) from error

    def sends(self, machine: Machine, effect: Send) -> None:
        if isinstance(effect.token, ReplicaToken):
            self.fetches.sends(machine, effect)
        elif type(effect.message) is BrokerRegistrationRequest:
            self.stops.sends(machine, effect.message)

    def replies(self, machine: Machine, reply: Reply) -> None:
        if self.permissions is not None:
            self.permissions.replies(machine, reply)
        if self.incarnations.stale:
            self.incarnations.replies(machine, reply)
        for answer in self.answering.get(type(reply.message), ()):
            answer(machine, reply)

    def look(self, machine: Machine, node: Node) -> None:
        """Most events concern few of the laws, so the others are not even called."""
        if self.logs.has_heard:
            self.logs.look(machine, node)
        self.votes.look(machine, node)
        self.metadata.look(machine, node)
        touched = self.partitions.look(machine, node)
        self.checkpoints.look(machine, node, touched)
        self.durable.look(machine, node, touched)
        if touched or self.transactions.answered:
            self.transactions.look(machine, touched)
        if machine.name in self.recoveries.terms:
            self.recoveries.look(machine, node)
        broker = node.broker
        if broker is not None:
            self.standing.look(machine, broker.lifecycle)
            if broker.directories.offline:
                look_at_directories(machine, broker, self.metadata.image)
            if broker.groups.shards.loaded:
                self.promises.look(machine, broker)
        if self.permissions is not None:
            self.permissions.look(machine, node)

    def reported(self, machine: Machine, level: str, text: str) -> None:
        """What a node itself calls an error that must not be. (One that has lost data may cut what its checkpoint calls
        committed: its log is older than that.)"""
        if level != "error":
            return
        assert not REFUSED_METADATA.match(text), text
        assert not self.logs.refused(machine, text), text
        partition = COMMITTED_CUT.match(text)
        if partition is not None:
            name = parse_directory_name(partition[1])
            ats = self.partitions.named(name) if name is not None else []
            lossy = self.world.damage.is_lossy
            assert not ats or not all(self.partitions.is_bound(at) and not lossy(at, machine.node_id) for at in ats), (
                text
            )

    def forget(self, machine: Machine) -> None:
        self.metadata.forget(machine)
        self.partitions.forget(machine)
        self.logs.forget()
        self.answers.forget(machine)
        self.groups.forget(machine)
        self.promises.forget(machine)
        self.classics.forget(machine)
        self.standing.forget(machine)
        self.votes.forget(machine)
        self.transactions.forget(machine)

    # --- when faults have ended

    def copies(self) -> "dict[TopicIdPartition, list[tuple[Machine, Hosted]]]":
        found: dict[TopicIdPartition, list[tuple[Machine, Hosted]]] = {}
        for machine in self.world.machines.values():
            if machine.node is not None and machine.node.broker is not None:
                for hosted in machine.node.broker.replicas.host.partitions.all():
                    found.setdefault(hosted.at, []).append((machine, hosted))
        return found

    def why_not_equal(self) -> str | None:
        """All nodes have the same metadata, and all replicas of a partition the same end, all of it committed."""
        ends = {m.name: m.node.committed.end for m in self.world.machines.values() if m.node is not None}
        if len(set(ends.values())) > 1:
            return f"the nodes have applied different metadata: {ends}"
        for copies in self.copies().values():
            for machine, hosted in copies:
                first = copies[0][1]
                if hosted.log.log_end_offset != first.log.log_end_offset:
                    return f"{hosted.name} ends at different offsets on {machine.name} and {copies[0][0].name}"
                if hosted.high_watermark != hosted.log.log_end_offset:
                    return f"{hosted.name} is not wholly committed on {machine.name}"
                why = why_not_located(machine, hosted, self.metadata.image)
                if why is not None:
                    return why
        return None

    def final(self) -> None:
        for machine in self.world.machines.values():
            if machine.node is not None:
                self.metadata.compare_image(machine, machine.node, machine.node.committed.end)
        copies = self.copies()
        image = self.metadata.image
        named = {TopicIdPartition(t.topic_id, index) for t in image.topics.values() for index in t.partitions}
        assert named == set(copies), "logs and metadata name different partitions"
        for at, hosting in copies.items():
            partition = image.partition(at)
            assert partition is not None
            nodes = [machine.node_id for machine, _ in hosting]
            assert sorted(nodes) == sorted(partition.replicas), (at, nodes, partition.replicas)
            truth = self.partitions.truths.get(at)
            start = max(hosted.log.log_start_offset for _, hosted in hosting)
            if not self.partitions.is_bound(at) or truth is None:
                # What stands there is what the leader had: then at least all have the same.
                truth = None
            contents = [content(hosted, start) for _, hosted in hosting if not hosted.log.has_gaps]
            assert all(one == contents[0] for one in contents), f"the replicas of {hosting[0][1].name} differ"
            if truth is not None:
                for machine, hosted in hosting:
                    self.partitions.holds_truth(machine, hosted, truth, Seen(), "is a replica")
        for machine in self.world.machines.values():
            if machine.node is not None:
                check_indexes(machine.name, machine.node.metadata_log.log)
        for hosting in copies.values():
            for machine, hosted in hosting:
                check_indexes(machine.name, hosted.log)
                check_producers(machine, hosted)


def content(hosted: Hosted, start: int) -> bytes:
    """A log from `start` to its end, as bytes."""
    log, found = hosted.log, bytearray()
    for header in log.headers(start):
        found += b"%d %d %d;" % (header.base_offset, header.crc, header.partition_leader_epoch)
    return bytes(found)
