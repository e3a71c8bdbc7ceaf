"""Now, in milliseconds since the epoch, from a clock that never runs backwards.

The monotonic clock is anchored to the wall clock once, at start. A wall clock that is set later does not move us, so
the same number serves timeouts and record timestamps.
"""

import time

from strandline.base.time import Instant


class Clock:
    def __init__(self) -> None:
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def now(self) -> Instant:
        return Instant((time.monotonic_ns() + self.offset_ns) // 1_000_000)
