"""Samples at an interval, for a time or until somebody stops it; and those of a long time, within bounds."""

import time
from collections.abc import Callable, Iterator, Sequence

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import Sample

Samples = Sequence[Sample]
KEPT_MAX = 100_000


def watch(
    sample: Callable[[], list[Sample]],
    *,
    every_s: float,
    for_s: float | None,
    failed: Callable[[StrandlineError], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Samples]:
    """Each time's samples, at once and then every `every_s` seconds, until `for_s` seconds are over (None: for ever).

    The first failure of all is raised; a later one is passed to `failed`, and the next time comes. A time that took
    longer than `every_s` leaves out those that it missed.
    """
    began = clock()
    at, times = 0, 0
    while True:
        try:
            yield sample()
            times += 1
        except StrandlineError as error:
            if not times:
                raise
            failed(error)
        at = max(at + 1, int((clock() - began) / every_s) + (0 if every_s > 0 else 1))
        due = began + at * every_s
        if for_s is not None and due > began + for_s:
            return
        sleep(max(0.0, due - clock()))


class Kept:
    """The samples of a whole watch, for a page: of more than `samples_max` every second time is let go, again and
    again, so that what is kept lies evenly over the whole time. The last time is always there."""

    def __init__(self, samples_max: int = KEPT_MAX) -> None:
        self.samples_max = samples_max
        self.times: list[Samples] = []
        self.last: Samples = ()
        self.count = 0  # of the samples in `times`
        self.stride, self.seen = 1, 0

    def add(self, samples: Samples) -> None:
        if not samples:
            return
        self.last = samples
        if self.seen % self.stride == 0:
            self.times.append(samples)
            self.count += len(samples)
        self.seen += 1
        while len(self.times) > 2 and self.count > self.samples_max:
            self.times = self.times[::2]
            self.count = sum(map(len, self.times))
            self.stride *= 2

    def all(self) -> list[Sample]:
        last = [self.last] if self.times and self.times[-1] is not self.last else []
        return [sample for samples in [*self.times, *last] for sample in samples]
