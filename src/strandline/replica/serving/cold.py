"""Reads of records that are not in the page cache: the medium is waited for elsewhere, and what asked is answered then.

A node has one loop, and a read from a slow medium would hold up all others. So a Fetch asks first whether what it wants
is cached. If not, the driver reads it (`Warm`), and the Fetch waits, as it does for new records. Then it is looked at
anew, with all that may have happened to the partition meanwhile: nothing that was read elsewhere is used.

For who waited for it, what was read is not asked about again: by then it may have left the cache, or the medium may
not give it. If nobody waits any more, that holds for the next Fetch from there.
"""

from strandline.base.effects import Effect, Warm
from strandline.base.ids import TopicIdPartition
from strandline.base.time import Instant
from strandline.base.timers import Alarm, Timers
from strandline.log.reading import Cold
from strandline.replica.serving.contexts import ParkedFetch
from strandline.replica.tokens import ColdRead

WARMED_MAX = 1_000  # places that nobody has come back to


class ColdReads:
    def __init__(self, timers: Timers) -> None:
        self.under_way: dict[ColdRead, dict[ParkedFetch, None]] = {}  # who waits for each
        self.warmed: dict[ColdRead, int] = {}  # how many reads of each are still to come; the oldest first
        self.new: list[Effect] = []
        self.ask = Alarm(timers, self.take)  # in the next turn of the loop: whoever collects has no effects of its own

    def may_wait(self, at: TopicIdPartition, offset: int) -> bool:
        """Has a read from there been waited for already?"""
        return ColdRead(at, offset) in self.warmed

    def found(self, at: TopicIdPartition, offset: int) -> None:
        """A Fetch that might wait has read from there."""
        place = ColdRead(at, offset)
        self.warmed[place] -= 1
        if not self.warmed[place]:
            del self.warmed[place]

    def wait(self, at: TopicIdPartition, offset: int, cold: Cold, parked: ParkedFetch, now: Instant) -> None:
        place = ColdRead(at, offset)
        if place not in self.under_way:
            self.under_way[place] = {}
            self.new.append(Warm(cold.path, cold.position, cold.size, place))
            self.ask.set(now)
        self.under_way[place][parked] = None
        parked.is_cold = True

    def take(self, now: Instant) -> list[Effect]:
        del now
        new, self.new = self.new, []
        return new

    def done(self, place: ColdRead) -> list[ParkedFetch]:
        """It was read. Returns who waits for it."""
        waiting = [parked for parked in self.under_way.pop(place) if not parked.done]
        self.warmed.pop(place, None)
        self.warmed[place] = len(waiting) or 1
        if len(self.warmed) > WARMED_MAX:
            del self.warmed[next(iter(self.warmed))]
        return waiting

    def check(self) -> None:
        assert len(self.warmed) <= WARMED_MAX and all(count > 0 for count in self.warmed.values())
        assert not self.new or not self.ask.done
