"""How brokers stop, and what their registrations say of it, by the committed metadata and by what they send.

- a broker names the epoch of its last life, if that ended in order, and no other (T27)
- who registers and names another epoch than the registered one is in no ISR and no ELR, while there is ELR
- a controlled shutdown is not taken back: the same incarnation is not let in again
- who leaves with the controller's consent is fenced by then, and leads nothing
- a leader's proposal is accepted if it leads by the metadata that is committed then
- who leads anew with losses stays alone until it says that it has recovered
- who leads is let in, and leads from a directory that is online; who comes into an ISR is active there
"""

from strandline.base.effects import Reply
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.broker.lifecycle import Identity, Lifecycle, Registered, ShutDown
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import RECOVERING, Broker, Image, Partition, directory_of
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.alter_partition import AlterPartitionResponse


class Standing:
    ANSWERS = (AlterPartitionResponse,)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.vouched: dict[tuple[NodeId, Uuid], int] = {}  # by incarnation: the epoch that it named
        self.had: dict[NodeId, int] = {}  # the broker epoch of the process that runs
        self.last: dict[NodeId, int] = {}  # that of the process before it; −1: it never had one
        self.known: dict[NodeId, Broker] = {}  # as the newest committed metadata has them
        self.lives: dict[str, int] = {}  # of machines, whose beginnings were looked at

    def forget(self, machine: Machine) -> None:
        """The process is gone."""
        if machine.node is not None:
            self.last[machine.node_id] = self.had.pop(machine.node_id, -1)

    def look(self, machine: Machine, lifecycle: Lifecycle) -> None:
        if self.lives.get(machine.name) != machine.life:
            self.lives[machine.name] = machine.life
            self.begins(machine, lifecycle.identity)
        role = lifecycle.role
        if type(role) is Registered:
            self.had[machine.node_id] = role.epoch
        elif type(role) is ShutDown and role.clean and machine.node_id in self.known:
            known = self.known[machine.node_id]
            is_later = known.incarnation_id != lifecycle.identity.incarnation_id
            assert known.fenced or is_later, f"{machine.name} leaves with the controller's consent, and is not fenced"

    def replies(self, machine: Machine, reply: Reply) -> None:
        if type(reply.message) is not AlterPartitionResponse or machine.node is None:
            return
        for topic in reply.message.topics:
            for row in topic.partitions:
                partition = machine.node.image.partition(TopicIdPartition(topic.topic_id, row.partition_index))
                if row.error_code or partition is None or row.partition_epoch > partition.partition_epoch:
                    continue
                is_so = (row.leader_id, row.leader_epoch, row.isr) == (
                    partition.leader,
                    partition.leader_epoch,
                    partition.isr,
                )
                assert is_so or 0 <= row.partition_epoch < partition.partition_epoch, (
                    f"{machine.name} answers a proposal with {row}, and committed is {partition}"
                )

    def begins(self, machine: Machine, identity: Identity) -> None:
        """A disk that is of another day may have the marker of that day, and nobody can know."""
        named, last = identity.previous_broker_epoch, self.last.get(machine.node_id, -1)
        self.vouched[machine.node_id, identity.incarnation_id] = named
        assert named in (-1, last) or machine.disk.is_of_another_day or machine.is_tampered, (
            f"{machine.name} says that it stopped in order in epoch {named}, and its last process had {last}"
        )

    def looked(self, image: Image) -> None:
        """The newest committed metadata moved."""
        for node, broker in image.brokers.items():
            before = self.known.get(node)
            if broker is before:
                continue
            if before is not None and broker.epoch == before.epoch:
                assert broker.in_controlled_shutdown or not before.in_controlled_shutdown, (
                    f"{node} no longer shuts down"
                )
                is_let_in = before.fenced and not broker.fenced
                assert not (is_let_in and before.in_controlled_shutdown), f"{node} shuts down, and is let in again"
            elif before is not None and image.features.get(ELR_FEATURE, 0) > 0 and broker.fenced:
                there = [] if self.is_clean(node, broker, before.epoch) else list(image.eligible.get(node, {}))
                assert not there, f"{node} did not stop in order in epoch {before.epoch}, and is in sync or eligible"
        self.known = dict(image.brokers)

    def is_clean(self, node: NodeId, broker: Broker, epoch: int) -> bool:
        """Has it said that it stopped in order in this epoch, as it registered with the next one?"""
        return self.vouched.get((node, broker.incarnation_id)) == epoch


def look_at_roles(name: str, image: Image, last: Partition | None, new: Partition) -> None:
    """What takes a broker's part away takes it out of ISRs and leaderships in the same batch (KIP-841). The image
    may have skipped changes: who joined then may have been fenced since."""
    is_next = new.partition_epoch == (0 if last is None else last.partition_epoch + 1)
    joined = [node for node in new.isr if is_next and (last is None or node not in last.isr)]
    assert new.leader_recovery_state != RECOVERING or len(new.isr) <= 1, (
        f"{name}: {new.leader} recovers, and is not alone in the ISR {new.isr}"
    )
    for node in joined if new.leader == NOBODY else [new.leader, *joined]:
        broker = image.brokers.get(node)
        assert image.is_active(node), f"{name}: {node} leads or comes into the ISR, and is fenced or shuts down"
        assert broker is None or broker.is_online(directory_of(new, node)), (
            f"{name}: {node} leads or comes into the ISR, and its directory is offline"
        )
