"""Who may commit and fetch offsets of a consumer group: its members, by their epoch (KIP-848).

Rules:
  - while a group has no members, whoever is none may commit
  - a member speaks with its present epoch; with an older one it may still commit for partitions that it has had since
    then (KIP-1251): its answer with the newer epoch may be under way
  - who says neither who it is nor its epoch may fetch: administrators do
"""

from collections.abc import Iterable

from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.group.consumer.group import ConsumerGroup

MEMBER_EPOCH_SINCE = 9  # versions of OffsetCommit


def why_not_commit(
    group: ConsumerGroup, member_id: str, epoch: int, version: int, partitions: Iterable[tuple[Uuid, int]]
) -> ErrorCode | None:
    if epoch < 0 and not group.members:
        return None
    member = group.members.get(member_id)
    if member is None:  # guard: stranger-commits-for-a-group
        return ErrorCode.UNKNOWN_MEMBER_ID
    if version < MEMBER_EPOCH_SINCE and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return why_stale(group, member_id, epoch, partitions)


def why_not_commit_in_transaction(
    group: ConsumerGroup, member_id: str, epoch: int, instance_id: str | None, partitions: Iterable[tuple[Uuid, int]]
) -> ErrorCode | None:
    """Producers know classic errors alone."""
    if epoch < 0 and (not group.members or (not member_id and instance_id is None)):
        return None
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None if why_stale(group, member_id, epoch, partitions) is None else ErrorCode.ILLEGAL_GENERATION


def why_stale(
    group: ConsumerGroup, member_id: str, epoch: int, partitions: Iterable[tuple[Uuid, int]]
) -> ErrorCode | None:
    member = group.members[member_id]
    error = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        return error
    since = [member.held_since(*at) for at in partitions]
    return None if all(began is not None and began <= epoch for began in since) else error  # guard: older-epoch-commits


def why_not_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
    if member_id is None and epoch < 0:
        return None
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return None
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
