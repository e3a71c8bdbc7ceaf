"""What requests hold in memory, over all connections: parts of large frames, and requests that are not answered yet.

Parts of large frames are always bounded. All requests are counted only if `queued.max.request.bytes` says so, since
that costs something for each request. At a bound, connections wait with their next frame until there is room.

Invariants:
  - who waits is woken when something becomes free, and asks again;
  - a frame that was begun is read on while the bound for all requests is reached, and one of those frames (`favoured`)
    gets all memory that it needs: or each might wait for the others.
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
        self.favoured: object = None  # a large frame's connection
        self.waiting: dict[Waiter, None] = {}
        self.later = later
        self.is_waking = False

    @property
    def counts_all(self) -> bool:
        return self.queued_max < UNLIMITED

    @property
    def may_begin(self) -> bool:
        """May another frame be read?"""
        return self.parts < self.parts_max and self.queued + self.parts < self.queued_max

    def may_grow(self, owner: object) -> bool:
        """May this large frame, which was begun, have more memory?"""
        if self.parts < self.parts_max:
            return True
        if self.favoured is None:
            self.favoured = owner
        return self.favoured is owner

    def wait(self, waiter: Waiter) -> None:
        self.waiting[waiter] = None

    def large_over(self, owner: object, size: int) -> None:
        """A large frame is complete, or its connection has ended."""
        assert 0 < size <= self.parts, "what was taken"
        self.parts -= size
        if self.favoured is owner:
            self.favoured = None
        self.wake_soon()

    def answered(self, size: int) -> None:
        assert 0 <= size <= self.queued, "what was taken"
        self.queued -= size
        self.wake_soon()

    def wake_soon(self) -> None:
        if self.waiting and not self.is_waking:
            assert self.later is not None
            self.is_waking = True
            self.later(self.wake)

    def wake(self) -> None:
        """In their order. Who gets no room waits again, behind the others."""
        self.is_waking = False
        for waiter in list(self.waiting):
            if self.parts >= self.parts_max and self.favoured is not None:
                break
            del self.waiting[waiter]
            waiter.resume()
