"""BrokerRegistration (key 62): a broker asks for a broker epoch (KIP-631; KIP-966 adds the previous epoch).

Two fields are of our own, and readers that do not know them skip them: `lost_replicas`, of which the broker knows that
they lost records, and `whole_after`, the incarnation after which it found its logs whole.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    NullableString,
    String,
    Tag,
    UInt16,
    UuidField,
    V,
    message,
)


class Listener(Group, frozen=True):
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class Feature(Group, frozen=True):
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class LostPartition(Group, frozen=True):
    """What this broker's replica of a partition lost."""

    partition_index: Int32 = 0
    start: Int64 = 0  # no record below it is lost
    end: Int64 = -1  # none from it on is lost; -1: nobody knows
    cause: Int8 = 0  # see `metadata.losses`
    time_ms: Int64 = -1  # when it was found


class LostTopic(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[LostPartition, ...] = ()


@message(key=62, kind="request", versions="0-4", flexible="0+")
class BrokerRegistrationRequest(Message, frozen=True):
    broker_id: Int32 = 0
    cluster_id: String = ""
    incarnation_id: UuidField = ZERO_UUID
    listeners: tuple[Listener, ...] = ()
    features: tuple[Feature, ...] = ()
    rack: NullableString = None
    is_migrating_zk_broker: Annotated[Bool, V("1+")] = False
    log_dirs: Annotated[tuple[UuidField, ...], V("2+")] = ()
    previous_broker_epoch: Annotated[Int64, V("3+")] = -1
    lost_replicas: Annotated[tuple[LostTopic, ...], Tag(10_000)] = ()
    whole_after: Annotated[UuidField, Tag(10_001)] = ZERO_UUID


@message(key=62, kind="response", versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
