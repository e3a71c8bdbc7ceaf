"""What injects faults, and which machines a gentle run may damage.

A *keeper* of a partition is a member of its ISR that runs, is reached, and has lost nothing. Gentle: a machine loses
data only while each of its partitions keeps another keeper, and while somebody in an ISR has lost data its last keeper
is left alone. So hardly anything is excused. In a ruthless run anything may happen at any time.

With Eligible Leader Replicas a machine may also lose data while the ISR is incomplete, and everybody else is away: as
long as no more than min ISR − 1 members of ISR and ELR are suspect at a time, and one is not. There every stop that is
not in order counts, for the controller must take it for one that lost data.
"""

from collections.abc import Callable
from random import Random

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import Partition
from strandline.sim.clients.admin import Admin
from strandline.sim.simulation import World
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind


class FaultInjector:
    def __init__(self, world: World, admin: Admin) -> None:
        self.world = world
        self.admin = admin
        self.is_over = False

    def note(self, text: str) -> None:
        self.world.note(Kind.FAULT, text)

    # --- caution

    def keepers(self, at: TopicIdPartition, partition: Partition) -> list[NodeId]:
        return [node for node in partition.isr if self.is_keeper(at, node)]

    def is_keeper(self, at: TopicIdPartition, node: NodeId) -> bool:
        world, machine = self.world, self.world.machines[node]
        if not machine.is_running or machine.is_paused or world.damage.is_lossy(at, node):
            return False
        if self.has_elr and world.damage.is_suspect(node):
            return False
        return not any(machine.name in cut for cut in world.network.cuts)

    def partitions_of(self, machine: Machine) -> list[tuple[TopicIdPartition, Partition]]:
        return [
            (TopicIdPartition(topic.topic_id, index), partition)
            for topic in self.world.laws.metadata.image.topics.values()
            for index, partition in topic.partitions.items()
            if machine.node_id in partition.isr or machine.node_id in partition.elr
        ]

    def may_suffer(self, machine: Machine) -> bool:
        if self.world.options.is_ruthless:
            return True
        for at, partition in self.partitions_of(machine):
            is_weak = any(self.world.damage.is_lossy(at, node) for node in partition.isr)
            if is_weak and self.keepers(at, partition) == [machine.node_id]:
                return False
        return True

    def may_lose_data(self, machine: Machine) -> bool:
        if self.world.options.is_ruthless:
            return True
        return all(
            any(node != machine.node_id for node in self.keepers(at, partition))
            or (self.has_elr and self.is_covered(machine, at, partition))
            for at, partition in self.partitions_of(machine)
        )

    @property
    def has_elr(self) -> bool:
        return self.world.laws.metadata.image.features.get(ELR_FEATURE, 0) > 0

    def is_covered(self, machine: Machine, at: TopicIdPartition, partition: Partition) -> bool:
        """Is it one of at most min ISR − 1 suspects in ISR and ELR, and somebody there is none?"""
        image = self.world.laws.metadata.image
        members = (*partition.isr, *partition.elr)
        damage = self.world.damage
        is_suspect = {
            node: node == machine.node_id or damage.is_suspect(node) or damage.is_lossy(at, node) for node in members
        }
        min_isr = image.effective_min_isr(image.topics[at.topic_id], partition)
        return sum(is_suspect.values()) <= min_isr - 1 and not all(is_suspect.values())

    def may_be_killed(self, machine: Machine) -> bool:
        """Ended out of order: without ELR its page cache keeps what the process wrote, and that is enough."""
        if not self.may_suffer(machine):
            return False
        return self.may_lose_data(machine) if self.has_elr else True

    def shut_down(self, machine: Machine) -> None:
        """In order. A broker that never registered ends as one that is killed: it cannot say when it stopped (T27)."""
        if machine.has_registered or not self.has_elr or self.may_be_killed(machine):
            machine.shut_down()

    # --- whom it hits

    def someone(self, rng: Random) -> Machine | None:
        """A machine that may suffer now; often the controller."""
        machine = self.drawn(rng)
        return machine if self.may_suffer(machine) else None

    def someone_to_kill(self, rng: Random) -> Machine | None:
        machine = self.drawn(rng)
        return machine if self.may_be_killed(machine) else None

    def drawn(self, rng: Random) -> Machine:
        machine = rng.choice(list(self.world.machines.values()))
        controller = self.world.controller()
        if controller is not None and rng.randrange(0, 4) == 0:
            machine = controller
        return machine

    def someone_to_lose_data(self, rng: Random) -> Machine | None:
        machine = rng.choice(list(self.world.machines.values()))
        return machine if self.may_lose_data(machine) else None

    def later(self, span_ms: int, act: Callable[[], object]) -> None:
        """The rest of a fault, unless faults have ended by then, and everything that they did is undone."""

        def then() -> None:
            if not self.is_over:
                act()

        self.world.time.later(span_ms, then)

    def suffers_later(self, span_ms: int, machine: Machine, act: Callable[[], object]) -> None:
        """The same for what does harm: only if it still may by then."""
        self.later(span_ms, lambda: act() if self.may_be_killed(machine) else None)
