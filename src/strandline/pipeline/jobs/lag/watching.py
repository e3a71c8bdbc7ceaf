"""Samples at an interval, for a time or until somebody stops it; kept in a file and shown."""

import time
from collections.abc import Callable, Iterator, Sequence

from strandline.pipeline.errors import PipelineError
from strandline.pipeline.jobs.lag.samples import Sample

Samples = Sequence[Sample]


def watch(
    sample: Callable[[], list[Sample]],
    *,
    every_s: float,
    for_s: float | None,
    failed: Callable[[PipelineError], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Samples]:
    """Each time's samples, at once and then every `every_s` seconds, until `for_s` seconds are over (None: for ever).

    The first failure of all is raised; a later one is told to `failed`, and the next time comes. A time that took
    longer than `every_s` leaves out those that it missed.
    """
    began = clock()
    at, times = 0, 0
    while True:
        try:
            yield sample()
            times += 1
        except PipelineError as error:
            if not times:
                raise
            failed(error)
        at = max(at + 1, int((clock() - began) / every_s) + (0 if every_s > 0 else 1))
        due = began + at * every_s
        if for_s is not None and due > began + for_s:
            return
        sleep(max(0.0, due - clock()))
