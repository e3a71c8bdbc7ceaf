"""The lineage of leader epochs: what each log's `leader-epoch-checkpoint` says, its batches show and replicas share.

Only committed batches are compared with the file, which is read after them: it has had their epochs since before they
were written. Where retention has moved a log's start, the first entry moves with it, and says nothing.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import Known, committed
from strandline_spark.jobs.audit.rows import KEYS, REPLICA, Key, Row, case, found, frame, key_of, plain, said
from strandline_spark.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "epoch-checkpoint": "batches have other leader epochs than the log's checkpoint says",
    "epoch-start": "a leader epoch begins at different offsets in different replicas",
}


ENTRIES = rows(*KEYS, "leader_epoch int", "start_offset long", "next_start long", "first_start long")
BEGAN = rows(*KEYS, "known_from long")


def by_replica(epochs: Sequence[Row]) -> dict[Key, list[tuple[int, int]]]:
    """Each replica's entries, in order: leader epoch and start offset."""
    entries: dict[Key, list[tuple[int, int]]] = {}
    for row in epochs:
        entries.setdefault(key_of(row), []).append((row["leader_epoch"], row["start_offset"]))
    return {key: sorted(found) for key, found in entries.items()}


def against_the_file(batches: "DataFrame", epochs: Sequence[Row], known: Sequence[Known]) -> "DataFrame":
    entries, began = [], []
    for key, found_entries in by_replica(epochs).items():
        named = dict(zip(REPLICA, key, strict=True))
        first = found_entries[0][1]
        began.append({**named, "known_from": first})
        following: list[int | None] = [start for _, start in found_entries[1:]]
        for (epoch, start), after in zip(found_entries, [*following, None], strict=True):
            entries.append(
                {**named, "leader_epoch": epoch, "start_offset": start, "next_start": after, "first_start": first}
            )
    spark = batches.sparkSession
    runs = (
        committed(batches, known)
        .join(F.broadcast(frame(spark, began, BEGAN)), list(REPLICA))
        .where("base_offset >= known_from and fault is null")
        .groupBy(*REPLICA, "leader_epoch", "cleaned_to", "start")
        .agg(F.min("base_offset").alias("first"), F.max("last_offset").alias("last"))
    )
    joined = runs.join(F.broadcast(frame(spark, entries, ENTRIES)), [*REPLICA, "leader_epoch"], "left")
    begins = said("leader epoch %d begins at %d, the file says at %d", "leader_epoch", "first", "start_offset")
    unknown = said("batches from %d on have leader epoch %d, which the file lacks", "first", "leader_epoch")
    place = ("leader_epoch", "last", "next_start")
    reaches = said("leader epoch %d reaches to %d, the file has the next from %d", *place)
    # The first batch of an epoch is where the epoch begins; but for the first entry, and where a cleaner has been.
    is_gone = "cleaned_to is null and start_offset > first_start and start_offset > start and first > start_offset"
    rule = "epoch-checkpoint"
    return found(
        joined,
        case("start_offset is null", rule, unknown, offset="first", end="last + 1"),
        case("first < start_offset", rule, begins, offset="first", end="least(last + 1, start_offset)"),
        case("last >= next_start", rule, reaches, offset="greatest(first, next_start)", end="last + 1"),
        case(is_gone, rule, begins, offset="start_offset", end="first"),
    )


def without_entries(epochs: Sequence[Row], known: Sequence[Known]) -> Iterator[Row]:
    entries = by_replica(epochs)
    for one in known:
        if one.key not in entries and one.batches and one.start < one.high_watermark:
            what = "the log has batches, and no leader epochs in a checkpoint"
            yield plain(
                "epoch-checkpoint", what, one.key, one.start, min(one.high_watermark, max(one.end, one.start + 1))
            )


def across_replicas(epochs: Sequence[Row], known: Sequence[Known]) -> Iterator[Row]:
    """What several replicas say of one epoch, where retention has not been, and below their high watermarks."""
    entries = by_replica(epochs)
    found: dict[tuple[str, str, int], dict[int, dict[Key, int]]] = {}
    for one in known:
        own = entries.get(one.key, [])
        for epoch, start in own[1:]:
            if max(own[0][1], one.start) < start < one.high_watermark:
                found.setdefault(one.partition, {}).setdefault(epoch, {})[one.key] = start
    for of_partition in found.values():
        for epoch, starts in of_partition.items():
            least, most = min(starts.values()), max(starts.values())
            if least < most:
                places = ", ".join(f"on broker {key[0]} at {start}" for key, start in sorted(starts.items()))
                what = f"leader epoch {epoch} begins {places}"
                yield plain("epoch-start", what, next(iter(starts)), least, most, is_several=True)
