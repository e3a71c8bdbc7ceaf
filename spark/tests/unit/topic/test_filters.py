"""Which of a query's filters offsets can answer, and which are left to Spark."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from tests.rows import each

from strandline_spark.topic.filters import OFFSET_MAX, Narrowed, narrow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = 1_767_268_800_000


@each(
    ("each", "wanted"),
    [
        (EqualTo(("offset",), 5), Narrowed(start=5, end=6)),
        (EqualNullSafe(("offset",), 5), Narrowed(start=5, end=6)),
        (GreaterThan(("offset",), 5), Narrowed(start=6)),
        (GreaterThanOrEqual(("offset",), 5), Narrowed(start=5)),
        (LessThan(("offset",), 5), Narrowed(end=5)),
        (LessThanOrEqual(("offset",), 5), Narrowed(end=6)),
        (EqualTo(("partition",), 5), Narrowed(partitions=(5,))),
        (In(("partition",), (5, 6)), Narrowed(partitions=(5, 6))),
        (Not(EqualTo(("partition",), 5)), Narrowed(not_partitions=(5,))),
        (Not(In(("partition",), (5, 6))), Narrowed(not_partitions=(5, 6))),
        (LessThan(("partition",), 5), Narrowed(end_partition=5)),
        (GreaterThan(("partition",), 5), Narrowed(first_partition=6)),
        (EqualTo(("topic",), "a"), Narrowed(topics=("a",))),
        (Not(EqualTo(("topic",), "a")), Narrowed(not_topics=("a",))),
        (IsNotNull(("offset",)), Narrowed()),
        (IsNotNull(("timestampType",)), Narrowed()),
    ],
)
def test_what_offsets_answer_exactly_spark_does_not_look_at_again(each: Filter, wanted: Narrowed) -> None:
    assert narrow([each]) == (wanted, [])


@pytest.mark.parametrize(
    ("each", "since_ms"),
    [
        (GreaterThanOrEqual(("timestamp",), NOON), NOON_MS),
        (GreaterThan(("timestamp",), NOON), NOON_MS + 1),
        (EqualTo(("timestamp",), NOON), NOON_MS),
        (GreaterThanOrEqual(("timestamp",), NOON + timedelta(microseconds=1)), NOON_MS + 1),
        (GreaterThan(("timestamp",), NOON + timedelta(microseconds=1)), NOON_MS + 1),
        (GreaterThan(("timestamp",), datetime(1960, 1, 1, tzinfo=UTC)), None),
    ],
)
def test_a_timestamp_narrows_and_spark_looks_again(each: Filter, since_ms: int | None) -> None:
    assert narrow([each]) == (Narrowed(since_ms=since_ms), [each])


@each(
    "each",
    [
        LessThan(("timestamp",), NOON),  # older records may follow: producers choose their times
        EqualTo(("value",), b"x"),
        IsNotNull(("key",)),
        IsNull(("offset",)),
        IsNotNull(("timestamp",)),  # null where no calendar has it
        In(("offset",), (1, 2)),
        Not(EqualTo(("offset",), 5)),
        Not(LessThan(("partition",), 5)),
        EqualTo(("partition",), None),
        GreaterThan(("offset",), None),
        StringStartsWith(("topic",), "a"),
        EqualTo(("headers", "offset"), 5),
    ],
)
def test_everything_else_is_left_to_spark(each: Filter) -> None:
    assert narrow([each]) == (Narrowed(), [each])


def test_several_filters_hold_together() -> None:
    wanted, left = narrow(
        [
            GreaterThan(("offset",), 3),
            GreaterThanOrEqual(("offset",), 2),
            LessThan(("offset",), 9),
            In(("partition",), (1, 2, 3)),
            Not(EqualTo(("partition",), 3)),
            In(("partition",), (2, 3, 4)),
            EqualTo(("value",), b"x"),
        ]
    )
    assert left == [EqualTo(("value",), b"x")]
    assert wanted.offsets(0, 100) == (4, 9)
    assert [number for number in range(6) if wanted.takes("t", number)] == [2]
    assert narrow([EqualTo(("offset",), -4)])[0].offsets(0, 100) == (0, 0)
    assert Narrowed().offsets(3, OFFSET_MAX) == (3, OFFSET_MAX)
