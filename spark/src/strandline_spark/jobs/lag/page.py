"""The tables of the job `lag` as one HTML page: lag, delay and rates over time, and how they lie over partitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row

from strandline_spark.jobs.lag.table import span
from strandline_spark.report import Series, Verdict, bars, lines, page, section, steps, table

READERS_MAX = 12
TOPIC = "topic"
Reader = tuple[str, str, str]  # kind, reader, topic


def lag_page(tables: Mapping[str, DataFrame], *, title: str = "Lag") -> str:
    """`tables`: what the job gives. Collects them: a row for each time and reader, so thin out long records before."""
    summary = tables["summary"].collect()
    readers = [row for row in summary if row["kind"] != TOPIC]
    over_time, throughput = tables["over_time"].collect(), tables["throughput"].collect()
    return page(
        title,
        section("At the end", summary_table(summary), note=END_NOTE),
        section("Lag", *lag_plots(readers, over_time), note=LAG_NOTE) if readers else "",
        section("Throughput", *throughput_plots(summary, throughput)),
        section("Partitions", *skew_plots(tables["skew"].collect()), note=SKEW_NOTE),
        verdict=verdict_of(readers),
        facts=facts_of(readers, summary, over_time),
    )


END_NOTE = "Caught up in: the time until the lag is 0 if the rates stay as they were on average."
LAG_NOTE = (
    "Lag: records up to the end of what can be read, in all partitions of a topic. Delay: the age of the record to be "
    "read next, by its timestamp, in the partition where it is oldest."
)
SKEW_NOTE = "The largest partition divided by the mean: 1 is even. For readers, it compares the lag."


def verdict_of(readers: Sequence[Row]) -> Verdict:
    lost = [row for row in readers if row["expired"]]
    if lost:
        text = f"{sum(row['expired'] for row in lost):,} records were deleted before they were read"
        return Verdict("bad", text, ", ".join(name_of(row) for row in lost))
    behind = [row for row in readers if row["lag"]]
    growing = [row for row in behind if row["catch_up_s"] is None]
    if growing:
        return Verdict("warning", f"{len(growing)} of {len(readers)} readers do not catch up", names_of(growing))
    if behind:
        return Verdict("good", f"{len(behind)} of {len(readers)} readers are behind, and catch up", names_of(behind))
    return Verdict("good", "no reader is behind" if readers else "there are no readers; the topics' writes are below")


def facts_of(readers: Sequence[Row], summary: Sequence[Row], over_time: Sequence[Row]) -> list[tuple[str, object]]:
    times = sorted({row["time"] for row in over_time})
    return [
        ("readers", len(readers)),
        ("topics", len({row["topic"] for row in summary})),
        ("lag", sum(row["lag"] or 0 for row in readers)),
        ("worst delay", span(max((row["delay_ms_worst"] or 0 for row in readers), default=None))),
        ("samples", len(times)),
        ("watched for", span(round((times[-1] - times[0]).total_seconds() * 1000)) if times else None),
    ]


def name_of(row: Row) -> str:
    return f"{row['reader']} {row['topic']}" if row["kind"] != TOPIC else row["topic"]


def names_of(rows: Sequence[Row]) -> str:
    return ", ".join(name_of(row) for row in rows[:READERS_MAX]) + (", …" if len(rows) > READERS_MAX else "")


def summary_table(summary: Sequence[Row]) -> str:
    lost = any(row["expired"] for row in summary)

    def cells(row: Row) -> list[Any]:
        delays = [span(row[name]) if row[name] is not None else None for name in ("delay_ms", "delay_ms_worst")]
        catch_up = span(round(row["catch_up_s"] * 1000)) if row["catch_up_s"] is not None else None
        who = f"{row['kind']} {row['reader']}" if row["reader"] else "all that was written"
        shown = [who, row["topic"], row["lag"], row["lag_worst"], *delays, row["written_per_s"], row["read_per_s"]]
        return [*shown, catch_up, *([row["expired"]] if lost else [])]

    levels = ["bad" if row["expired"] else "" for row in summary]
    columns = ["reader", "topic", "lag", "worst", "delay", "worst", "written/s", "read/s", "caught up in"]
    return table([*columns, *(["deleted unread"] if lost else [])], [cells(row) for row in summary], levels=levels)


def lag_plots(readers: Sequence[Row], over_time: Sequence[Row]) -> list[str]:
    of = by_reader(over_time)
    worst = sorted(readers, key=lambda row: -(row["lag_worst"] or 0))
    delays = [series(row, of, "delay_ms", 1000) for row in worst]
    return [
        steps("Lag over time", [series(row, of, "lag") for row in worst], y="records"),
        steps("Delay over time", delays, y="seconds"),
    ]


def throughput_plots(summary: Sequence[Row], throughput: Sequence[Row]) -> list[str]:
    of = by_reader(throughput)
    written = [series(row, of, "written_per_s") for row in summary if row["kind"] == TOPIC]
    read = [series(row, of, "read_per_s") for row in summary if row["kind"] != TOPIC]
    made = [lines("Written", written, y="records/s")] if written else []
    return made + ([lines("Read", read, y="records/s")] if read else [])


def by_reader(rows: Sequence[Row]) -> dict[Reader, list[Row]]:
    found: dict[Reader, list[Row]] = {}
    for row in rows:
        found.setdefault(reader_of(row), []).append(row)
    return found


def reader_of(row: Row) -> Reader:
    return row["kind"], row["reader"], row["topic"]


def series(row: Row, rows: Mapping[Reader, Sequence[Row]], column: str, divisor: int = 1) -> Series:
    own = rows.get(reader_of(row), ())
    values = [None if each[column] is None else each[column] / divisor for each in own]
    return Series(name_of(row), [each["time"] for each in own], values)


def skew_plots(skew: Sequence[Row]) -> list[str]:
    uneven = sorted((row for row in skew if row["ratio"] is not None), key=lambda row: -row["ratio"])
    if not uneven:
        return [table(["topic"], [])]
    named = [(f"{name_of(row)}, most in {row['largest_partition']}", float(row["ratio"])) for row in uneven]
    cells = [
        [
            row["kind"],
            name_of(row),
            row["partitions"],
            row["total"],
            row["largest"],
            row["largest_partition"],
            row["mean"],
        ]
        for row in uneven
    ]
    columns = ["", "topic", "partitions", "records", "largest", "its partition", "mean"]
    return [bars("Largest partition beside the mean", named, x="times the mean"), table(columns, cells)]
