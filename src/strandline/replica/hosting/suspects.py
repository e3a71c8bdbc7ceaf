"""Places at which a read came upon damage: the scrubber looks at each of them at once."""

from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.replica.hosting.hosted import Hosted


class Suspects:
    """One place of each log is kept. A read at another damaged place reports it again."""

    def __init__(self) -> None:
        self.places: dict[Hosted, int] = {}
        self.ring: Alarm | None = None  # of the scrubber

    def report_to(self, ring: Alarm) -> None:
        """It rings when there is a place to look at."""
        assert self.ring is None
        self.ring = ring

    def add(self, hosted: Hosted, offset: int, now: Instant) -> None:
        assert offset >= 0, hosted.name
        self.places[hosted] = offset
        if self.ring is not None:
            self.ring.set(now)

    def take(self) -> tuple[Hosted, int]:
        assert self.places
        hosted = next(iter(self.places))
        return hosted, self.places.pop(hosted)
