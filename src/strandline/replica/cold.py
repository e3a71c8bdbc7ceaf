"""Reads of records that are not in the page cache: the medium is waited for elsewhere, and what asked goes on then.

A node has one loop, and a read from a slow medium would hold up all others. So a reader of old records asks first
whether they are cached. If not, the driver reads them (`Warm`). A request waits for that, as a Fetch waits for new
records, and is looked at anew, with all that may have happened to the partition meanwhile: nothing that was read
elsewhere is used. A reader that goes through a log in steps (the scrubber, the cleaner, a coordinator that loads)
looks again with its next step.

A reader that has waited is not asked to wait again: by then the bytes may have left the cache, or the medium may not
give them. If nobody waits any more, that holds for the next reader.
"""

from typing import Protocol

from strandline.base.effects import Effect, Warm
from strandline.base.ids import TopicIdPartition
from strandline.base.ports import Cold
from strandline.base.time import Instant
from strandline.base.timers import Alarm, Timers
from strandline.replica.tokens import ColdPlace, ColdRead, ColdStep

WARMED_MAX = 1_000  # places that nobody has come back to


class Waiter(Protocol):
    """A request that waits for what is not cached."""

    done: bool


class ColdReads:
    def __init__(self, timers: Timers) -> None:
        self.under_way: dict[ColdPlace, dict[Waiter, None]] = {}  # who waits for each
        self.warmed: dict[ColdPlace, int] = {}  # how many reads of each are still to come; the oldest first
        self.new: list[Effect] = []
        self.ask = Alarm(timers, self.take)  # in the next turn of the loop: whoever collects has no effects of its own

    def may_wait(self, at: TopicIdPartition, offset: int) -> bool:
        """Has a read from there been waited for already?"""
        return ColdRead(at, offset) in self.warmed

    def found(self, place: ColdPlace) -> None:
        """What might wait for the medium has read from there."""
        self.warmed[place] -= 1
        if not self.warmed[place]:
            del self.warmed[place]

    def wait(self, place: ColdPlace, cold: Cold, waiter: Waiter, now: Instant) -> bool:
        """False if `waiter` waits for that place already."""
        self.begin(place, cold, now)
        is_new = waiter not in self.under_way[place]
        self.under_way[place][waiter] = None
        return is_new

    def must_wait(self, cold: Cold | None, now: Instant) -> bool:
        """For a reader in steps: must it look again later, because its next step would wait for `cold`? Then that is
        being read."""
        if cold is None:
            return False
        place = ColdStep(cold.path, cold.position)
        if place in self.warmed:
            self.found(place)
            return False
        self.begin(place, cold, now)
        return True

    def begin(self, place: ColdPlace, cold: Cold, now: Instant) -> None:
        assert cold.size > 0, "there is nothing to wait for"
        if place not in self.under_way:
            self.under_way[place] = {}
            self.new.append(Warm(cold.path, cold.position, cold.size, place))
            self.ask.set(now)

    def take(self, now: Instant) -> list[Effect]:
        del now
        assert all(isinstance(effect, Warm) and effect.token in self.under_way for effect in self.new)
        new, self.new = self.new, []
        return new

    def done(self, place: ColdPlace) -> list[Waiter]:
        """It was read. Returns who waits for it."""
        assert place in self.under_way, "nobody asked"
        waiting = [waiter for waiter in self.under_way.pop(place) if not waiter.done]
        self.warmed.pop(place, None)
        self.warmed[place] = len(waiting) or 1
        if len(self.warmed) > WARMED_MAX:
            del self.warmed[next(iter(self.warmed))]
        return waiting

    def check(self) -> None:
        assert len(self.warmed) <= WARMED_MAX and all(count > 0 for count in self.warmed.values())
        assert not self.new or not self.ask.done
