"""Files beside the segments that contradict the batches, or that nobody can use: time indexes and producer snapshots.

A broker builds them again, so no record is gone; but until it does, a search by timestamp, retention or an idempotent
producer may be led astray. What is not yet durable, and what is above the high watermark, is not judged.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import (
    KEYS,
    REPLICA,
    WARNING,
    Key,
    Row,
    case,
    found,
    frame,
    key_of,
    plain,
    said,
)
from strandline_spark.replica.beside import FLAW, PRODUCER, TIME
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "time-index": "a time index cannot be used, or its last entry has another timestamp than the batch there",
    "producer-snapshot": "a producer snapshot cannot be used, or remembers another batch than is there",
}
TIMES = rows(*KEYS, "segment long", "offset long", "timestamp_ms long")
REMEMBERED = rows(*KEYS, "snapshot long", "remembered long", "remembered_id long", "remembered_sequence int")


def unusable_files(beside: Sequence[Row], checkpoints: Sequence[Row]) -> Iterator[Row]:
    """Also of the rule `index`."""
    durable: dict[Key, int] = {key_of(row): row["recovery_point"] or 0 for row in checkpoints}
    for row in beside:
        key = key_of(row)
        if row["kind"] == FLAW and row["written_at"] <= durable.get(key, 0):
            end = max(row["written_at"], row["offset"] + 1)
            yield plain(row["rule"], row["what"], key, row["offset"], end, severity=WARNING)


def against_the_batches(batches: "DataFrame", beside: Sequence[Row], known: Sequence[Known]) -> "Iterator[DataFrame]":
    spark, sound = batches.sparkSession, batches.where("fault is null")
    of_replica = {one.key: one for one in known}

    def judged(kind: str, offset: str) -> Iterator[Row]:
        for row in beside:
            one = of_replica.get(key_of(row))
            if row["kind"] == kind and one is not None and one.start <= row[offset] < one.high_watermark:
                yield {**row, **one.row}

    times = list(judged(TIME, "offset"))
    if times:
        entry = said("the time index says %d, the batch %d", "timestamp_ms", "unix_millis(max_timestamp)")
        wrong = sound.join(F.broadcast(frame(spark, times, TIMES)), [*REPLICA, "segment"]).where(
            "offset between base_offset and last_offset and unix_millis(max_timestamp) <> timestamp_ms"
        )
        yield found(wrong, case("true", "time-index", entry, offset="offset", end="offset + 1"))
    held = [row for row in judged(PRODUCER, "remembered") if not row["is_compacted"]]
    if held:
        sequence = "((base_sequence + last_offset - base_offset) & 2147483647)"
        same = f"last_offset = remembered and producer_id = remembered_id and {sequence} = remembered_sequence"
        other = sound.join(F.broadcast(frame(spark, held, REMEMBERED)), list(REPLICA)).where(
            f"remembered between base_offset and last_offset and not ({same})"
        )
        names = ("snapshot", "remembered_id", "remembered_sequence", "remembered")
        what = said(
            "the snapshot at %1$d has sequence %3$d of producer %2$d at %4$d, the batch there has another", *names
        )
        yield found(other, case("true", "producer-snapshot", what, offset="remembered", end="remembered + 1"))
