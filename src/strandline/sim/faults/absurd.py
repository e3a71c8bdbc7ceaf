"""What no leader proposes, said in the name of one: the controller refuses it, whoever says it.

Each proposal is wrong by itself, and stays so until it is there: what would make it right begins a new partition epoch,
or must be heard of by the same controller behind it.

And heartbeats that a broker sent before it wished to shut down, which arrive when the controller has heard of the wish.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from strandline.base.effects import Answered, Event, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.metadata.image import RECOVERED, RECOVERING, Image, Partition
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import when
from strandline.sim.simulation import World
from strandline.sim.world.connection import Station
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest

PROPOSAL_VERSION, HEARTBEAT_VERSION, TIMEOUT_MS = 3, 1, 1000
TAKEN = (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)
NEVER_REACHED = -1000  # epochs ahead
STATION = "liar"  # another name would change what follows from a seed


class ForgedToken(Value, frozen=True):
    """What is wrong about the request."""

    why: str


class Forger(Station):
    """Sends proposals in the name of a leader. The controller must reject each of them."""

    def __init__(self, world: World) -> None:
        super().__init__(STATION, world.network)
        self.is_node = True
        self.world = world
        self.is_running = True
        self.sent = 0

    def say(self, why: str, controller: Machine, request: Any, version: int) -> None:
        self.sent += 1
        where, channel = controller.where["CONTROLLER"], str(self.sent)
        self.network.send(self, Send(where, channel, request, version, TIMEOUT_MS, ForgedToken(why), NOBODY))

    def event(self, event: Event) -> None:
        if type(event) is not Answered or type(event.message) is not AlterPartitionResponse:
            return
        rows = [row for topic in event.message.topics for row in topic.partitions]
        if not event.message.error_code and any(row.error_code in TAKEN for row in rows):
            assert isinstance(event.token, ForgedToken), event
            raise self.world.violated(f"the controller takes {event.token.why}", str(event.message))


def absurd_proposal(injector: FaultInjector, rng: Random) -> None:
    world = injector.world
    image, controller = world.laws.metadata.image, world.controller()
    if controller is None:
        return
    gone = [node for node, machine in world.machines.items() if is_gone(controller, image, node, machine)]
    kinds: dict[str, list[tuple[str, AlterPartitionRequest]]] = {}  # what is possible seldom comes as often
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.leader in image.brokers:
                for why, request in absurdities(image, TopicIdPartition(topic.topic_id, index), partition, gone):
                    kinds.setdefault(why, []).append((f"{topic.name}-{index}", request))
    if not kinds:
        return
    why = rng.choice(list(kinds))
    name, request = rng.choice(kinds[why])
    injector.note(f"somebody proposes {why} for {name}")
    forger_of(world).say(why, controller, request, PROPOSAL_VERSION)


def forger_of(world: World) -> Forger:
    station = world.network.stations.get(STATION)
    return station if isinstance(station, Forger) else Forger(world)


def late_heartbeats(injector: FaultInjector, rng: Random) -> None:
    """A broker leaves, and what it said before reaches the controller now, and again when it has left."""
    world = injector.world
    machine = injector.someone(rng)
    if machine is None or not machine.is_running or machine.is_paused:
        return
    spans = (0, rng.choice((3, 20)), rng.choice((60, 150, 400)))

    def leaves() -> bool:
        broker = world.laws.metadata.image.brokers.get(machine.node_id)
        return broker is not None and broker.in_controlled_shutdown

    def arrive() -> None:
        controller, image = world.controller(), world.laws.metadata.image
        if controller is not None and leaves():
            epoch = image.brokers[machine.node_id].epoch
            known = epoch if machine.node is None else min(epoch, machine.node.committed.end - 1)
            injector.note(f"an earlier heartbeat of {machine.name} arrives")
            said = BrokerHeartbeatRequest(broker_id=machine.node_id, broker_epoch=epoch, current_metadata_offset=known)
            forger_of(world).say("a heartbeat", controller, said, HEARTBEAT_VERSION)

    def follow() -> None:
        for span in spans:
            injector.later(span, arrive)

    injector.shut_down(machine)
    when(injector, leaves, follow)


def is_gone(controller: Machine, image: Image, node: NodeId, machine: Machine) -> bool:
    """Is it down, and fenced for good in this incarnation? The controller knows of what is not committed yet."""
    assert controller.node is not None and controller.node.controller is not None
    known = controller.node.controller.image
    return not (machine.is_running or is_active(image, node) or is_active(known, node))


class Proposing:
    """Makes requests about one partition that are right but for what is named."""

    def __init__(self, image: Image, at: TopicIdPartition, partition: Partition) -> None:
        self.image, self.at, self.partition = image, at, partition

    def proposal(
        self,
        members: list[NodeId],
        *,
        by: NodeId | None = None,
        epochs: int = 0,
        terms: int = 0,
        earlier: Sequence[NodeId] = (),
        last: NodeId | None = None,
        recovery: int | None = None,
    ) -> AlterPartitionRequest:
        """`by`: who proposes, if it is not the leader. `epochs` and `terms`: how far the partition epoch and the leader
        epoch lie behind. `earlier`: members of which an earlier incarnation is meant. `last`: the one of which the last
        that is known is meant."""
        partition, brokers = self.partition, self.image.brokers
        known = {node: brokers[node].epoch - 1 for node in earlier}
        if last is not None:
            known[last] = brokers[last].epoch
        row = PartitionData(
            partition_index=self.at.partition,
            leader_epoch=partition.leader_epoch - terms,
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=node, broker_epoch=known.get(node, -1)) for node in members
            ),
            leader_recovery_state=partition.leader_recovery_state if recovery is None else recovery,
            partition_epoch=partition.partition_epoch - epochs,
        )
        topics = (TopicData(topic_id=self.at.topic_id, partitions=(row,)),)
        by = partition.leader if by is None else by
        return AlterPartitionRequest(broker_id=by, broker_epoch=brokers[by].epoch, topics=topics)


def absurdities(
    image: Image, at: TopicIdPartition, partition: Partition, gone: list[NodeId]
) -> Iterator[tuple[str, AlterPartitionRequest]]:
    leader, proposal = partition.leader, Proposing(image, at, partition).proposal
    lagging = [node for node in partition.replicas if node not in partition.isr and is_active(image, node)]
    hopeful = [*partition.isr, *lagging]  # who lags behind has no place there: whoever takes it, takes too much

    yield "an ISR of an older partition epoch", proposal(hopeful, epochs=1)
    yield "an ISR of an older leader epoch", proposal(hopeful, terms=1)
    yield "an ISR of a partition epoch to come", proposal(hopeful, epochs=NEVER_REACHED)
    yield "an ISR of a leader epoch to come", proposal(hopeful, terms=NEVER_REACHED)
    yield "earlier incarnations", proposal(hopeful, earlier=hopeful)
    yield "an earlier incarnation of one member", proposal(hopeful, earlier=hopeful[:1])
    if partition.leader_recovery_state == RECOVERED:
        yield "that its leader recovers", proposal([leader], recovery=RECOVERING)
    elif lagging:
        yield "others beside a leader that recovers", proposal(hopeful)
    others = [node for node in hopeful if node != leader]
    if others:
        yield "an ISR without its leader", proposal(others)
        yield "an ISR that it does not lead", proposal(hopeful, by=others[0])
    for node in lagging:
        if not image.is_online(node, partition):
            yield "a member whose directory is offline", proposal([*partition.isr, node])
    for node in image.brokers:
        if node not in partition.replicas:
            yield "a member that is no replica", proposal([*partition.isr, node])
        elif node in gone:
            yield "a member that is fenced", proposal([*partition.isr, node], last=node)


def is_active(image: Image, node: NodeId) -> bool:
    return node in image.brokers and image.brokers[node].is_active
