"""Series of what clients push: sums, names, labels and bounds."""

import pytest
from tests.rows import each

from strandline.base.ids import Uuid, uuid_text
from strandline.base.time import Instant
from strandline.broker.telemetry import pushed
from strandline.broker.telemetry.pushed import Labels, Point, PushedSeries

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
LATER = Instant(100)
NAN, INFINITE = float("nan"), float("inf")


def gauge(value: float, name: str = "g", labels: Labels = ()) -> Point:
    return Point(name, labels, value, False, False)


def growth(value: float, name: str = "n") -> Point:
    return Point(name, (), value, True, True)


def values(series: PushedSeries) -> dict[str, list[float]]:
    series.check()
    return {name: [value for _, value in samples] for name, samples in series.families()}


def test_growth_is_summed_and_anything_else_is_replaced() -> None:
    series = PushedSeries()
    for points in (
        [gauge(1), growth(2), Point("sum", (), 10, True, False), Point("queue", (), 5, False, True)],
        [gauge(7), growth(3), Point("sum", (), 12, True, False), Point("queue", (), -4, False, True)],
    ):
        series.take(A, "app", points, LATER)
    series.take(B, "app", [growth(100)], LATER)
    assert values(series) == {
        "strandline_pushed_g": [7],
        "strandline_pushed_n_total": [5, 100],
        "strandline_pushed_queue": [1],
        "strandline_pushed_sum_total": [12],
    }


@each("value", [-1.0, NAN, INFINITE])
def test_what_would_spoil_a_sum_is_dropped(value: float) -> None:
    series = PushedSeries()
    series.take(A, "app", [growth(2), growth(value)], LATER)
    assert values(series) == {"strandline_pushed_n_total": [2]}
    assert series.dropped == 1
    series.take(A, "app", [gauge(value)], LATER)
    assert series.dropped == 1, "a gauge is what it is"


NAMES = [
    ("org.apache.kafka.x", False, "org_apache_kafka_x"),
    ("x.total", True, "x_total"),
    ("x", True, "x_total"),
    ("x.total", False, "x_total_value"),  # or one name would have two types
    ('a b\n{}"\\é', False, "a_b______"),
    ("", False, ""),
]


@each("name, is_counter, shown", NAMES)
def test_a_name_is_one_for_prometheus_and_says_whether_it_counts(name: str, is_counter: bool, shown: str) -> None:
    series = PushedSeries()
    series.take(A, "app", [Point(name, (), 1, is_counter, False)], LATER)
    assert list(values(series)) == [f"strandline_pushed_{shown}"]


def test_labels_are_for_prometheus_and_no_client_calls_itself_another() -> None:
    given = (
        ("node.id", "1"),
        ("node_id", "2"),  # the same label: the first counts
        ("__name__", "evil"),
        ("9", "digit"),
        ("client_id", "other"),
        ("client.instance.id", "other"),
        ("empty", ""),
        ("", "nameless"),
        ("long", "x" * 500),
    )
    series = PushedSeries()
    series.take(A, "app", [gauge(1, labels=given)], LATER)
    (((instance_id, labels), _),) = next(iter(series.families()))[1]
    assert labels == (("label_9", "digit"), ("long", "x" * 120), ("name__", "evil"), ("node_id", "1"))
    assert series.clients[instance_id].labels == (("client_id", "app"), ("client_instance_id", uuid_text(A)))
    series.take(B, "c" * 500, [gauge(1, labels=tuple((f"l{n}", "v") for n in range(50)))], LATER)
    (_, ((_, labels), _)) = next(iter(series.families()))[1]
    assert len(labels) == pushed.LABELS_MAX
    assert series.clients[B].labels[0] == ("client_id", "c" * 120)


def test_a_client_has_so_many_series_and_all_of_them_have_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "OF_CLIENT_MAX", 3)
    monkeypatch.setattr(pushed, "SERIES_MAX", 5)
    many = [gauge(n, f"g{n}") for n in range(4)]
    series = PushedSeries()
    series.take(A, "app", many, LATER)
    assert (series.count, series.dropped) == (3, 1)
    series.take(B, "app", many, Instant(200))
    assert (series.count, series.dropped) == (5, 3)
    series.take(A, "app", [gauge(9, "g0")], Instant(100))
    assert values(series)["strandline_pushed_g0"] == [9, 0], "a series that is there goes on"
    series.forget_silent(Instant(99))
    assert series.count == 5
    series.forget_silent(Instant(100))
    assert values(series) == {"strandline_pushed_g0": [0], "strandline_pushed_g1": [1]}
    series.take(A, "app", [gauge(1, "x" * 200)], LATER)
    assert (series.count, series.dropped, list(series.clients)) == (2, 4, [B]), "a name that is too long"
