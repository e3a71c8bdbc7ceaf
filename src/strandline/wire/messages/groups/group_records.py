"""The records of the __consumer_offsets topic: what groups have committed, and the groups themselves.

Key and value each start with an int16, their version; the key's also says which kind of record it is. Kinds that we do
not know are not an error: readers skip them. Reading raises `Corrupt`, and nothing else.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.base.ports import Buffer
from strandline.wire.codec import encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.messages.consumer_groups.records import (
    CONSUMER_GROUP_RECORDS,
    CONSUMER_GROUP_VALUE_VERSION,
    ConsumerGroupKey,
    ConsumerGroupValue,
)
from strandline.wire.messages.prefixed import decode_body, prefixed_version
from strandline.wire.schema import (
    Bytes,
    Group,
    Int32,
    Int64,
    Message,
    NullableString,
    String,
    Tag,
    UuidField,
    V,
    message,
)


@message(key=1, versions="0-1")
class OffsetCommitKey(Message, frozen=True):
    """Prefixed with version 0 or 1, both of one form; 1 is written."""

    group: String = ""
    topic: String = ""
    partition: Int32 = 0


@message(key=1, versions="0-4", flexible="4+")
class OffsetCommitValue(Message, frozen=True):
    """A null value instead removes the offset."""

    offset: Int64 = 0
    leader_epoch: Annotated[Int32, V("3+")] = -1
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, V("1")] = -1
    topic_id: Annotated[UuidField, V("4+"), Tag(0)] = ZERO_UUID


@message(key=2, versions="2")
class GroupMetadataKey(Message, frozen=True):
    """Prefixed with version 2."""

    group: String = ""


class MemberMetadata(Group, frozen=True):
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("3+")] = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Annotated[Int32, V("1+")] = -1
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


@message(key=2, versions="0-4", flexible="4+")
class GroupMetadataValue(Message, frozen=True):
    """A null value instead removes the group."""

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: NullableString = None
    leader: NullableString = None
    current_state_timestamp: Annotated[Int64, V("2+")] = -1
    members: tuple[MemberMetadata, ...] = ()


GroupKey = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey
GroupValue = OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue

VALUE_OF: dict[type[GroupKey], type[GroupValue]] = {
    OffsetCommitKey: OffsetCommitValue,
    GroupMetadataKey: GroupMetadataValue,
}
VALUE_OF.update(CONSUMER_GROUP_RECORDS.items())
KEY_BY_VERSION: dict[int, type[GroupKey]] = {version: key for key in VALUE_OF for version in key.versions}
OF_CONSUMER_GROUPS: frozenset[type] = frozenset(CONSUMER_GROUP_RECORDS.values())

WRITTEN_VALUE_VERSION = 3  # every Kafka since 2.3 reads it
WITH_TOPIC_ID = 4  # the version of an offset that is held to its topic's id, as in Kafka


def encode_key(key: GroupKey) -> bytes:
    version = key.versions[-1]
    return version.to_bytes(2, "big") + encode_bytes(key, version)


def encode_value(value: GroupValue, version: int | None = None) -> bytes:
    if version is None:
        version = written_version(value)
    return version.to_bytes(2, "big") + encode_bytes(value, version)


def written_version(value: GroupValue) -> int:
    if type(value) in OF_CONSUMER_GROUPS:
        return CONSUMER_GROUP_VALUE_VERSION
    is_held = isinstance(value, OffsetCommitValue) and value.topic_id != ZERO_UUID
    return WITH_TOPIC_ID if is_held else WRITTEN_VALUE_VERSION


def decode_key(buffer: Buffer | None) -> GroupKey | None:
    """The key of a record; None if its kind is not one of ours."""
    version = prefixed_version(buffer)
    cls = KEY_BY_VERSION.get(version)
    return None if cls is None else decode_body(cls, version, buffer)


def decode_value(key: GroupKey, buffer: Buffer | None) -> GroupValue | None:
    """The value that belongs to `key`; None if the record is a tombstone."""
    if buffer is None:
        return None
    version = prefixed_version(buffer)
    cls = VALUE_OF[type(key)]
    if version not in cls.versions:
        raise Corrupt(f"{cls.__name__} version {version} is not known")
    return decode_body(cls, version, buffer)
