"""The records of the __transaction_state topic: one for each transactional id, by its latest state.

Key and value each start with an int16, their version. Reading raises `Corrupt`, and nothing else.
"""

from typing import Annotated

from strandline.base.ports import Buffer
from strandline.wire.codec import encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.messages.prefixed import decode_body, prefixed_version
from strandline.wire.schema import Group, Int8, Int16, Int32, Int64, Message, Nullable, String, Tag, V, message


@message(key=0, versions="0")
class TransactionLogKey(Message, frozen=True):
    transactional_id: String = ""


class PartitionsSchema(Group, frozen=True):
    topic: String = ""
    partition_ids: tuple[Int32, ...] = ()


@message(key=0, versions="0-1", flexible="1+")
class TransactionLogValue(Message, frozen=True):
    """A null value instead removes the id. Partitions are null when the transaction has none."""

    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, V("1+"), Tag(0)] = -1
    next_producer_id: Annotated[Int64, V("1+"), Tag(1)] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, V("1+"), Tag(3)] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Annotated[tuple[PartitionsSchema, ...] | None, Nullable()] = None
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, V("1+"), Tag(2)] = 0


KEY_VERSION = 0


def encode_key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return KEY_VERSION.to_bytes(2, "big") + encode_bytes(key, KEY_VERSION)


def encode_value(value: TransactionLogValue, version: int) -> bytes:
    """Version 1, with its tagged fields, is written from transaction.version 1 on."""
    assert version in value.versions
    return version.to_bytes(2, "big") + encode_bytes(value, version)


def decode_key(buffer: Buffer | None) -> str | None:
    """The transactional id; None if the record is of a kind that this program does not know."""
    if prefixed_version(buffer) != KEY_VERSION:
        return None
    return decode_body(TransactionLogKey, KEY_VERSION, buffer).transactional_id


def decode_value(buffer: Buffer | None) -> TransactionLogValue | None:
    """None if the record is a tombstone."""
    if buffer is None:
        return None
    version = prefixed_version(buffer)
    if version not in TransactionLogValue.versions:
        raise Corrupt(f"TransactionLogValue version {version} is not known")
    return decode_body(TransactionLogValue, version, buffer)
