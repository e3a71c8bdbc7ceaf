"""Replay: what each kind of metadata record does to the state. One function a kind, and none decides anything.

Invariant: every kind of record that this code writes has its row in `APPLY`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from strandline.base.effects import Endpoint
from strandline.base.ids import BrokerEpoch, NodeId, TopicIdPartition
from strandline.metadata import records as r
from strandline.metadata.registrations import Broker, merged, partition_in
from strandline.metadata.security.acls import acl_in
from strandline.metadata.security.quotas import entity_of
from strandline.metadata.security.scram import credential_in
from strandline.metadata.state import State

S = TypeVar("S", bound=State)


def replay(state: State, record: Any) -> None:
    APPLY[type(record)](changed_by(state, record), record)


def changed_by(state: S, record: Any) -> S:
    """The state that the record changes: within a transaction, what counts when it ends."""
    return state if state.transaction is None or type(record) in BOUNDS else state.transaction


def apply_topic(state: State, record: r.TopicRecord) -> None:
    state.add_topic(record.name, record.topic_id)


def apply_partition(state: State, record: r.PartitionRecord) -> None:
    state.put_partition(TopicIdPartition(record.topic_id, record.partition_id), partition_in(record))


def apply_partition_change(state: State, record: r.PartitionChangeRecord) -> None:
    at = TopicIdPartition(record.topic_id, record.partition_id)
    old = state.partition(at)
    assert old is not None, "a change of a partition that does not exist"
    state.put_partition(at, merged(old, record))


def apply_remove_topic(state: State, record: r.RemoveTopicRecord) -> None:
    state.remove_topic(record.topic_id)


def apply_config(state: State, record: r.ConfigRecord) -> None:
    state.put_config((record.resource_type, record.resource_name), record.name, record.value)


def apply_register_broker(state: State, record: r.RegisterBrokerRecord) -> None:
    assert record.broker_id >= 0 and record.broker_epoch >= 0, "an epoch is the offset of a record"
    state.put_broker(
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
            protocols={e.name: e.security_protocol for e in record.end_points if e.security_protocol},
        )
    )


def apply_unregister_broker(state: State, record: r.UnregisterBrokerRecord) -> None:
    state.remove_broker(NodeId(record.broker_id), record.broker_epoch)


def apply_broker_change(state: State, record: r.BrokerRegistrationChangeRecord) -> None:
    """`fenced` and `in_controlled_shutdown` are deltas: 0 leaves them, 1 sets; −1 unfences."""
    old = state.brokers[NodeId(record.broker_id)]
    assert old.epoch == record.broker_epoch
    state.put_broker(
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
            protocols=old.protocols,
            cordoned=old.cordoned if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )
    )


def apply_feature(state: State, record: r.FeatureLevelRecord) -> None:
    assert record.feature_level >= 0, "a level that no program knows"
    state.put_feature(record.name, record.feature_level)


def apply_clear_elr(state: State, record: r.ClearElrRecord) -> None:
    """The meaning of "in sync enough" has changed: who leads may by now commit without those who are eligible (T2).
    Where nobody is in sync nobody leads, and they have everything still (L6). Only what has something to clear is
    touched (T3)."""
    named = list(state.topics.values()) if not record.topic_name else [state.topic_named(record.topic_name)]
    for topic in named:
        assert topic is not None, "a topic that does not exist"
        for index, old in topic.partitions.items():
            if not old.isr or not (old.elr or old.last_known_elr):
                continue
            change = r.PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
            state.put_partition(TopicIdPartition(topic.topic_id, index), merged(old, change))


def apply_producer_ids(state: State, record: r.ProducerIdsRecord) -> None:
    state.put_next_producer_id(record.next_producer_id)


def apply_acl(state: State, record: r.AccessControlEntryRecord) -> None:
    state.add_acl(record.id, acl_in(record))


def apply_remove_acl(state: State, record: r.RemoveAccessControlEntryRecord) -> None:
    state.remove_acl(record.id)


def apply_scram(state: State, record: r.UserScramCredentialRecord) -> None:
    assert record.name and record.iterations > 0
    state.put_scram((record.name, record.mechanism), credential_in(record))


def apply_remove_scram(state: State, record: r.RemoveUserScramCredentialRecord) -> None:
    state.put_scram((record.name, record.mechanism), None)


def apply_quota(state: State, record: r.ClientQuotaRecord) -> None:
    assert record.entity and (record.remove or record.value > 0), "no quota lets nothing through"
    state.put_quota(entity_of(record.entity), record.key, None if record.remove else record.value)


def apply_begin(state: State, record: r.BeginTransactionRecord) -> None:
    state.begin_transaction()


def apply_end(state: State, record: r.EndTransactionRecord) -> None:
    state.end_transaction()


def apply_abort(state: State, record: r.AbortTransactionRecord) -> None:
    state.abort_transaction()


def apply_nothing(state: State, record: object) -> None:
    """NoOpRecord: it moves the offset and says nothing."""


APPLY: dict[type, Callable[[State, Any], None]] = {
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
    r.AccessControlEntryRecord: apply_acl,
    r.RemoveAccessControlEntryRecord: apply_remove_acl,
    r.UserScramCredentialRecord: apply_scram,
    r.RemoveUserScramCredentialRecord: apply_remove_scram,
    r.ClientQuotaRecord: apply_quota,
    r.BeginTransactionRecord: apply_begin,
    r.EndTransactionRecord: apply_end,
    r.AbortTransactionRecord: apply_abort,
    r.NoOpRecord: apply_nothing,
}
BOUNDS = frozenset({r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord})  # of transactions
assert APPLY.keys() <= set(r.RECORDS), "a kind of record that nobody can read"
