"""TxnOffsetCommit: offsets that count when the producer's transaction is committed (KIP-98, KIP-447, KIP-890).

Rules:
  - a member commits only in its generation, also for a producer; a client that names neither member nor generation may
    commit for any group (older clients)
  - the offsets are records of the transaction: its coordinator knows of their partition before they are written
  - they are answered when they are committed to the log, and shown to nobody before their marker is
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC
from strandline.base.time import Instant
from strandline.group.answers import coordinator_error
from strandline.group.committing import Committing
from strandline.group.offsets import batch_of, offset_record, recorded
from strandline.group.shard import Shard
from strandline.group.shards import GroupShards
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ADDS_SINCE = 5  # the version that also adds the group's offsets to the transaction
ABORTABLE_SINCE = 4

# What a transaction's coordinator cannot say yet, as clients of a group's coordinator know it.
NOT_YET = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


class Transactional:
    def __init__(self, shards: GroupShards, committing: Committing) -> None:
        self.shards = shards
        self.committing = committing

    def commit_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request: TxnOffsetCommitRequest = received.message
        shard: Shard | ErrorCode = self.shards.of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        known = self.committing.topics.known(request)
        why = shard if isinstance(shard, ErrorCode) else self.why_not(shard, request, now)
        if why is not None or isinstance(shard, ErrorCode):
            return [self.answer(received, why or ErrorCode.NONE)]
        accepted = self.committing.acceptable(request, known, now)
        if not accepted:
            return [self.answer(received, ErrorCode.NONE)]

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            if error is ErrorCode.NONE:
                for at, (topic, index, committed) in enumerate(accepted):
                    key = request.group_id, topic, index
                    shard.pending.add(request.producer_id, key, recorded(committed, base_offset + at))
            return [self.answer(received, for_member(error, received.to.api_version))]

        batch = batch_of(
            [offset_record(request.group_id, *entry) for entry in accepted],
            now,
            producer=(request.producer_id, request.producer_epoch),
        )
        return self.shards.log.append_internal(
            OFFSETS_TOPIC,
            shard.partition,
            batch,
            now,
            done,
            transaction=request.transactional_id,
            adds=received.to.api_version >= ADDS_SINCE,
        )

    def why_not(self, shard: Shard, request: TxnOffsetCommitRequest, now: Instant) -> ErrorCode | None:
        if request.producer_id < 0 or request.producer_epoch < 0 or not request.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
            return None
        group = shard.groups.get(request.group_id)
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION
        why = group.why_not(request.member_id, request.group_instance_id, request.generation_id)
        if why is None:
            group.members[request.member_id].heard(now)
        return why

    def answer(self, received: Received, error: ErrorCode) -> Reply:
        request: TxnOffsetCommitRequest = received.message
        known = self.committing.topics.known(request)
        limit = self.committing.config.offset_metadata_max_bytes

        def error_of(topic: str, index: int, metadata: str | None) -> ErrorCode:
            if (topic, index) not in known:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            is_long = error is ErrorCode.NONE and len(metadata or "") > limit
            return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_long else error

        topics = []
        for topic in request.topics:
            rows = tuple(
                TxnOffsetCommitResponsePartition(
                    partition_index=p.partition_index,
                    error_code=error_of(topic.name, p.partition_index, p.committed_metadata),
                )
                for p in topic.partitions
            )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows))
        return Reply(received.to, TxnOffsetCommitResponse(topics=tuple(topics)))


def for_member(error: ErrorCode, version: int) -> ErrorCode:
    """What a write in a transaction was refused for."""
    if error in NOT_YET:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return coordinator_error(error)
