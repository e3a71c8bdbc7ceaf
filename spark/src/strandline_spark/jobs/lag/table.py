"""Samples of one time for people: a row for each reader and topic, the worst first."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from strandline.cli.show import Column, Fitted
from strandline_spark.jobs.lag.samples import TOPIC, Sample, by_reader, rate

Key = tuple[str, str, str, int]  # kind, reader, topic, partition


class Row(NamedTuple):
    """`None`: not known."""

    kind: str
    reader: str
    topic: str
    partitions: int
    lag: int | None
    worst: Sample | None  # of all partitions
    delay_ms: int | None
    expired: int
    written: float | None  # records a second since the samples before
    read: float | None


def rows_of(before: Sequence[Sample], after: Sequence[Sample]) -> list[Row]:
    """A row for each reader and topic; a topic that somebody reads has no row of its own."""
    earlier = {key_of(sample): sample for sample in before}
    groups = by_reader(after)
    read = {topic for kind, _, topic in groups if kind != TOPIC}
    made = [row_of(key, samples, earlier) for key, samples in groups.items() if key[0] != TOPIC or key[2] not in read]
    return sorted(made, key=lambda row: (-(row.lag if row.lag is not None else -1), row.kind, row.reader, row.topic))


def row_of(key: tuple[str, str, str], samples: Sequence[Sample], earlier: Mapping[Key, Sample]) -> Row:
    lags = [sample for sample in samples if sample.lag is not None]
    rates = [rate(earlier.get(key_of(sample)), sample) for sample in samples]
    return Row(
        *key,
        partitions=len(samples),
        lag=sum(sample.lag or 0 for sample in lags) if lags else None,
        worst=max(lags, key=lambda sample: sample.lag or 0, default=None),
        delay_ms=max((sample.delay_ms for sample in samples if sample.delay_ms is not None), default=None),
        expired=sum(sample.expired or 0 for sample in samples),
        written=total([one.written for one in rates]),
        read=total([one.read for one in rates]),
    )


def key_of(sample: Sample) -> Key:
    return sample.kind, sample.reader, sample.topic, sample.partition


def total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def table_of(rows: Sequence[Row], time_ms: int) -> Fitted:
    table = Fitted(
        Column("reader"),
        Column("topic"),
        Column("parts", "right", drops=5),
        Column("lag", "right"),
        Column("worst", "right", drops=3),
        Column("delay", "right", drops=1),
        Column("written", "right", drops=4),
        Column("read", "right", drops=2),
        caption=f"{clock(time_ms)} UTC; written, read: records/s",
    )
    for row in rows:
        worst = f"{row.worst.partition}: {row.worst.lag:,}" if row.worst and row.worst.lag else ""
        style = "bold red" if row.expired else ""
        table.add_row(named(row), row.topic, str(row.partitions), *numbers(row, worst), style=style)
    return table


def numbers(row: Row, worst: str) -> tuple[str, str, str, str, str]:
    lag = "-" if row.lag is None else f"{row.lag:,}"
    return lag, worst, span(row.delay_ms), per_second(row.written), per_second(row.read)


def line_of(row: Row, time_ms: int) -> str:
    """For a pipe: whole, never cut to a width."""
    worst = f" (worst {row.topic}-{row.worst.partition}: {row.worst.lag:,})" if row.worst and row.worst.lag else ""
    lag, _, delay, written, read = numbers(row, "")
    lost = f", {row.expired:,} deleted unread" if row.expired else ""
    rates = f"written {written}/s, read {read}/s"
    return f"{clock(time_ms)} {named(row)} {row.topic}: lag {lag}{worst}, delay {delay}, {rates}{lost}"


def named(row: Row) -> str:
    return f"{row.kind} {row.reader}" if row.reader else "nobody"


def span(ms: int | None) -> str:
    if ms is None:
        return "-"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 120_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms / 60_000:.0f} min" if ms < 7_200_000 else f"{ms / 3_600_000:.1f} h"


def per_second(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def clock(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%H:%M:%S")


def summary_line(row: Mapping[str, Any]) -> str:
    """A row of `transforms.summary` for a pipe."""
    who = f"{row['kind']} {row['reader']} {row['topic']}" if row["reader"] else row["topic"]
    rates = f"written {per_second(row['written_per_s'])}/s"
    if row["kind"] == TOPIC:
        return f"{who}: {rates}"
    lag = "-" if row["lag"] is None else f"{row['lag']:,} (worst {row['lag_worst']:,})"
    delay = f"{span(row['delay_ms'])} (worst {span(row['delay_ms_worst'])})"
    catch_up = f", caught up in {span(round(row['catch_up_s'] * 1000))}" if row["catch_up_s"] is not None else ""
    lost = f", {row['expired']:,} deleted unread" if row["expired"] else ""
    return f"{who}: lag {lag}, delay {delay}, {rates}, read {per_second(row['read_per_s'])}/s{catch_up}{lost}"
