"""The cluster as its metadata log describes it: one state, one replay.

The active controller, the standbys and the brokers all hold an `Image` and change it by `apply` alone, record by
record, in log order (`replay`). Nothing here decides anything.

Invariants (executed by `check`):
  - every partition is as `check_partition` wants it
  - every derived index equals its recomputation from the partitions
  - names and ids of topics are one-to-one
"""

from collections.abc import Iterator, Mapping
from typing import Any

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY, STATE_KEYS, TOPIC_CONFIGS, topic_default
from strandline.metadata.records import BROKER_RESOURCE as BROKER_RESOURCE
from strandline.metadata.records import CLUSTER_DEFAULT as CLUSTER_DEFAULT
from strandline.metadata.records import NO_LEADER_CHANGE as NO_LEADER_CHANGE
from strandline.metadata.records import TOPIC_RESOURCE as TOPIC_RESOURCE
from strandline.metadata.registrations import LOST_DIRECTORY as LOST_DIRECTORY
from strandline.metadata.registrations import RECOVERED as RECOVERED
from strandline.metadata.registrations import RECOVERING as RECOVERING
from strandline.metadata.registrations import UNASSIGNED_DIRECTORY as UNASSIGNED_DIRECTORY
from strandline.metadata.registrations import Broker as Broker
from strandline.metadata.registrations import Partition as Partition
from strandline.metadata.registrations import Topic as Topic
from strandline.metadata.registrations import check_partition as check_partition
from strandline.metadata.registrations import directory_of as directory_of
from strandline.metadata.registrations import effective_min_isr as effective_min_isr
from strandline.metadata.registrations import merged as merged
from strandline.metadata.registrations import partition_record as partition_record
from strandline.metadata.registrations import registration_record
from strandline.metadata.replay import APPLY

# Kafka's numbers for where a configuration value comes from (DescribeConfigs, CreateTopics).
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER_DEFAULT, FROM_STATIC, FROM_DEFAULT = 1, 2, 3, 4, 5
NOTHING: Mapping[str, ConfigValue] = {}


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
        # Topics whose `partitions` no other image has: they are changed in place, or a topic's thousands of partitions
        # would be copied for each of them.
        self.own: dict[Uuid, None] = {}
        self.delta = Delta()

    def copy(self) -> "Image":
        """An independent image in the same state, with an empty delta. Values are shared: whoever changes one of them
        first has a copy of it from then on."""
        twin = Image()
        self.own.clear()
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

    def is_online(self, node: NodeId, partition: Partition) -> bool:
        """Is the directory of this broker's replica online, as far as the controller was told (KIP-858)?"""
        broker = self.brokers.get(node)
        return broker is not None and broker.is_online(directory_of(partition, node))

    def lives(self, node: NodeId, partition: Partition) -> bool:
        """May this broker's replica lead now, or enter an ISR?"""
        return self.is_active(node) and self.is_online(node, partition)

    def leaderless(self) -> Iterator[TopicIdPartition]:
        """All partitions that nobody leads."""
        for topic in self.topics.values():
            for index, partition in topic.partitions.items():
                if partition.leader == NOBODY:
                    yield TopicIdPartition(topic.topic_id, index)

    def topic_config(
        self, topic: str, key: str, static: Mapping[str, ConfigValue], broker: str = CLUSTER_DEFAULT
    ) -> ConfigValue:
        """The value in force for a topic: its own, else what was set for this broker, else for all brokers, else what
        the node's static configuration (`static`, parsed) says, unless all nodes must agree on it, else the default."""
        return self.config_in_force(topic, key, static, broker)[0]

    def config_in_force(
        self, topic: str, key: str, static: Mapping[str, ConfigValue], broker: str = CLUSTER_DEFAULT
    ) -> tuple[ConfigValue, int]:
        """The value in force for a topic, and its source. Without a broker's name: on all of them."""
        row = TOPIC_CONFIGS[key]
        own = self.configs.get((TOPIC_RESOURCE, topic))
        if own is not None and key in own:
            return row.parse(own[key]), FROM_TOPIC
        for name, source in ((broker, FROM_BROKER), (CLUSTER_DEFAULT, FROM_CLUSTER_DEFAULT)):
            dynamic = self.configs.get((BROKER_RESOURCE, name))
            if dynamic is None or (source == FROM_BROKER and name == CLUSTER_DEFAULT):
                continue
            for synonym, factor in row.synonyms:
                if synonym in dynamic:
                    value = row.parse(dynamic[synonym])
                    if factor != 1:
                        assert isinstance(value, int)
                        value = value * factor if value >= 0 else -1  # "no limit" is -1 in every unit
                    return value, source
        value, static_source = topic_default(key, NOTHING if key in STATE_KEYS else static)
        return value, FROM_DEFAULT if static_source is None else FROM_STATIC

    def min_isr(self, topic: Topic) -> int:
        """min.insync.replicas as it is configured; `effective_min_isr` says what of it counts. It is state alone (T1):
        whoever has applied the same metadata has the same value."""
        configured = self.topic_config(topic.name, MIN_ISR_KEY, NOTHING)
        assert isinstance(configured, int)
        return configured

    def effective_min_isr(self, topic: Topic, partition: Partition) -> int:
        return effective_min_isr(self.min_isr(topic), partition.replicas, partition.adding_replicas)

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
        if at.topic_id in self.own:
            topic.partitions[at.partition] = new
        else:
            self.own[at.topic_id] = None
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
