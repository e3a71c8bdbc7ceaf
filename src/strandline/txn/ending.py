"""EndTxn, and every other end of a transaction: it is decided once, and the decision is written before anything else.

Rules:
  - the answer leaves when the decision is committed; the markers follow
  - a decision is never changed: an EndTxn that is sent again gets the same answer, one that says the opposite
    INVALID_TXN_STATE
  - before transaction.version 2 one epoch has many transactions, so a coordinator of the past could take the end of
    the present one for that of an earlier one, sent again. There an answer to what is sent again needs a record, too
  - with transaction.version 2 each end takes the next epoch, so that nothing which is late can belong to what comes
    later; a request that is sent again is known by the epoch before (KIP-890)
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.txn.client_errors import for_client
from strandline.txn.markers import Markers
from strandline.txn.ports import ProducerIdSource
from strandline.txn.shard import Entry, Shard
from strandline.txn.shards import Then, TxnShards
from strandline.txn.states import COMPLETE, DECIDED, State
from strandline.txn.transaction import BUMPS_EPOCHS, EPOCH_LAST, Transaction
from strandline.wire.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
BUMPS_SINCE = 5  # the EndTxn version by which a client says that it knows of transaction.version 2


class Ending:
    def __init__(self, shards: TxnShards, ids: ProducerIdSource, markers: Markers) -> None:
        self.shards = shards
        self.ids = ids
        self.markers = markers
        self.version = BUMPS_EPOCHS  # the finalized level of transaction.version

    def end_txn(self, received: Received, now: Instant) -> list[Effect]:
        return self.handle(received, now, fresh_id=None)

    def handle(self, received: Received, now: Instant, *, fresh_id: int | None) -> list[Effect]:
        request: EndTxnRequest = received.message
        found = self.shards.entry_of(request.transactional_id)
        if isinstance(found, ErrorCode):
            return [refusal(received, found)]
        shard, entry = found
        if entry is None:
            return [refusal(received, ErrorCode.INVALID_PRODUCER_ID_MAPPING)]
        if entry.is_busy or entry.current is None:
            return [refusal(received, ErrorCode.CONCURRENT_TRANSACTIONS)]
        version = BUMPS_EPOCHS if received.to.api_version >= BUMPS_SINCE else 0
        verdict = judge(entry.current, request, version)
        if isinstance(verdict, ErrorCode):
            return [refusal(received, verdict)]
        if verdict is not None and version >= BUMPS_EPOCHS:  # guard: older-coordinator-confirms-an-end
            return [answer(received, verdict)]

        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            if error is not ErrorCode.NONE:
                return [refusal(received, error)]
            assert entry.current is not None and entry.current.state in (*DECIDED, *COMPLETE)
            return [answer(received, entry.current)]

        if verdict is not None:  # the same once more: when it is committed no other coordinator has gone on
            return self.shards.write(shard, entry, verdict, now, done)

        def fetched(producer_id: int | ErrorCode, now: Instant) -> list[Effect]:
            if isinstance(producer_id, ErrorCode):
                return [refusal(received, producer_id)]
            return self.handle(received, now, fresh_id=producer_id)

        bumps = version >= BUMPS_EPOCHS or entry.current.is_kept
        if bumps and entry.current.lacks_id(fresh_id):
            return self.ids.next(fetched, now)
        following = entry.current.decided(commits=request.committed, version=version, now=now, fresh_id=fresh_id)
        return self.decide(shard, entry, following, done, now)

    def abort(self, shard: Shard, entry: Entry, now: Instant) -> list[Effect]:
        """Nobody asked for it but time, or another producer: the producer is fenced by it."""
        current = entry.current
        assert current is not None and current.state is State.ONGOING
        assert not entry.is_busy, "it may be decided just now"

        def aborted(fresh_id: int | None, now: Instant) -> list[Effect]:
            # guard: aborts-do-not-fence
            following = current.decided(commits=False, version=self.version, now=now, fresh_id=fresh_id, is_fenced=True)
            return self.decide(shard, entry, following, lambda error, now: [], now)

        def fetched(producer_id: int | ErrorCode, now: Instant) -> list[Effect]:
            is_ours = self.shards.loaded.get(shard.partition) is shard and entry.current is current
            if isinstance(producer_id, ErrorCode) or not is_ours or entry.is_busy or current.lacks_id(producer_id):
                return []  # it is tried again when somebody asks, or its time is up
            return aborted(producer_id, now)

        return self.ids.next(fetched, now) if current.is_exhausted else aborted(None, now)

    def decide(self, shard: Shard, entry: Entry, following: Transaction, then: Then, now: Instant) -> list[Effect]:
        assert following.state in DECIDED
        assert entry.current is not None and entry.current.state not in DECIDED, "a decision is never changed"

        def done(error: ErrorCode, now: Instant) -> list[Effect]:
            assert error is not ErrorCode.NONE or entry.current is following
            effects = then(error, now)
            is_ours = self.shards.loaded.get(shard.partition) is shard
            return effects + self.markers.decide(shard, entry, now) if error is ErrorCode.NONE and is_ours else effects

        return self.shards.write(shard, entry, following, now, done)


def judge(current: Transaction, request: EndTxnRequest, version: int) -> ErrorCode | Transaction | None:
    """May this producer end its transaction so? None: yes. A Transaction: it did, and this is how it stands."""
    named = request.producer_id, request.producer_epoch
    if version < BUMPS_EPOCHS:
        return judge_old(current, request)
    is_again = is_before_end(current, named)
    if current.state in DECIDED and named == current.goes_on:
        return ErrorCode.CONCURRENT_TRANSACTIONS  # its next transaction, which is empty yet (KAFKA-18464)
    if request.producer_id not in (current.producer_id, current.client[0]) and not is_again:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.state in DECIDED:
        if not is_again:
            return ErrorCode.PRODUCER_FENCED
        is_same = request.committed == current.commits
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
    if current.state in COMPLETE and is_again:  # guard: sent-again-opens-the-end-again
        return current if request.committed == current.commits else ErrorCode.INVALID_TXN_STATE
    if named != current.client:  # guard: zombie-ends-transaction
        return ErrorCode.PRODUCER_FENCED
    if current.state is not State.ONGOING and request.committed:
        return ErrorCode.INVALID_TXN_STATE
    return None


def is_before_end(current: Transaction, named: tuple[int, int]) -> bool:
    """Is this how the producer called itself that ended the transaction? Only ends by transaction.version 2 take a new
    epoch: after others the epoch before is another producer's, which was fenced."""
    if current.state not in (*DECIDED, *COMPLETE) or current.version < BUMPS_EPOCHS:
        return False
    producer_id, epoch = current.goes_on
    assert epoch >= 0
    if epoch > 0:
        return named == (producer_id, epoch - 1)
    return named == (current.previous_producer_id, EPOCH_LAST)


def judge_old(current: Transaction, request: EndTxnRequest) -> ErrorCode | Transaction | None:
    """Of clients that do not know of transaction.version 2."""
    if request.producer_id != current.client[0]:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch != current.client[1]:
        return ErrorCode.PRODUCER_FENCED
    if current.state is State.ONGOING:
        return None
    if current.state is State.EMPTY or request.committed != current.commits:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if current.state in DECIDED else current


def answer(received: Received, transaction: Transaction) -> Reply:
    """With the id and epoch by which the producer must go on."""
    producer_id, epoch = transaction.goes_on
    assert producer_id >= 0 and epoch >= 0
    return Reply(received.to, EndTxnResponse(producer_id=producer_id, producer_epoch=epoch))


def refusal(received: Received, error: ErrorCode) -> Reply:
    assert error is not ErrorCode.NONE
    return Reply(received.to, EndTxnResponse(error_code=for_client(error, received.to.api_version, FENCED_SINCE)))
