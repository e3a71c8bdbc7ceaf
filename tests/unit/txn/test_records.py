"""The records of __transaction_state: Kafka's bytes, round trips, refusals."""

import pytest
from msgspec.structs import replace

from strandline.base.time import Instant
from strandline.txn.states import State
from strandline.txn.transaction import Transaction, value_of
from strandline.wire.compress import Corrupt
from strandline.wire.messages.transactions.transaction_records import (
    PartitionsSchema,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

OPEN = TransactionLogValue(
    producer_id=7,
    previous_producer_id=5,
    producer_epoch=3,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(0, 2)),),
    transaction_last_update_timestamp_ms=1001,
    transaction_start_timestamp_ms=1000,
    client_transaction_version=2,
)


def test_a_key_is_kafkas_bytes() -> None:
    assert encode_key("id") == b"\x00\x00" + b"\x00\x02id"
    assert decode_key(encode_key("id")) == "id"


def test_a_value_is_kafkas_bytes() -> None:
    plain = "0000 0000000000000007 0003 0000ea60 01 00000001 000174 00000002 00000000 00000002"
    assert encode_value(OPEN, 0).hex() == (plain + "00000000000003e9 00000000000003e8").replace(" ", "")
    # Its tagged fields: the previous producer id (tag 0), and the client's transaction version (tag 2).
    flexible = "0001 0000000000000007 0003 0000ea60 01 02 0274 03 00000000 00000002 00"
    tagged = "02 00 08 0000000000000005 02 02 0002"
    assert encode_value(OPEN, 1).hex() == (flexible + "00000000000003e9 00000000000003e8" + tagged).replace(" ", "")


def test_a_transaction_without_partitions_has_null() -> None:
    assert encode_value(TransactionLogValue(), 0).hex()[34:42] == "ffffffff"


def test_values_come_back() -> None:
    assert decode_value(encode_value(OPEN, 1)) == OPEN
    assert decode_value(None) is None


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x02" + bytes(40), encode_value(OPEN, 1)[:-1]])
def test_a_value_that_makes_no_sense_is_corrupt(value: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_value(value)


def test_a_key_of_another_kind_is_passed() -> None:
    assert decode_key(b"\x00\x01\x00\x02id") is None


def test_only_an_empty_id_has_null_partitions() -> None:
    """Kafka's tools fail at null in any other state."""
    complete = Transaction("id", 7, 0, 60_000, State.COMPLETE_COMMIT, Instant(1))
    assert value_of(complete).transaction_partitions == ()
    assert value_of(replace(complete, state=State.EMPTY)).transaction_partitions is None
