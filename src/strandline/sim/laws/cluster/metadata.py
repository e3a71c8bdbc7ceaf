"""What must hold of the metadata quorum and of what nodes make of its log.

- one leader per epoch of the quorum
- what is committed in the metadata log is never lost and never another: what a node applied is a prefix of it
- nodes that applied the same prefix have the same image; the active controller's own image is the replay of its records
- ISR ⊆ replicas, ELR ⊆ replicas, both disjoint (`Image.check`); leader and partition epochs grow strictly
"""

from strandline.base.ids import NOBODY, TopicIdPartition
from strandline.broker.node import Node
from strandline.log.reading import Read
from strandline.metadata.image import Image, Partition
from strandline.sim.laws.partitions.eligible import Eligible
from strandline.sim.laws.partitions.partitions import Partitions
from strandline.sim.laws.partitions.recoveries import Recoveries
from strandline.sim.laws.partitions.standing import Standing, look_at_roles
from strandline.sim.laws.subject import Subject
from strandline.sim.world.cluster import Committed
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind
from strandline.wire.batch import batches

READ_BYTES = 1 << 20
IMAGES_EVERY = 4  # compare whole images at every n-th offset: each costs what the image is large


class Metadata(Committed):
    def __init__(self, world: Subject, standing: Standing, recoveries: Recoveries, partitions: Partitions) -> None:
        super().__init__()
        self.world = world
        self.standing, self.recoveries, self.partitions = standing, recoveries, partitions
        self.applied: dict[str, int] = {}
        self.images: dict[int, tuple[str, ...]] = {}  # at an offset: the parts of the image
        self.controller = ("", -1)  # who it is, and in which epoch
        self.eligible = Eligible(world, standing)

    def forget(self, machine: Machine) -> None:
        self.applied.pop(machine.name, None)

    def look(self, machine: Machine, node: Node) -> None:
        quorum, end, name = node.quorum, node.committed.end, machine.name
        if quorum.is_leader:
            first = self.leaders.setdefault(quorum.leader_epoch, name)
            assert first == name, f"{first} and {name} lead the quorum in epoch {quorum.leader_epoch}"
        before = self.applied.get(name, 0)
        if end != before:
            self.applied[name] = end
            self.compare_log(machine, node, before, end)
            if end % IMAGES_EVERY == 0:
                self.compare_image(machine, node, end)
            if end > self.end:
                self.advance(node.image, end)
        if node.controller is not None and node.controller.is_active:
            who = name, quorum.leader_epoch
            if who != self.controller:
                self.controller = who
                text = f"is the active controller (epoch {quorum.leader_epoch})"
                self.world.note(Kind.CONTROLLER, text, name)

    def compare_log(self, machine: Machine, node: Node, start: int, end: int) -> None:
        """What this node takes for committed, batch by batch. A snapshot may have brought it over the beginning."""
        log = node.metadata_log.log
        offset = max(start, log.log_start_offset)
        while offset < end:
            found = log.read(offset, READ_BYTES, upto=end, min_one=True)
            assert isinstance(found, Read), f"the metadata log of {machine.name} cannot be read at {offset}: {found}"
            if not found.size:
                return
            for buffer in found.buffers:
                for header in batches(buffer):
                    batch = (header.next_offset, bytes(buffer[header.position : header.end]))
                    known = self.batches.setdefault(header.base_offset, batch)
                    assert known == batch, f"the committed metadata at {header.base_offset} differs on {machine.name}"
                    offset = header.next_offset

    def compare_image(self, machine: Machine, node: Node, end: int) -> None:
        parts = parts_of(node.image)
        known = self.images.setdefault(end, parts)
        assert known == parts, f"the metadata image at {end} differs on {machine.name}"
        controller = node.controller
        if controller is not None and controller.is_active and node.next_offset == end:
            assert parts_of(controller.image) == parts, (
                f"the image of the controller {machine.name} is not what its records make of it"
            )

    def advance(self, image: Image, end: int) -> None:
        """The newest committed metadata moved."""
        self.end = end
        self.image = image
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                at = TopicIdPartition(topic.topic_id, index)
                known = self.history.setdefault(at, {})
                if partition.partition_epoch in known:
                    continue
                last = known[max(known)] if known else None
                if last is not None:
                    assert partition.partition_epoch > last.partition_epoch, f"{topic.name}-{index}: partition epoch"
                    assert partition.leader_epoch >= last.leader_epoch, f"{topic.name}-{index}: leader epoch fell"
                    assert partition.leader == last.leader or partition.leader_epoch > last.leader_epoch, (
                        f"{topic.name}-{index}: another leader in the same leader epoch"
                    )
                    self.only_as_needed(f"{topic.name}-{index}", last, partition)
                    if partition.partition_epoch == last.partition_epoch + 1:
                        self.recoveries.changed(f"{topic.name}-{index}", at, last, partition)
                known[partition.partition_epoch] = partition
                look_at_roles(f"{topic.name}-{index}", image, last, partition)
                self.eligible.look(f"{topic.name}-{index}", at, image, last, partition)
                self.changed(f"{topic.name}-{index}", at, partition)
        self.eligible.looked(image)
        self.standing.looked(image)

    def only_as_needed(self, name: str, last: Partition, new: Partition) -> None:
        """A leader epoch fences everybody: it begins with another leader or other replicas, or if one of them lost
        records, never with an ISR (T17)."""
        if new.partition_epoch != last.partition_epoch + 1:
            return
        has_withdrawn = bool(set(new.withdrawals) - set(last.withdrawals))
        if new.leader_epoch > last.leader_epoch:
            stay = (new.leader, new.replicas, new.adding_replicas) == (last.leader, last.replicas, last.adding_replicas)
            assert has_withdrawn or not stay, (
                f"{name}: leader epoch {new.leader_epoch} begins although leader and replicas stay"
            )
        elif new.leader != NOBODY:
            assert not has_withdrawn, (
                f"{name}: a replica lost records, and what was fetched before counts in leader epoch {new.leader_epoch}"
            )

    def changed(self, name: str, at: TopicIdPartition, partition: Partition) -> None:
        text = (
            f"{name}: leader {partition.leader}, epoch {partition.leader_epoch}, ISR {list(partition.isr)}"
            f" (partition epoch {partition.partition_epoch}){elr_text(partition)}"
        )
        self.world.note(Kind.ISR, text, partition=name, leader_epoch=partition.leader_epoch)
        self.world.damage.metadata_changed(at, name, partition)
        self.partitions.members_hold_truth(at, partition)


def elr_text(partition: Partition) -> str:
    found = {"ELR": partition.elr, "last known": partition.last_known_elr}
    return "".join(f", {what} {list(nodes)}" for what, nodes in found.items() if nodes)


def parts_of(image: Image) -> tuple[str, ...]:
    """All that is in an image, whatever its snapshots would say of it: one that forgets something must be noticed."""
    topics = (f"{topic.topic_id!r} {topic.name} {sorted(topic.partitions.items())}" for topic in image.topics.values())
    configs = (f"{resource} {sorted(said.items())}" for resource, said in image.configs.items() if said)
    brokers = (repr(broker) for broker in image.brokers.values())
    return (
        *sorted(topics),
        *sorted(configs),
        *sorted(brokers),
        repr(sorted(image.features.items())),
        repr(sorted(image.acls.items())),
        str(image.next_producer_id),
    )
