"""Which of a query's filters offsets can answer. Pure.

Invariants:
  - what is taken over is exact: Spark does not look again (partition, topic, offset, and that columns are never null)
  - a timestamp narrows and is left to Spark too: the first record that is late enough is known, and older ones may
    follow it, since producers choose their records' times; and one that no calendar has is null
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from strandline.base.value import Value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSET_MAX = (1 << 63) - 1


class Narrowed(Value, frozen=True):
    """What of a topic a query wants; None: no limit."""

    topics: tuple[str, ...] | None = None
    partitions: tuple[int, ...] | None = None
    not_topics: tuple[str, ...] = ()
    not_partitions: tuple[int, ...] = ()
    first_partition: int = 0
    end_partition: int = OFFSET_MAX
    start: int = 0
    end: int = OFFSET_MAX
    since_ms: int | None = None

    def takes(self, topic: str, partition: int) -> bool:
        return (
            (self.topics is None or topic in self.topics)
            and (self.partitions is None or partition in self.partitions)
            and topic not in self.not_topics
            and partition not in self.not_partitions
            and self.first_partition <= partition < self.end_partition
        )

    def offsets(self, start: int, end: int) -> tuple[int, int]:
        start = max(start, self.start)
        return start, max(start, min(end, self.end))


def narrow(filters: Iterable[Filter]) -> tuple[Narrowed, list[Filter]]:
    """What all of the filters together want, and those that Spark must still apply."""
    wanted, left = Narrowed(), []
    for each in filters:
        taken = apply(wanted, each)
        if taken is None:
            left.append(each)
        else:
            wanted = taken
            if column_of(each) == "timestamp":
                left.append(each)
    return wanted, left


def column_of(each: Filter) -> str:
    if isinstance(each, Not):
        return column_of(each.child)
    path: tuple[str, ...] = getattr(each, "attribute", ())
    return path[0] if len(path) == 1 else ""


def apply(wanted: Narrowed, each: Filter) -> Narrowed | None:
    """None: not to be answered by offsets."""
    column = column_of(each)
    if isinstance(each, IsNotNull):
        return wanted if column in ("topic", "partition", "offset", "timestampType") else None
    match column:
        case "partition" if isinstance(each, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
            return by_number(wanted, each, "first_partition", "end_partition")
        case "topic" | "partition":
            return by_name(wanted, each, column)
        case "offset":
            return by_number(wanted, each, "start", "end")
        case "timestamp":
            return by_time(wanted, each)
        case _:
            return None


def by_name(wanted: Narrowed, each: Filter, column: str) -> Narrowed | None:
    kind = str if column == "topic" else int
    inner = each.child if isinstance(each, Not) else each
    match inner:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            values = (value,)
        case In(value=several):
            values = tuple(several)
        case _:
            return None
    if not all(type(value) is kind for value in values):
        return None
    if isinstance(each, Not):
        return replace(wanted, **{f"not_{column}s": (*getattr(wanted, f"not_{column}s"), *values)})
    before = getattr(wanted, f"{column}s")
    kept = tuple(value for value in values if before is None or value in before)
    return replace(wanted, **{f"{column}s": kept})


def by_number(wanted: Narrowed, each: Filter, first: str, end: str) -> Narrowed | None:
    """Bounds of a half-open range, whose fields are named `first` and `end`."""
    value = getattr(each, "value", None)
    if type(value) is not int:
        return None
    match each:
        case EqualTo() | EqualNullSafe():
            low, high = value, value + 1
        case GreaterThan():
            low, high = value + 1, OFFSET_MAX
        case GreaterThanOrEqual():
            low, high = value, OFFSET_MAX
        case LessThan():
            low, high = 0, value
        case LessThanOrEqual():
            low, high = 0, value + 1
        case _:
            return None
    bounds = {first: max(getattr(wanted, first), low), end: min(getattr(wanted, end), high)}
    return replace(wanted, **bounds)


def by_time(wanted: Narrowed, each: Filter) -> Narrowed | None:
    value = getattr(each, "value", None)
    if not isinstance(value, datetime):
        return None
    moment_us = microseconds(value)
    match each:
        case EqualTo() | EqualNullSafe() | GreaterThanOrEqual():
            since = -(-moment_us // 1000)
        case GreaterThan():
            since = moment_us // 1000 + 1
        case _:
            return None
    if since <= 0:
        return wanted  # Kafka reads negative timestamps as names of offsets.
    return replace(wanted, since_ms=max(since, wanted.since_ms or 0))


def microseconds(value: datetime) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    span = aware - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
