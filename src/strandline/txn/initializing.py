"""InitProducerId with a transactional id: a producer gets its id and the next epoch, and others are fenced.

Rules:
  - an open transaction of an earlier producer is aborted first, or kept if the producer asks for that, to decide it
    (KIP-939); meanwhile the answer is CONCURRENT_TRANSACTIONS
  - a producer that names its id and epoch gets the next epoch only if they are the present ones, or those of a request
    that is sent again (KIP-360); else it is fenced
  - an answer leaves when the record that proves it is committed
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.txn.client_errors import for_client
from strandline.txn.config import TxnConfig
from strandline.txn.ending import Ending, is_before_end
from strandline.txn.ports import ProducerIdSource
from strandline.txn.shard import Entry, Shard
from strandline.txn.shards import TxnShards
from strandline.txn.states import DECIDED, IDLE, State
from strandline.txn.transaction import EPOCH_LAST, NEVER_TIMES_OUT, NO_EPOCH, NO_PRODUCER_ID, Transaction
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_SINCE = 4


class Initializing:
    def __init__(self, config: TxnConfig, shards: TxnShards, ids: ProducerIdSource, ending: Ending) -> None:
        self.config = config
        self.shards = shards
        self.ids = ids
        self.ending = ending

    def init_producer_id(self, received: Received, now: Instant) -> list[Effect]:
        request: InitProducerIdRequest = received.message
        why = self.why_not(request)
        if why is not None:
            return [refusal(received, why)]
        return self.handle(received, now, may_wait=True, fresh_id=None)

    def why_not(self, request: InitProducerIdRequest) -> ErrorCode | None:
        if not request.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
            return ErrorCode.INVALID_REQUEST
        if request.enable2_pc and not self.config.two_phase_commit_enable:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.two_phase_timeout_ms < 0:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= self.config.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return None

    def handle(self, received: Received, now: Instant, *, may_wait: bool, fresh_id: int | None) -> list[Effect]:
        """`fresh_id`: a producer id that was fetched for this request."""
        request: InitProducerIdRequest = received.message
        assert request.transactional_id
        found = self.shards.entry_of(request.transactional_id)
        if isinstance(found, ErrorCode):
            return [refusal(received, found)]
        shard, entry = found
        if entry is None:
            return self.create(received, shard, fresh_id, now)
        if entry.is_busy or (entry.current is not None and entry.current.state in DECIDED):

            def again(now: Instant, may_wait: bool) -> list[Effect]:
                return self.handle(received, now, may_wait=may_wait, fresh_id=fresh_id)

            if may_wait and self.shards.wait(entry, again, now):
                return []
            return [refusal(received, ErrorCode.CONCURRENT_TRANSACTIONS)]
        assert entry.current is not None, "nothing is under way"
        why = why_fenced(entry.current, request)
        if why is not None:
            return [refusal(received, why)]
        if entry.current.state is State.ONGOING:
            return self.take_over(received, shard, entry, entry.current, fresh_id, now)
        return self.next_epoch(received, shard, entry, entry.current, fresh_id, now)

    def create(self, received: Received, shard: Shard, fresh_id: int | None, now: Instant) -> list[Effect]:
        request: InitProducerIdRequest = received.message
        if fresh_id is None:
            return self.fetch_id(received, now)
        assert request.transactional_id
        assert request.transactional_id not in shard.entries
        first = Transaction(request.transactional_id, fresh_id, 0, timeout_of(request), State.EMPTY, now)
        entry = shard.entries[request.transactional_id] = Entry(None)
        return self.write(received, shard, entry, first, now)

    def next_epoch(
        self,
        received: Received,
        shard: Shard,
        entry: Entry,
        current: Transaction,
        fresh_id: int | None,
        now: Instant,
    ) -> list[Effect]:
        request: InitProducerIdRequest = received.message
        assert current.state in IDLE, "what is open is ended before, or kept"
        is_known = request.producer_epoch != NO_EPOCH
        if is_known and (request.producer_id, request.producer_epoch) != current.client:
            return [answer(received, current)]  # sent again: it has its epoch already
        if not current.is_exhausted:
            following = current.initialized(timeout_of(request), now, is_known=is_known)
        elif fresh_id is None or current.lacks_id(fresh_id):
            return self.fetch_id(received, now)
        else:
            following = current.with_producer_id(fresh_id, timeout_of(request), now, is_known=is_known)
        return self.write(received, shard, entry, following, now)

    def take_over(
        self,
        received: Received,
        shard: Shard,
        entry: Entry,
        current: Transaction,
        fresh_id: int | None,
        now: Instant,
    ) -> list[Effect]:
        """An earlier producer's transaction is open."""
        request: InitProducerIdRequest = received.message
        assert current.state is State.ONGOING and entry.current is current
        if request.keep_prepared_txn:  # guard: prepared-not-kept
            if current.lacks_id(fresh_id):
                return self.fetch_id(received, now)
            timeout_ms = timeout_of(request) if has_timeout(request) else current.timeout_ms
            following = current.kept(now, fresh_id if current.is_exhausted else None, timeout_ms)
            return self.write(received, shard, entry, following, now)
        effects = self.ending.abort(shard, entry, now)
        if entry.current is current and not entry.is_busy:
            return [*effects, refusal(received, ErrorCode.CONCURRENT_TRANSACTIONS)]
        return [*effects, *self.handle(received, now, may_wait=True, fresh_id=fresh_id)]

    def fetch_id(self, received: Received, now: Instant) -> list[Effect]:
        def done(producer_id: int | ErrorCode, now: Instant) -> list[Effect]:
            if isinstance(producer_id, ErrorCode):
                return [refusal(received, producer_id)]
            return self.handle(received, now, may_wait=True, fresh_id=producer_id)

        return self.ids.next(done, now)

    def write(
        self, received: Received, shard: Shard, entry: Entry, following: Transaction, now: Instant
    ) -> list[Effect]:
        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            assert error is not ErrorCode.NONE or entry.current is following, "an answer needs its record"
            return [answer(received, following) if error is ErrorCode.NONE else refusal(received, error)]

        return self.shards.write(shard, entry, following, now, done)


def why_fenced(current: Transaction, request: InitProducerIdRequest) -> ErrorCode | None:
    """A producer that names its id and epoch goes on only with the present ones, or asks again."""
    if request.producer_epoch == NO_EPOCH:
        return None
    named = request.producer_id, request.producer_epoch
    if named == current.client:
        return None
    before = current.previous_producer_id if current.last_epoch >= EPOCH_LAST else current.producer_id
    is_again = current.state is State.EMPTY and named == (before, current.last_epoch)
    # What a producer has ended, or time for it, gave the next epoch to nobody else.
    # guard: fenced-producer-gets-the-next-epoch
    return None if is_again or is_before_end(current, named) else ErrorCode.PRODUCER_FENCED


def timeout_of(request: InitProducerIdRequest) -> int:
    assert request.enable2_pc or request.transaction_timeout_ms > 0, "refused before"
    if has_timeout(request):
        return request.two_phase_timeout_ms
    return NEVER_TIMES_OUT if request.enable2_pc else request.transaction_timeout_ms  # guard: two-phase-times-out


def has_timeout(request: InitProducerIdRequest) -> bool:
    """Does a client that prepares a transaction say when it may be given up? No configuration limits that."""
    return request.enable2_pc and request.two_phase_timeout_ms > 0


def answer(received: Received, transaction: Transaction) -> Reply:
    producer_id, epoch = transaction.client
    assert producer_id >= 0 and epoch >= 0
    is_kept = transaction.is_kept
    response = InitProducerIdResponse(
        producer_id=producer_id,
        producer_epoch=epoch,
        ongoing_txn_producer_id=transaction.producer_id if is_kept else NO_PRODUCER_ID,
        ongoing_txn_producer_epoch=transaction.epoch if is_kept else NO_EPOCH,
    )
    return Reply(received.to, response)


def refusal(received: Received, error: ErrorCode) -> Reply:
    assert error is not ErrorCode.NONE
    known = for_client(error, received.to.api_version, FENCED_SINCE)
    return Reply(received.to, InitProducerIdResponse(error_code=known, producer_id=-1, producer_epoch=-1))
