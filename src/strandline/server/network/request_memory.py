"""What requests hold in memory, over all connections: parts of large frames, and requests that are not answered yet.

Parts of large frames are always bounded. All requests are counted only if `queued.max.request.bytes` says so, since
that costs something for each request. At a bound, connections wait with their next frame until there is room.

Invariants:
  - who waits is woken when something becomes free, and asks again;
  - a frame that was begun is read on while the bound for all requests is reached, or nobody could ever finish one.
"""

from collections.abc import Callable
from typing import Protocol

UNLIMITED = 1 << 62


class Waiter(Protocol):
    def resume(self) -> None:
        """Go on reading, if nothing else forbids it."""
        ...


class RequestMemory:
    def __init__(
        self,
        parts_max: int = UNLIMITED,
        queued_max: int = -1,
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`queued_max`: −1 is no bound, as in `queued.max.request.bytes`. `later` calls a function from the loop."""
        assert later is not None or (parts_max == UNLIMITED and queued_max < 0), "who waits must be woken"
        self.parts_max = parts_max
        self.queued_max = UNLIMITED if queued_max < 0 else queued_max
        self.parts = 0  # bytes allocated for large frames that are not complete
        self.queued = 0  # bytes of whole requests that are not answered, if they are counted
        self.waiting: dict[Waiter, None] = {}
        self.later = later
        self.is_waking = False

    @property
    def counts_all(self) -> bool:
        return self.queued_max < UNLIMITED

    @property
    def may_grow(self) -> bool:
        """May a large frame that was begun have more memory?"""
        return self.parts < self.parts_max

    @property
    def may_begin(self) -> bool:
        """May another frame be read?"""
        return self.parts < self.parts_max and self.queued + self.parts < self.queued_max

    def wait(self, waiter: Waiter) -> None:
        self.waiting[waiter] = None

    def free(self, parts: int = 0, queued: int = 0) -> None:
        assert 0 <= parts <= self.parts and 0 <= queued <= self.queued, "what was taken"
        self.parts -= parts
        self.queued -= queued
        if self.waiting and not self.is_waking:
            assert self.later is not None
            self.is_waking = True
            self.later(self.wake)

    def wake(self) -> None:
        """In their order. Who gets no room waits again, behind the others."""
        self.is_waking = False
        for waiter in list(self.waiting):
            if not self.may_grow:
                break
            del self.waiting[waiter]
            waiter.resume()
