"""Transactions on the wire, where kio cannot say: records of __transaction_state, and TxnOffsetCommit version 6."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each

from strandline.base.ids import Uuid
from strandline.wire.api import API_BY_KEY, is_allowed
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.compress import Corrupt
from strandline.wire.messages.transactions.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KEY = TransactionLogKey(transactional_id="id")
VALUE = TransactionLogValue(
    producer_id=7,
    producer_epoch=2,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(0, 3)),),
    transaction_last_update_timestamp_ms=1000,
    transaction_start_timestamp_ms=900,
)
TAGGED = TransactionLogValue(
    producer_id=7,
    previous_producer_id=6,
    next_producer_id=8,
    producer_epoch=32_767,
    next_producer_epoch=0,
    transaction_partitions=None,
    client_transaction_version=2,
)
COMMON = "0000000000000007 0002 0000ea60 01 "
TIMES = "00000000000003e8 0000000000000384 "


def test_a_key_is_kafkas_bytes() -> None:
    assert encode_key(KEY) == b"\x00\x00" + b"\x00\x02id"
    assert decode_key(encode_key(KEY)) == KEY


@each(
    ("value", "version", "expected"),
    [
        (VALUE, 0, "0000" + COMMON + "00000001 000174 00000002 00000000 00000003" + TIMES),
        (VALUE, 1, "0001" + COMMON + "02 0274 03 00000000 00000003 00" + TIMES + "00"),
        (
            TAGGED,
            1,
            "0001 0000000000000007 7fff 00000000 00 00 0000000000000000 0000000000000000"
            "04 0008 0000000000000006 0108 0000000000000008 0202 0002 0302 0000",
        ),
    ],
)
def test_a_value_is_kafkas_bytes(value: TransactionLogValue, version: int, expected: str) -> None:
    raw = encode_value(value, version)
    assert raw.hex() == expected.replace(" ", "")
    assert decode_value(raw) == value


def test_the_newest_version_is_written_unless_another_is_asked_for() -> None:
    assert encode_value(TAGGED) == encode_value(TAGGED, 1)


def test_an_id_without_a_transaction_has_no_list_of_partitions_in_either_version() -> None:
    empty = TransactionLogValue(transaction_partitions=None)
    assert [decode_value(encode_value(empty, version)) for version in (0, 1)] == [empty, empty]


def test_a_tombstone_has_no_value() -> None:
    assert decode_value(None) is None


def test_a_key_of_a_later_version_is_skipped() -> None:
    assert decode_key(b"\x00\x01" + encode_key(KEY)[2:]) is None


@each("raw", [None, b"", b"\x00", b"\x00\x00", b"\x00\x00\x00\x05id", encode_key(KEY) + b"x"], ids=str)
def test_a_bad_key_is_corrupt(raw: bytes | None) -> None:
    with pytest.raises(Corrupt):
        decode_key(raw)


@each("raw", [b"", b"\x00\x02", b"\xff\xff", encode_value(VALUE)[:-1], encode_value(VALUE) + b"x"], ids=str)
def test_a_bad_value_is_corrupt(raw: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_value(raw)


@settings(max_examples=100, deadline=None)
@given(value=st.sampled_from([VALUE, TAGGED]), position=st.integers(0, 60), garbage=st.binary(max_size=20))
def test_garbage_raises_nothing_but_corrupt(value: TransactionLogValue, position: int, garbage: bytes) -> None:
    raw = encode_value(value)
    broken = raw[:position] + garbage + raw[position + len(garbage) :]
    for decode in (decode_key, decode_value):
        with contextlib.suppress(Corrupt):
            decode(broken)


TOPIC_ID = Uuid(bytes(range(16)))
OFFSET = TxnOffsetCommitRequestPartition(
    partition_index=1, committed_offset=9, committed_leader_epoch=4, committed_metadata=None
)


@each(
    ("message", "expected"),
    [
        (
            TxnOffsetCommitRequest(
                transactional_id="id",
                group_id="g",
                producer_id=7,
                producer_epoch=2,
                generation_id_or_member_epoch=5,
                member_id="m",
                topics=(TxnOffsetCommitRequestTopic(topic_id=TOPIC_ID, partitions=(OFFSET,)),),
            ),
            "036964 0267 0000000000000007 0002 00000005 026d 00 02"
            + TOPIC_ID.hex()
            + "02 00000001 0000000000000009 00000004 00 00 00 00",
        ),
        (
            TxnOffsetCommitResponse(
                topics=(
                    TxnOffsetCommitResponseTopic(
                        topic_id=TOPIC_ID,
                        partitions=(TxnOffsetCommitResponsePartition(partition_index=1, error_code=90),),
                    ),
                )
            ),
            "00000000 02" + TOPIC_ID.hex() + "02 00000001 005a 00 00 00",
        ),
    ],
    ids=lambda row: type(row).__name__,
)
def test_version_6_of_an_offset_commit_names_topics_by_id(message: Any, expected: str) -> None:
    raw = encode_bytes(message, 6)
    assert raw.hex() == expected.replace(" ", "")
    assert decode_all(type(message), 6, raw) == message


@each("key", [24, 25, 26, 27, 28, 61, 65, 66])
def test_no_listener_answers_transactions_yet(key: int) -> None:
    assert API_BY_KEY[key].advertised is None
    assert not is_allowed(key, is_controller=False)
    assert not is_allowed(key, is_controller=True)
