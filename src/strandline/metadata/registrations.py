"""What the metadata says of one partition, topic or broker: the values of an image, and how records say them.

A change of a partition is merged into the value before it; that decides nothing. The controller decides which changes
there are.

Invariants of a partition (executed by `check_partition`):
  - isr ⊆ replicas, elr ⊆ replicas, isr ∩ elr = ∅, the leader is in the isr or there is none
  - no replica twice, at least one, and a directory for each
  - the original replicas are those that are not being added; a log that Kafka began names none
  - a last known leader is a replica, and there is none while somebody leads
"""

from functools import lru_cache
from typing import TypeVar, cast

from msgspec import field

from strandline.base.effects import Endpoint
from strandline.base.ids import NOBODY, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.base.value import Value
from strandline.metadata import records as r
from strandline.metadata.losses import kept

RECOVERED, RECOVERING = 0, 1
SHARED = 10_000  # sets of replicas, and of directories, that partitions have in common
T = TypeVar("T")

# Reserved directory ids (KIP-858): a replica whose directory is not known yet, one that has none yet, and one whose
# directory is offline, whichever that was.
MIGRATING_DIRECTORY = Uuid(bytes(16))
UNASSIGNED_DIRECTORY = Uuid(bytes(15) + b"\x01")
LOST_DIRECTORY = Uuid(bytes(15) + b"\x02")


class Partition(Value, frozen=True):
    """One partition's registration. `replicas[0]` is the preferred leader; `directories[i]` that of `replicas[i]`."""

    replicas: tuple[NodeId, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    partition_epoch: PartitionEpoch = PartitionEpoch(0)
    leader_recovery_state: int = RECOVERED
    removing_replicas: tuple[NodeId, ...] = ()
    adding_replicas: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    last_known_leader: NodeId = NOBODY  # who led last, while nobody does
    original_replicas: tuple[NodeId, ...] = ()  # while it is reassigned: those of before, in their order
    losses: tuple[r.LossEvent, ...] = ()  # by unclean elections
    withdrawals: tuple[r.LossEvent, ...] = ()  # of replicas that said that they lost records
    lossless_epoch: int = -1  # the last that began with an unclean election that lost nothing

    @property
    def is_moving(self) -> bool:
        """Is it being reassigned to other replicas (KIP-455)?"""
        return bool(self.adding_replicas or self.removing_replicas)


class Topic(Value, frozen=True):
    """Copies of an image share `partitions`; it is changed by `Image.put_partition` alone, while nobody shares it."""

    name: str
    topic_id: Uuid
    partitions: dict[int, Partition]


class Broker(Value, frozen=True):
    """One broker's registration; `endpoints` by listener name."""

    node_id: NodeId
    incarnation_id: Uuid
    epoch: BrokerEpoch
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    features: dict[str, tuple[int, int]] = field(default_factory=dict)
    cordoned: tuple[Uuid, ...] = ()  # directories that get no new replicas
    follows_on: bool = False  # the incarnation before it is the one that vouched for its logs
    protocols: dict[str, int] = field(default_factory=dict)  # numbers of security protocols, by listener name

    @property
    def takes_replicas(self) -> bool:
        """Is there a directory for new ones (KIP-1066)? A broker that names no directories has one."""
        return not self.log_dirs or any(directory not in self.cordoned for directory in self.log_dirs)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens: by this name, else by any."""
        return self.endpoints.get(listener) or next(iter(self.endpoints.values()), None)

    @property
    def is_active(self) -> bool:
        """May it lead, or enter an ISR (KIP-841)?"""
        return not self.fenced and not self.in_controlled_shutdown

    def is_online(self, directory: Uuid) -> bool:
        """May a replica in this directory be alive? A broker that names no directories has only live ones."""
        if directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY):
            return True
        return directory != LOST_DIRECTORY and (not self.log_dirs or directory in self.log_dirs)


def directory_of(partition: Partition, node: NodeId) -> Uuid:
    """Where this broker's replica lies; one that is still to come lies nowhere."""
    if node not in partition.replicas:
        return UNASSIGNED_DIRECTORY
    assert len(partition.directories) == len(partition.replicas)
    return partition.directories[partition.replicas.index(node)]


def effective_min_isr(configured: int, replicas: tuple[NodeId, ...], adding: tuple[NodeId, ...]) -> int:
    """min(min.insync.replicas, replication factor): one formula for controller and leader (T19, L2).

    During a reassignment the replicas being added do not count: the target of a growing set is not there yet.
    """
    assert len(adding) <= len(replicas)
    assert replicas, "a partition has a replica"
    return max(1, min(configured, len(replicas) - len(adding)))  # guard: min-isr-above-the-replicas


def partition_in(record: r.PartitionRecord) -> Partition:
    return Partition(
        replicas=nodes(record.replicas),
        directories=shared(record.directories or tuple(Uuid(bytes(16)) for _ in record.replicas)),
        isr=nodes(record.isr),
        leader=NodeId(record.leader),
        leader_epoch=LeaderEpoch(record.leader_epoch),
        partition_epoch=PartitionEpoch(record.partition_epoch),
        leader_recovery_state=record.leader_recovery_state,
        removing_replicas=nodes(record.removing_replicas),
        adding_replicas=nodes(record.adding_replicas),
        elr=nodes(record.eligible_leader_replicas or ()),
        last_known_elr=nodes(record.last_known_elr or ()),
        last_known_leader=NodeId(record.last_known_leader),
        original_replicas=nodes(record.original_replicas),
        losses=record.losses,
        withdrawals=record.withdrawals,
        lossless_epoch=record.lossless_epoch,
    )


def merged(old: Partition, change: r.PartitionChangeRecord) -> Partition:
    """A change applied. Null leaves a field alone; any named leader, even the same one, opens a new leader epoch."""
    assert len(old.directories) == len(old.replicas), "what is changed was valid"
    leads_anew = change.leader != r.NO_LEADER_CHANGE
    replicas = old.replicas if change.replicas is None else nodes(change.replicas)
    directories = old.directories if change.directories is None else shared(change.directories)
    if change.directories is None and change.replicas is not None:
        known = dict(zip(old.replicas, old.directories, strict=True))
        directories = tuple(known.get(node, Uuid(bytes(16))) for node in replicas)
    return Partition(
        replicas=replicas,
        directories=directories,
        isr=old.isr if change.isr is None else nodes(change.isr),
        leader=NodeId(change.leader) if leads_anew else old.leader,
        leader_epoch=LeaderEpoch(old.leader_epoch + leads_anew),  # guard: leader-epoch-stands-still
        partition_epoch=PartitionEpoch(old.partition_epoch + 1),  # guard: partition-epoch-stands-still
        leader_recovery_state=(
            old.leader_recovery_state if change.leader_recovery_state < 0 else change.leader_recovery_state
        ),
        removing_replicas=old.removing_replicas
        if change.removing_replicas is None
        else nodes(change.removing_replicas),
        adding_replicas=old.adding_replicas if change.adding_replicas is None else nodes(change.adding_replicas),
        elr=old.elr if change.eligible_leader_replicas is None else nodes(change.eligible_leader_replicas),
        last_known_elr=old.last_known_elr if change.last_known_elr is None else nodes(change.last_known_elr),
        last_known_leader=(
            old.last_known_leader
            if change.last_known_leader == r.NO_LEADER_CHANGE
            else NodeId(change.last_known_leader)
        ),
        losses=kept(old.losses + change.losses) if change.losses else old.losses,
        original_replicas=(
            old.original_replicas if change.original_replicas is None else nodes(change.original_replicas)
        ),
        withdrawals=kept(old.withdrawals + change.withdrawals) if change.withdrawals else old.withdrawals,
        lossless_epoch=max(old.lossless_epoch, change.lossless_epoch),
    )


@lru_cache(SHARED)
def shared(values: tuple[T, ...]) -> tuple[T, ...]:
    """Equal tuples become one object: thousands of partitions have a few sets of replicas between them."""
    return values


def nodes(ids: tuple[int, ...]) -> tuple[NodeId, ...]:
    return shared(cast(tuple[NodeId, ...], ids))


def check_partition(partition: Partition) -> None:
    replicas, isr = set(partition.replicas), set(partition.isr)
    assert isr <= replicas
    assert replicas.issuperset(partition.elr)
    assert isr.isdisjoint(partition.elr)
    assert len(isr) == len(partition.isr)
    assert len(set(partition.elr)) == len(partition.elr)
    assert partition.leader == NOBODY or partition.leader in isr
    assert len(partition.directories) == len(partition.replicas)
    assert len(replicas) == len(partition.replicas) > 0
    assert partition.last_known_leader == NOBODY or partition.leader == NOBODY
    assert partition.last_known_leader == NOBODY or partition.last_known_leader in replicas
    assert replicas.issuperset(partition.adding_replicas)
    assert partition.partition_epoch >= partition.leader_epoch >= 0, "a new leader epoch is a change too"
    original = set(partition.original_replicas)
    assert not original or original == replicas - set(partition.adding_replicas)


# --- the same as records


def partition_record(at: TopicIdPartition, partition: Partition) -> r.PartitionRecord:
    assert at.partition >= 0
    return r.PartitionRecord(
        partition_id=at.partition,
        topic_id=at.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr or None,
        last_known_elr=partition.last_known_elr or None,
        last_known_leader=partition.last_known_leader,
        losses=partition.losses,
        original_replicas=partition.original_replicas,
        withdrawals=partition.withdrawals,
        lossless_epoch=partition.lossless_epoch,
    )


def registration_record(broker: Broker) -> r.RegisterBrokerRecord:
    assert broker.node_id >= 0 and broker.epoch >= 0
    return r.RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            r.BrokerEndpoint(name=name, host=at.host, port=at.port, security_protocol=broker.protocols.get(name, 0))
            for name, at in broker.endpoints.items()
        ),
        features=tuple(
            r.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned or None,
        follows_on=broker.follows_on,
    )
