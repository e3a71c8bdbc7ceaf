"""CreateTopics (key 19)."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    UuidField,
    V,
    message,
)


class CreatableReplicaAssignment(Group, frozen=True):
    partition_index: Int32 = 0
    broker_ids: tuple[Int32, ...] = ()


class CreatableTopicConfig(Group, frozen=True):
    name: String = ""
    value: NullableString = None


class CreatableTopic(Group, frozen=True):
    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@message(key=19, kind="request", versions="2-7", flexible="5+")
class CreateTopicsRequest(Message, frozen=True):
    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopicConfigs(Group, frozen=True):
    name: String = ""
    value: NullableString = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


class CreatableTopicResult(Group, frozen=True):
    name: String = ""
    topic_id: Annotated[UuidField, V("7+")] = ZERO_UUID
    error_code: Int16 = 0
    error_message: NullableString = None
    topic_config_error_code: Annotated[Int16, V("5+"), Tag(0)] = 0
    num_partitions: Annotated[Int32, V("5+")] = -1
    replication_factor: Annotated[Int16, V("5+")] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, V("5+"), Nullable("5+")] = ()


@message(key=19, kind="response", versions="2-7", flexible="5+")
class CreateTopicsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...] = ()
