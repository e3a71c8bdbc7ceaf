"""The text of metrics, read by Prometheus' own client library."""

from prometheus_client.parser import text_string_to_metric_families

from strandline.base.metrics import Family, Histogram, Kind, Metric
from strandline.server.metrics import process
from strandline.server.metrics.exposition import LINES_PER_PIECE, read_samples, text_of

MS = 1_000_000


def both(families: list[Family]) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    """What the library reads, by the metric's name; our own reader must read the same."""
    text = "".join(text_of(families))
    found = {
        family.name: [(sample.name, sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }
    assert sorted(read_samples(text), key=str) == sorted((s for samples in found.values() for s in samples), key=str)
    return found


def test_a_gauge_and_a_counter_with_and_without_labels() -> None:
    found = both(
        [
            Family(Metric("a_gauge", Kind.GAUGE, "a help"), [((), 1.5)]),
            Family(Metric("a_total", Kind.COUNTER, "b help", ("x", "y")), [(("1", "2"), 3), (("1", "3"), 4)]),
        ]
    )
    assert found == {
        "a_gauge": [("a_gauge", {}, 1.5)],
        "a": [("a_total", {"x": "1", "y": "2"}, 3.0), ("a_total", {"x": "1", "y": "3"}, 4.0)],
    }


def test_labels_with_quotes_backslashes_and_line_ends_come_back_as_they_were() -> None:
    for value in ('say "hi"', "back\\slash", "two\nlines", 'a\\"b\\n', "Grüße", "", "},{", "a=b,c"):
        found = both([Family(Metric("m", Kind.GAUGE, "help", ("label",)), [((value,), 1)])])
        assert found["m"] == [("m", {"label": value}, 1.0)]


def test_a_histogram_is_cumulative_and_ends_with_its_count() -> None:
    histogram = Histogram((1 * MS, 2 * MS, 5 * MS))
    for ms in (0.5, 1, 1.5, 4, 9, 9):
        histogram.observe(int(ms * MS))
    found = both([Family(Metric("h", Kind.HISTOGRAM, "help", ("x",)), [(("v",), histogram)])])["h"]
    buckets = {labels["le"]: value for name, labels, value in found if name == "h_bucket"}
    assert buckets == {"1": 2, "2": 3, "5": 4, "+Inf": 6}
    assert [value for name, _, value in found if name == "h_sum"] == [25.0]
    assert [value for name, _, value in found if name == "h_count"] == [6]


def test_a_family_without_samples_leaves_no_trace() -> None:
    assert "".join(text_of([Family(Metric("m", Kind.GAUGE, "help"), [])])) == ""


def test_a_long_page_comes_in_pieces_and_metrics_with_equal_labels_do_not_mix() -> None:
    values = list(range(3 * LINES_PER_PIECE))
    families = [
        Family(Metric(name, Kind.GAUGE, "help", label), [((str(n),), n) for n in values])
        for name, label in (("a", ("x",)), ("b", ("x",)), ("c", ("y",)))
    ]
    pieces = list(text_of(families))
    assert len(pieces) >= 9
    assert max(piece.count("\n") for piece in pieces) <= LINES_PER_PIECE + 1
    found = both(families)
    assert found["b"] == [("b", {"x": str(n)}, float(n)) for n in values]
    assert found["c"] == [("c", {"y": str(n)}, float(n)) for n in values]


def test_the_process_reports_its_cpu_memory_and_files() -> None:
    found = {name: samples[0][2] for name, samples in both(list(process.families())).items()}
    assert found["process_cpu_seconds"] > 0
    assert 1e6 < found["process_resident_memory_bytes"] < found["process_virtual_memory_bytes"]
    assert 3 <= found["process_open_fds"] <= found["process_max_fds"]
    assert found["process_start_time_seconds"] > 1.6e9
