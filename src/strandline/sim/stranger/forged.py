"""What a node would send in this moment, made up by somebody who does not know the cluster's secret.

Everything in it is as it should be: ids, epochs, offsets, sessions. Who believes it moves high watermarks, fences
brokers, changes ISRs, elects controllers. Each function returns a request and its version, or None if nobody could
send one now.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NOBODY, NodeId, Uuid
from strandline.metadata.image import Broker, Image, Partition, Topic
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.sim.simulation import World
from strandline.sim.world.machine import CLUSTER_ID, Machine
from strandline.wire.messages.brokers import alter_partition, assign_replicas_to_dirs
from strandline.wire.messages.brokers.allocate_producer_ids import AllocateProducerIdsRequest
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest, BrokerState
from strandline.wire.messages.brokers.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest, Feature, Listener
from strandline.wire.messages.quorum import begin_quorum_epoch, end_quorum_epoch, fetch_snapshot, vote
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

EPOCHS_AHEAD = (1, 1, 1_000)
INVENTED = NodeId(66)  # a broker that nobody has set up
OWN_PORT = 9092
BYTES = 1 << 20

T = TypeVar("T")
Forged = tuple[Any, int] | None
Forging = Callable[["Insider"], Forged]


class Insider:
    """What somebody knows who looks into every machine, but has no secret. `machine` is the one that is sent to."""

    def __init__(self, world: World, machine: Machine, rng: Random) -> None:
        self.world = world
        self.machine = machine
        self.rng = rng

    @property
    def image(self) -> Image:
        return self.world.laws.metadata.image

    def broker(self) -> Broker | None:
        """Alive or dead."""
        return self.one_of(list(self.image.brokers.values()))

    def led(self) -> tuple[Topic, int, Partition] | None:
        return self.one_of(
            [
                (topic, index, partition)
                for topic in self.image.topics.values()
                for index, partition in topic.partitions.items()
                if partition.leader != NOBODY
            ]
        )

    def led_here(self) -> list[Hosted]:
        node = self.machine.node
        if node is None or node.broker is None:
            return []
        return [hosted for hosted in node.broker.replicas.host.partitions.all() if type(hosted.role) is Leader]

    def other_voter(self) -> NodeId:
        voters = range(1, self.world.options.controllers + 1)
        return NodeId(self.rng.choice([node for node in voters if node != self.machine.node_id]))

    def one_of(self, found: Sequence[T]) -> T | None:
        return self.rng.choice(found) if found else None


# --- to controllers


def votes(knows: Insider) -> Forged:
    """A candidate with the longest log."""
    node = knows.machine.node
    assert node is not None
    log = node.quorum.state.log
    row = vote.PartitionData(
        replica_epoch=node.quorum.leader_epoch + knows.rng.choice(EPOCHS_AHEAD),
        replica_id=knows.other_voter(),
        last_offset_epoch=log.last_epoch,
        last_offset=log.log_end_offset,
        pre_vote=knows.rng.randrange(3) == 0,
    )
    topic = vote.TopicData(topic_name=METADATA_TOPIC, partitions=(row,))
    return VoteRequest(cluster_id=CLUSTER_ID, voter_id=knows.machine.node_id, topics=(topic,)), 2


def begins_epoch(knows: Insider) -> Forged:
    node, leader = knows.machine.node, knows.other_voter()
    assert node is not None
    epoch = node.quorum.leader_epoch + knows.rng.choice(EPOCHS_AHEAD)
    row = begin_quorum_epoch.PartitionData(leader_id=leader, leader_epoch=epoch)
    topic = begin_quorum_epoch.TopicData(topic_name=METADATA_TOPIC, partitions=(row,))
    endpoint = begin_quorum_epoch.LeaderEndpoint(name="CONTROLLER", host=f"n{leader}", port=9093)
    request = BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID, voter_id=knows.machine.node_id, topics=(topic,), leader_endpoints=(endpoint,)
    )
    return request, 1


def ends_epoch(knows: Insider) -> Forged:
    """The leader resigns: in its own epoch, or in one that never was."""
    node = knows.machine.node
    assert node is not None
    leader = node.quorum.leader_id
    row = end_quorum_epoch.PartitionData(
        leader_id=knows.other_voter() if leader in (NOBODY, None, knows.machine.node_id) else leader,
        leader_epoch=node.quorum.leader_epoch + knows.rng.choice((0, *EPOCHS_AHEAD)),
        preferred_candidates=(end_quorum_epoch.ReplicaInfo(candidate_id=knows.machine.node_id),),
    )
    topic = end_quorum_epoch.TopicData(topic_name=METADATA_TOPIC, partitions=(row,))
    return EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=(topic,)), 1


def registers(knows: Insider) -> Forged:
    """Another incarnation of a broker, or a broker that does not exist: it would be named to clients, and lead."""
    broker = knows.broker()
    if broker is None:
        return None
    node = knows.rng.choice((broker.node_id, INVENTED))
    request = BrokerRegistrationRequest(
        broker_id=node,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(knows.rng.randbytes(16)),
        listeners=(Listener(name="PLAINTEXT", host="intruder", port=OWN_PORT),),
        features=tuple(
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ),
        rack=broker.rack,
        log_dirs=broker.log_dirs if node == broker.node_id else (Uuid(knows.rng.randbytes(16)),),
        previous_broker_epoch=knows.rng.choice((-1, broker.epoch)),
    )
    return request, 4


def beats(knows: Insider) -> Forged:
    """In the name of a live broker, to have it fenced, or of a dead one, so that it stays."""
    broker = knows.broker()
    if broker is None:
        return None
    wants = knows.rng.choice(("nothing", "nothing", "fence", "leave", "directories"))
    request = BrokerHeartbeatRequest(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        current_metadata_offset=knows.world.laws.metadata.end - 1,
        want_fence=wants == "fence",
        want_shut_down=wants == "leave",
        offline_log_dirs=broker.log_dirs[:1] if wants == "directories" else (),
    )
    return request, 1


def shrinks_isr(knows: Insider) -> Forged:
    """The leader alone is in sync: or so it seems."""
    found = knows.led()
    if found is None:
        return None
    topic, index, partition = found
    brokers = knows.image.brokers
    kept = (partition.leader,) if knows.rng.randrange(3) else partition.replicas
    rows = tuple(BrokerState(broker_id=node, broker_epoch=brokers[node].epoch) for node in kept if node in brokers)
    if partition.leader not in brokers:
        return None
    row = alter_partition.PartitionData(
        partition_index=index,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=rows,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )
    topics = (alter_partition.TopicData(topic_id=topic.topic_id, partitions=(row,)),)
    epoch = brokers[partition.leader].epoch
    return AlterPartitionRequest(broker_id=partition.leader, broker_epoch=epoch, topics=topics), 3


def assigns_directory(knows: Insider) -> Forged:
    """A replica is in another directory, one that is lost maybe."""
    found, broker = knows.led(), knows.broker()
    if found is None or broker is None:
        return None
    topic, index, _ = found
    row = assign_replicas_to_dirs.TopicData(
        topic_id=topic.topic_id, partitions=(assign_replicas_to_dirs.PartitionData(partition_index=index),)
    )
    directory = knows.rng.choice([*broker.log_dirs, Uuid(knows.rng.randbytes(16))])
    rows = (assign_replicas_to_dirs.DirectoryData(id=directory, topics=(row,)),)
    return AssignReplicasToDirsRequest(broker_id=broker.node_id, broker_epoch=broker.epoch, directories=rows), 0


def allocates(knows: Insider) -> Forged:
    broker = knows.broker()
    return None if broker is None else (AllocateProducerIdsRequest(broker.node_id, broker.epoch), 0)


def fetches_metadata(knows: Insider) -> Forged:
    """As another voter that has everything: what it has counts as committed. Or as an observer from the beginning."""
    node = knows.machine.node
    assert node is not None
    log, is_voter = node.quorum.state.log, knows.rng.randrange(3) > 0
    row = FetchPartition(
        current_leader_epoch=node.quorum.leader_epoch,
        fetch_offset=log.log_end_offset if is_voter else 0,
        last_fetched_epoch=log.last_epoch if is_voter else 0,
        partition_max_bytes=BYTES,
    )
    voter = knows.other_voter() if is_voter else knows.rng.choice((NOBODY, INVENTED))
    topics = (FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(row,)),)
    return FetchRequest(cluster_id=CLUSTER_ID, replica_state=ReplicaState(voter, -1), max_wait_ms=10, topics=topics), 15


def fetches_snapshot(knows: Insider) -> Forged:
    node = knows.machine.node
    assert node is not None
    found = node.metadata_log.latest_snapshot()
    if found is None:
        return None
    row = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=node.quorum.leader_epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=found.end_offset, epoch=found.epoch),
    )
    topics = (fetch_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=(row,)),)
    return FetchSnapshotRequest(cluster_id=CLUSTER_ID, replica_id=knows.other_voter(), topics=topics), 1


# --- to brokers


def replicates(knows: Insider) -> Forged:
    """As a follower that has everything, of each partition that is led here: the high watermark would rise."""
    followers: dict[NodeId, list[Hosted]] = {}
    for hosted in knows.led_here():
        assert type(hosted.role) is Leader
        for replica in hosted.role.followers:
            followers.setdefault(replica, []).append(hosted)
    if not followers:
        return None
    follower = knows.rng.choice(sorted(followers))
    broker = knows.image.brokers.get(follower)
    rows: dict[Uuid, list[FetchPartition]] = {}
    for hosted in followers[follower]:
        assert type(hosted.role) is Leader
        end = hosted.log.log_end_offset
        rows.setdefault(hosted.at.topic_id, []).append(
            FetchPartition(
                partition=hosted.at.partition,
                current_leader_epoch=hosted.role.epoch,
                fetch_offset=end,
                last_fetched_epoch=hosted.log.epoch_at(end - 1) if end > hosted.log.log_start_offset else -1,
                log_start_offset=hosted.log.log_start_offset,
                partition_max_bytes=BYTES,
            )
        )
    session_id, session_epoch = 0, knows.rng.choice((-1, 0))
    topics = tuple(FetchTopic(topic_id=topic_id, partitions=tuple(found)) for topic_id, found in rows.items())
    node = knows.machine.node
    assert node is not None
    assert node.broker is not None
    for context in node.broker.replicas.fetching.sessions.sessions.values():
        if context.replica == follower and knows.rng.randrange(2):
            session_id, session_epoch = context.session_id, context.epoch  # its own, and the turn that is next
    claimed = knows.rng.choice((follower, follower, NOBODY)) if session_id else follower
    return FetchRequest(
        replica_state=ReplicaState(claimed, -1 if broker is None else broker.epoch),
        max_wait_ms=10,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
    ), 15


def adds_partitions(knows: Insider) -> Forged:
    """The form of brokers, about a transaction that is under way."""
    node = knows.machine.node
    assert node is not None
    if node.broker is None:
        return None
    entries = [
        entry.current
        for shard in node.broker.transactions.shards.loaded.values()
        for entry in shard.entries.values()
        if entry.current is not None
    ]
    known, found = knows.one_of(entries), knows.led()
    if known is None or found is None:
        return None
    topic, index, _ = found
    row = AddPartitionsToTxnTransaction(
        transactional_id=known.transactional_id,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        verify_only=knows.rng.randrange(3) == 0,
        topics=(AddPartitionsToTxnTopic(name=topic.name, partitions=(index,)),),
    )
    return AddPartitionsToTxnRequest(transactions=(row,)), knows.rng.choice((4, 5))


def ends_transactions(knows: Insider) -> Forged:
    """A coordinator's decision about a transaction that is open. Operators may send this: with an authorizer those who
    may alter the cluster, without one everybody."""
    hosted = knows.one_of([hosted for hosted in knows.led_here() if hosted.log.transactions.open])
    if hosted is None or not knows.world.options.authorizer:
        return None
    producer_id = knows.rng.choice(list(hosted.log.transactions.open))
    producer = hosted.log.producer_state.producers.known.get(producer_id)
    if producer is None:
        return None
    row = WritableTxnMarkerTopic(name=hosted.name.topic, partition_indexes=(hosted.name.partition,))
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer.epoch + knows.rng.randrange(2),
        transaction_result=knows.rng.randrange(2) == 0,
        topics=(row,),
        coordinator_epoch=producer.coordinator_epoch + 1,
        transaction_version=2,
    )
    return WriteTxnMarkersRequest(markers=(marker,)), 2


TO_CONTROLLERS: tuple[Forging, ...] = (
    votes,
    begins_epoch,
    ends_epoch,
    registers,
    beats,
    beats,
    shrinks_isr,
    assigns_directory,
    allocates,
    fetches_metadata,
    fetches_snapshot,
)
TO_BROKERS: tuple[Forging, ...] = (replicates, replicates, replicates, adds_partitions, ends_transactions)
