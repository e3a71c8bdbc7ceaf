"""TxnOffsetCommit version 6, which is newer than kio: topics go by id."""

from typing import Any

from tests.rows import each

from strandline.base.ids import Uuid
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

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
                generation_id=5,
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
