"""What faults work on, and the caution of gentle runs.

A *keeper* of a partition is a member of its ISR that runs, is reached, and has lost nothing. Gentle: a machine loses
data only while each of its partitions keeps another keeper, and while somebody in an ISR has lost data its last keeper
is left alone. So hardly anything is excused. In a ruthless run anything may happen at any time.
"""

from collections.abc import Callable
from random import Random

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.metadata.image import Partition
from strandline.sim.clients.admin import Admin
from strandline.sim.machine import Machine
from strandline.sim.trace import Kind
from strandline.sim.world import World


class Turmoil:
    def __init__(self, world: World, admin: Admin) -> None:
        self.world = world
        self.admin = admin
        self.is_over = False

    def tell(self, text: str) -> None:
        self.world.tell(Kind.FAULT, text)

    # --- caution

    def keepers(self, at: TopicIdPartition, partition: Partition) -> list[NodeId]:
        return [node for node in partition.isr if self.is_keeper(at, node)]

    def is_keeper(self, at: TopicIdPartition, node: NodeId) -> bool:
        world, machine = self.world, self.world.machines[node]
        if not machine.is_running or machine.is_paused or world.damage.is_lossy(at, node):
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
            for at, partition in self.partitions_of(machine)
        )

    # --- whom it hits

    def someone(self, rng: Random) -> Machine | None:
        """A machine that may suffer now; often the controller."""
        machine = rng.choice(list(self.world.machines.values()))
        controller = self.world.controller()
        if controller is not None and rng.randrange(0, 4) == 0:
            machine = controller
        return machine if self.may_suffer(machine) else None

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
        self.later(span_ms, lambda: act() if self.may_suffer(machine) else None)
