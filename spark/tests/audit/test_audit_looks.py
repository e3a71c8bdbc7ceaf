"""What of the findings of one look counts, after those of another: frames of findings that are written by hand."""

from typing import TYPE_CHECKING

import pytest

from strandline_spark.jobs.audit.job import among
from strandline_spark.jobs.audit.rows import ERROR, Row, frame, in_runs, of_several
from strandline_spark.schemas import FINDING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


def finding(rule: str, partition: int, broker: int | None, offset: int, end: int, what: str = "") -> Row:
    values = (rule, ERROR, "t", partition, broker, offset, end, what or f"from {offset}")
    return dict(zip(FINDING.names, values, strict=True))


def confirmed(spark: "SparkSession", first: list[Row], second: list[Row]) -> list[tuple[object, ...]]:
    both = among(frame(spark, second, FINDING), frame(spark, first, FINDING))
    found = of_several(in_runs(both)).orderBy("rule", "partition", "offset").collect()
    return [(row["rule"], row["partition"], row["broker"], row["offset"], row["end"], row["what"]) for row in found]


def test_damage_counts_that_retention_took_a_part_of_between_the_looks(spark: "SparkSession") -> None:
    """Partition 0: the front is gone, and the end has moved. 1: two replicas alike, until retention came to one of
    them. 2: what joined the two runs was wrong for a moment. 3: with one copy less nobody knows any more which is odd.
    4: the second look found more in front."""
    first = [
        finding("diverged", 0, 3, 100, 200),
        finding("acknowledged-lost", 0, None, 100, 200),
        finding("crc", 1, 1, 10, 30),
        finding("crc", 1, 2, 10, 30),
        finding("absent", 2, 1, 10, 50),
        finding("diverged", 3, 2, 10, 20),
        finding("gap", 4, 1, 10, 20),
    ]
    second = [
        finding("diverged", 0, 3, 150, 260),
        finding("acknowledged-lost", 0, None, 150, 200),
        finding("crc", 1, 1, 20, 30),
        finding("crc", 1, 2, 10, 30),
        finding("absent", 2, 1, 10, 20),
        finding("absent", 2, 1, 30, 50),
        finding("diverged", 3, None, 10, 20),
        finding("gap", 4, 1, 5, 20),
    ]
    assert confirmed(spark, first, second) == [
        ("absent", 2, 1, 10, 20, "from 10"),
        ("absent", 2, 1, 30, 50, "from 30"),
        ("acknowledged-lost", 0, None, 150, 200, "from 150"),
        ("crc", 1, 2, 10, 30, "from 10"),
        ("crc", 1, 1, 20, 30, "from 20"),
        ("diverged", 0, 3, 150, 200, "from 150"),
        ("diverged", 3, None, 10, 20, "from 10"),
        ("gap", 4, 1, 10, 20, "from 10"),
    ]


def test_what_was_wrong_for_a_moment_is_not_confirmed_by_what_is_wrong_nearby(spark: "SparkSession") -> None:
    """The end of a log, half written at each look; another rule, replica or partition; a cleaner that went on; a log
    below its high watermark that is being filled, beside one that is not."""
    first = [
        finding("torn", 0, 1, 100, 101),
        finding("absent", 0, 1, 10, 20),
        finding("acknowledged-lost", 0, None, 40, 60),
        finding("high-watermark", 0, 1, 50, 100),
        finding("high-watermark", 1, 1, 50, 100),
        finding("checkpoint", 0, 1, 50, 100),
    ]
    second = [
        finding("torn", 0, 1, 101, 102),
        finding("gap", 0, 1, 10, 20),
        finding("absent", 0, 2, 10, 20),
        finding("absent", 1, 1, 10, 20),
        finding("acknowledged-lost", 0, None, 60, 80),
        finding("high-watermark", 0, 1, 60, 100),
        finding("high-watermark", 1, 1, 50, 120),
        finding("checkpoint", 0, 1, 60, 100),
    ]
    assert confirmed(spark, first, second) == [("high-watermark", 1, 1, 50, 100, "from 50")]
