"""AddPartitionsToTxn and AddOffsetsToTxn: which partitions a transaction has, before anything is written there.

Rules:
  - an answer leaves when the record with the partitions is committed, so each partition that may have records of a
    transaction gets its marker, whatever fails
  - before transaction.version 2 partitions that were added already are written again. What this broker holds may be an
    earlier transaction of the same epoch, if another one coordinates the id by now
  - a producer must call itself by the present id and epoch
  - brokers ask for several transactions at once. They verify what an older client has added, or add what a newer one
    writes to (KIP-890)
  - while the transaction before is being completed a request waits for a moment, then it is CONCURRENT_TRANSACTIONS
"""

from collections.abc import Callable, Sequence

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, TopicPartition
from strandline.base.time import Instant
from strandline.coordination.partitioning import is_too_long, partition_for
from strandline.metadata.image import Image
from strandline.txn.client_errors import for_client
from strandline.txn.shards import TxnShards
from strandline.txn.states import DECIDED, State
from strandline.txn.transaction import BUMPS_EPOCHS
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

BATCHED_SINCE = 4
FENCED_SINCE = 2
Errors = dict[TopicPartition, ErrorCode]
Then = Callable[[ErrorCode], list[Effect]]


class Adding:
    def __init__(self, shards: TxnShards) -> None:
        self.shards = shards
        self.image = Image()

    # --- requests

    def add_partitions(self, received: Received, now: Instant) -> list[Effect]:
        if received.to.api_version >= BATCHED_SINCE:
            return self.add_batched(received, now)
        request: AddPartitionsToTxnRequest = received.message
        topics = request.v3_and_below_topics
        wanted = partitions_of(topics)
        unknown = self.unknown(wanted)

        def done(error: ErrorCode) -> list[Effect]:
            known = for_client(error, received.to.api_version, FENCED_SINCE)
            errors = unknown or dict.fromkeys(wanted, known)
            return [Reply(received.to, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(errors)))]

        if unknown:
            return done(ErrorCode.NONE)
        transactional_id = request.v3_and_below_transactional_id
        producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        return self.add(transactional_id, producer, wanted, 0, done, now)

    def add_batched(self, received: Received, now: Instant) -> list[Effect]:
        request: AddPartitionsToTxnRequest = received.message
        answers: dict[int, AddPartitionsToTxnResult] = {}

        def one_done(at: int, transaction: AddPartitionsToTxnTransaction, errors: Errors) -> list[Effect]:
            assert at not in answers, "answered once"
            answers[at] = AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=results(errors)
            )
            if len(answers) < len(request.transactions):
                return []
            rows = tuple(answers[i] for i in range(len(request.transactions)))
            return [Reply(received.to, AddPartitionsToTxnResponse(results_by_transaction=rows))]

        if not request.transactions:
            return [Reply(received.to, AddPartitionsToTxnResponse())]
        effects: list[Effect] = []
        for at, transaction in enumerate(request.transactions):
            wanted = partitions_of(transaction.topics)
            if transaction.verify_only:
                effects += one_done(at, transaction, self.verify(transaction, wanted))
                continue
            unknown = self.unknown(wanted)
            if unknown:
                effects += one_done(at, transaction, unknown)
                continue

            def done(
                error: ErrorCode,
                at: int = at,
                transaction: AddPartitionsToTxnTransaction = transaction,
                wanted: list[TopicPartition] = wanted,
            ) -> list[Effect]:
                return one_done(at, transaction, dict.fromkeys(wanted, error))

            producer = transaction.producer_id, transaction.producer_epoch
            effects += self.add(transaction.transactional_id, producer, wanted, BUMPS_EPOCHS, done, now)
        return effects

    def add_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request: AddOffsetsToTxnRequest = received.message

        def done(error: ErrorCode) -> list[Effect]:
            known = for_client(error, received.to.api_version, FENCED_SINCE)
            return [Reply(received.to, AddOffsetsToTxnResponse(error_code=known))]

        topic = self.image.topic_named(OFFSETS_TOPIC)
        if not request.group_id or is_too_long(request.group_id):
            return done(ErrorCode.INVALID_GROUP_ID)
        if topic is None or not topic.partitions:
            return done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        at = TopicPartition(OFFSETS_TOPIC, partition_for(request.group_id, len(topic.partitions)))
        assert at.partition in range(len(topic.partitions))
        producer = request.producer_id, request.producer_epoch
        return self.add(request.transactional_id, producer, [at], 0, done, now)

    # --- what they come to

    def add(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        wanted: Sequence[TopicPartition],
        version: int,
        done: Then,
        now: Instant,
        *,
        may_wait: bool = True,
    ) -> list[Effect]:
        """`producer`: id and epoch. `version`: of transactions, that the client knows."""
        found = self.shards.entry_of(transactional_id)
        if isinstance(found, ErrorCode):
            return done(found)
        shard, entry = found
        if entry is None:
            return done(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        current = entry.current
        if entry.is_busy or current is None or (current.state in DECIDED and producer == current.goes_on):

            def again(now: Instant, may_wait: bool) -> list[Effect]:
                return self.add(transactional_id, producer, wanted, version, done, now, may_wait=may_wait)

            return [] if may_wait and self.shards.wait(entry, again, now) else done(ErrorCode.CONCURRENT_TRANSACTIONS)
        if producer[0] not in (current.producer_id, current.client[0]):
            return done(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        # guard: zombie-adds-partitions
        if producer != current.client or current.state in DECIDED:  # then the epoch is the markers'
            return done(ErrorCode.PRODUCER_FENCED)
        if current.is_kept:
            return done(ErrorCode.INVALID_TXN_STATE)  # it may be decided, and get no more records
        has_all = current.state is State.ONGOING and set(wanted) <= set(current.partitions)
        if has_all and version >= BUMPS_EPOCHS:  # guard: older-coordinator-confirms-partitions
            return done(ErrorCode.NONE)
        following = current.with_partitions(wanted, version, now)
        assert following.client == producer, "its producer goes on as it is"
        return self.shards.write(shard, entry, following, now, lambda error, now: done(error))

    def verify(self, asked: AddPartitionsToTxnTransaction, wanted: Sequence[TopicPartition]) -> Errors:
        """Were these added? What is under way is not asked: the log looks again before it appends (KIP-890)."""
        assert len(set(wanted)) == len(wanted), "each is named once"
        found = self.shards.entry_of(asked.transactional_id)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(wanted, found)
        current = None if found[1] is None else found[1].current
        if current is None or asked.producer_id != current.producer_id:
            return dict.fromkeys(wanted, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if asked.producer_epoch != current.epoch or current.is_kept:
            return dict.fromkeys(wanted, ErrorCode.PRODUCER_FENCED)
        if current.state in DECIDED:
            return dict.fromkeys(wanted, ErrorCode.CONCURRENT_TRANSACTIONS)
        has = set(current.partitions)
        return {at: ErrorCode.NONE if at in has else ErrorCode.TRANSACTION_ABORTABLE for at in wanted}

    def unknown(self, wanted: Sequence[TopicPartition]) -> Errors:
        """Why these are not added, if one of them is not known here: a leader may know of its topic earlier. Where
        there seems to be no partition no marker would go."""
        assert len(set(wanted)) == len(wanted), "each is named once"
        known = {at for at in wanted if self.exists(at)}
        if len(known) == len(wanted):
            return {}
        refused, left = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        return {at: left if at in known else refused for at in wanted}

    def exists(self, at: TopicPartition) -> bool:
        topic = self.image.topic_named(at.topic)
        return topic is not None and at.partition in topic.partitions


def partitions_of(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return list(dict.fromkeys(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions))


def results(errors: Errors) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for at, error in errors.items():
        row = AddPartitionsToTxnPartitionResult(partition_index=at.partition, partition_error_code=error)
        topics.setdefault(at.topic, []).append(row)
    assert sum(map(len, topics.values())) == len(errors), "each partition has its row"
    return tuple(
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=tuple(rows)) for name, rows in topics.items()
    )
