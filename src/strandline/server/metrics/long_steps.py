"""Steps of a node that take 10 ms or more, by cause. The node has one loop: while a step runs, everybody else waits.

A step is an event or a deadline, with all effects that follow at once, as `Pump` runs it. A node that serves no metrics
has a plain `Pump`, and pays nothing. With metrics a step costs two readings of the clock more, and a deadline a look at
whose it is.
"""

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from strandline.base.effects import Effect, Received
from strandline.base.metrics import Family, Histogram
from strandline.base.time import Instant
from strandline.broker import due
from strandline.broker.metrics.of_process import LONG_STEPS
from strandline.server.pump import DEADLINE, Pump
from strandline.wire.api import API_BY_KEY

BOUNDS_NS = tuple(1_000_000 * ms for ms in (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000))


class LongSteps:
    def __init__(self) -> None:
        self.by_cause: dict[str, Histogram] = {}

    def pump(self, node: Any, *rest: Any) -> Pump:
        """A pump whose long steps count here; `rest`: what a `Pump` needs besides its node."""
        return WatchedPump(self, node, *rest)

    def took(self, cause: str, span_ns: int) -> None:
        assert span_ns >= BOUNDS_NS[0]
        if cause not in self.by_cause:
            self.by_cause[cause] = Histogram(BOUNDS_NS)
        self.by_cause[cause].observe(span_ns)

    def families(self) -> Iterator[Family]:
        yield Family(LONG_STEPS, [((cause,), seen) for cause, seen in sorted(self.by_cause.items())])


class WatchedPump(Pump):
    def __init__(self, long_steps: LongSteps, node: Any, *rest: Any) -> None:
        super().__init__(node, *rest)
        self.long_steps = long_steps

    def due(self) -> list[str]:
        node: Any = self.node
        return due.names(node.quorum, node.forwarding, node.controller, node.broker, self.now())

    def run(self, step: Callable[[Any, Instant], list[Effect]], event: Any) -> None:
        parts = self.due() if event is DEADLINE else []
        begin = perf_counter_ns()
        Pump.run(self, step, event)
        span_ns = perf_counter_ns() - begin
        if span_ns >= BOUNDS_NS[0]:
            self.long_steps.took(cause_of(event, parts), span_ns)


def cause_of(event: Any, parts: list[str]) -> str:
    """The API of a request; what was answered, and to whom; the parts whose deadline it was."""
    if isinstance(event, Received):
        return API_BY_KEY[event.to.api_key].name
    if isinstance(event, str):
        return ", ".join(parts) or event
    kind, token = type(event).__name__, getattr(event, "token", None)
    return kind if token is None else f"{kind} {type(token).__name__}"
