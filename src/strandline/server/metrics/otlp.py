"""OpenTelemetry's MetricsData, as clients push it, decoded with OpenTelemetry's own library (KIP-714).

The library is an extra (`pip install 'strandline[telemetry]'`). It takes a twentieth of a second to import, so that is
done when there is a subscription, and not by the loop's thread.

A distribution (histogram, exponential histogram, summary) becomes two counters: how many values, and their sum. What a
client says about itself as a resource becomes labels of all its points.
"""

import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from threading import Thread
from typing import Any

from strandline.broker.telemetry.pushed import LABELS_MAX, Labels, Point
from strandline.broker.telemetry.telemetry import Undecodable

log = logging.getLogger("strandline")

MODULE = "opentelemetry.proto.metrics.v1.metrics_pb2"
DELTA = 1  # AggregationTemporality


def is_installed() -> bool:
    try:
        return find_spec("google.protobuf") is not None and find_spec("opentelemetry.proto") is not None
    except ImportError:
        return False


class Otlp:
    def __init__(self) -> None:
        self.is_loading = False

    def prepare(self) -> None:
        if not self.is_loading:
            self.is_loading = True
            Thread(target=self.load, name="telemetry", daemon=True).start()

    def load(self) -> None:
        try:
            import_module(MODULE)
        except Exception:
            log.exception("clients' telemetry cannot be decoded: pip install 'strandline[telemetry]'")

    def points(self, data: bytes, items_max: int) -> list[Point]:
        """The first numbers in it; metrics and points count as items. Raises `Undecodable`, whatever the library
        raises."""
        try:
            message = import_module(MODULE).MetricsData()
            message.ParseFromString(data)
            return list(islice(points_in(message, items_max), items_max))
        except Exception as error:
            raise Undecodable(f"{type(error).__name__}: {error}") from None


def points_in(message: Any, items_max: int) -> Iterator[Point]:
    left = items_max
    for resource_metrics in islice(message.resource_metrics, items_max):
        of_resource = labels_in(resource_metrics.resource.attributes)
        left -= 1
        for scope_metrics in islice(resource_metrics.scope_metrics, max(0, left)):
            left -= 1
            for metric in islice(scope_metrics.metrics, max(0, left)):
                left -= 1
                kind = metric.WhichOneof("data")
                if kind is not None:
                    data = getattr(metric, kind)
                    points = data.data_points[: max(0, left)]
                    left -= len(points)
                    for point in points:
                        yield from READ[kind](metric.name, data, point, labels_in(point.attributes) + of_resource)


def labels_in(attributes: Any) -> Labels:
    return tuple([(one.key, one.value.string_value or text_of(one.value)) for one in attributes[:LABELS_MAX]])


def text_of(value: Any) -> str:
    """Of a value that is no string; empty if it is not a single value."""
    kind = value.WhichOneof("value")
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    return str(getattr(value, kind)) if kind in ("int_value", "double_value") else ""


def number(point: Any) -> float:
    kind = point.WhichOneof("value")
    return float(getattr(point, kind)) if kind is not None else 0.0


def gauge(name: str, data: Any, point: Any, labels: Labels) -> Iterator[Point]:
    del data
    yield Point(name, labels, number(point), False, False)


def total(name: str, data: Any, point: Any, labels: Labels) -> Iterator[Point]:
    yield Point(name, labels, number(point), data.is_monotonic, data.aggregation_temporality == DELTA)


def distribution(name: str, data: Any, point: Any, labels: Labels) -> Iterator[Point]:
    is_delta = data.aggregation_temporality == DELTA
    yield Point(f"{name}.count", labels, float(point.count), True, is_delta)
    yield Point(f"{name}.sum", labels, point.sum, True, is_delta)


def summary(name: str, data: Any, point: Any, labels: Labels) -> Iterator[Point]:
    del data
    yield Point(f"{name}.count", labels, float(point.count), True, False)
    yield Point(f"{name}.sum", labels, point.sum, True, False)


READ = {
    "gauge": gauge,
    "sum": total,
    "histogram": distribution,
    "exponential_histogram": distribution,
    "summary": summary,
}
