"""What the groups of one `__consumer_offsets` partition have committed, and the records that say so."""

from collections.abc import Iterable
from struct import Struct

from msgspec.structs import replace

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.wire.batch import build
from strandline.wire.messages.groups.group_records import (
    WITH_TOPIC_ID,
    WRITTEN_VALUE_VERSION,
    GroupKey,
    GroupValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_value,
    encode_key,
    encode_value,
)


class CommittedOffset(Value, frozen=True, gc=False):  # there may be millions, and none is part of a cycle
    """`offset` is the next one to consume; `metadata` is the client's own text. `topic_id` is that of the topic when it
    was committed: one that is created anew under the name has another. Zero: an older record, which did not say.
    `record_offset` is that of its record in `__consumer_offsets`; −1 while it is not written."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: Instant
    topic_id: Uuid = ZERO_UUID
    record_offset: int = -1


Offsets = dict[tuple[str, int], CommittedOffset]  # by (topic, partition)


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> tuple[GroupKey, GroupValue]:
    assert partition >= 0
    return (
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.committed_at,
            topic_id=committed.topic_id,
        ),
    )


BEGIN = Struct(">hqi")  # version, offset, leader epoch
SIZED_AT = BEGIN.size  # then the metadata's size, and the metadata
END_3 = Struct(">q")  # commit timestamp
END_4 = Struct(">q3s16s")  # and what announces the topic id: the number of tagged fields, the tag, its size
ANNOUNCED = bytes((1, 0, 16))


def restored_offset(value: bytes, record_offset: int) -> CommittedOffset:
    """What a record of `offset_record` says. Raises `Corrupt`. A load reads millions of them: the two forms that
    coordinators write are read in place, and all others by their schema."""
    if len(value) > SIZED_AT + END_3.size:
        version, offset, epoch = BEGIN.unpack_from(value)
        if version == WITH_TOPIC_ID:
            end = SIZED_AT + value[SIZED_AT]  # one byte, if below 128: one more than the text has
            if SIZED_AT < end < SIZED_AT + 0x80 and len(value) == end + END_4.size:
                text = value[SIZED_AT + 1 : end]
                stamp, announced, topic_id = END_4.unpack_from(value, end)
                if announced == ANNOUNCED and text.isascii():
                    return CommittedOffset(offset, epoch, text.decode(), stamp, topic_id, record_offset)
        elif version == WRITTEN_VALUE_VERSION:
            end = SIZED_AT + 2 + (value[SIZED_AT] << 8 | value[SIZED_AT + 1])
            text = value[SIZED_AT + 2 : end]
            if len(value) == end + END_3.size and text.isascii():
                (stamp,) = END_3.unpack_from(value, end)
                return CommittedOffset(offset, epoch, text.decode(), stamp, ZERO_UUID, record_offset)
    found = decode_value(OffsetCommitKey(), value)
    assert isinstance(found, OffsetCommitValue), "it belongs to this key"
    stamp = Instant(found.commit_timestamp)
    return CommittedOffset(found.offset, found.leader_epoch, found.metadata, stamp, Uuid(found.topic_id), record_offset)


def recorded(committed: CommittedOffset, record_offset: int) -> CommittedOffset:
    assert record_offset >= 0
    return replace(committed, record_offset=record_offset)


def batch_of(
    records: Iterable[tuple[GroupKey, GroupValue | None]], now: Instant, producer: tuple[int, int] | None = None
) -> bytearray:
    """The records as one batch; a value of None is a tombstone. `producer`: id and epoch of the one in whose
    transaction they are."""
    drafts = [(now, encode_key(key), None if value is None else encode_value(value), ()) for key, value in records]
    assert drafts, "a batch has records"
    assert producer is None or min(producer) >= 0, "a transaction has a producer"
    if producer is None:
        return bytearray(build(drafts))
    return bytearray(build(drafts, producer_id=producer[0], producer_epoch=producer[1], transactional=True))


def expired(offsets: Offsets, empty_since: Instant, retention_ms: int, now: Instant) -> list[tuple[str, int]]:
    """Which offsets an empty group no longer needs: retention counts from when it became empty (KIP-211)."""
    assert retention_ms >= 0
    return [at for at, committed in offsets.items() if max(committed.committed_at, empty_since) + retention_ms <= now]
