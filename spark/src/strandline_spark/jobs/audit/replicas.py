"""What each replica is known to have: where its log starts and ends, and how far it knows it to be committed.

A plain row for each replica, and for each of its segments and epochs: these grow with the cluster, not with its bytes.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from strandline.base.value import Value
from strandline_spark.jobs.audit.rows import KEYS, PARTITION, REPLICA, Key, Row, frame, key_of
from strandline_spark.replica.rows import CHANGED, UNREACHABLE, UNREADABLE
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOUND = "fault is null or (fault = 'crc' and last_offset >= base_offset)"  # the header says where the batch is
UNREAD = f"fault in ('{CHANGED}', '{UNREACHABLE}', '{UNREADABLE}')"  # a row that stands for what it lacks
NO_SEGMENT = 1 << 62  # over the wire there are none
Measured = dict[Key, dict[str, Any]]
BOUNDS = rows(*KEYS, "start long", "high_watermark long", "cleaned_to long", "is_compacted boolean")
HOLDER = rows("broker int", "directory string", "start long", "high_watermark long")
HOLDERS = StructType([*rows(*KEYS[2:], "cleaned_to long").fields, StructField("holders", ArrayType(HOLDER))])


class Known(Value, frozen=True):
    """One replica that has a log."""

    key: Key
    start: int
    high_watermark: int
    end: int
    cleaned_to: int | None  # None: a log without gaps
    is_stopped: bool
    is_compacted: bool  # this one, or another of its partition
    latest: int  # leader epoch
    bytes: int
    batches: int
    records: int

    @property
    def partition(self) -> tuple[str, str, int]:
        return self.key[2:]

    @property
    def row(self) -> Row:
        named = dict(zip(REPLICA, self.key, strict=True))
        return {**named, **{name: getattr(self, name) for name in self.__struct_fields__[1:]}}


def holders(known: Sequence[Known]) -> list[Row]:
    """A row of HOLDERS for each partition: its replicas, and how far any cleaner has been (0: none was), since one
    replica may be a copy of what another's cleaner left."""
    held: dict[tuple[str, str, int], list[Known]] = {}
    for one in known:
        held.setdefault(one.partition, []).append(one)
    return [
        {
            **dict(zip(PARTITION, place, strict=True)),
            "cleaned_to": max(one.cleaned_to or 0 for one in ones),
            "holders": [{name: one.row[name] for name in HOLDER.names} for one in ones],
        }
        for place, ones in held.items()
    ]


def replicas(read: Measured, checkpoints: Iterable[Row], segments: Iterable[Row], epochs: Iterable[Row]) -> list[Known]:
    """`read`: of batches, before which `checkpoints` were read, and after which `segments` and `epochs`."""
    saved = {key_of(row): row for row in checkpoints}
    bases: dict[Key, list[int]] = {}
    for row in segments:
        bases.setdefault(key_of(row), []).append(row["segment"])
    begun: dict[Key, int] = {}
    for row in epochs:
        begun[key_of(row)] = max(begun.get(key_of(row), -1), row["leader_epoch"])
    found = []
    for key, held in bases.items():
        own, counted = saved.get(key, {}), read.get(key, {})
        found.append(
            Known(
                key,
                start=max(min(held), own.get("log_start_offset") or 0),
                high_watermark=max(own.get("high_watermark") or 0, 0),
                end=max(*held, counted.get("read_end") or 0),
                cleaned_to=own.get("cleaned_to"),
                is_stopped=bool(own.get("clean_shutdown")),
                is_compacted=False,
                latest=max(counted.get("latest", -1), begun.get(key, -1)),
                **{name: counted.get(name) or 0 for name in ("bytes", "batches", "records")},
            )
        )
    return with_compacted(found)


def replicas_over_the_wire(read: Measured, compacted: Sequence[str]) -> list[Known]:
    """As `replicas`, where nothing but batches can be read: each broker gives what it knows to be committed."""
    found = []
    for key, counted in read.items():
        end = counted["read_end"] or 0
        found.append(
            Known(
                key,
                start=counted["read_start"] or 0,
                high_watermark=end,
                end=end,
                cleaned_to=end if key[2] in compacted else None,
                is_stopped=False,
                is_compacted=False,
                latest=counted["latest"],
                **{name: counted[name] or 0 for name in ("bytes", "batches", "records")},
            )
        )
    return with_compacted(found)


def measured(batches: "DataFrame") -> Measured:
    """Of each replica the offsets, the bytes and the numbers that were read, in one pass; and the last segment that
    could not be read, and why not."""
    whole = "filter (where fault is null)"
    found = batches.groupBy(*REPLICA).agg(
        F.expr(f"min(base_offset) {whole} as read_start"),
        F.expr(f"max(last_offset + 1) {whole} as read_end"),
        F.expr(f"coalesce(max(leader_epoch) {whole}, -1) as latest"),
        F.expr(f"sum(cast(records as long)) {whole} as records"),
        F.expr("sum(cast(size as long)) as bytes"),
        F.expr("count(*) as batches"),
        F.expr("count_if(fault in ('torn', 'corrupt')) as broken"),
        F.expr(f"max(coalesce(segment, {NO_SEGMENT})) filter (where {UNREAD}) as unread"),
        F.expr(f"max_by(fault, coalesce(segment, {NO_SEGMENT})) filter (where {UNREAD}) as why_unread"),
    )
    return {key_of(row): row for row in found.toArrow().to_pylist()}


def with_compacted(found: list[Known]) -> list[Known]:
    compacted = dict.fromkeys(one.partition for one in found if one.cleaned_to is not None)
    return [
        msgspec.structs.replace(one, is_compacted=one.partition in compacted)
        for one in sorted(found, key=lambda one: (one.partition, one.key))
    ]


def bounds(batches: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    return frame(batches.sparkSession, (one.row for one in known), BOUNDS)


def with_bounds(batches: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """Rows of batches with what is known of their replica."""
    return batches.join(F.broadcast(bounds(batches, known)), list(REPLICA))


def committed(batches: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """Batches that their own replica knows to be committed, and that retention has not taken."""
    return with_bounds(batches.where(SOUND), known).where("base_offset >= start and last_offset < high_watermark")
