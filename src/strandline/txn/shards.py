"""Which transactional ids are this broker's, and how they are written.

A partition is not loaded before everything in it is committed: what a new leader has and may yet lose is nothing that
a marker may follow from.
"""

from collections import deque
from collections.abc import Callable

from strandline.base.effects import Effect
from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC
from strandline.base.time import NEVER, Instant, after
from strandline.coordination.internal_log import InternalLog
from strandline.coordination.shards import Shards
from strandline.txn.shard import Entry, Shard, Waiter
from strandline.txn.states import IDLE, TRANSITIONS
from strandline.txn.transaction import Transaction, value_of
from strandline.wire.batch import build
from strandline.wire.messages.transactions.transaction_records import encode_key, encode_value

COMMITTED_AGAIN_MS = 20  # so soon a new leader looks again whether what it has is committed
WAIT_MS = 1_000  # for what is under way, before a client is asked to come again
WAITING_MAX = 1_000  # requests of one transactional id
RECORD_VERSION = 1  # with tagged fields; Kafka reads it since 3.7

# What a failed write means to clients: the coordinator cannot be reached just now, or it is another one.
WRITE_ERRORS = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

Then = Callable[[ErrorCode, Instant], list[Effect]]


class TxnShards(Shards[Shard]):
    step_bytes = 32 << 10

    def __init__(self, log: InternalLog) -> None:
        super().__init__(TRANSACTION_TOPIC, log, Shard)
        self.waiters: deque[Waiter] = deque()  # by when their time is up

    def is_loadable(self, partition: int) -> bool:
        # guard: new-coordinator-loads-what-may-be-lost
        return self.log.is_committed(self.topic, partition)

    def again_at(self, now: Instant) -> Instant:
        return after(now, COMMITTED_AGAIN_MS)

    def is_current(self, shard: Shard) -> bool:
        """Does this broker lead the partition still as it did when it loaded it? Where it leads it anew, there may be
        records that the shard does not know; soon it is loaded again."""
        return self.log.leads(self.topic, shard.partition) == shard.leader_epoch

    def of(self, key: str) -> Shard | ErrorCode:
        shard = super().of(key)
        return shard if isinstance(shard, ErrorCode) or self.is_current(shard) else ErrorCode.NOT_COORDINATOR

    def entry_of(self, transactional_id: str) -> tuple[Shard, Entry | None] | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard = self.of(transactional_id)
        return shard if isinstance(shard, ErrorCode) else (shard, shard.entries.get(transactional_id))

    # --- writing

    def write(self, shard: Shard, entry: Entry, following: Transaction, now: Instant, then: Then) -> list[Effect]:
        """`then` is called when `following` is committed, and current, or not written."""
        assert not entry.is_busy and self.loaded.get(shard.partition) is shard
        assert shard.entries.get(following.transactional_id) is entry
        was = entry.current
        assert was is None or following == was or following.state in TRANSITIONS[was.state], "it was made from another"
        if not self.is_current(shard):
            return then(ErrorCode.NOT_COORDINATOR, now)
        entry.pending = following  # guard: answered-before-it-is-decided

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            del base_offset
            assert entry.pending is following, "one write at a time"
            entry.pending = None
            if error is ErrorCode.NONE:
                entry.current = following
            elif entry.current is None:
                shard.entries.pop(following.transactional_id, None)
            effects = then(WRITE_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), now)
            return effects + self.wake(entry, now)

        value = encode_value(value_of(following), RECORD_VERSION)
        batch = bytearray(build([(now, encode_key(following.transactional_id), value, ())]))
        # guard: appended-counts-as-committed
        return self.log.append_internal(TRANSACTION_TOPIC, shard.partition, batch, now, done)

    def forget(self, shard: Shard, gone: list[str], now: Instant) -> list[Effect]:
        """Write tombstones for ids that have expired."""
        if not self.is_current(shard):
            return []
        assert gone, "a batch has records"
        entries = [shard.entries[transactional_id] for transactional_id in gone]
        for entry in entries:
            assert not entry.is_busy
            assert entry.current is not None and entry.current.state in IDLE, "a transaction needs its coordinator"
            entry.is_dying = True

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            del base_offset
            effects: list[Effect] = []
            for transactional_id, entry in zip(gone, entries, strict=True):
                assert entry.is_dying and entry.pending is None, "one write at a time"
                assert shard.entries.get(transactional_id) is entry
                entry.is_dying = False
                if error is ErrorCode.NONE:
                    del shard.entries[transactional_id]
                effects += self.wake(entry, now)
            return effects

        rows = [(now, encode_key(transactional_id), None, ()) for transactional_id in gone]
        return self.log.append_internal(TRANSACTION_TOPIC, shard.partition, bytearray(build(rows)), now, done)

    # --- requests that wait

    def wait(self, entry: Entry, again: Callable[[Instant, bool], list[Effect]], now: Instant) -> bool:
        """Have `again` called when nothing is under way any more, or when it takes too long. False if too many wait."""
        assert entry.is_busy or entry.is_decided, "there is nothing to wait for"
        if len(entry.waiting) >= WAITING_MAX:
            entry.waiting = [waiter for waiter in entry.waiting if not waiter.done]
            if len(entry.waiting) >= WAITING_MAX:
                return False
        waiter = Waiter(again, after(now, WAIT_MS))
        assert not self.waiters or self.waiters[-1].due <= waiter.due, "who waits longest is first"
        entry.waiting.append(waiter)
        self.waiters.append(waiter)
        return True

    def wake(self, entry: Entry, now: Instant) -> list[Effect]:
        """Nothing is under way for this id: who waits is served."""
        waiting, entry.waiting = entry.waiting, []
        effects: list[Effect] = []
        for waiter in waiting:
            if not waiter.done:
                waiter.done = True
                effects += waiter.again(now, True)
        return effects

    def first_due(self) -> Instant:
        while self.waiters and self.waiters[0].done:
            self.waiters.popleft()
        return self.waiters[0].due if self.waiters else NEVER

    def expire(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        while self.first_due() <= now:
            waiter = self.waiters.popleft()
            assert not waiter.done, "it was answered"
            waiter.done = True
            effects += waiter.again(now, False)
        return effects

    def check(self) -> None:
        super().check()
        dues = [waiter.due for waiter in self.waiters]
        assert dues == sorted(dues)
