"""Can a record be applied to this image? Asked of what comes from the log, before `Image.apply`, and of what the
controller is about to write: a record that nobody can apply would stop all nodes for good.

A sound checksum says that somebody wrote these bytes. It does not say that they are this log's, that this program knows
what they mean, or that their author was right. A record does not fit if
  - it is of a kind, or says a feature's level, that this program does not know;
  - it changes what is not there, or makes a topic that is there;
  - it begins a transaction in another one, or ends one that has not begun;
  - its result is not a valid partition, broker, topic or setting;
  - it has a number that cannot be counted on from: see EPOCH_END.

Invariant: what `why_unfit` lets pass, `Image.apply` takes.
"""

from collections.abc import Callable
from typing import Any

from strandline.base.ids import METADATA_TOPIC_ID, NOBODY, OFFSET_MAX, ZERO_UUID, NodeId, TopicIdPartition, uuid_text
from strandline.metadata import records as r
from strandline.metadata.configs.group_configs import GROUP_CONFIGS
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS
from strandline.metadata.features import READABLE_FEATURES
from strandline.metadata.image import Image
from strandline.metadata.registrations import RECOVERED, RECOVERING, Partition, merged, partition_in
from strandline.metadata.replay import APPLY, changed_by
from strandline.metadata.security.acls import acl_in, why_meaningless
from strandline.metadata.security.scram import MECHANISMS
from strandline.metadata.topic_names import why_illegal

# A partition's epochs are 32-bit numbers, and grow by one with each change. None comes so far by counting, and behind
# this there is room for a million changes.
EPOCH_END = (1 << 31) - (1 << 20)

DESCRIBED_MAX = 300  # characters
SECRET = ("salt", "stored_key", "server_key")  # fields that are in no text
NO_TOPIC = "there is no such topic"
CHANGES = (-1, 0, 1)  # of whether a broker is fenced


def why_unfit(image: Image, record: Any) -> str | None:
    """None: it can be applied."""
    why = WHY_UNFIT.get(type(record))
    return "this program does not know what it means" if why is None else why(changed_by(image, record), record)


def topic(image: Image, record: r.TopicRecord) -> str | None:
    if record.topic_id in image.topics or record.topic_id in (ZERO_UUID, METADATA_TOPIC_ID):
        return "another topic has this id"
    return "there is a topic of this name" if record.name in image.topic_ids else why_illegal(record.name)


def partition(image: Image, record: r.PartitionRecord) -> str | None:
    if record.topic_id not in image.topics:
        return NO_TOPIC
    return "no partition has this number" if record.partition_id < 0 else why_impossible(partition_in(record))


def partition_change(image: Image, record: r.PartitionChangeRecord) -> str | None:
    old = image.partition(TopicIdPartition(record.topic_id, record.partition_id))
    if old is None:
        return "there is no such partition"
    return why_impossible(merged(old, record))


def why_impossible(new: Partition) -> str | None:
    """Why can no partition be like this?"""
    replicas, eligible = new.replicas, (*new.isr, *new.elr)
    known = set(replicas)
    if len(known) != len(replicas) or not replicas or min(replicas) < 0 or len(new.directories) != len(replicas):
        return f"replicas {list(replicas)} in {len(new.directories)} directories: each is another broker, in one"
    if len(set(eligible)) != len(eligible) or not known.issuperset(eligible):
        return f"ISR {list(new.isr)} and ELR {list(new.elr)} are not distinct replicas of {list(replicas)}"
    if new.leader not in (NOBODY, *new.isr) or new.last_known_leader not in (NOBODY, *replicas):
        last = new.last_known_leader
        return f"leader {new.leader} is not in the ISR {list(new.isr)}, or the last leader {last} is not a replica"
    if not known.issuperset(new.adding_replicas):
        return f"{list(new.adding_replicas)} are added, and are not among the replicas {list(replicas)}"
    if new.leader_recovery_state not in (RECOVERED, RECOVERING):
        return f"leader recovery state {new.leader_recovery_state} has no meaning"
    epochs = (new.leader_epoch, new.partition_epoch)
    if min(epochs) < 0 or max(epochs) >= EPOCH_END:
        return f"leader epoch {epochs[0]}, partition epoch {epochs[1]}: no partition comes there by counting"
    return None


def remove_topic(image: Image, record: r.RemoveTopicRecord) -> str | None:
    return None if record.topic_id in image.topics else NO_TOPIC


def config(image: Image, record: r.ConfigRecord) -> str | None:
    tables = {r.TOPIC_RESOURCE: TOPIC_CONFIGS, r.BROKER_RESOURCE: NODE_CONFIGS, r.GROUP_RESOURCE: GROUP_CONFIGS}
    key = tables.get(record.resource_type, {}).get(record.name)
    if key is None or record.value is None or key.is_readable(record.value):
        return None
    return f"{record.value!r} is not a valid value of {record.name}"


def register_broker(image: Image, record: r.RegisterBrokerRecord) -> str | None:
    if record.broker_id < 0 or not 0 <= record.broker_epoch <= OFFSET_MAX:
        return f"no broker {record.broker_id} registers with epoch {record.broker_epoch}"
    return None


def unregister_broker(image: Image, record: r.UnregisterBrokerRecord) -> str | None:
    return why_not_registered(image, record.broker_id, record.broker_epoch)


def broker_change(image: Image, record: r.BrokerRegistrationChangeRecord) -> str | None:
    if record.fenced not in CHANGES or record.in_controlled_shutdown not in (0, 1):
        return f"fenced {record.fenced}, in controlled shutdown {record.in_controlled_shutdown}: that has no meaning"
    return why_not_registered(image, record.broker_id, record.broker_epoch)


def why_not_registered(image: Image, node: int, epoch: int) -> str | None:
    broker = image.brokers.get(NodeId(node))
    if broker is None or broker.epoch != epoch:
        return f"no broker {node} is registered with epoch {epoch}"
    return None


def feature(image: Image, record: r.FeatureLevelRecord) -> str | None:
    """A log that another program began may have features that mean nothing here."""
    highest = READABLE_FEATURES.get(record.name, (0, record.feature_level))[1]
    if 0 <= record.feature_level <= highest:
        return None
    return f"level {record.feature_level} of {record.name} is not known: this program knows levels up to {highest}"


def clear_elr(image: Image, record: r.ClearElrRecord) -> str | None:
    return None if not record.topic_name or record.topic_name in image.topic_ids else NO_TOPIC


def producer_ids(image: Image, record: r.ProducerIdsRecord) -> str | None:
    if record.next_producer_id < image.next_producer_id:
        return f"producer ids below {image.next_producer_id} have been given out"
    return None


def acl(image: Image, record: r.AccessControlEntryRecord) -> str | None:
    new = acl_in(record)
    if record.id in image.acls or record.id == ZERO_UUID:
        return "another ACL has this id"
    return "there is such an ACL" if new in image.acl_ids else why_meaningless(new)


def remove_acl(image: Image, record: r.RemoveAccessControlEntryRecord) -> str | None:
    return None if record.id in image.acls else "there is no such ACL"


def scram(image: Image, record: r.UserScramCredentialRecord) -> str | None:
    if not record.name or record.mechanism not in MECHANISMS or record.iterations <= 0:
        return f"no user has a credential of mechanism {record.mechanism} with {record.iterations} iterations"
    return None


def remove_scram(image: Image, record: r.RemoveUserScramCredentialRecord) -> str | None:
    return None if (record.name, record.mechanism) in image.scram else "there is no such credential"


def quota(image: Image, record: r.ClientQuotaRecord) -> str | None:
    kinds = [part.entity_type for part in record.entity]
    if not kinds or len(set(kinds)) < len(kinds):
        return f"{kinds} are not the types of an entity"
    return None if record.remove or record.value > 0 else f"{record.key} {record.value} is not a quota"


def begin_transaction(image: Image, record: r.BeginTransactionRecord) -> str | None:
    return "the transaction before it has not ended" if image.transaction is not None else None


def end_transaction(image: Image, record: r.EndTransactionRecord | r.AbortTransactionRecord) -> str | None:
    return "no transaction has begun" if image.transaction is None else None


def no_op(image: Image, record: r.NoOpRecord) -> str | None:
    return None


def described(record: Any) -> str:
    """For an operator: what of the record is not as in any other of its kind."""
    plain = type(record)()
    fields = [(name, getattr(record, name)) for name in record.__struct_fields__ if name not in SECRET]
    said = ", ".join(f"{name} {shown(value)}" for name, value in fields if value != getattr(plain, name))
    text = f"{type(record).__name__} with {said}" if said else type(record).__name__
    return text if len(text) <= DESCRIBED_MAX else f"{text[:DESCRIBED_MAX]}…"


def shown(value: Any) -> str:
    return uuid_text(value) if isinstance(value, bytes) else str(value)


WHY_UNFIT: dict[type, Callable[[Image, Any], str | None]] = {
    r.TopicRecord: topic,
    r.PartitionRecord: partition,
    r.PartitionChangeRecord: partition_change,
    r.RemoveTopicRecord: remove_topic,
    r.ConfigRecord: config,
    r.RegisterBrokerRecord: register_broker,
    r.UnregisterBrokerRecord: unregister_broker,
    r.BrokerRegistrationChangeRecord: broker_change,
    r.FeatureLevelRecord: feature,
    r.ClearElrRecord: clear_elr,
    r.ProducerIdsRecord: producer_ids,
    r.AccessControlEntryRecord: acl,
    r.RemoveAccessControlEntryRecord: remove_acl,
    r.UserScramCredentialRecord: scram,
    r.RemoveUserScramCredentialRecord: remove_scram,
    r.ClientQuotaRecord: quota,
    r.BeginTransactionRecord: begin_transaction,
    r.EndTransactionRecord: end_transaction,
    r.AbortTransactionRecord: end_transaction,
    r.NoOpRecord: no_op,
}
assert WHY_UNFIT.keys() == APPLY.keys(), "what fits can be applied"
