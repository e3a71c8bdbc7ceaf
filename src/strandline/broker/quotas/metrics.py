"""Metrics of clients' quotas: the rows of the table, and their values. Names follow the rules of `metrics.table`."""

from collections.abc import Iterator

from strandline.base.metrics import Family, Kind, Metric
from strandline.broker.quotas.throttling import ClientQuotas

THROTTLED = Metric(
    "strandline_client_throttled_total",
    Kind.COUNTER,
    "Answers that told a client to wait, by the quota that it must wait longest for",
    ("quota",),
)
THROTTLE_TIME = Metric(
    "strandline_client_throttle_time_ms_total", Kind.COUNTER, "How long these clients must wait", ("quota",)
)
METRICS = (THROTTLED, THROTTLE_TIME)


def families(quotas: ClientQuotas) -> Iterator[Family]:
    yield Family(THROTTLED, [((kind,), count) for kind, (count, _) in quotas.throttled.items()])
    yield Family(THROTTLE_TIME, [((kind,), wait_ms) for kind, (_, wait_ms) in quotas.throttled.items()])
