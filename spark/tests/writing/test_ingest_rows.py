"""What records become: rows for the table, rows for quarantine with the reason, and numbers that add up."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.batch import Ingestion
from strandline_spark.jobs.ingest.declaration import Pipeline, pipeline
from strandline_spark.jobs.ingest.job import good_and_bad
from strandline_spark.schemas import TOPIC_ROW
from strandline_spark.tables import open_table, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def records(spark: "SparkSession", values: Sequence[Any], start: int = 0, key: bytes | None = b"k") -> "DataFrame":
    """One partition of a topic: a dict is JSON, text is UTF-8, bytes and None are what they are."""
    rows = []
    for offset, value in enumerate(values, start):
        if isinstance(value, dict):
            value = json.dumps(value)
        if isinstance(value, str):
            value = value.encode()
        rows.append((key, value, "orders", 0, offset, WHEN, 0))
    return spark.createDataFrame(rows, TOPIC_ROW)


def declared(tmp: Path | str = "/nowhere", **sections: Any) -> Pipeline:
    options: dict[str, Any] = {
        "source": {"topic": "orders", "bootstrap": "b:1"},
        "sink": {"table": f"{tmp}/orders"},
        "value": {"format": "json", "columns": {"id": "long not null", "amount": "int", "region": "string"}},
    }
    return pipeline(
        {
            **options,
            **{name: {**options.get(name, {}), **of} if isinstance(of, dict) else of for name, of in sections.items()},
        }
    )


def reasons(frame: "DataFrame") -> list[tuple[int, str, str]]:
    return [(row.offset, row.rule, row.reason) for row in frame.orderBy("offset").collect()]


def test_every_record_is_a_row_or_has_a_reason(spark: "SparkSession") -> None:
    values = [
        {"id": 1, "amount": 5, "region": "eu"},
        "nope",
        '{"id": 1} and more',
        '{"id": 1}{"id": 2}',
        '[{"id": 1}, {"id": 2}]',
        {"id": 1, "amount": "many"},
        {"id": 1, "amount": 99999999999},
        {"id": "1", "amount": 1.5},
        {"amount": 5},
        {"id": None},
        b'{"id": 1, "region": "\xff"}',
        None,
        "",
        {"id": 2, "more": {"a": 1}},
        "null",
        '\n\t{"id": 3}\r\n',
    ]
    good, bad = good_and_bad(records(spark, values), declared())
    assert [(row.offset, row.id, row.amount, row.region) for row in good.orderBy("offset").collect()] == [
        (0, 1, 5, "eu"),
        (13, 2, None, None),
        (15, 3, None, None),
    ]
    no_object = "the value is not one JSON object: "
    assert reasons(bad) == [
        (1, "json", f"{no_object}nope"),
        (2, "json", f'{no_object}{{"id": 1}} and more'),
        (3, "json", f'{no_object}{{"id": 1}}{{"id": 2}}'),
        (4, "json", f'{no_object}[{{"id": 1}}, {{"id": 2}}]'),
        (5, "type", "amount is not of type int: many"),
        (6, "type", "amount is not of type int: 99999999999"),
        (7, "type", "id is not of type long: 1; amount is not of type int: 1.5"),
        (8, "required", "id is missing"),
        (9, "required", "id is missing"),
        (10, "encoding", "the value is not UTF-8"),
        (11, "null", "the record has no value"),
        (12, "json", no_object),
        (14, "json", f"{no_object}null"),
    ]
    row = bad.where("offset = 5").collect()[0]
    assert (row.key, row.value, row.topic, row.row) == (b"k", b'{"id": 1, "amount": "many"}', "orders", None)
    assert row.timestamp == WHEN.replace(tzinfo=None)


def test_every_type_and_paths(spark: "SparkSession") -> None:
    columns = {
        "d": "decimal(6,2)",
        "t": "timestamp",
        "day": "date",
        "ms": "timestamp_millis",
        "us": {"type": "timestamp_micros", "path": "at.us"},
        "flag": "boolean",
        "tags": "array<string>",
        "dotted": {"type": "double", "path": ["at", "a.b"]},
    }
    value = {
        "d": 12.5,
        "t": "2026-01-02T03:04:05Z",
        "day": "2026-01-02",
        "ms": 1767323045000,
        "at": {"us": 1767323045000001, "a.b": 0.5},
        "flag": True,
        "tags": ["a", None],
    }
    wanted = declared(value={"columns": columns}, key={"format": "text"})
    good, bad = good_and_bad(records(spark, [value, {"at": {"us": "x"}}, {"at": 5}]), wanted)
    row = good.collect()[0]
    at = datetime(2026, 1, 2, 3, 4, 5)
    assert (row.d, row.t, row.day, row.ms) == (Decimal("12.50"), at, date(2026, 1, 2), at)
    assert (row.us, row.flag, row.tags, row.dotted) == (at.replace(microsecond=1), True, ["a", None], 0.5)
    assert row.key == "k"
    assert [(offset, rule) for offset, rule, _ in reasons(bad)] == [(1, "type"), (2, "type")]
    assert reasons(bad)[0][2] == "at.us is not of type bigint: x"


def test_a_number_that_no_time_can_be_is_set_aside_and_the_last_one_that_can_is_taken(spark: "SparkSession") -> None:
    wanted = declared(value={"columns": {unit: f"timestamp_{unit}" for unit in ("seconds", "millis", "micros")}})
    first = {"seconds": -62135596800, "millis": -62135596800000, "micros": -62135596800000000}
    last = {"seconds": 253402300799, "millis": 253402300799999, "micros": 253402300799999999}
    values = [
        first,
        last,
        {"micros": first["micros"] - 1},
        {"millis": last["millis"] + 1},
        {"seconds": last["seconds"] + 1},
        {"micros": -(2**63), "millis": 1767323045000000},
        {"seconds": 1767323045000000, "millis": 1767323045000000000},  # in Spark these are too large to convert
    ]
    good, bad = good_and_bad(records(spark, values), wanted)
    taken = good.orderBy("offset").selectExpr("offset", *[f"unix_micros({unit}) AS {unit}" for unit in first])
    assert [(row.offset, row.seconds, row.millis, row.micros) for row in taken.collect()] == [
        (offset, at["seconds"] * 10**6, at["millis"] * 10**3, at["micros"]) for offset, at in enumerate((first, last))
    ]
    assert reasons(bad) == [
        (2, "type", "micros is not of type timestamp_micros: -62135596800000001"),
        (3, "type", "millis is not of type timestamp_millis: 253402300800000"),
        (4, "type", "seconds is not of type timestamp_seconds: 253402300800"),
        (
            5,
            "type",
            "millis is not of type timestamp_millis: 1767323045000000; "
            "micros is not of type timestamp_micros: -9223372036854775808",
        ),
        (
            6,
            "type",
            "seconds is not of type timestamp_seconds: 1767323045000000; "
            "millis is not of type timestamp_millis: 1767323045000000000",
        ),
    ]


def test_text_and_bytes_are_taken_as_they_are(spark: "SparkSession") -> None:
    values = ["é", b"\xff", None]
    good, bad = good_and_bad(records(spark, values), pipeline(plain("text")))
    assert [row.value for row in good.collect()] == ["é"]
    assert [(offset, rule) for offset, rule, _ in reasons(bad)] == [(1, "encoding"), (2, "null")]
    good, bad = good_and_bad(records(spark, values, key=b"\xff"), pipeline(plain("binary")))
    assert [row.value for row in good.collect()] == ["é".encode(), b"\xff", None]
    assert bad.count() == 0
    good, bad = good_and_bad(
        records(spark, values, key=b"\xff"), pipeline(plain("binary") | {"key": {"format": "text"}})
    )
    assert {rule for _, rule, _ in reasons(bad)} == {"key encoding"}


def plain(kind: str, table: str = "/nowhere/t") -> dict[str, Any]:
    return {"source": {"topic": "t", "bootstrap": "b:1"}, "sink": {"table": table}, "value": {"format": kind}}


def test_records_without_a_value_and_unknown_fields_as_declared(spark: "SparkSession") -> None:
    values = [None, {"id": 1, "other": 2, "third": 3}]
    wanted = declared(value={"nulls": "keep", "unknown": "quarantine"})
    good, bad = good_and_bad(records(spark, values), wanted)
    assert [(row.offset, row.id) for row in good.collect()] == [(0, None)]
    assert reasons(bad) == [(1, "unknown", "fields without a column: other, third")]


EXPECTED = [
    {"name": "paid", "check": "amount > 0"},
    {"name": "known region", "check": "region IN ('eu', 'us')", "action": "drop"},
    {"name": "cheap", "check": "amount < 100", "action": "warn"},
]
SOME = [
    {"id": 0, "amount": 1, "region": "eu"},
    {"id": 1, "amount": 0, "region": "eu"},
    {"id": 2, "amount": 5, "region": "mars"},
    {"id": 3, "amount": 500, "region": "us"},
    {"id": 4},
    "nope",
]


def test_expectations_set_aside_drop_or_only_count(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(tmp_path, expectations=EXPECTED)
    frame = records(spark, SOME)
    good, bad = good_and_bad(frame, wanted)
    assert [row.id for row in good.orderBy("id").collect()] == [0, 3]
    assert reasons(bad) == [
        (1, "paid", "paid: not amount > 0"),
        (4, "paid", "paid: not amount > 0"),
        (5, "json", "the value is not one JSON object: nope"),
    ]
    assert json.loads(bad.where("offset = 1").collect()[0].row)["id"] == 1
    ingestion = Ingestion(wanted, "app", frame)
    account = ingestion.take(frame, 0).account
    ingestion.close()
    assert (account.rows_in, account.rows, account.quarantined, account.dropped, account.filtered) == (6, 2, 3, 1, 0)
    assert account.failed == {"paid": 2, "known region": 2, "cheap": 2}
    assert account.is_dense
    assert sorted(row.offset for row in read_table(spark, "parquet", f"{tmp_path}/orders").collect()) == [0, 3]
    assert reasons(read_table(spark, "parquet", f"{tmp_path}/orders_quarantine")) == reasons(bad)


SQL = "SELECT topic, partition, offset, id, amount * 100 AS cents, amount, region FROM source WHERE id <> 3"


def test_sql_sees_good_rows_and_nothing_is_lost_on_the_way(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(
        tmp_path,
        expectations=EXPECTED,
        transform={"sql": SQL},
        sink={"partition_by": ["region", "half = offset DIV 3"]},
    )
    frame = records(spark, SOME)
    ingestion = Ingestion(wanted, "app", frame)
    account = ingestion.take(frame, 0).account
    assert (account.rows_in, account.rows, account.quarantined, account.dropped, account.filtered) == (6, 1, 3, 1, 1)
    again = records(spark, [{"id": 6, "amount": 1, "region": "us"}, {"id": 3}, "nope"], start=6)
    account = ingestion.take(again, 1).account
    assert (account.rows_in, account.rows, account.quarantined, account.filtered) == (3, 1, 1, 1)
    total = ingestion.table.account()
    ingestion.close()
    assert total.is_dense is None
    found = read_table(spark, "parquet", f"{tmp_path}/orders").orderBy("offset").collect()
    assert [(row.offset, row.cents, row.region, row.half) for row in found] == [(0, 100, "eu", 0), (6, 100, "us", 2)]
    assert {rule for _, rule, _ in reasons(read_table(spark, "parquet", f"{tmp_path}/orders_quarantine"))} == {
        "json",
        "paid",
    }


def test_sql_that_takes_nothing_is_counted_too(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(tmp_path, transform={"sql": "SELECT * FROM source WHERE 1 = 0"})
    frame = records(spark, SOME)
    ingestion = Ingestion(wanted, "app", frame)
    account = ingestion.take(frame, 0).account
    ingestion.close()
    assert (account.rows_in, account.rows, account.quarantined, account.filtered) == (6, 0, 1, 5)


def test_a_batch_that_comes_again_changes_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(tmp_path)
    frame = records(spark, SOME)
    ingestion = Ingestion(wanted, "app", frame)
    assert not ingestion.take(frame, 0).was_there
    assert ingestion.take(frame, 0).was_there
    ingestion.close()
    ingestion = Ingestion(wanted, "app", frame)
    assert ingestion.take(frame, 0).was_there
    ingestion.close()
    assert read_table(spark, "parquet", f"{tmp_path}/orders").count() == 5


def test_a_death_between_the_quarantine_and_the_table_and_another_declaration_then(
    spark: "SparkSession", tmp_path: Path
) -> None:
    frame = records(spark, SOME)
    strict = Ingestion(declared(tmp_path, expectations=EXPECTED), "app", frame)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    strict.table.commit = dies  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        strict.take(frame, 0)
    assert strict.quarantine is not None
    assert strict.quarantine.last_batch() == 0
    strict.close()
    loose = Ingestion(declared(tmp_path), "app", frame)
    account = loose.take(frame, 0).account
    loose.close()
    assert (account.rows, account.quarantined) == (5, 1)
    assert read_table(spark, "parquet", f"{tmp_path}/orders").count() == 5
    assert [offset for offset, _, _ in reasons(read_table(spark, "parquet", f"{tmp_path}/orders_quarantine"))] == [5]


def test_an_expectation_may_end_the_job_with_nothing_written(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(tmp_path, expectations=[{"name": "paid", "check": "amount > 0", "action": "fail"}])
    frame = records(spark, SOME)
    ingestion = Ingestion(wanted, "app", frame)
    with pytest.raises(
        StrandlineError, match=r"2 rows do not meet the expectation 'paid': amount > 0; offsets orders-0 0\.\.5"
    ):
        ingestion.take(frame, 0)
    ingestion.close()
    assert read_table(spark, "parquet", f"{tmp_path}/orders").count() == 0
    assert read_table(spark, "parquet", f"{tmp_path}/orders_quarantine").count() == 0


def test_a_quarantine_that_refuses_leaves_the_table_to_the_next_try(spark: "SparkSession", tmp_path: Path) -> None:
    frame = records(spark, SOME)
    theirs = tmp_path / "orders_quarantine" / "report.csv"
    theirs.parent.mkdir()
    theirs.write_text("")
    for _ in range(2):
        with pytest.raises(StrandlineError, match="orders_quarantine has files"):
            Ingestion(declared(tmp_path), "app", frame)
    theirs.unlink()
    Ingestion(declared(tmp_path), "app", frame).close()


def test_offsets_that_another_checkpoint_brought_are_not_taken_twice(spark: "SparkSession", tmp_path: Path) -> None:
    wanted = declared(tmp_path)
    first = Ingestion(wanted, "app-1", records(spark, []))
    first.take(records(spark, [{"id": 1}, {"id": 2}]), 0)
    first.close()
    second = Ingestion(wanted, "app-2", records(spark, []))
    with pytest.raises(StrandlineError, match=r"has offsets 0\.\.1 of orders-0 from another checkpoint") as raised:
        second.take(records(spark, [{"id": 2}, {"id": 3}], start=1), 0)
    assert """starting = '{"orders": {"0": 2}}'""" in raised.value.advice
    second.take(records(spark, [{"id": 3}], start=2), 0)
    second.close()
    assert read_table(spark, "parquet", f"{tmp_path}/orders").count() == 3


def test_any_rows_become_a_table_batch_by_batch(spark: "SparkSession", tmp_path: Path) -> None:
    rows = spark.range(10).selectExpr("id", "id % 2 = 0 AS even", "date_add(DATE'2026-01-01', cast(id AS int)) AS day")
    table = open_table("parquet", str(tmp_path / "t"), application="me", schema=rows.schema, partition_by=["even"])
    assert (table.write(rows, 0).account.rows, table.write(rows, 0).was_there) == (10, True)
    with pytest.raises(
        StrandlineError, match="rows and table have different columns: even boolean is only in the table"
    ):
        table.write(rows.drop("even"), 1)
    table.write(rows.where("id > 7"), 1)
    assert table.compact(spark).files_after == 2
    assert sorted(row.id for row in table.read(spark).collect()) == [*range(8), 8, 8, 9, 9]
    table.close()


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_names_and_folders_that_mean_something_to_spark(spark: "SparkSession", tmp_path: Path, form: str) -> None:
    path = str(tmp_path / "a [1]{b} *" / "t")
    rows = spark.range(4).selectExpr("id", "concat('l', id) AS `log.level`", "id % 2 AS half")
    table = open_table(form, path, application="me", schema=rows.schema, partition_by=["half"])
    table.write(rows, 0)
    table.write(rows, 1)
    table.close()
    found = read_table(spark, form, path).orderBy("id").collect()
    assert [(row["id"], row["log.level"], row["half"]) for row in found[::2]] == [
        (0, "l0", 0),
        (1, "l1", 1),
        (2, "l2", 0),
        (3, "l3", 1),
    ]


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_a_table_that_is_not_there_is_said_to_be_none_and_nothing_is_made(
    spark: "SparkSession", tmp_path: Path, form: str
) -> None:
    with pytest.raises(StrandlineError, match=r"is not an? "):
        read_table(spark, form, str(tmp_path / "above" / "t"))
    assert not list(tmp_path.iterdir())


def test_a_value_too_long_for_a_folder_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    rows = spark.range(1).selectExpr("id", "repeat('ü', 200) AS city")
    table = open_table("parquet", str(tmp_path / "t"), application="me", schema=rows.schema, partition_by=["city"])
    with pytest.raises(Exception, match="cannot be partitioned by city where it is 200 characters long: üü"):
        table.write(rows, 0)
    table.close()


def test_a_view_of_somebody_is_still_there_after_sql_over_source(spark: "SparkSession") -> None:
    spark.range(5).createOrReplaceTempView("source")
    good, _ = good_and_bad(records(spark, [{"id": 1}]), declared(transform={"sql": "SELECT * FROM source"}))
    assert [row.id for row in good.collect()] == [1]
    assert spark.table("source").count() == 5
    spark.catalog.dropTempView("source")


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"value": {"columns": {"id": "lnog"}}}, r"\[value\] columns: .*lnog"),
        ({"transform": {"sql": "SELEC 1"}}, r"\[transform\] .*PARSE_SYNTAX_ERROR"),
        ({"transform": {"sql": "SELECT nothing FROM source"}}, r"\[transform\] .*nothing"),
        ({"transform": {"sql": "SELECT id FROM source"}}, "leaves out topic, partition, offset"),
        ({"transform": {"sql": "SELECT *, id AS ID FROM source"}}, "two columns have the name id"),
        ({"expectations": [{"name": "x", "check": "id + 1"}]}, "expectation 'x': id \\+ 1 is bigint"),
        ({"expectations": [{"name": "x", "check": "nothing > 1"}]}, "expectation 'x': .*nothing"),
        ({"expectations": [{"name": "x", "check": "count(*) > 1"}]}, "expectation 'x': .*GROUP_BY"),
        ({"sink": {"partition_by": ["timestamp"]}}, "cannot be partitioned by timestamp, which is timestamp"),
        ({"sink": {"partition_by": ["id = offset"]}}, "makes a column id, which the rows already have"),
        ({"sink": {"partition_by": ["x = nothing"]}}, "partition_by x: .*nothing"),
    ],
)
def test_what_spark_finds_wrong_is_said_before_anything_starts(
    spark: "SparkSession", tmp_path: Path, sections: dict[str, Any], why: str
) -> None:
    with pytest.raises(StrandlineError, match=why):
        Ingestion(declared(tmp_path, **sections), "app", records(spark, []))
