"""Who speaks for a broker to the controller: its latest incarnation, and no earlier one (T25).

- what an earlier incarnation left in the network, with its broker epoch, is answered with an error
- what a broker says it knows of metadata it has applied: by that it is let in
"""

from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.ids import NodeId
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest

SIGNED = (AlterPartitionRequest, AssignReplicasToDirsRequest, BrokerHeartbeatRequest)
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence


class Incarnations:
    HEARS = tuple((Received, request) for request in SIGNED)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.stale: dict[Asked, str] = {}  # what was asked by one that is over

    def received(self, machine: Machine, event: Any) -> None:
        node, request = machine.node, event.message
        if type(request) is BrokerHeartbeatRequest:
            self.is_applied(request)
        if node is None or node.controller is None or not node.controller.is_active:
            return
        known = node.controller.image.brokers.get(NodeId(request.broker_id))
        if known is not None and request.broker_epoch < known.epoch:
            which = (machine.name, machine.life, event.to.connection, event.to.sequence)
            asked, epoch = type(request).__name__, request.broker_epoch
            self.stale[which] = (
                f"{asked} of node {request.broker_id} in broker epoch {epoch}, though it is in {known.epoch}"
            )

    def is_applied(self, request: BrokerHeartbeatRequest) -> None:
        if request.broker_epoch < 0:
            return  # a stranger: who is not registered has no heartbeat
        machine = self.world.machines.get(NodeId(request.broker_id))
        node = None if machine is None else machine.node
        if node is None or node.broker is None or node.broker.lifecycle.epoch != request.broker_epoch:
            return
        named, applied = request.current_metadata_offset, node.committed.end - 1
        with self.world.holding(request):
            assert named <= applied, (
                f"node {request.broker_id} says that it knows metadata up to {named}, and has applied {applied}"
            )

    def replies(self, machine: Machine, reply: Reply) -> None:
        asked = self.stale.pop((machine.name, machine.life, reply.to.connection, reply.to.sequence), None)
        assert asked is None or reply.message.error_code, f"{machine.name} serves the {asked}"
