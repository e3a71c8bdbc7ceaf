"""The transactional ids of one partition of `__transaction_state`, as its leader holds them in memory.

Invariants (executed by `check`, as far as the memory shows them):
  - `current` of an id is what its last committed record says;
  - an id has one write under way at most. What it will be is not acted on, and nobody is told of it, before it is
    committed. How a write ends that was appended is known when it is committed, or when this leadership ends.
"""

from collections.abc import Callable, Sequence

from strandline.base.effects import Effect
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.coordination.internal_log import Replayed
from strandline.txn.states import DECIDED, TRANSITIONS, State
from strandline.txn.transaction import Transaction, restored
from strandline.wire.compress import Corrupt
from strandline.wire.messages.transactions.transaction_records import decode_key, decode_value


class Waiter:
    """A request that waits for what is under way. `again` handles it anew; then it may wait once more, or not."""

    __slots__ = ("again", "done", "due")

    def __init__(self, again: Callable[[Instant, bool], list[Effect]], due: Instant) -> None:
        self.again = again
        self.due = due
        self.done = False


class Entry:
    """One transactional id. `current` is None while its first record is being written."""

    def __init__(self, current: Transaction | None) -> None:
        self.current = current
        self.pending: Transaction | None = None
        self.is_dying = False  # its tombstone is being written
        self.waiting: list[Waiter] = []

    @property
    def is_busy(self) -> bool:
        return self.pending is not None or self.is_dying

    @property
    def is_decided(self) -> bool:
        """Decided, and not complete: markers are being written."""
        return self.current is not None and self.current.state in DECIDED

    def check(self) -> None:
        current, pending = self.current, self.pending
        assert current is not None or (pending is not None and pending.state is State.EMPTY), "an id begins empty"
        assert not (self.is_dying and pending is not None), "one write at a time"
        assert self.is_busy or self.is_decided or all(waiter.done for waiter in self.waiting), (
            "nobody waits for nothing"
        )
        if current is not None:
            current.check()
        if current is not None and pending is not None:
            assert pending == current or pending.state in TRANSITIONS[current.state]
            assert pending.producer_id != current.producer_id or pending.epoch >= current.epoch
            assert pending.updated_at >= current.updated_at


class Shard:
    def __init__(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.entries: dict[str, Entry] = {}
        self.decided: dict[str, Entry] = {}  # of what was read: somebody must go on with these
        self.end = 0  # of what was read
        self.unreadable = 0  # records that a reader skipped

    @property
    def coordinator_epoch(self) -> int:
        return self.leader_epoch

    def replay(self, batches: Sequence[Replayed]) -> None:
        for batch in batches:
            for _, key, value in batch.rows:
                try:
                    self.replay_one(key, value)
                except Corrupt:
                    self.unreadable += 1

    def replay_one(self, key: bytes | None, value: bytes | None) -> None:
        transactional_id = decode_key(key)
        if transactional_id is None:
            return
        decoded = decode_value(value)
        self.decided.pop(transactional_id, None)
        if decoded is None:
            self.entries.pop(transactional_id, None)
            return
        # guard: new-coordinator-forgets-that-it-is-decided
        entry = self.entries[transactional_id] = Entry(restored(transactional_id, decoded))
        if entry.is_decided:
            self.decided[transactional_id] = entry

    def complete(self, limit: int, now: Instant) -> int:
        del limit, now
        return 0

    def check(self) -> None:
        for transactional_id, entry in self.entries.items():
            known = entry.pending or entry.current
            assert known is not None and known.transactional_id == transactional_id
            entry.check()
