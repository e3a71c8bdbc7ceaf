"""Metrics of transactions: the rows of the table, and their values. Names follow the rules of `metrics.table`."""

from collections.abc import Iterator, Sequence

from strandline.base.ids import NOBODY
from strandline.base.metrics import Family, Kind, Metric
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.replica.serving.transactions.verifying import Verifying
from strandline.txn.coordinator import Transactions
from strandline.txn.states import State

LATE_MS = 300_000  # so much longer than any timeout, as in Kafka
NONE_OPEN = -1

LATE_PARTITIONS = Metric(
    "kafka_server_ReplicaManager_PartitionsWithLateTransactionsCount",
    Kind.GAUGE,
    "Partitions led here whose oldest open transaction was last written to longer ago than transaction.max.timeout.ms"
    " and 5 minutes: it may hang",
    (),
    "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
)
MANAGER = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name="
UNKNOWN_DESTINATION = Metric(
    "kafka_coordinator_transaction_TransactionMarkerChannelManager_UnknownDestinationQueueSize",
    Kind.GAUGE,
    "Markers of transactions coordinated here that wait for their partition to have a leader",
    (),
    MANAGER + "UnknownDestinationQueueSize",
)
APPEND_RETRIES = Metric(
    "kafka_coordinator_transaction_TransactionMarkerChannelManager_LogAppendRetryQueueSize",
    Kind.GAUGE,
    "Transactions that have all their markers, and wait to be written down as complete",
    (),
    MANAGER + "LogAppendRetryQueueSize",
)
VERIFICATION_FAILURES = Metric(
    "kafka_server_AddPartitionsToTxnManager_VerificationFailureRate_total",
    Kind.COUNTER,
    "Partitions of transactions that a coordinator, asked before the first batch, did not confirm (KIP-890)",
    (),
    "kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate",
)
TRANSACTIONAL_IDS = Metric(
    "strandline_coordinator_transactional_ids",
    Kind.GAUGE,
    "Transactional ids that this broker coordinates, by the state of their last transaction",
    ("state",),
)
METRICS = (LATE_PARTITIONS, UNKNOWN_DESTINATION, APPEND_RETRIES, VERIFICATION_FAILURES, TRANSACTIONAL_IDS)


def last_written(log: Log) -> int:
    """When the oldest transaction that is open in a log was last written to."""
    producer_id = next(iter(log.transactions.open), None)
    producer = None if producer_id is None else log.producers.known.get(producer_id)
    if producer is None:
        return NONE_OPEN
    return producer.batches[-1].timestamp if producer.batches else producer.seen


def families(coordinator: Transactions, verifying: Verifying, written: Sequence[int], now: Instant) -> Iterator[Family]:
    """`written`: what `last_written` says of each log that is led here."""
    bound = now - coordinator.initializing.config.max_timeout_ms - LATE_MS
    yield Family(LATE_PARTITIONS, [((), sum(0 < at < bound for at in written))])
    markers = coordinator.markers
    yield Family(UNKNOWN_DESTINATION, [((), len(markers.waiting.get(NOBODY, ())))])
    yield Family(APPEND_RETRIES, [((), len(markers.unwritten))])
    yield Family(VERIFICATION_FAILURES, [((), verifying.failures)])
    yield Family(TRANSACTIONAL_IDS, [((state.named,), count) for state, count in counts(coordinator).items()])


def counts(coordinator: Transactions) -> dict[State, int]:
    found: dict[State, int] = {state: 0 for state in State if state is not State.DEAD}
    for shard in coordinator.shards.loaded.values():
        for entry in shard.entries.values():
            if entry.current is not None:
                found[entry.current.state] += 1
    return found
