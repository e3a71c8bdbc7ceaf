"""DescribeTransactions and ListTransactions: what operators see of the ids that this broker coordinates (KIP-664)."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import by_topic
from strandline.base.pattern import Invalid, Pattern
from strandline.base.time import Instant
from strandline.txn.shards import TxnShards
from strandline.txn.states import State
from strandline.txn.transaction import Transaction
from strandline.wire.messages.transactions import describe_transactions as described
from strandline.wire.messages.transactions import list_transactions as listed

STATES = {state.named for state in State} | {"PrepareEpochFence"}  # that Kafka's tools know
PATTERN_MAX = 1_000  # characters; a longer one is no pattern of a person


class Listing:
    def __init__(self, shards: TxnShards) -> None:
        self.shards = shards

    def describe(self, received: Received, now: Instant) -> list[Effect]:
        request: described.DescribeTransactionsRequest = received.message
        states = tuple(self.described(transactional_id) for transactional_id in request.transactional_ids)
        return [Reply(received.to, described.DescribeTransactionsResponse(transaction_states=states))]

    def described(self, transactional_id: str) -> described.TransactionState:
        found = self.shards.entry_of(transactional_id)
        if isinstance(found, ErrorCode):
            return described.TransactionState(error_code=found, transactional_id=transactional_id)
        current = None if found[1] is None else found[1].current
        if current is None:
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return described.TransactionState(error_code=error, transactional_id=transactional_id)
        return described.TransactionState(
            transactional_id=transactional_id,
            transaction_state=current.state.named,
            transaction_timeout_ms=current.timeout_ms,
            transaction_start_time_ms=current.started_at,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            topics=tuple(
                described.TopicData(topic=name, partitions=ids) for name, ids in by_topic(current.partitions).items()
            ),
        )

    def list_transactions(self, received: Received, now: Instant) -> list[Effect]:
        request: listed.ListTransactionsRequest = received.message
        if self.shards.loading:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return [Reply(received.to, listed.ListTransactionsResponse(error_code=error))]
        unknown = tuple(name for name in request.state_filters if name not in STATES)
        try:
            rows = self.wanted(request, now)
        except Invalid:
            error = ErrorCode.INVALID_REGULAR_EXPRESSION
            return [Reply(received.to, listed.ListTransactionsResponse(error_code=error))]
        if unknown and len(unknown) == len(request.state_filters):
            rows = []
        states = tuple(
            listed.TransactionState(
                transactional_id=row.transactional_id, producer_id=row.producer_id, transaction_state=row.state.named
            )
            for row in rows
        )
        response = listed.ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=states)
        return [Reply(received.to, response)]

    def wanted(self, request: listed.ListTransactionsRequest, now: Instant) -> list[Transaction]:
        text = request.transactional_id_pattern or ""
        if len(text) > PATTERN_MAX:
            raise Invalid("it is too long")
        pattern = Pattern(text) if text else None
        return [
            current
            for shard in self.shards.loaded.values()
            for entry in shard.entries.values()
            if (current := entry.current) is not None and is_wanted(current, request, now)
            if pattern is None or pattern.matches(current.transactional_id)
        ]


def is_wanted(row: Transaction, request: listed.ListTransactionsRequest, now: Instant) -> bool:
    if request.state_filters and row.state.named not in request.state_filters:
        return False
    if request.producer_id_filters and row.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    return row.started_at >= 0 and now - row.started_at > request.duration_filter
