"""The cluster as its metadata log describes it: one state, one replay.

The active controller, the standbys and the brokers all hold an `Image` and change it by `apply` alone, record by
record, in log order (`replay`). Nothing here decides anything. The tables and their invariants are those of `State`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY, STATE_KEYS, TOPIC_CONFIGS, topic_default
from strandline.metadata.records import BROKER_RESOURCE as BROKER_RESOURCE
from strandline.metadata.records import CLUSTER_DEFAULT as CLUSTER_DEFAULT
from strandline.metadata.records import GROUP_RESOURCE as GROUP_RESOURCE
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
from strandline.metadata.replay import replay
from strandline.metadata.security.acls import acl_record
from strandline.metadata.security.quotas import quota_record
from strandline.metadata.security.scram import credential_record
from strandline.metadata.state import Delta as Delta
from strandline.metadata.state import State

# Kafka's numbers for where a configuration value comes from (DescribeConfigs, CreateTopics).
FROM_TOPIC, FROM_BROKER, FROM_CLUSTER_DEFAULT, FROM_STATIC, FROM_DEFAULT = 1, 2, 3, 4, 5
NOTHING: Mapping[str, ConfigValue] = {}


class Image(State):
    # --- questions

    def is_active(self, node: NodeId) -> bool:
        broker = self.brokers.get(node)
        return broker is not None and broker.is_active

    def is_online(self, node: NodeId, partition: Partition) -> bool:
        """Is the directory of this broker's replica online, as far as the controller knows (KIP-858)?"""
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
        replay(self, record)

    def apply_all(self, batch: list[Any]) -> None:
        for record in batch:
            replay(self, record)

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
        for acl_id, acl in self.acls.items():
            yield acl_record(acl_id, acl)
        if self.next_producer_id:
            yield r.ProducerIdsRecord(broker_id=NOBODY, broker_epoch=-1, next_producer_id=self.next_producer_id)
        for (user, _), credential in self.scram.items():
            yield credential_record(user, credential)
        for entity, quotas in self.quotas.items():
            for key, value in quotas.items():
                yield quota_record(entity, key, value)
