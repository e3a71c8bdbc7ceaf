"""What time ends: open transactions by their timeout, and transactional ids that nobody uses.

A transaction that somebody else prepares and decides (KIP-939) has no timeout. Where one began by a clock that is ahead
of this broker's, its timeout counts from when this is noticed: clocks may be hours apart. An id is forgotten when it
was idle for `transactional.id.expiration.ms`, and none is with a transaction under way.
"""

from msgspec.structs import replace

from strandline.base.effects import Effect, Report
from strandline.base.time import NEVER, Instant, after
from strandline.txn.config import TxnConfig
from strandline.txn.ending import Ending
from strandline.txn.shard import Entry, Shard
from strandline.txn.shards import TxnShards
from strandline.txn.states import IDLE, State
from strandline.txn.transaction import Transaction

TOMBSTONES_MAX = 1_000  # in one batch


class Expiring:
    def __init__(self, config: TxnConfig, shards: TxnShards, ending: Ending) -> None:
        self.config = config
        self.shards = shards
        self.ending = ending
        self.next_abort: Instant = NEVER
        self.next_removal: Instant = NEVER

    def begin(self, now: Instant) -> None:
        """There is something to look after from now on."""
        if self.next_abort == NEVER:
            self.next_abort = after(now, self.config.abort_interval_ms)
            self.next_removal = after(now, self.config.remove_interval_ms)
        assert self.next_abort != NEVER and self.next_removal != NEVER

    def deadline(self) -> Instant:
        return min(self.next_abort, self.next_removal)

    def expire(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self.next_abort <= now:
            self.next_abort = after(now, self.config.abort_interval_ms)
            assert self.next_abort > now
            for shard in list(self.shards.loaded.values()):
                effects += self.abort_late(shard, now)
        if self.next_removal <= now:
            self.next_removal = after(now, self.config.remove_interval_ms)
            assert self.next_removal > now
            for shard in list(self.shards.loaded.values()):
                effects += self.remove_idle(shard, now)
        return effects

    def abort_late(self, shard: Shard, now: Instant) -> list[Effect]:
        assert self.shards.loaded.get(shard.partition) is shard, "another broker may decide otherwise"
        effects: list[Effect] = []
        for transactional_id, entry in list(shard.entries.items()):
            current = bounded(entry)
            if current is None:
                continue
            if current.started_at > now:
                entry.current = replace(current, started_at=now)
            elif current.started_at + current.timeout_ms < now:  # guard: nothing-times-out
                effects += self.ending.abort(shard, entry, now)
                effects.append(Report("info", f"the transaction of {transactional_id} has timed out, and is aborted"))
        return effects

    def remove_idle(self, shard: Shard, now: Instant) -> list[Effect]:
        idle = [
            transactional_id
            for transactional_id, entry in shard.entries.items()
            if not entry.is_busy and entry.current is not None and entry.current.state in IDLE
            if entry.current.updated_at + self.config.id_expiration_ms <= now
        ]
        effects: list[Effect] = []
        for begin in range(0, len(idle), TOMBSTONES_MAX):
            effects += self.shards.forget(shard, idle[begin : begin + TOMBSTONES_MAX], now)
        return effects


def bounded(entry: Entry) -> Transaction | None:
    """The open transaction that time may end."""
    current = entry.current
    if entry.is_busy or current is None or current.state is not State.ONGOING or current.is_two_phase:
        return None
    return current
