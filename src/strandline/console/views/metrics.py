"""What `strandline metrics` shows of every node, as plots."""

from strandline.client.admin.nodes.gauges import COLUMNS
from strandline.console.asking.metrics import COUNTERS
from strandline.console.facts import Facts, Observed
from strandline.console.table import Json, Rows
from strandline.console.view import Channel, Query, View


def metric_rows(facts: Facts) -> Rows:
    """The newest values of each node, by node. `values` is null if it does not serve metrics, or did not answer."""
    metrics = facts.metrics
    return {
        str(node): {
            "node": node,
            "time_ms": metrics.time_ms,
            "url": url,
            "values": None if metrics.gauges.get(node) is None else newest(facts, node),
        }
        for node, url in metrics.urls.items()
    }


def newest(facts: Facts, node: int) -> dict[str, float]:
    """Of the series that were continued last."""
    now = facts.metrics.time_ms
    series = facts.metrics.series.get(node, {})
    return {column: round(points[-1][1], 2) for column, points in series.items() if points and points[-1][0] == now}


def history(observed: Observed, query: Query) -> Json:
    """All that the console has seen: the columns in their order, and rows of (ms, value) by node and column."""
    del query
    return {
        "columns": [
            {"name": column, "is_rate": column in COUNTERS, "is_trouble": is_trouble}
            for column, _, is_trouble in COLUMNS
        ],
        "series": {str(node): rows for node, rows in observed.facts.metrics.series.items()},
    }


METRICS = View(
    "metrics",
    "Metrics",
    channels=(Channel("metrics", ("metrics",), metric_rows),),
    reads={"metrics-history": history},
)
