"""What `strandline metrics` shows of each node, over time. Of what only grows, the growth per second counts."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from strandline.base.value import Value
from strandline.client.admin.nodes.gauges import COLUMNS, gauges_of, urls
from strandline.client.ask import Servers
from strandline.client.brokers import AT_ONCE_MAX
from strandline.console.asking.series import Points, growth, with_points

URLS_MS = 30_000  # after that nodes are asked again where they serve metrics
COUNTERS = frozenset(column for column, name, _ in COLUMNS if name.endswith("_total"))


class Metrics(Value, frozen=True):
    """`urls`: where each node serves its metrics, as it was at `urls_ms`; None: nowhere. `gauges` is None if a node did
    not answer. `series`: by node and column."""

    time_ms: int = 0
    urls: Mapping[int, str | None] = {}
    urls_ms: int = 0
    gauges: Mapping[int, Mapping[str, int] | None] = {}
    series: Mapping[int, Mapping[str, Points]] = {}


def ask_metrics(bootstrap: Servers, before: Metrics, now_ms: int) -> Metrics:
    known, known_ms = before.urls, before.urls_ms
    if now_ms - known_ms > URLS_MS:
        known, known_ms = urls(bootstrap), now_ms
    with ThreadPoolExecutor(max_workers=AT_ONCE_MAX) as threads:
        found = dict(zip(known, threads.map(gauges_of, known.values()), strict=True))
    return with_metrics(before, now_ms, known, known_ms, found)


def with_metrics(
    before: Metrics,
    now_ms: int,
    known: Mapping[int, str | None],
    known_ms: int,
    found: Mapping[int, Mapping[str, int] | None],
) -> Metrics:
    """A node that did not answer keeps its series: they go on when it is back."""
    series = {node: rows for node, rows in before.series.items() if node in known}
    for node, gauges in found.items():
        if gauges is not None:
            earlier = before.gauges.get(node)
            shown = shown_of(before.time_ms, earlier or {}, now_ms, gauges)
            rows = series.get(node, {})
            series[node] = {**rows, **with_points(rows, now_ms, shown)}
    return Metrics(now_ms, known, known_ms, found, series)


def shown_of(before_ms: int, before: Mapping[str, int], now_ms: int, now: Mapping[str, int]) -> dict[str, float]:
    rates = growth(before_ms, before, now_ms, now)
    plain = {column: float(value) for column, value in now.items() if column not in COUNTERS}
    return plain | {column: rate for column, rate in rates.items() if column in COUNTERS}
