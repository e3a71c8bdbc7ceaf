"""Rows for people: one for each reader and topic, the worst first."""

from io import StringIO

import pytest
from rich.console import Console

from strandline_spark.jobs.lag.samples import Ends, Sample, sampled
from strandline_spark.jobs.lag.table import line_of, rows_of, span, summary_line, table_of


def at(time_ms: int, kind: str, reader: str, topic: str, partition: int, end: int, position: int | None) -> Sample:
    return sampled(time_ms, kind, reader, topic, partition, Ends(10, end), position)


BEFORE = [
    at(0, "group", "g", "t", 0, 100, 50),
    at(0, "group", "g", "t", 1, 100, 100),
    at(0, "topic", "", "t", 0, 100, None),
]
AFTER = [
    at(2000, "group", "calm", "t", 0, 300, 300),
    at(2000, "group", "g", "t", 0, 300, 90),
    at(2000, "group", "g", "t", 1, 100, 100),
    at(2000, "query", "q", "u", 0, 40, 4),
    at(2000, "topic", "", "t", 0, 300, None),
    at(2000, "topic", "", "v", 0, 20, None),
]


def test_the_worst_comes_first_and_a_topic_that_is_read_has_no_row_of_its_own() -> None:
    rows = rows_of(BEFORE, AFTER)
    assert [(row.kind, row.reader, row.topic, row.lag) for row in rows] == [
        ("group", "g", "t", 210),
        ("query", "q", "u", 30),
        ("group", "calm", "t", 0),
        ("topic", "", "v", None),
    ]
    worst = rows[0].worst
    assert worst is not None
    assert (worst.partition, rows[0].partitions, rows[0].written, rows[0].read) == (0, 2, 100.0, 20.0)
    assert (rows[1].expired, rows[1].written) == (6, None)


def test_a_line_says_it_all_and_a_table_too() -> None:
    rows = rows_of(BEFORE, AFTER)
    assert line_of(rows[0], 2000) == ("00:00:02 group g t: lag 210 (worst t-0: 210), delay -, written 100/s, read 20/s")
    assert line_of(rows[1], 2000).endswith("written -/s, read -/s, 6 deleted unread")
    console = Console(width=120, record=True, file=StringIO())
    console.print(table_of(rows, 2000))
    text = console.export_text()
    assert "group g" in text
    assert "0: 210" in text


@pytest.mark.parametrize("width", [40, 50, 60, 120])
def test_a_table_fits_its_terminal_and_cuts_no_name_and_no_number(width: int) -> None:
    samples = [at(2000, "group", "settlement-of-payments", "payments.europe", 0, 3_000_000, 1_234_567)]
    console = Console(width=width, file=StringIO())
    console.print(table_of(rows_of([], samples), 2000))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO of above
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "1,765,433" in text
    assert ("not shown" in text) == (width < 120)


def test_a_summary_is_a_line() -> None:
    row = {
        "kind": "group", "reader": "g", "topic": "t", "lag": 50, "lag_worst": 2000, "delay_ms": 10,
        "delay_ms_worst": None, "written_per_s": 10.0, "read_per_s": 20.0, "catch_up_s": 5.0, "expired": 3,
    }  # fmt: skip
    assert summary_line(row) == (
        "group g t: lag 50 (worst 2,000), delay 10 ms (worst -), written 10/s, read 20/s, caught up in 5.0 s, "
        "3 deleted unread"
    )
    assert summary_line({**row, "kind": "topic", "reader": "", "lag": None}) == "t: written 10/s"


def test_spans_of_time_are_readable() -> None:
    assert [span(ms) for ms in (None, 0, 999, 1500, 119_999, 600_000, 7_200_000)] == [
        "-", "0 ms", "999 ms", "1.5 s", "120.0 s", "10 min", "2.0 h",
    ]  # fmt: skip
