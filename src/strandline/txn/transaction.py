"""What is known of one transactional id, as a value. A transition makes the next one, which counts once it is written.

Epochs. Each value that a producer may use next is larger than all that were used before: `InitProducerId` and, with
transaction.version 2, each end of a transaction take the next epoch. When epochs are exhausted the producer gets a new
producer id, and begins with epoch 0.
"""

from collections.abc import Iterable
from typing import Self

from msgspec.structs import replace

from strandline.base.ids import TopicPartition, by_topic
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.txn.states import DECIDED, IDLE, TRANSITIONS, State
from strandline.wire.compress import Corrupt
from strandline.wire.messages.transactions.transaction_records import PartitionsSchema, TransactionLogValue

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_LAST = (1 << 15) - 2  # for producers; one more is left for the marker that ends the last transaction
NEVER_TIMES_OUT = (1 << 31) - 1  # the timeout of a transaction that somebody else prepares and decides (KIP-939)
BUMPS_EPOCHS = 2  # the transaction.version from which each end of a transaction takes a new epoch


class Transaction(Value, frozen=True):
    """`last_epoch`: before the last InitProducerId, of the producer that asked for it, which may ask again; NO_EPOCH if
    another had it. No record has it. `next_producer_id` and `next_epoch`: of the client that may decide a kept
    transaction, or by which a producer goes on whose id is exhausted; then `previous_producer_id` is that id."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State
    updated_at: Instant
    partitions: tuple[TopicPartition, ...] = ()  # sorted
    started_at: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_epoch: int = NO_EPOCH
    next_epoch: int = NO_EPOCH
    version: int = 0  # the transaction.version of the client that began or ended it

    @property
    def is_exhausted(self) -> bool:
        """Must the next client have another producer id?"""
        return self.client[1] >= EPOCH_LAST

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == NEVER_TIMES_OUT

    @property
    def is_kept(self) -> bool:
        """A transaction that another client has taken over, to decide it."""
        return self.state is State.ONGOING and self.next_epoch != NO_EPOCH

    @property
    def client(self) -> tuple[int, int]:
        """The producer id and epoch by which a client must call itself."""
        return (self.next_producer_id, self.next_epoch) if self.is_kept else (self.producer_id, self.epoch)

    @property
    def goes_on(self) -> tuple[int, int]:
        """The producer id and epoch by which the client goes on that has ended this transaction."""
        if self.state in DECIDED and self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, max(self.next_epoch, 0)
        return self.client

    @property
    def commits(self) -> bool:
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    def to(self, state: State, now: Instant, **changes: object) -> Self:
        assert state in TRANSITIONS[self.state], f"{self.state.named} does not become {state.named}"
        following = replace(self, state=state, updated_at=max(now, self.updated_at), **changes)
        same = following.producer_id == self.producer_id
        assert not same or following.epoch >= self.epoch, "epochs never move back"
        following.check()
        return following

    def lacks_id(self, fresh_id: int | None) -> bool:
        """Must the client have another producer id than `fresh_id`? A record that another program has written may name
        an id that is given out only now."""
        return self.is_exhausted and fresh_id in (None, self.producer_id, self.next_producer_id)

    def check(self) -> None:
        """What holds of each, whoever wrote its record."""
        assert self.producer_id >= 0 and 0 <= self.epoch <= EPOCH_LAST + 1
        assert self.next_epoch == NO_EPOCH or self.next_producer_id >= 0, "an epoch is a producer's"
        assert self.next_producer_id != self.producer_id or self.next_epoch > self.epoch, "what is next is larger"
        assert self.state not in IDLE or self.next_producer_id == NO_PRODUCER_ID, "nothing is there to go on from"
        assert self.state not in IDLE or not self.partitions, "no partition waits for a marker"
        assert list(self.partitions) == sorted(set(self.partitions))

    # --- transitions

    def initialized(self, timeout_ms: int, now: Instant, *, is_known: bool) -> Self:
        """Another epoch. `is_known`: the producer says which epoch it had, and it is the present one (KIP-360)."""
        assert self.state in IDLE and not self.is_exhausted
        last = self.epoch if is_known else NO_EPOCH
        return self.to(  # guard: new-producer-keeps-the-epoch
            State.EMPTY, now, epoch=self.epoch + 1, last_epoch=last, timeout_ms=timeout_ms, partitions=(), started_at=-1
        )

    def with_producer_id(self, producer_id: int, timeout_ms: int, now: Instant, *, is_known: bool) -> Self:
        """Epochs are exhausted."""
        assert self.state in IDLE
        assert self.is_exhausted and producer_id != self.producer_id
        return self.to(
            State.EMPTY,
            now,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            epoch=0,
            last_epoch=self.epoch if is_known else NO_EPOCH,
            timeout_ms=timeout_ms,
            partitions=(),
            started_at=-1,
        )

    def kept(self, now: Instant, fresh_id: int | None, timeout_ms: int) -> Self:
        """The open transaction stays, and only the client with the next epoch may decide it (KIP-939)."""
        assert self.state is State.ONGOING
        assert (fresh_id is not None) == self.is_exhausted and not self.lacks_id(fresh_id)
        producer_id, epoch = self.client
        if fresh_id is not None:
            return self.to(State.ONGOING, now, next_producer_id=fresh_id, next_epoch=0, timeout_ms=timeout_ms)
        # guard: kept-without-a-new-epoch
        return self.to(State.ONGOING, now, next_producer_id=producer_id, next_epoch=epoch + 1, timeout_ms=timeout_ms)

    def with_partitions(self, added: Iterable[TopicPartition], version: int, now: Instant) -> Self:
        assert not self.is_kept, "it may be decided, and gets no more records"
        is_first = self.state is not State.ONGOING
        # guard: second-partition-replaces-the-first
        partitions = tuple(sorted({*(() if is_first else self.partitions), *added}))
        started = now if is_first else self.started_at
        return self.to(State.ONGOING, now, partitions=partitions, started_at=started, version=version)

    def decided(
        self, *, commits: bool, version: int, now: Instant, fresh_id: int | None = None, is_fenced: bool = False
    ) -> Self:
        """`fresh_id`: the producer id that follows, if epochs are exhausted. `is_fenced`: the producer did not ask for
        it, and must not go on."""
        state = State.PREPARE_COMMIT if commits else State.PREPARE_ABORT
        assert not (commits and self.state is not State.ONGOING), "nothing is there to commit"
        bumps = version >= BUMPS_EPOCHS or is_fenced or self.is_kept  # guard: each-end-begins-an-epoch
        assert (fresh_id is not None) == (bumps and self.is_exhausted) and not (bumps and self.lacks_id(fresh_id))
        producer_id, newest = self.client
        is_same_id = producer_id == self.producer_id
        epoch = min((newest if is_same_id else self.epoch) + 1, EPOCH_LAST + 1) if bumps else self.epoch
        previous_id, next_id, next_epoch = self.previous_producer_id, NO_PRODUCER_ID, NO_EPOCH
        if bumps and fresh_id is not None:
            previous_id, next_id = producer_id, fresh_id
        elif not is_same_id:  # a kept transaction was its producer id's last
            next_id, next_epoch = producer_id, newest + 1
        return self.to(
            state,
            now,
            epoch=epoch,
            previous_producer_id=previous_id,
            next_producer_id=next_id,
            next_epoch=next_epoch,
            partitions=self.partitions if self.state is State.ONGOING else (),
            started_at=self.started_at if self.state is State.ONGOING else now,
            version=version,
        )

    def completed(self, now: Instant) -> Self:
        """Every partition has its marker."""
        done = State.COMPLETE_COMMIT if self.commits else State.COMPLETE_ABORT
        producer_id, epoch = self.goes_on
        return self.to(
            done,
            now,
            producer_id=producer_id,
            next_producer_id=NO_PRODUCER_ID,
            next_epoch=NO_EPOCH,
            epoch=epoch,
            partitions=(),
        )


# --- records


def value_of(transaction: Transaction) -> TransactionLogValue:
    assert transaction.state is not State.DEAD, "a tombstone says that"
    topics = by_topic(transaction.partitions)
    rows = tuple(PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items())
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        next_producer_epoch=transaction.next_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        # Kafka reads null for an id without a transaction, and nowhere else.
        transaction_partitions=None if transaction.state is State.EMPTY else rows,
        transaction_last_update_timestamp_ms=transaction.updated_at,
        transaction_start_timestamp_ms=transaction.started_at,
        client_transaction_version=transaction.version,
    )


def restored(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Raises Corrupt: a client that calls itself Kafka's tool may write any record."""
    if not 0 <= value.transaction_status < State.DEAD or value.producer_id < 0 or value.producer_epoch < 0:
        raise Corrupt(f"no transaction is in state {value.transaction_status} with epoch {value.producer_epoch}")
    is_nobody = value.next_producer_id < (NO_PRODUCER_ID if value.next_producer_epoch == NO_EPOCH else 0)
    if value.next_producer_epoch < NO_EPOCH or is_nobody:
        raise Corrupt(f"no producer {value.next_producer_id} has epoch {value.next_producer_epoch}")
    state = State(value.transaction_status)
    is_idle = state in IDLE
    if (
        not is_idle
        and value.next_producer_id == value.producer_id
        and value.next_producer_epoch <= value.producer_epoch
    ):
        raise Corrupt(f"epoch {value.next_producer_epoch} does not follow {value.producer_epoch}")
    rows = value.transaction_partitions or ()
    partitions = {TopicPartition(row.topic, index) for row in rows for index in row.partition_ids}
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        Instant(value.transaction_last_update_timestamp_ms),
        partitions=() if is_idle else tuple(sorted(partitions)),
        started_at=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID if is_idle else value.next_producer_id,
        last_epoch=NO_EPOCH,
        next_epoch=NO_EPOCH if is_idle else value.next_producer_epoch,
        version=max(0, min(value.client_transaction_version, BUMPS_EPOCHS)),
    )
