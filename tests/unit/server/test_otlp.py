"""What OpenTelemetry's library makes of a push, and what Prometheus' client library reads of it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData
from prometheus_client.parser import text_string_to_metric_families
from tests.rows import each

from strandline.base.effects import Endpoint
from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.broker.telemetry.pushed import LABELS_MAX, Point, PushedSeries
from strandline.broker.telemetry.telemetry import ITEMS_MAX, Undecodable
from strandline.server.metrics import otlp
from strandline.server.metrics.exposition import read_samples
from strandline.server.metrics.metrics import MetricsServer
from strandline.server.metrics.otlp import Otlp, points_in
from strandline.server.metrics.pushed import LINES_PER_PIECE, text_of_pushed

DELTA, CUMULATIVE = (
    AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA,
    AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
)


def one_metric(**data: Any) -> MetricsData:
    found = MetricsData()
    found.resource_metrics.add().scope_metrics.add().metrics.add(name="m", **data)
    return found


def points(message: MetricsData) -> list[Point]:
    return Otlp().points(message.SerializeToString(), ITEMS_MAX)


READ = [
    (
        {"gauge": {"data_points": [{"as_double": 1.5}, {"as_int": 3}, {}]}},
        [(value, False, False) for value in (1.5, 3.0, 0.0)],
    ),
    (
        {"sum": {"data_points": [{"as_int": 7}], "is_monotonic": True, "aggregation_temporality": DELTA}},
        [(7.0, True, True)],
    ),
    (
        {"sum": {"data_points": [{"as_int": -7}], "aggregation_temporality": CUMULATIVE}},
        [(-7.0, False, False)],
    ),
    ({}, []),
]


@each("data, found", READ)
def test_a_gauge_and_a_sum_are_read_as_they_are(data: Any, found: list[tuple[float, bool, bool]]) -> None:
    assert points(one_metric(**data)) == [Point("m", (), *one) for one in found]


@each(
    "kind, is_delta",
    [("histogram", True), ("histogram", False), ("exponential_histogram", True), ("summary", False)],
)
def test_a_distribution_becomes_its_number_and_its_sum(kind: str, is_delta: bool) -> None:
    data: dict[str, Any] = {"data_points": [{"count": 4, "sum": 2.5}]}
    if kind != "summary":
        data["aggregation_temporality"] = DELTA if is_delta else CUMULATIVE
    assert points(one_metric(**{kind: data})) == [
        Point("m.count", (), 4.0, True, is_delta),
        Point("m.sum", (), 2.5, True, is_delta),
    ]


def test_labels_are_those_of_the_point_and_then_those_of_the_client() -> None:
    message = one_metric(gauge={"data_points": [{"as_int": 1}]})
    point = message.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0]
    for key, value in (
        ("text", AnyValue(string_value="a")),
        ("int", AnyValue(int_value=5)),
        ("double", AnyValue(double_value=0.5)),
        ("yes", AnyValue(bool_value=True)),
        ("no", AnyValue(bool_value=False)),
        ("bytes", AnyValue(bytes_value=b"x")),
        ("nothing", AnyValue()),
    ):
        point.attributes.append(KeyValue(key=key, value=value))
    message.resource_metrics[0].resource.attributes.append(KeyValue(key="group_id", value=AnyValue(string_value="g")))
    (found,) = points(message)
    known = {"text": "a", "int": "5", "double": "0.5", "yes": "true", "no": "false", "bytes": "", "nothing": ""}
    assert dict(found.labels) == {**known, "group_id": "g"}
    assert found.labels[-1] == ("group_id", "g")


@each("data", [b"\xff", b"\x0a\x05abc", b"\x0a\x02\xff\xff"])
def test_bytes_that_are_something_else_are_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        Otlp().points(data, ITEMS_MAX)


MANY = 100_000
NO_RESOURCE = SimpleNamespace(attributes=())


@each("level", ["resources", "scopes", "metrics", "points", "labels"])
def test_only_so_many_things_of_a_push_are_looked_at(level: str) -> None:
    """A push may have a million things that are empty, of each kind."""
    seen = 0

    def many(one: Any) -> Iterator[Any]:
        nonlocal seen
        for _ in range(MANY):
            seen += 1
            yield one

    if level == "labels":
        (point,) = points(one_metric(gauge={"data_points": [{"attributes": [{"key": "k"}] * MANY}]}))
        assert len(point.labels) == LABELS_MAX
        return
    if level == "points":
        found = points(one_metric(gauge={"data_points": [{}] * MANY}))
        assert len(found) == ITEMS_MAX - 3, "behind a resource, a scope and a metric"
        return
    metric = SimpleNamespace(WhichOneof=lambda name: None)
    metrics = many(metric) if level == "metrics" else ()
    scope = SimpleNamespace(metrics=metrics)
    scopes = many(scope) if level == "scopes" else (scope,)
    resource = SimpleNamespace(resource=NO_RESOURCE, scope_metrics=scopes)
    resources = many(resource) if level == "resources" else (resource,)
    assert list(points_in(SimpleNamespace(resource_metrics=resources), ITEMS_MAX)) == []
    assert 0 < seen <= ITEMS_MAX


def test_prometheus_reads_what_clients_push_whatever_they_call_things() -> None:
    series = PushedSeries()
    hostile = 'quote" back\\slash\nline # {} é'
    names = (hostile, "strandline_pushed_x", "# TYPE x counter", "x.total", "x", "le")
    for number in range(2):
        found = [
            Point(name, ((hostile, hostile), ("le", "1"), (f"own{number}", "v")), value, is_counter, False)
            for name in names
            for is_counter in (False, True)
            for value in (float("nan"), float("inf"), -float("inf"), 1e300, 0.1, 3.0)
        ]
        series.take(Uuid(bytes([number]) * 16), hostile, found, Instant(1))
    text = "".join(text_of_pushed(series))
    families = list(text_string_to_metric_families(text))
    samples = [(one.name, str(sorted(one.labels.items())), one.value) for family in families for one in family.samples]
    assert len(set(samples)) == len(samples) == series.count == 22
    assert sorted((name, str(sorted(labels.items())), value) for name, labels, value in read_samples(text)) == sorted(
        samples
    )
    assert {one.labels["client_id"] for family in families for one in family.samples} == {hostile}
    assert len({(family.name, family.type) for family in families}) == len(families)


def test_numbers_are_written_as_prometheus_writes_them() -> None:
    series = PushedSeries()
    shown = {3.0: "3", 0.5: "0.5", 1e300: "1e+300", float("inf"): "+Inf", float("-inf"): "-Inf", float("nan"): "NaN"}
    for number, value in enumerate(shown):
        series.take(Uuid(bytes(16)), "c", [Point(f"m{number}", (), value, False, False)], Instant(1))
    written = [line.rpartition(" ")[2] for line in "".join(text_of_pushed(series)).splitlines() if line[0] != "#"]
    assert written == list(shown.values())


def test_a_long_page_comes_in_pieces() -> None:
    series = PushedSeries()
    for number in range(3):
        many = [Point("m", (("n", str(n)),), 1.0, False, False) for n in range(LINES_PER_PIECE)]
        series.take(Uuid(bytes([number]) * 16), "c", many, Instant(1))
    pieces = text_of_pushed(series)
    first = next(pieces)
    series.forget(Uuid(bytes([2]) * 16))
    rest = list(pieces)
    assert max(piece.count("\n") for piece in (first, *rest)) <= LINES_PER_PIECE + 2
    assert "".join((first, *rest)).count("\nstrandline_pushed_m{") == 2 * LINES_PER_PIECE, "the third is forgotten"


@each("missing", ["google.protobuf", "opentelemetry.proto"])
def test_a_node_without_the_library_takes_no_telemetry(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SimpleNamespace(telemetry=SimpleNamespace(decoder=None))
    server = MetricsServer(Endpoint("127.0.0.1", 0), cast(Any, SimpleNamespace()))
    real = otlp.find_spec
    monkeypatch.setattr(otlp, "find_spec", lambda name: None if name == missing else real(name))
    server.show_telemetry(cast(Any, SimpleNamespace(broker=broker)))
    assert broker.telemetry.decoder is None
    monkeypatch.undo()
    server.show_telemetry(cast(Any, SimpleNamespace(broker=broker)))
    assert isinstance(broker.telemetry.decoder, Otlp)
