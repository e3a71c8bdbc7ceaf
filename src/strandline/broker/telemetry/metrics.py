"""Metrics about clients' telemetry: the rows of the table, and their values. Names follow the rules of `metrics.table`.

Kafka has most of them for each client instance; here they are sums over all of them, so that clients cannot add any.
"""

from collections.abc import Iterator

from strandline.base.metrics import Family, Kind, Metric
from strandline.broker.telemetry.telemetry import Telemetry

GROUP = "kafka.server:type=client-metrics"
INSTANCES = Metric(
    "kafka_server_clientmetrics_instance_count",
    Kind.GAUGE,
    "Client instances that asked for telemetry subscriptions, and are known",
    (),
    f"{GROUP} instance-count",
)
UNKNOWN, THROTTLED, EXPORTED, FAILED = (
    Metric(f"kafka_server_clientmetrics_{name.replace('-', '_')}_total", Kind.COUNTER, text, (), f"{GROUP} {name}")
    for name, text in (
        ("unknown-subscription-request-count", "Pushes with a subscription id that the client does not have now"),
        ("throttle-count", "Requests about telemetry that came before their push interval"),
        ("plugin-export-count", "Pushes whose metrics were taken"),
        ("plugin-error-count", "Pushes whose metrics could not be unpacked or decoded"),
    )
)
EXPORT_TIME = Metric(
    "strandline_telemetry_export_time_ms", Kind.HISTOGRAM, "How long it took to unpack, decode and store a push"
)
SERIES = Metric("strandline_telemetry_series", Kind.GAUGE, "Series that clients have pushed, and that are shown")
DROPPED = Metric(
    "strandline_telemetry_dropped_points_total",
    Kind.COUNTER,
    "Pushed numbers that are not shown: there was no room for more series, or the name is too long, or it is no number",
)
METRICS = (INSTANCES, UNKNOWN, THROTTLED, EXPORTED, FAILED, EXPORT_TIME, SERIES, DROPPED)


def families(telemetry: Telemetry) -> Iterator[Family]:
    yield Family(INSTANCES, [((), len(telemetry.instances))])
    yield Family(UNKNOWN, [((), telemetry.unknown_subscriptions)])
    yield Family(THROTTLED, [((), telemetry.throttled)])
    yield Family(EXPORTED, [((), telemetry.exported)])
    yield Family(FAILED, [((), telemetry.failed)])
    yield Family(EXPORT_TIME, [((), telemetry.export_time)])
    yield Family(SERIES, [((), telemetry.pushed.count)])
    yield Family(DROPPED, [((), telemetry.pushed.dropped)])
