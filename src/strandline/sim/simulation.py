"""One simulated world: machines, clients, network, time, what was seen of all of it. Everything follows from a plan."""

from strandline.base.effects import Endpoint
from strandline.base.ids import NOBODY, NodeId
from strandline.metadata.image import Partition
from strandline.sim.damage import Damage
from strandline.sim.laws.laws import Laws
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options, properties
from strandline.sim.world.trace import Trace


class World(Subject):
    def __init__(self, seed: int, options: Options, trace: Trace | None = None) -> None:
        super().__init__(seed, options, trace)
        self.damage = Damage(self)
        self.laws: Laws = Laws(self)
        self.committed = self.laws.metadata
        shared = properties(options)
        for n in range(1, options.brokers + 1):
            roles = "broker,controller" if n <= options.controllers else "broker"
            self.machines[NodeId(n)] = Machine(self, NodeId(n), roles, shared | options.own_settings.get(n, {}))

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        return tuple(machine.where["PLAINTEXT"] for machine in self.machines.values())

    def controller(self) -> Machine | None:
        for machine in self.machines.values():
            if machine.node is not None and machine.node.controller is not None and machine.node.controller.is_active:
                return machine
        return None

    def why_not_led(self) -> str | None:
        """Every node runs and is let in, and every partition has its leader. None: it is so."""
        for machine in self.machines.values():
            node = machine.node
            if node is None or node.broker is None:
                return f"{machine.name} does not run"
            if not node.broker.lifecycle.is_unfenced:
                return f"{machine.name} is not let in"
            brokers = node.image.brokers
            if len(brokers) < len(self.machines) or not all(broker.is_active for broker in brokers.values()):
                return f"{machine.name} does not know that all brokers are active"
            for topic in node.image.topics.values():
                for index, partition in topic.partitions.items():
                    if partition.leader < 0:
                        return f"{topic.name}-{index} has no leader, as {machine.name} sees it"
        return None

    def why_not_led_without(self, dead: Machine) -> str | None:
        """The others are let in, and lead all partitions of which one of them is in the ISR."""
        controller = self.controller()
        if controller is None or controller is dead:
            return "there is no controller"
        assert controller.node is not None
        image = controller.node.image
        for machine in self.machines.values():
            broker = image.brokers.get(machine.node_id)
            if machine is not dead and (machine.node is None or broker is None or not broker.is_active):
                return f"{machine.name} is not let in"
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                may_lead = self.may_lead_without(dead.node_id, partition)
                if may_lead and partition.leader not in may_lead:
                    return f"{topic.name}-{index}: leader {partition.leader}, ISR {partition.isr}, {dead.name} is dead"
        return None

    def may_lead_without(self, dead: NodeId, partition: Partition) -> list[NodeId]:
        """Nobody need lead if this is empty. A recovery waits for all who were eligible last."""
        sound = partition.isr or partition.elr
        if sound:
            return [node for node in sound if node != dead]
        if self.is_recovery_managed:
            return [] if not partition.last_known_elr or dead in partition.last_known_elr else list(partition.replicas)
        return [node for node in (partition.last_known_leader,) if node not in (dead, NOBODY)]

    def why_not_whole(self) -> str | None:
        """And all replicas are in sync."""
        why = self.why_not_led()
        if why is not None:
            return why
        for topic in self.committed.image.topics.values():
            for index, partition in topic.partitions.items():
                if set(partition.isr) != set(partition.replicas):
                    return f"{topic.name}-{index}: leader {partition.leader}, ISR {partition.isr}"
                if partition.is_moving:
                    return f"{topic.name}-{index} still moves: {partition.replicas}, -{partition.removing_replicas}"
        return None
