"""What a metric is: its name in Prometheus' text, its type, its help, its labels, and Kafka's own name for it.

Nothing registers itself: counters are plain integers in the machines that count, gauges are computed when somebody
looks. So a node that nobody scrapes pays nothing.

Invariant: a `Histogram` has one count per bound and one for what is above all of them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from msgspec import Struct

from strandline.base.value import Value

Labels = tuple[str, ...]  # the values, in the order of the metric's label names
Number = int | float


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(Value, frozen=True):
    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    source: str = ""  # Kafka's object name and, where it is not "Value" or "Count", the attribute; empty: not Kafka's

    def __post_init__(self) -> None:
        assert self.name.isidentifier()
        assert self.help and "\n" not in self.help, f"{self.name}: one line of help"
        assert "le" not in self.labels, "a histogram's own"
        assert len(set(self.labels)) == len(self.labels)


class Histogram:
    """Observed durations in nanoseconds, counted by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        assert bounds and all(low < high for low, high in pairwise(bounds)), "bounds ascend"
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def observe(self, value: int) -> None:
        """A value equal to a bound is within it, as Prometheus' `le` says."""
        assert value >= 0, "a clock that never runs backwards"
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        assert len(self.counts) == len(self.bounds) + 1, "one count a bound, and one above all"
        return sum(self.counts)


Sample = tuple[Labels, Number | Histogram]


class Family(Struct, frozen=True):
    """A metric and all its samples of one moment."""

    metric: Metric
    samples: list[Sample]
