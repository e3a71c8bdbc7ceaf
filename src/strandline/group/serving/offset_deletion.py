"""OffsetDelete: offsets of a group that nobody reads from any more (KIP-496).

Invariant: a deletion is answered when its tombstones are committed, so an offset that is reported as deleted never
comes back.
"""

from collections.abc import Callable

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.group.classic.group import Group
from strandline.group.classic.subscribed import subscribed_topics
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.topics import Topics
from strandline.group.serving.answers import membership_error
from strandline.group.serving.retention import Retention
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards
from strandline.wire.messages.groups.consumer_protocol import PROTOCOL_TYPE
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Verdicts = dict[tuple[str, int], ErrorCode]  # by topic and partition


class OffsetDeletion:
    def __init__(self, shards: GroupShards, topics: Topics, retention: Retention) -> None:
        self.shards = shards
        self.topics = topics
        self.retention = retention

    def delete_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request: OffsetDeleteRequest = received.message
        shard: Shard | ErrorCode = self.shards.of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        why = shard if isinstance(shard, ErrorCode) else why_not_delete(shard, request.group_id)
        if why is not None or isinstance(shard, ErrorCode):
            return [Reply(received.to, OffsetDeleteResponse(error_code=why or ErrorCode.NONE))]
        verdicts = self.verdicts(shard, request)
        doomed = [at for at, error in verdicts.items() if not error and is_there(shard, (request.group_id, *at))]
        if not doomed:
            return [Reply(received.to, answer(request, verdicts))]

        def done(error: ErrorCode) -> list[Effect]:
            failed = membership_error(error)
            whole = OffsetDeleteResponse(error_code=failed) if failed else answer(request, verdicts)
            return [Reply(received.to, whole)]

        assert shard.knows(request.group_id) and len(set(doomed)) == len(doomed)
        tombstones = self.retention.tombstones(shard, request.group_id, doomed, with_group=False)
        return self.retention.forget(shard, tombstones, now, done)

    def verdicts(self, shard: Shard, request: OffsetDeleteRequest) -> Verdicts:
        is_read = reading(shard.groups.get(request.group_id))
        found: Verdicts = {}
        for topic in request.topics:
            known = self.topics.image.topic_named(topic.name)
            for row in topic.partitions:
                if known is None or row.partition_index not in known.partitions:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read(topic.name) else ErrorCode.NONE
                found[topic.name, row.partition_index] = error
        return found


def reading(group: Group | ConsumerGroup | None) -> Callable[[str], bool]:
    """Does the group read a topic, or may it?"""
    if group is None:
        return lambda topic: False
    if isinstance(group, ConsumerGroup):
        return group.is_subscribed_to
    subscribed = subscribed_topics(group)
    return lambda topic: subscribed is None or topic in subscribed


def why_not_delete(shard: Shard, group_id: str) -> ErrorCode | None:
    """Members of another kind than consumers may read from anywhere."""
    if not shard.knows(group_id):
        return ErrorCode.GROUP_ID_NOT_FOUND
    group = shard.groups.get(group_id)
    is_foreign = isinstance(group, Group) and bool(group.members) and group.protocol_type != PROTOCOL_TYPE
    return ErrorCode.NON_EMPTY_GROUP if is_foreign else None


def is_there(shard: Shard, key: tuple[str, str, int]) -> bool:
    """Is there anything to delete? Also what is pending in a transaction, or is being written: that comes before the
    tombstone in the log."""
    return key[1:] in shard.offsets.get(key[0], {}) or shard.is_changing(key)


def answer(request: OffsetDeleteRequest, verdicts: Verdicts) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=row.partition_index, error_code=verdicts[topic.name, row.partition_index]
                    )
                    for row in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
