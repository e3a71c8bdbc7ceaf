"""The transactional ids of one partition of `__transaction_state`, as its leader holds them in memory.

Invariants:
  - `current` of an id is what its last committed record says;
  - an id has one write under way at most. What it will be is not acted on, and nobody is told of it, before it is
    committed. How a write ends that was appended is known when it is committed, or when this leadership ends.
"""

from collections.abc import Callable, Iterable

from strandline.base.effects import Effect
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.coordination.internal_log import Replayed
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


class Shard:
    def __init__(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.entries: dict[str, Entry] = {}
        self.unreadable = 0  # records that a reader skipped

    @property
    def coordinator_epoch(self) -> int:
        return self.leader_epoch

    def load(self, rows: Iterable[Replayed]) -> None:
        for row in rows:
            if row.record is None:
                continue
            try:
                transactional_id = decode_key(row.record.key)
                if transactional_id is None:
                    continue
                value = decode_value(row.record.value)
                if value is None:
                    self.entries.pop(transactional_id, None)
                else:
                    self.entries[transactional_id] = Entry(restored(transactional_id, value))
            except Corrupt:
                self.unreadable += 1
