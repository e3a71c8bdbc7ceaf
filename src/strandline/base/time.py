"""Time is an argument.

An `Instant` is milliseconds since the Unix epoch and never runs backwards: a driver anchors its monotonic clock to
the wall clock once, at start. So the same number serves timeouts and record timestamps.
"""

from typing import NewType

Instant = NewType("Instant", int)

NEVER = Instant(1 << 62)


def after(now: Instant, span_ms: int) -> Instant:
    """The instant `span_ms` after `now`."""
    return Instant(now + span_ms)
