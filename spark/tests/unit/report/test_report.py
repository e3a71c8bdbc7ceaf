"""Pages that need nothing but a browser, in which nothing that was given is markup."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from strandline_spark.report import (
    Series,
    Span,
    Verdict,
    bars,
    lines,
    number,
    page,
    section,
    spans,
    stacked,
    steps,
    table,
    write_page,
)
from strandline_spark.report.plots import POINTS_MAX, thinned

HOSTILE = '</td><script>alert(\'$x$\')</script> & "orders" style="fill: #010000" _'
VOID = {"meta", "br", "path", "use", "rect"}


class Structure(HTMLParser):
    """Every element ends where it should; which there are, and which ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attributes)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        for name, value in attributes:
            assert value is not None or name == "open"
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "clip-path", "style"):
                self.references += re.findall(r"#([\w-]+)", value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def every_plot(name: str) -> list[str]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=at) for at in range(40)]
    return [
        lines(name, [Series(name, times, list(range(40))), Series("b", times, [None] * 40)], x=name, y=name),
        steps(name, [Series(f"{name}{at}", [1, 2], [at, 3]) for at in range(15)]),
        bars(name, [(name, 1), (name, 2.5)], levels=["bad"]),
        stacked(name, [name, "b"], {name: [1, 2], "q": [3, 4]}),
        spans(name, [Span(name, 0, 9, 7, [3], [8]), Span("b", 2, 2)], mark=name),
    ]


def test_a_page_is_well_formed_and_refers_to_nothing_outside_itself_whatever_stands_in_names() -> None:
    html = page(
        HOSTILE,
        section(HOSTILE, *every_plot(HOSTILE), note=HOSTILE),
        table([HOSTILE, "n"], [(HOSTILE, 1), (None, 2)], caption=HOSTILE, levels=["bad"]),
        verdict=Verdict("bad", HOSTILE, HOSTILE),
        facts=[(HOSTILE, HOSTILE), ("n", 1234567)],
        lead=HOSTILE,
    )
    document = Structure(html)
    assert document.open == []
    assert not {"script", "link", "img", "iframe", "object"} & set(document.names)
    assert len(document.ids) == len(set(document.ids))
    assert {name for name in document.references if not name.startswith("0")} <= set(document.ids)
    assert "default-src 'none'" in html
    assert not re.findall(r"(?:href|src)=\"(?!#)|@import|url\((?!#)", html)
    assert HOSTILE not in html


def test_plots_have_the_colours_of_the_page_and_the_text_that_was_given() -> None:
    reported = "".join(every_plot("price in $ of $orders"))
    assert "price in $ of $orders" in reported
    assert "#0100" not in reported
    assert "var(--c0)" in reported
    assert reported.count("<title") == 0
    assert reported.count('role="img"') == 5
    assert reported.count("<details>") == 5


def test_what_plots_draw_is_bounded_and_no_peak_is_lost() -> None:
    values: list[float | None] = [0.0] * 100_000
    values[77_777], values[5] = 9.0, None
    some = thinned(Series("lag", list(range(100_000)), values))
    assert len(some.x) <= POINTS_MAX + 4
    assert 9.0 in some.y
    assert (some.x[0], some.x[-1]) == (0, 99_999)
    assert list(some.x) == sorted(some.x)
    assert len(bars("many", [(f"row {at}", at) for at in range(10_000)])) < 200_000
    assert "9,940 more rows are not drawn" in bars("many", [(f"row {at}", at) for at in range(10_000)])


@pytest.mark.parametrize(
    ("plot"),
    [lines("t", []), lines("t", [Series("s", [], [])]), bars("t", []), stacked("t", [], {}), spans("t", [])],
)
def test_plots_of_nothing_are_plots(plot: str) -> None:
    assert Structure(plot).open == []


def test_rows_beyond_the_limit_are_counted() -> None:
    reported = table(["n"], ([at] for at in range(5000)), caption="numbers", limit=10)
    assert reported.count("<tr>") == 11
    assert "numbers, 4,990 more are not shown" in reported


def test_numbers_are_written_for_people() -> None:
    given = [1234567, 0.125, 12345.6, None, True, "a", datetime(2026, 1, 2, 3, 4, 5)]
    assert [number(one) for one in given] == ["1,234,567", "0.125", "12,346", "", "yes", "a", "2026-01-02 03:04:05"]


def test_a_page_replaces_the_one_before_it_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(path, "old")
    write_page(path, page("new"))
    assert "<h1>new</h1>" in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="absent"):
        write_page(tmp_path / "absent" / "report.html", "x")


def test_no_state_of_matplotlib_is_changed() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    every_plot("x")
    assert dict(matplotlib.rcParams) == before
