"""A broker leaves thousands of ISRs and leaderships: a few hundred in each step, since a step keeps everybody waiting.

Each partition changes in one record, as it would if all of them changed at once. Where a broker leaves few, all is one
batch.
"""

from collections.abc import Mapping

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.time import NEVER, Instant, after
from strandline.controller.basis import NOTHING, Basis, Departure
from strandline.metadata.image import Broker
from strandline.metadata.records import BrokerRegistrationChangeRecord, LossEvent, PartitionChangeRecord

Changes = tuple[PartitionChangeRecord, ...]
PAUSE_MS = 1  # between two steps, for everything else


class Departures:
    """Those that are under way at the active controller."""

    def __init__(self) -> None:
        self.by_broker: dict[NodeId, Departure] = {}
        self.next = NEVER

    def put(self, node: NodeId, departure: Departure, now: Instant) -> None:
        assert departure.left, "else nothing is to follow"
        self.by_broker[node] = departure
        self.next = after(now, PAUSE_MS)

    def take_due(self, now: Instant) -> list[tuple[NodeId, Departure]]:
        if self.next > now:
            return []
        assert self.by_broker, "somebody is to go on"
        found, self.by_broker, self.next = list(self.by_broker.items()), {}, NEVER
        return found

    def check(self) -> None:
        assert bool(self.by_broker) == (self.next != NEVER), "they go on by themselves"


def plan_departure(
    broker: Broker,
    record: BrokerRegistrationChangeRecord,
    basis: Basis,
    withdrawn: Mapping[TopicIdPartition, LossEvent] = NOTHING,
) -> tuple[Changes, Departure | None]:
    """The first changes, and what is to follow. None: nothing, and `record` is to be written with these changes."""
    assert (record.broker_id, record.broker_epoch) == (broker.node_id, broker.epoch)
    if withdrawn:  # their broker takes the answer for all of them
        return tuple(basis.departure(broker.node_id, lost_tail=False, withdrawn=withdrawn)), None
    return go_on(broker.node_id, Departure(broker.epoch, record, tuple(basis.eligible_in(broker.node_id))), basis)


def go_on(node: NodeId, departure: Departure, basis: Basis) -> tuple[Changes, Departure | None]:
    """The next changes, as above."""
    limit = basis.config.changes_per_step
    within = [at for at in departure.left[:limit] if basis.image.partition(at) is not None]  # the others are deleted
    changes = tuple(basis.departure(node, lost_tail=False, within=within))
    left = departure.left[limit:] or still_in_sync(node, basis, within)
    assert len(changes) <= limit
    return changes, Departure(departure.epoch, departure.record, left) if left else None


def still_in_sync(node: NodeId, basis: Basis, besides: list[TopicIdPartition]) -> tuple[TopicIdPartition, ...]:
    """Partitions that were created in the meantime, or have moved to this broker."""
    done = set(besides)
    found = []
    for at in basis.image.eligible.get(node, {}):
        partition = basis.at(at)[1]
        if at not in done and (partition.leader == node or (node in partition.isr and len(partition.isr) > 1)):
            found.append(at)
    return tuple(sorted(found))
