"""How much a client has used of a quota: sums over windows, and a bucket of tokens.

A `Rate` (KIP-13) is what was recorded in the last `count` windows, the current one included, over the time that they
have lasted: all but the last are full. A `TokenBucket` (KIP-599) fills at the quota's rate and holds as much as all
windows allow. It may fall below zero, by one mutation of any size.

An idle `Rate` is empty and an idle `TokenBucket` full after `count` windows: then each is as good as a new one.

A limit may be any number above 0, also one so small or so large that quotients are infinite or none at all: a quota
that is kept in the metadata must not stop every broker that a request reaches.
"""

from collections import deque

from strandline.base.time import Instant

WAIT_MS_MAX = (1 << 31) - 1  # an answer has 32 bits for it


class Rate:
    """`count` windows of `window_ms` each, which begin at multiples of it."""

    def __init__(self, count: int, window_ms: int) -> None:
        assert count > 0
        assert window_ms > 0
        self.count = count
        self.window_ms = window_ms
        self.windows: deque[tuple[int, float]] = deque()  # (number, sum), the oldest first
        self.total = 0.0

    def record(self, amount: float, now: Instant) -> None:
        assert amount >= 0
        self.purge(now)
        number = now // self.window_ms
        if self.windows and self.windows[-1][0] == number:
            amount_before = self.windows.pop()[1]
            self.windows.append((number, amount_before + amount))
        else:
            self.windows.append((number, amount))
        self.total += amount

    def purge(self, now: Instant) -> None:
        oldest = now // self.window_ms - self.count + 1
        while self.windows and self.windows[0][0] < oldest:
            self.total -= self.windows.popleft()[1]
        assert len(self.windows) <= self.count
        if not self.windows:
            self.total = 0.0  # exactly: sums of fractions drift

    def is_idle(self, now: Instant) -> bool:
        self.purge(now)
        return not self.windows

    def throttle_ms(self, limit: float, now: Instant) -> int:
        """After how long, without anything new, the rate would be the limit, which is per second; 0 if it is not above.
        With S recorded in a time W, that is S / limit − W."""
        assert limit > 0
        self.purge(now)
        span_ms = (self.count - 1) * self.window_ms + now % self.window_ms
        return whole_ms(1000 * self.total / limit - max(span_ms, 1))


class TokenBucket:
    def __init__(self, count: int, window_ms: int) -> None:
        assert count > 0
        assert window_ms > 0
        self.span_s = count * window_ms / 1000
        self.tokens: float | None = None  # None: full, whatever the limit is
        self.looked_at = Instant(0)
        self.limit = 1.0  # as it was when something was recorded

    def record(self, amount: float, limit: float, now: Instant) -> None:
        """`limit`: tokens a second."""
        assert amount >= 0
        self.tokens = self.refilled(limit, now) - amount
        self.limit, self.looked_at = limit, now

    def refilled(self, limit: float, now: Instant) -> float:
        """The tokens that there are now."""
        assert limit > 0
        full = limit * self.span_s
        if self.tokens is None:
            return full
        return min(full, self.tokens + limit * max(0, now - self.looked_at) / 1000)

    def is_idle(self, now: Instant) -> bool:
        return self.refilled(self.limit, now) >= self.limit * self.span_s

    def throttle_ms(self, limit: float, now: Instant) -> int:
        """After how long it is no longer below zero."""
        return whole_ms(-1000 * self.refilled(limit, now) / limit)


def whole_ms(ms: float) -> int:
    """From 0 to the longest wait that can be told. 0 if it is not a number: so it is for an infinite limit."""
    return round(min(max(0.0, ms), WAIT_MS_MAX))
