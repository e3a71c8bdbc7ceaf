"""A node's metrics at one moment, computed from its machines' state when somebody looks.

`partition_readings` is a generator, so that a driver with thousands of partitions can let the node work in between;
`families` then needs no walk but that of the controller over the image. Nothing here changes anything.

Invariant: readings of one partition agree with each other; those of different partitions may be of different moments.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from strandline.base import VERSION
from strandline.base.ids import NOBODY
from strandline.base.metrics import Family, Metric, Number
from strandline.base.time import Instant
from strandline.broker.broker import Broker
from strandline.broker.committed import Committed
from strandline.broker.lifecycle import Lifecycle, Registered, Registering, ShutDown, ShuttingDown
from strandline.broker.metrics import of_transactions, table
from strandline.broker.node import Node
from strandline.broker.quotas import metrics as quota_metrics
from strandline.broker.telemetry import metrics as telemetry_metrics
from strandline.controller.controller import Controller
from strandline.controller.partitions.standing import Standing, standings
from strandline.metadata.image import Image, effective_min_isr
from strandline.metadata.registrations import Broker as RegisteredBroker
from strandline.quorum.quorum import Quorum
from strandline.quorum.roles import Observing, Seeking
from strandline.replica.hosting.directories import Directories
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.replicas import Replicas
from strandline.replica.scrubbing.scrubber import Scrubber
from strandline.replica.storage.cordoned import cordoned

STATES: dict[type, str] = {Seeking: "unattached", Observing: "observer"}  # Kafka's words where ours are others


class PartitionReading(Struct, frozen=True, gc=False):
    """One hosted partition. What only a leader knows is 0 elsewhere."""

    topic: str
    partition: int
    log_end_offset: int
    log_start_offset: int
    size_bytes: int
    segments: int
    high_watermark: int
    is_leader: bool = False
    in_sync_replicas: int = 0
    replicas: int = 0
    is_under_replicated: bool = False
    is_under_min_isr: bool = False
    is_at_min_isr: bool = False
    is_reassigning: bool = False
    last_stable_offset_lag: int = 0
    lag: int = -1  # of a follower; -1 elsewhere
    producer_ids: int = 0
    written_to: int = of_transactions.NONE_OPEN  # its oldest open transaction, on a leader
    electable_leaders: int = 0  # of committed metadata, and also what followers know

    @property
    def above_while_under(self) -> int:
        """Records that were written and cannot be read, because too few replicas are in sync (T24)."""
        assert self.high_watermark <= self.log_end_offset
        return self.log_end_offset - self.high_watermark if self.is_under_min_isr else 0


class Totals(Struct, frozen=True):
    """Over the hosted partitions."""

    partitions: int
    leaders: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    reassigning: int
    producer_ids: int
    offline: int


assert set(Totals.__struct_fields__) >= table.TOTALS.keys()


# --- partitions


def partition_readings(replicas: Replicas) -> Iterator[PartitionReading]:
    """One for each partition that this broker hosts and metadata assigns to it. May be taken a few at a time."""
    for hosted in list(replicas.host.partitions.all()):
        if hosted.role is not None and not hosted.gone:
            yield reading_of(replicas, hosted)


def reading_of(replicas: Replicas, hosted: Hosted) -> PartitionReading:
    log = hosted.log
    topic, partition = hosted.name
    at_rest = (
        log.log_end_offset,
        log.log_start_offset,
        log.size_bytes,
        len(log.segments),
        hosted.high_watermark,
    )
    assert log.log_start_offset <= log.log_end_offset
    leader, known = hosted.role, len(log.producers.known)
    state = replicas.host.image.partition(hosted.at)
    electable = 0 if state is None else len(state.isr) + len(state.elr)
    if type(leader) is not Leader:
        lag = max(leader.leader_high_watermark - log.log_end_offset, 0) if type(leader) is Follower else -1
        return PartitionReading(topic, partition, *at_rest, lag=lag, producer_ids=known, electable_leaders=electable)
    adding = () if state is None else state.adding_replicas
    in_sync = len(leader.isr.isr)
    assert in_sync > 0, "the leader is in its ISR"
    # As in Kafka: neither the replicas that a reassignment adds nor their absence from the ISR is under-replication.
    wanted = len(leader.replicas) - len(adding)
    assert leader.last_stable_offset <= leader.high_watermark
    return PartitionReading(
        topic,
        partition,
        *at_rest,
        is_leader=True,
        in_sync_replicas=in_sync,
        replicas=wanted,
        is_under_replicated=in_sync < wanted,
        is_under_min_isr=in_sync < leader.min_isr,
        is_at_min_isr=in_sync == leader.min_isr,
        is_reassigning=state is not None and state.is_moving,
        last_stable_offset_lag=leader.high_watermark - leader.last_stable_offset,
        producer_ids=known,
        written_to=of_transactions.last_written(log),
        electable_leaders=electable,
    )


def totals(replicas: Replicas, readings: Sequence[PartitionReading]) -> Totals:
    assigned = len(replicas.host.image.hosted.get(replicas.me, ())) if replicas.has_caught_up else 0
    return Totals(
        partitions=len(readings),
        leaders=sum(row.is_leader for row in readings),
        under_replicated=sum(row.is_under_replicated for row in readings),
        under_min_isr=sum(row.is_under_min_isr for row in readings),
        at_min_isr=sum(row.is_at_min_isr for row in readings),
        reassigning=sum(row.is_reassigning for row in readings),
        producer_ids=sum(row.producer_ids for row in readings),
        offline=max(0, assigned - len(replicas.assigned.waiting) - len(readings)),
    )


# --- families


def families(node: Node, readings: list[PartitionReading], now: Instant) -> Iterator[Family]:
    """All of a node's metrics; `readings` are those of its partitions."""
    roles = ",".join(node.config.texts("process.roles"))
    assert roles
    yield Family(table.INFO, [((str(node.me), roles, VERSION, node.cluster_id), 1)])
    if node.broker is not None:
        yield from of_broker(node.broker, node.committed, readings, now)
        yield from quota_metrics.families(node.quotas)
        yield from telemetry_metrics.families(node.broker.telemetry)
    if node.controller is not None:
        yield from of_controller(node)
    yield from of_quorum(node.quorum)


def single(metric: Metric, value: Number) -> Family:
    return Family(metric, [((), value)])


def of_broker(broker: Broker, committed: Committed, readings: list[PartitionReading], now: Instant) -> Iterator[Family]:
    yield from of_replicas(broker.replicas, readings)
    written = [row.written_to for row in readings if row.is_leader]
    yield from of_transactions.families(broker.transactions, broker.replicas.producing.verifying, written, now)
    yield from of_directories(broker.replicas.host.directories)
    yield from of_cordoned(broker.replicas.host)
    yield single(table.BROKER_STATE, state_of(broker.lifecycle))
    sessions = broker.replicas.fetching.sessions.sessions
    yield single(table.FETCH_SESSIONS, len(sessions))
    yield single(table.FETCH_SESSION_PARTITIONS, sum(len(session.interests) for session in sessions.values()))
    yield single(table.BROKER_APPLIED, committed.end - 1)
    yield single(table.METADATA_ERRORS, committed.faults)
    yield single(table.BROKER_UNFENCED, int(broker.lifecycle.is_unfenced))


def of_replicas(replicas: Replicas, readings: list[PartitionReading]) -> Iterator[Family]:
    summed = totals(replicas, readings)
    assert summed.leaders <= summed.partitions
    assert summed.under_min_isr + summed.at_min_isr <= summed.leaders
    for field, metric in table.TOTALS.items():
        yield single(metric, getattr(summed, field))
    alterations = replicas.alterations
    yield single(table.ISR_SHRINKS, alterations.shrinks)
    yield single(table.ISR_EXPANDS, alterations.expands)
    yield single(table.FAILED_ISR_UPDATES, alterations.refusals)
    labels = [(row.topic, str(row.partition)) for row in readings]
    for field, metric in table.PARTITION_GAUGES.items():
        yield Family(metric, [(at, int(getattr(row, field))) for at, row in zip(labels, readings, strict=True)])

    behind = [(at, row.lag) for at, row in zip(labels, readings, strict=True) if row.lag >= 0]
    yield Family(table.CONSUMER_LAG, [*behind])
    yield single(table.MAX_LAG, max((lag for _, lag in behind), default=0))
    yield from of_topics(replicas.host)
    yield from of_quotas(replicas)
    waiting = (("Produce",), replicas.producing.waiting), (("Fetch",), replicas.fetching.waiting)
    yield Family(table.DELAYED, [*waiting])
    yield single(table.LOST_RECORDS, replicas.host.ledger.records)
    yield single(table.LOSS_EVENTS, replicas.host.ledger.events)
    yield from of_scrubber(replicas.scrubber)


def of_scrubber(scrubber: Scrubber) -> Iterator[Family]:
    repairs = scrubber.repairs
    counted = (scrubber.bytes, repairs.damaged, repairs.repaired, repairs.lost)
    assert len(counted) == len(table.SCRUBBED)
    yield from map(single, table.SCRUBBED, counted)
    yield single(table.UNREPAIRED, len(repairs.known))


def of_quotas(replicas: Replicas) -> Iterator[Family]:
    leader, follower, futures = replicas.fetching.quota, replicas.fetchers.quota, replicas.futures
    quotas = (
        ("LeaderReplication", leader.rate, leader.bound),
        ("FollowerReplication", follower.rate, follower.bound),
        ("AlterLogDirsReplication", futures.rate, futures.bound),
    )
    yield Family(table.THROTTLED_BYTES, [((name,), rate.total) for name, rate, _ in quotas])
    yield Family(table.THROTTLED_RATE, [((name,), bound) for name, _, bound in quotas])
    yield single(table.DIRECTORY_MOVES, len(futures.moving))


def of_topics(host: Host) -> Iterator[Family]:
    """The sum over the topics is what Kafka has without a topic."""
    for field, metric in table.TOPIC_COUNTERS.items():
        rows = host.partitions.counters.items()
        yield Family(metric, [((topic,), getattr(counters, field)) for topic, counters in rows])
    yield single(table.REPLICATION_IN, host.replicated_in)
    yield single(table.REPLICATION_OUT, host.replicated_out)


def of_directories(directories: Directories) -> Iterator[Family]:
    yield single(table.OFFLINE_DIRECTORIES, len(directories.offline))
    known = [(log_dir.path, 0) for log_dir in directories.live] + [(path, 1) for path in directories.offline]
    assert len(dict(known)) == len(known), "a directory is live or offline"
    yield Family(table.DIRECTORY_OFFLINE, [((path,), is_offline) for path, is_offline in sorted(known)])


def of_cordoned(host: Host) -> Iterator[Family]:
    closed = [log_dir.path for log_dir in cordoned(host)]
    known = [*(log_dir.path for log_dir in host.directories.live), *host.directories.offline]
    assert set(closed) <= set(known)
    yield single(table.CORDONED_DIRECTORIES, len(closed))
    yield Family(table.DIRECTORY_CORDONED, [((path,), int(path in closed)) for path in sorted(known)])


def state_of(lifecycle: Lifecycle) -> int:
    """Kafka's number for it."""
    match lifecycle.role:
        case Registering():
            return 1
        case Registered(fenced=fenced):
            return 2 if fenced else 3
        case ShuttingDown():
            return 6
        case ShutDown():
            return 7


def of_controller(node: Node) -> Iterator[Family]:
    controller = node.controller
    assert controller is not None
    values = {
        "ActiveControllerCount": int(controller.is_active),
        **counts_of(node.image),
        "NewActiveControllersCount": node.forwarding.controllers,
        "TimedOutBrokerHeartbeatCount": controller.counts.timed_out_heartbeats,
        "LastAppliedRecordOffset": node.committed.end - 1,
        "LastCommittedRecordOffset": node.quorum.high_watermark - 1,
        "MetadataErrorCount": node.committed.faults,
    }
    assert values.keys() == table.CONTROLLER_GAUGES.keys(), "what is counted is shown"
    for name, metric in table.CONTROLLER_GAUGES.items():
        yield single(metric, values[name])
    yield single(table.UNDER_MIN_ISR, under_min_isr(node.image))
    yield from of_leaderless(node.image, controller)
    brokers = node.image.brokers.values()
    yield Family(table.BROKER_REGISTRATION, [((str(broker.node_id),), registration_of(broker)) for broker in brokers])
    yield single(table.UNCLEAN_ELECTIONS, controller.counts.unclean_elections)
    yield single(table.ELIGIBLE_ELECTIONS, controller.counts.eligible_elections)
    yield single(table.ELECTIONS, controller.counts.elections)


def of_leaderless(image: Image, controller: Controller) -> Iterator[Family]:
    """What partitions without a leader wait for. Every controller reports what it knows, as for other partitions;
    recoveries are the active one's, those that an operator asked for among them."""
    recoveries, is_managed = controller.recoveries, controller.config.is_recovery_managed
    waiting = manual = 0
    for at, standing in standings(image, controller.static, is_managed):
        if at not in recoveries.partitions:
            waiting += standing.is_recovery
            manual += standing is Standing.OPERATOR
    recovering = waiting + len(recoveries.partitions) if controller.is_active else 0
    yield single(table.RECOVERING_PARTITIONS, recovering)
    yield single(table.MANUAL_ELECTIONS, manual)
    yield single(table.RECOVERIES_FINISHED, recoveries.finished)


def registration_of(broker: RegisteredBroker) -> int:
    """Kafka's number for its state."""
    if broker.fenced:
        return 10
    return 20 if broker.in_controlled_shutdown else 30


def counts_of(image: Image) -> dict[str, int]:
    """Counted in the committed image, so that every controller reports the same, as in Kafka."""
    partitions = offline = imbalanced = 0
    for topic in image.topics.values():
        partitions += len(topic.partitions)
        for partition in topic.partitions.values():
            offline += partition.leader == NOBODY
            imbalanced += partition.leader != partition.replicas[0]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    assert offline <= imbalanced <= partitions
    return {
        "ActiveBrokerCount": len(image.brokers) - fenced,
        "FencedBrokerCount": fenced,
        "ControlledShutdownBrokerCount": sum(broker.in_controlled_shutdown for broker in image.brokers.values()),
        "GlobalTopicCount": len(image.topics),
        "GlobalPartitionCount": partitions,
        "OfflinePartitionsCount": offline,
        "PreferredReplicaImbalanceCount": imbalanced,
    }


def under_min_isr(image: Image) -> int:
    found = 0
    for topic in image.topics.values():
        configured = image.min_isr(topic)
        for partition in topic.partitions.values():
            if len(partition.isr) < configured:  # as a rule not
                found += len(partition.isr) < effective_min_isr(
                    configured, partition.replicas, partition.adding_replicas
                )
    return found


def of_quorum(quorum: Quorum) -> Iterator[Family]:
    yield single(table.CURRENT_LEADER, quorum.leader_id)
    yield single(table.CURRENT_EPOCH, quorum.leader_epoch)
    yield single(table.CURRENT_VOTE, quorum.state.election.voted)
    yield single(table.RAFT_HIGH_WATERMARK, quorum.high_watermark)
    yield single(table.RAFT_LOG_END, quorum.state.log.log_end_offset)
    yield single(table.RAFT_LOG_END_EPOCH, quorum.state.log.last_epoch)
    role = type(quorum.state.role)
    yield Family(table.CURRENT_STATE, [((STATES.get(role, role.__name__.lower()),), 1)])
