"""Now, in milliseconds since the epoch, from a clock that never runs backwards.

The monotonic clock is anchored to the wall clock once, at start. A wall clock that is set later does not move us, so
the same number serves timeouts and record timestamps. What a jump of the wall clock does to a node is what it finds
when it starts the next time: tests make one with AHEAD_MS.
"""

import os
import time

from strandline.base.time import Instant

AHEAD_MS = "STRANDLINE_CLOCK_AHEAD_MS"  # for tests: how far the wall clock is ahead; may be negative


class Clock:
    def __init__(self) -> None:
        ahead_ns = int(os.environ.get(AHEAD_MS, "0")) * 1_000_000
        self.offset_ns = time.time_ns() - time.monotonic_ns() + ahead_ns

    def now(self) -> Instant:
        return Instant((time.monotonic_ns() + self.offset_ns) // 1_000_000)
