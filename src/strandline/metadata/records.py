"""The records of the cluster's metadata log, by Kafka's names and numbers.

A record says what has become true; nobody may refuse it. Null in a change means "as before". Which version a record is
written in is `metadata.framing`'s matter.

Tags from 10,000 on are of our own: what KIP-966 wants to be known and Kafka's records have no field for. Kafka's
readers skip them.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.metadata.security.records import SECURITY_RECORDS
from strandline.metadata.security.records import AccessControlEntryRecord as AccessControlEntryRecord
from strandline.metadata.security.records import ClientQuotaRecord as ClientQuotaRecord
from strandline.metadata.security.records import RemoveAccessControlEntryRecord as RemoveAccessControlEntryRecord
from strandline.metadata.security.records import RemoveUserScramCredentialRecord as RemoveUserScramCredentialRecord
from strandline.metadata.security.records import UserScramCredentialRecord as UserScramCredentialRecord
from strandline.wire.schema import (
    Bool,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    UInt16,
    UuidField,
    V,
    message,
)

NO_LEADER_CHANGE = -2  # PartitionChangeRecord.leader: the leader is as before
TOPIC_RESOURCE = 2  # ConfigRecord.resource_type, by Kafka's ConfigResource.Type ids
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
CLUSTER_DEFAULT = ""  # ConfigRecord.resource_name of the brokers' cluster-wide default


class BrokerEndpoint(Group, frozen=True):
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class BrokerFeature(Group, frozen=True):
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord(Message, frozen=True):
    """A broker's process has registered; this replaces an earlier registration of the same id."""

    broker_id: Int32 = 0
    is_migrating_zk_broker: Annotated[Bool, V("2+")] = False
    incarnation_id: UuidField = ZERO_UUID
    broker_epoch: Int64 = 0
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: NullableString = None
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, V("1+")] = False
    log_dirs: Annotated[tuple[UuidField, ...], V("3+"), Tag(0)] = ()
    cordoned_log_dirs: Annotated[tuple[UuidField, ...] | None, V("4+"), Nullable("4+"), Tag(1)] = None
    # What its files say of whole logs was said by the incarnation that was registered before.
    follows_on: Annotated[Bool, Tag(10_000)] = False


@message(key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord(Message, frozen=True):
    """The registration is gone."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@message(key=2, versions="0", flexible="0+")
class TopicRecord(Message, frozen=True):
    """A topic exists; its partitions follow."""

    name: String = ""
    topic_id: UuidField = ZERO_UUID


class LossEvent(Group, frozen=True):
    """What an election, or a cut, took or may have taken of a partition: an entry of the loss ledger."""

    start: Int64 = 0  # the first offset that may be lost
    end: Int64 = -1  # one past the last; −1: nobody knows
    certainty: Int8 = 0  # see `metadata.losses`
    replica: Int32 = -1  # who was elected, or whose log was cut
    old_epoch: Int32 = -1  # the leader epoch before it
    new_epoch: Int32 = -1  # the one that began with it, or in which it happened
    time_ms: Int64 = -1  # since the Unix epoch
    cause: String = ""


@message(key=3, versions="0-2", flexible="0+")
class PartitionRecord(Message, frozen=True):
    """The whole state of a new partition."""

    partition_id: Int32 = -1
    topic_id: UuidField = ZERO_UUID
    replicas: tuple[Int32, ...] = ()
    isr: tuple[Int32, ...] = ()
    removing_replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[tuple[UuidField, ...], V("1+")] = ()
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, V("2+"), Nullable("2+"), Tag(1)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, V("2+"), Nullable("2+"), Tag(2)] = None
    last_known_leader: Annotated[Int32, Tag(10_000)] = -1
    losses: Annotated[tuple[LossEvent, ...], Tag(10_001)] = ()
    original_replicas: Annotated[tuple[Int32, ...], Tag(10_002)] = ()  # in their order before a reassignment
    withdrawals: Annotated[tuple[LossEvent, ...], Tag(10_003)] = ()
    lossless_epoch: Annotated[Int32, Tag(10_004)] = -1  # the last that began with an unclean election that lost nothing


@message(key=4, versions="0", flexible="0+")
class ConfigRecord(Message, frozen=True):
    """One configuration entry of a topic or broker; null deletes it."""

    resource_type: Int8 = 0
    resource_name: String = ""
    name: String = ""
    value: NullableString = None


@message(key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord(Message, frozen=True):
    """What changes in a partition. The partition epoch grows by one, the leader epoch if `leader` is named."""

    partition_id: Int32 = -1
    topic_id: UuidField = ZERO_UUID
    isr: Annotated[tuple[Int32, ...] | None, Nullable(), Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = NO_LEADER_CHANGE
    replicas: Annotated[tuple[Int32, ...] | None, Nullable(), Tag(2)] = None
    removing_replicas: Annotated[tuple[Int32, ...] | None, Nullable(), Tag(3)] = None
    adding_replicas: Annotated[tuple[Int32, ...] | None, Nullable(), Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = -1
    directories: Annotated[tuple[UuidField, ...] | None, V("1+"), Nullable("1+"), Tag(8)] = None
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, V("2+"), Nullable("2+"), Tag(6)] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, V("2+"), Nullable("2+"), Tag(7)] = None
    last_known_leader: Annotated[Int32, Tag(10_000)] = NO_LEADER_CHANGE
    losses: Annotated[tuple[LossEvent, ...], Tag(10_001)] = ()  # those that come with the change
    original_replicas: Annotated[tuple[Int32, ...] | None, Nullable(), Tag(10_002)] = None
    withdrawals: Annotated[tuple[LossEvent, ...], Tag(10_003)] = ()  # of replicas that said that they lost records
    lossless_epoch: Annotated[Int32, Tag(10_004)] = -1  # that begins with an unclean election that loses nothing


@message(key=9, versions="0", flexible="0+")
class RemoveTopicRecord(Message, frozen=True):
    """The topic and all of its partitions are gone."""

    topic_id: UuidField = ZERO_UUID


@message(key=12, versions="0", flexible="0+")
class FeatureLevelRecord(Message, frozen=True):
    """The finalized level of a feature; 0 means it is off."""

    name: String = ""
    feature_level: Int16 = 0


@message(key=15, versions="0", flexible="0+")
class ProducerIdsRecord(Message, frozen=True):
    """All producer ids below `next_producer_id` have been handed out in blocks."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


@message(key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message, frozen=True):
    """What changes in a registration: `fenced` −1 unfences, 0 leaves, 1 fences; `in_controlled_shutdown` 1 sets."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, V("1+"), Tag(1)] = 0
    log_dirs: Annotated[tuple[UuidField, ...], V("2+"), Tag(2)] = ()
    cordoned_log_dirs: Annotated[tuple[UuidField, ...] | None, V("3+"), Nullable("3+"), Tag(3)] = None


@message(key=20, versions="0", flexible="0+")
class NoOpRecord(Message, frozen=True):
    """The controller is alive; the offset moves."""


@message(key=23, versions="0", flexible="0+")
class BeginTransactionRecord(Message, frozen=True):
    """The records up to the matching end take effect together (KIP-868)."""

    name: Annotated[NullableString, Tag(0)] = None


@message(key=24, versions="0", flexible="0+")
class EndTransactionRecord(Message, frozen=True):
    """The records since the matching begin take effect."""


@message(key=25, versions="0", flexible="0+")
class AbortTransactionRecord(Message, frozen=True):
    """The records since the matching begin are void."""

    reason: Annotated[NullableString, Tag(0)] = None


class ControllerEndpoint(Group, frozen=True):
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class ControllerFeature(Group, frozen=True):
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=27, versions="0", flexible="0+")
class RegisterControllerRecord(Message, frozen=True):
    """A controller's process has registered."""

    controller_id: Int32 = 0
    incarnation_id: UuidField = ZERO_UUID
    zk_migration_ready: Bool = False
    end_points: tuple[ControllerEndpoint, ...] = ()
    features: tuple[ControllerFeature, ...] = ()


@message(key=28, versions="0", flexible="0+")
class ClearElrRecord(Message, frozen=True):
    """All ELRs of a topic (of every topic, if the name is empty) are cleared."""

    topic_name: String = ""


RECORDS: tuple[type[Message], ...] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
    RegisterControllerRecord,
    ClearElrRecord,
    *SECURITY_RECORDS,
)
