"""The records of the __transaction_state topic: a transactional id, and where its transaction stands.

Key and value each start with an int16, their version. A null value removes the id. Keys of later versions are not an
error: readers skip them. Reading raises `Corrupt`, and nothing else.
"""

from typing import Annotated

from strandline.base.ports import Buffer
from strandline.wire.codec import encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.messages.prefixed import decode_body, prefixed_version
from strandline.wire.schema import Group, Int8, Int16, Int32, Int64, Message, Nullable, String, Tag, V, message


@message(key=0, versions="0")
class TransactionLogKey(Message, frozen=True):
    """Prefixed with version 0."""

    transactional_id: String = ""


class PartitionsSchema(Group, frozen=True):
    topic: String = ""
    partition_ids: tuple[Int32, ...] = ()


@message(key=0, versions="0-1", flexible="1+")
class TransactionLogValue(Message, frozen=True):
    """Version 0 has no tagged fields; a cluster of transaction version 1 or 2 writes version 1."""

    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, V("1+"), Tag(0)] = -1
    next_producer_id: Annotated[Int64, V("1+"), Tag(1)] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, V("1+"), Tag(3)] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Annotated[tuple[PartitionsSchema, ...] | None, Nullable()] = ()
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, V("1+"), Tag(2)] = 0


TAGGED = TransactionLogValue.versions[-1]


def encode_key(key: TransactionLogKey) -> bytes:
    version = key.versions[-1]
    return version.to_bytes(2, "big") + encode_bytes(key, version)


def encode_value(value: TransactionLogValue, version: int = TAGGED) -> bytes:
    assert version in value.versions
    return version.to_bytes(2, "big") + encode_bytes(value, version)


def decode_key(buffer: Buffer | None) -> TransactionLogKey | None:
    """The key of a record; None if its kind is not ours."""
    version = prefixed_version(buffer)
    return decode_body(TransactionLogKey, version, buffer) if version in TransactionLogKey.versions else None


def decode_value(buffer: Buffer | None) -> TransactionLogValue | None:
    """The value of a record; None if the record is a tombstone."""
    if buffer is None:
        return None
    version = prefixed_version(buffer)
    if version not in TransactionLogValue.versions:
        raise Corrupt(f"{TransactionLogValue.__name__} version {version} is not known")
    return decode_body(TransactionLogValue, version, buffer)
