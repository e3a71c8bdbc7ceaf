"""What an operator asks of a group of the consumer protocol: since when it is as it is, and who has gone.

Nothing of this is replicated. The next coordinator does not know it.
"""

from strandline.base.time import Instant
from strandline.group.departures import Departures


class History:
    """Of one group, since this coordinator serves it."""

    def __init__(self) -> None:
        self.phase: str | None = None
        self.since: Instant | None = None  # when the phase began
        self.departures = Departures()

    def note(self, phase: str, now: Instant) -> None:
        """A rebalance may have many states on its way. It is one phase."""
        if phase != self.phase:
            assert self.since is None or now >= self.since, "time does not go back"
            self.phase, self.since = phase, now
