"""The cluster as its metadata log describes it: one state, one replay.

The active controller, the standbys and the brokers all hold an `Image` and change it by `apply` alone, record by
record, in log order. Nothing here decides anything.

Invariants (executed by `check`):
  - isr ⊆ replicas, elr ⊆ replicas, isr ∩ elr = ∅, the leader is in the isr or there is none
  - every derived index equals its recomputation from the partitions
  - names and ids of topics are one-to-one
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import field

from strandline.base.effects import Endpoint
from strandline.base.ids import NOBODY, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.base.value import Value
from strandline.metadata import records as r
from strandline.metadata.config_key import ConfigValue
from strandline.metadata.topic_configs import TOPIC_CONFIGS, topic_default

TOPIC_RESOURCE = 2  # Kafka's ConfigResource.Type ids
BROKER_RESOURCE = 4
CLUSTER_DEFAULT = ""  # the resource name of the brokers' cluster-wide default
NO_LEADER_CHANGE = -2
# Kafka's numbers for where a configuration value comes from (DescribeConfigs, CreateTopics).
FROM_TOPIC, FROM_CLUSTER_DEFAULT, FROM_STATIC, FROM_DEFAULT = 1, 3, 4, 5
RECOVERED, RECOVERING = 0, 1


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


class Topic(Value, frozen=True):
    """`partitions` is replaced, never mutated, so that copies of an image may share it."""

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

    @property
    def is_active(self) -> bool:
        """May it lead, or enter an ISR (KIP-841)?"""
        return not self.fenced and not self.in_controlled_shutdown


def effective_min_isr(configured: int, replicas: tuple[NodeId, ...], adding: tuple[NodeId, ...]) -> int:
    """min(min.insync.replicas, replication factor): one formula for controller and leader (T19, L2).

    During a reassignment the replicas being added do not count: the target of a growing set is not there yet.
    """
    return max(1, min(configured, len(replicas) - len(adding)))


class Delta:
    """What changed since the delta was last taken, each with its value before (None: it did not exist)."""

    def __init__(self) -> None:
        self.partitions: dict[TopicIdPartition, Partition | None] = {}
        self.topics: dict[Uuid, Topic | None] = {}
        self.brokers: dict[NodeId, Broker | None] = {}
        self.configs: dict[tuple[int, str], None] = {}
        self.reloaded = False  # a snapshot replaced everything

    def __bool__(self) -> bool:
        return bool(self.partitions or self.topics or self.brokers or self.configs or self.reloaded)


class Image:
    def __init__(self) -> None:
        self.topics: dict[Uuid, Topic] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.brokers: dict[NodeId, Broker] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        # Derived from the partitions: where a broker is a replica, and where it is in the ISR or the ELR.
        self.hosted: dict[NodeId, dict[TopicIdPartition, None]] = {}
        self.eligible: dict[NodeId, dict[TopicIdPartition, None]] = {}
        self.delta = Delta()

    def copy(self) -> "Image":
        """An independent image in the same state, with an empty delta. Values are shared: they are never mutated."""
        twin = Image()
        twin.topics = dict(self.topics)
        twin.topic_ids = dict(self.topic_ids)
        twin.brokers = dict(self.brokers)
        twin.configs = dict(self.configs)
        twin.features = dict(self.features)
        twin.next_producer_id = self.next_producer_id
        twin.hosted = {node: dict(index) for node, index in self.hosted.items()}
        twin.eligible = {node: dict(index) for node, index in self.eligible.items()}
        return twin

    def take_delta(self) -> Delta:
        taken, self.delta = self.delta, Delta()
        return taken

    # --- questions

    def topic_named(self, name: str) -> Topic | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, at: TopicIdPartition) -> Partition | None:
        topic = self.topics.get(at.topic_id)
        return None if topic is None else topic.partitions.get(at.partition)

    def is_active(self, node: NodeId) -> bool:
        broker = self.brokers.get(node)
        return broker is not None and broker.is_active

    def topic_config(self, topic: str, key: str, static: Mapping[str, ConfigValue]) -> ConfigValue:
        """The value in force for a topic: its own, else the brokers' cluster default, else what the node's static
        configuration (`static`, parsed) says, else the default."""
        return self.config_in_force(topic, key, static)[0]

    def config_in_force(self, topic: str, key: str, static: Mapping[str, ConfigValue]) -> tuple[ConfigValue, int]:
        """The value in force for a topic, and the source that it comes from."""
        row = TOPIC_CONFIGS[key]
        own = self.configs.get((TOPIC_RESOURCE, topic))
        if own is not None and key in own:
            return row.parse(own[key]), FROM_TOPIC
        dynamic = self.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT))
        if dynamic is not None:
            for synonym, factor in row.synonyms:
                if synonym in dynamic:
                    value = row.parse(dynamic[synonym])
                    if factor != 1:
                        assert isinstance(value, int)
                        value = value * factor if value >= 0 else -1  # "no limit" is -1 in every unit
                    return value, FROM_CLUSTER_DEFAULT
        value, source = topic_default(key, static)
        return value, FROM_DEFAULT if source is None else FROM_STATIC

    def min_isr(self, topic: Topic, static: Mapping[str, ConfigValue]) -> int:
        """min.insync.replicas as it is configured; `effective_min_isr` says what of it counts."""
        configured = self.topic_config(topic.name, "min.insync.replicas", static)
        assert isinstance(configured, int)
        return configured

    def effective_min_isr(self, topic: Topic, partition: Partition, static: Mapping[str, ConfigValue]) -> int:
        return effective_min_isr(self.min_isr(topic, static), partition.replicas, partition.adding_replicas)

    # --- the one mutator

    def apply(self, record: Any) -> None:
        """Replay one record. One of an unknown kind is an error: skipping it would fork the state."""
        APPLY[type(record)](self, record)

    def apply_all(self, batch: list[Any]) -> None:
        for record in batch:
            APPLY[type(record)](self, record)

    def put_partition(self, at: TopicIdPartition, new: Partition) -> None:
        topic = self.topics[at.topic_id]
        old = topic.partitions.get(at.partition)
        self.delta.partitions.setdefault(at, old)
        self.topics[at.topic_id] = Topic(topic.name, topic.topic_id, {**topic.partitions, at.partition: new})
        self.unindex(at, old)
        for node in new.replicas:
            self.hosted.setdefault(node, {})[at] = None
        for node in new.isr + new.elr:
            self.eligible.setdefault(node, {})[at] = None

    def unindex(self, at: TopicIdPartition, old: Partition | None) -> None:
        if old is None:
            return
        for index, nodes in ((self.hosted, old.replicas), (self.eligible, old.isr + old.elr)):
            for node in nodes:
                index[node].pop(at, None)

    def put_broker(self, new: Broker) -> None:
        self.delta.brokers.setdefault(new.node_id, self.brokers.get(new.node_id))
        self.brokers[new.node_id] = new

    # --- snapshots

    def records(self) -> Iterator[Any]:
        """The state as records: replaying them on an empty image gives an equal one."""
        for name, level in self.features.items():
            yield r.FeatureLevelRecord(name=name, feature_level=level)
        for broker in self.brokers.values():
            yield registration_record(broker)
        for topic in self.topics.values():
            yield r.TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for index, partition in topic.partitions.items():
                yield partition_record(TopicIdPartition(topic.topic_id, index), partition)
        for (kind, name), entries in self.configs.items():
            for key, text in entries.items():
                yield r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=text)
        if self.next_producer_id:
            yield r.ProducerIdsRecord(broker_id=NOBODY, broker_epoch=-1, next_producer_id=self.next_producer_id)

    def check(self) -> None:
        hosted: dict[NodeId, set[TopicIdPartition]] = {}
        eligible: dict[NodeId, set[TopicIdPartition]] = {}
        assert {name: self.topics[i].name for name, i in self.topic_ids.items()} == {n: n for n in self.topic_ids}
        assert len(self.topic_ids) == len(self.topics)
        for topic in self.topics.values():
            for index, partition in topic.partitions.items():
                at = TopicIdPartition(topic.topic_id, index)
                check_partition(partition)
                for node in partition.replicas:
                    hosted.setdefault(node, set()).add(at)
                for node in partition.isr + partition.elr:
                    eligible.setdefault(node, set()).add(at)
        assert {n: set(i) for n, i in self.hosted.items() if i} == hosted
        assert {n: set(i) for n, i in self.eligible.items() if i} == eligible


def check_partition(partition: Partition) -> None:
    assert set(partition.isr) <= set(partition.replicas)
    assert set(partition.elr) <= set(partition.replicas)
    assert not set(partition.isr) & set(partition.elr)
    assert partition.leader == NOBODY or partition.leader in partition.isr
    assert len(partition.directories) == len(partition.replicas)
    assert len(set(partition.replicas)) == len(partition.replicas) > 0


def partition_record(at: TopicIdPartition, partition: Partition) -> r.PartitionRecord:
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
    )


def registration_record(broker: Broker) -> r.RegisterBrokerRecord:
    return r.RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            r.BrokerEndpoint(name=name, host=at.host, port=at.port, security_protocol=0)
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
    )


# --- replay, one function per record kind


def apply_topic(image: Image, record: r.TopicRecord) -> None:
    assert record.name not in image.topic_ids
    image.delta.topics.setdefault(record.topic_id, None)
    image.topics[record.topic_id] = Topic(record.name, record.topic_id, {})
    image.topic_ids[record.name] = record.topic_id


def apply_partition(image: Image, record: r.PartitionRecord) -> None:
    image.put_partition(
        TopicIdPartition(record.topic_id, record.partition_id),
        Partition(
            replicas=nodes(record.replicas),
            directories=record.directories or tuple(Uuid(bytes(16)) for _ in record.replicas),
            isr=nodes(record.isr),
            leader=NodeId(record.leader),
            leader_epoch=LeaderEpoch(record.leader_epoch),
            partition_epoch=PartitionEpoch(record.partition_epoch),
            leader_recovery_state=record.leader_recovery_state,
            removing_replicas=nodes(record.removing_replicas),
            adding_replicas=nodes(record.adding_replicas),
            elr=nodes(record.eligible_leader_replicas or ()),
            last_known_elr=nodes(record.last_known_elr or ()),
        ),
    )


def apply_partition_change(image: Image, record: r.PartitionChangeRecord) -> None:
    at = TopicIdPartition(record.topic_id, record.partition_id)
    old = image.partition(at)
    assert old is not None, "a change of a partition that does not exist"
    image.put_partition(at, merged(old, record))


def merged(old: Partition, change: r.PartitionChangeRecord) -> Partition:
    """A change applied. Null leaves a field alone; any named leader, even the same one, opens a new leader epoch."""
    leads_anew = change.leader != NO_LEADER_CHANGE
    replicas = old.replicas if change.replicas is None else nodes(change.replicas)
    directories = old.directories if change.directories is None else tuple(change.directories)
    if change.directories is None and change.replicas is not None:
        known = dict(zip(old.replicas, old.directories, strict=True))
        directories = tuple(known.get(node, Uuid(bytes(16))) for node in replicas)
    return Partition(
        replicas=replicas,
        directories=directories,
        isr=old.isr if change.isr is None else nodes(change.isr),
        leader=NodeId(change.leader) if leads_anew else old.leader,
        leader_epoch=LeaderEpoch(old.leader_epoch + leads_anew),
        partition_epoch=PartitionEpoch(old.partition_epoch + 1),
        leader_recovery_state=(
            old.leader_recovery_state if change.leader_recovery_state < 0 else change.leader_recovery_state
        ),
        removing_replicas=old.removing_replicas
        if change.removing_replicas is None
        else nodes(change.removing_replicas),
        adding_replicas=old.adding_replicas if change.adding_replicas is None else nodes(change.adding_replicas),
        elr=old.elr if change.eligible_leader_replicas is None else nodes(change.eligible_leader_replicas),
        last_known_elr=old.last_known_elr if change.last_known_elr is None else nodes(change.last_known_elr),
    )


def apply_remove_topic(image: Image, record: r.RemoveTopicRecord) -> None:
    topic = image.topics.pop(record.topic_id)
    del image.topic_ids[topic.name]
    image.delta.topics.setdefault(topic.topic_id, topic)
    for index, partition in topic.partitions.items():
        at = TopicIdPartition(topic.topic_id, index)
        image.delta.partitions.setdefault(at, partition)
        image.unindex(at, partition)
    if image.configs.pop((TOPIC_RESOURCE, topic.name), None) is not None:
        image.delta.configs[(TOPIC_RESOURCE, topic.name)] = None


def apply_config(image: Image, record: r.ConfigRecord) -> None:
    resource = (record.resource_type, record.resource_name)
    entries = dict(image.configs.get(resource, {}))
    if record.value is None:
        entries.pop(record.name, None)
    else:
        entries[record.name] = record.value
    if entries:
        image.configs[resource] = entries
    else:
        image.configs.pop(resource, None)
    image.delta.configs[resource] = None


def apply_register_broker(image: Image, record: r.RegisterBrokerRecord) -> None:
    image.put_broker(
        Broker(
            node_id=NodeId(record.broker_id),
            incarnation_id=record.incarnation_id,
            epoch=BrokerEpoch(record.broker_epoch),
            endpoints={e.name: Endpoint(e.host, e.port) for e in record.end_points},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        )
    )


def apply_unregister_broker(image: Image, record: r.UnregisterBrokerRecord) -> None:
    old = image.brokers.pop(NodeId(record.broker_id))
    assert old.epoch == record.broker_epoch
    image.delta.brokers.setdefault(old.node_id, old)


def apply_broker_change(image: Image, record: r.BrokerRegistrationChangeRecord) -> None:
    """`fenced` and `in_controlled_shutdown` are deltas: 0 leaves them, 1 sets; −1 unfences."""
    old = image.brokers[NodeId(record.broker_id)]
    assert old.epoch == record.broker_epoch
    image.put_broker(
        Broker(
            node_id=old.node_id,
            incarnation_id=old.incarnation_id,
            epoch=old.epoch,
            endpoints=old.endpoints,
            rack=old.rack,
            fenced=old.fenced if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown > 0,
            log_dirs=tuple(record.log_dirs) or old.log_dirs,
            features=old.features,
        )
    )


def apply_feature(image: Image, record: r.FeatureLevelRecord) -> None:
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level


def apply_clear_elr(image: Image, record: r.ClearElrRecord) -> None:
    """The meaning of "in sync enough" has changed, so nobody is eligible by the old one (T2). Only partitions with
    something to clear are touched (T3). One without an ISR remembers who was eligible, or nobody would be left (L6)."""
    named = list(image.topics.values()) if not record.topic_name else [image.topic_named(record.topic_name)]
    for topic in named:
        assert topic is not None, "a topic that does not exist"
        for index, old in topic.partitions.items():
            if not (old.elr or (old.isr and old.last_known_elr)):
                continue
            known = () if old.isr else tuple(n for n in old.replicas if n in old.elr or n in old.last_known_elr)
            change = r.PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=known)
            image.put_partition(TopicIdPartition(topic.topic_id, index), merged(old, change))


def apply_producer_ids(image: Image, record: r.ProducerIdsRecord) -> None:
    assert record.next_producer_id >= image.next_producer_id
    image.next_producer_id = record.next_producer_id


def apply_nothing(image: Image, record: object) -> None:
    """NoOpRecord: it moves the offset and says nothing."""


APPLY: dict[type, Callable[[Image, Any], None]] = {
    r.TopicRecord: apply_topic,
    r.PartitionRecord: apply_partition,
    r.PartitionChangeRecord: apply_partition_change,
    r.RemoveTopicRecord: apply_remove_topic,
    r.ConfigRecord: apply_config,
    r.RegisterBrokerRecord: apply_register_broker,
    r.UnregisterBrokerRecord: apply_unregister_broker,
    r.BrokerRegistrationChangeRecord: apply_broker_change,
    r.FeatureLevelRecord: apply_feature,
    r.ClearElrRecord: apply_clear_elr,
    r.ProducerIdsRecord: apply_producer_ids,
    r.NoOpRecord: apply_nothing,
}


def nodes(ids: tuple[int, ...]) -> tuple[NodeId, ...]:
    return tuple(NodeId(i) for i in ids)
