"""TxnOffsetCommit: offsets that a producer commits for a group in its transaction (KIP-98, KIP-447).

Rules:
  - a member speaks in the present generation, by its present id, and as the present holder of its instance id. An older
    client says nothing of these, and is fenced by its producer epoch alone
  - the partition is part of the transaction before the record is written (KIP-890)
  - the answer leaves when the record is committed; the offset counts when the marker is
"""

from collections import Counter

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, Uuid
from strandline.base.time import Instant
from strandline.group.config import GroupConfig
from strandline.group.consumer import speaking
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import batch_of, offset_record, recorded
from strandline.group.offsets.topics import Topics
from strandline.group.serving import answers
from strandline.group.serving.answers import coordinator_error
from strandline.group.serving.committing import acceptable, note_commit
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

LOADING_KNOWN = 2  # the version from which clients bear COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)
ABORTABLE_SINCE = 4
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
ADDS_SINCE = 5  # from this version on the client leaves it to brokers to add the partition to its transaction

# What the transaction's coordinator cannot say yet. The producer asks again, and looks for no other group coordinator.
NOT_YET = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)


class Transactional:
    def __init__(self, config: GroupConfig, shards: GroupShards, topics: Topics) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics

    def commit_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request: TxnOffsetCommitRequest = received.message
        version, known = received.to.api_version, self.topics.known(request)
        shard: Shard | ErrorCode = self.shards.of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        why = shard if isinstance(shard, ErrorCode) else why_not_commit(shard, request, known)

        def answer(error: ErrorCode) -> list[Effect]:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if error is LOADING and version < LOADING_KNOWN else error
            return [Reply(received.to, answers.committed(request, code, self.config, known))]

        if why is not None or isinstance(shard, ErrorCode):
            return answer(why or ErrorCode.NONE)
        accepted = acceptable(request, known, self.config.offset_metadata_max_bytes, now)
        if not accepted:
            return answer(ErrorCode.NONE)
        assert request.transactional_id and request.producer_id >= 0, "refused before"
        keys = [(request.group_id, topic, index) for topic, index, _ in accepted]
        pending = shard.pending
        pending.under_way.update(keys)

        def done(error: ErrorCode, base_offset: int, at: Instant) -> list[Effect]:
            assert all(pending.under_way[key] > 0 for key in keys), "it was under way"
            assert error is not ErrorCode.NONE or base_offset >= 0, "what is committed is in the log"
            pending.under_way -= Counter(keys)
            if error is ErrorCode.NONE:
                note_commit(shard, request, at)
            if base_offset >= 0:  # also if it is not committed yet: a marker that is committed later has it committed
                for place, (key, (_, _, committed)) in enumerate(zip(keys, accepted, strict=True)):
                    pending.add(request.producer_id, key, recorded(committed, base_offset + place))
            return answer(for_producer(error, version))

        records = [offset_record(request.group_id, *entry) for entry in accepted]
        return self.shards.log.append_internal(
            OFFSETS_TOPIC,
            shard.partition,
            batch_of(records, now, (request.producer_id, request.producer_epoch)),
            now,
            done,
            transaction=request.transactional_id,  # guard: offsets-outside-their-transaction
            adds=version >= ADDS_SINCE,
        )


def why_not_commit(
    shard: Shard, request: TxnOffsetCommitRequest, known: dict[tuple[str, int], Uuid]
) -> ErrorCode | None:
    if not request.transactional_id or request.producer_id < 0 or request.producer_epoch < 0:
        return ErrorCode.INVALID_REQUEST
    group = shard.groups.get(request.group_id)
    if group is None:
        return None if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, ConsumerGroup):
        at = [(topic_id, partition) for (_, partition), topic_id in known.items()]
        return speaking.why_not_commit_in_transaction(
            group, request.member_id, request.generation_id, request.group_instance_id, at
        )
    if request.generation_id < 0 and not group.members:
        return None  # a consumer that assigns partitions itself commits without being a member
    is_anonymous = request.generation_id < 0 and not request.member_id and request.group_instance_id is None
    if is_anonymous:
        return None  # an older client, or one that was not told who its consumer is
    # guard: generation-does-not-fence
    return group.why_not(request.member_id, request.group_instance_id, request.generation_id)


def for_producer(error: ErrorCode, version: int) -> ErrorCode:
    """What a failed write, or its refusal by the transaction's coordinator, means to a producer of this version."""
    if error in NOT_YET:
        return LOADING
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return coordinator_error(error)
