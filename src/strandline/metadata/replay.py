"""Replay: what each kind of metadata record does to an image. One function per kind, and none of them decides anything.

Invariant: every kind of record that this code writes has its row in `APPLY`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strandline.base.effects import Endpoint
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition
from strandline.metadata import records as r
from strandline.metadata.registrations import Broker, Topic, merged, partition_in

if TYPE_CHECKING:
    from strandline.metadata.image import Image


def apply_topic(image: Image, record: r.TopicRecord) -> None:
    assert record.name not in image.topic_ids
    image.delta.topics.setdefault(record.topic_id, None)
    image.topics[record.topic_id] = Topic(record.name, record.topic_id, {})
    image.topic_ids[record.name] = record.topic_id


def apply_partition(image: Image, record: r.PartitionRecord) -> None:
    image.put_partition(TopicIdPartition(record.topic_id, record.partition_id), partition_in(record))


def apply_partition_change(image: Image, record: r.PartitionChangeRecord) -> None:
    at = TopicIdPartition(record.topic_id, record.partition_id)
    old = image.partition(at)
    assert old is not None, "a change of a partition that does not exist"
    image.put_partition(at, merged(old, record))


def apply_remove_topic(image: Image, record: r.RemoveTopicRecord) -> None:
    topic = image.topics.pop(record.topic_id)
    image.own.pop(record.topic_id, None)
    del image.topic_ids[topic.name]
    image.delta.topics.setdefault(topic.topic_id, topic)
    for index, partition in topic.partitions.items():
        at = TopicIdPartition(topic.topic_id, index)
        image.delta.partitions.setdefault(at, partition)
        image.unindex(at, partition)
    if image.configs.pop((r.TOPIC_RESOURCE, topic.name), None) is not None:
        image.delta.configs[(r.TOPIC_RESOURCE, topic.name)] = None


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
            cordoned=tuple(record.cordoned_log_dirs or ()),
            follows_on=record.follows_on,
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
            follows_on=old.follows_on,
            cordoned=old.cordoned if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )
    )


def apply_feature(image: Image, record: r.FeatureLevelRecord) -> None:
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level


def apply_clear_elr(image: Image, record: r.ClearElrRecord) -> None:
    """The meaning of "in sync enough" has changed: who leads may by now commit without those who are eligible (T2).
    Where nobody is in sync nobody leads, and they have everything still (L6). Only what has something to clear is
    touched (T3)."""
    named = list(image.topics.values()) if not record.topic_name else [image.topic_named(record.topic_name)]
    for topic in named:
        assert topic is not None, "a topic that does not exist"
        for index, old in topic.partitions.items():
            if not old.isr or not (old.elr or old.last_known_elr):
                continue
            change = r.PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
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
