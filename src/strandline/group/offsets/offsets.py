"""What the groups of one `__consumer_offsets` partition have committed, and the records that say so."""

from collections.abc import Iterable

from msgspec.structs import replace

from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.wire.batch import build
from strandline.wire.messages.groups.group_records import (
    GroupKey,
    GroupValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)


class CommittedOffset(Value, frozen=True):
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
    if producer is None:
        return bytearray(build(drafts))
    return bytearray(build(drafts, producer_id=producer[0], producer_epoch=producer[1], transactional=True))


def expired(offsets: Offsets, empty_since: Instant, retention_ms: int, now: Instant) -> list[tuple[str, int]]:
    """Which offsets an empty group no longer needs: retention counts from when it became empty (KIP-211)."""
    assert retention_ms >= 0
    return [at for at, committed in offsets.items() if max(committed.committed_at, empty_since) + retention_ms <= now]
