"""Agreement: where several replicas know a batch to be committed, it is the same batch.

Each batch is judged among those replicas alone whose log starts at or below it and whose high watermark, as it was
saved, is above it. Followers copy bytes, so the checksums are equal; base offset and leader epoch, which no checksum
covers, are compared apart. Where a cleaner has been, batches differ rightly: see `compacted`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import HOLDERS, Known, committed, holders
from strandline_spark.jobs.audit.rows import PARTITION, case, found, frame, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "diverged": "replicas have different batches where all of them know theirs to be committed",
    "absent": "a replica lacks a batch that it knew to be committed, and that others have",
}


def disagreements(batches: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """PARTITION, `base_offset`, `last_offset`, `copies` (who has which), `expected` (who should), `is_compacted`."""
    version = "struct(last_offset, leader_epoch, crc)"
    copies = (
        committed(batches, known)
        .groupBy(*PARTITION, "base_offset", "is_compacted")
        .agg(
            F.expr("max(last_offset) as last_offset"),
            F.expr("count(*) as count"),
            F.expr(f"collect_list(struct(broker, directory, {version} as version)) as copies"),
        )
    )
    named = frame(batches.sparkSession, holders(known), HOLDERS).drop("cleaned_to")
    return (
        copies.join(F.broadcast(named), list(PARTITION))
        .selectExpr(
            "*",
            "size(array_distinct(copies.version)) as versions",
            "filter(holders, one -> one.start <= base_offset and one.high_watermark > last_offset) as expected",
        )
        .where("versions > 1 or count < size(expected)")
    )


def agreement(odd: "DataFrame") -> "DataFrame":
    """Findings of what `disagreements` has, in logs that no cleaner has been at."""
    lone = "filter(copies, one -> size(filter(copies, other -> other.version = one.version)) = 1)"
    has = "exists(copies, has -> has.broker = one.broker and has.directory = one.directory)"
    whole = odd.where("not is_compacted").selectExpr(
        "*",
        f"{lone} as lone",
        f"explode_outer(if(versions = 1, filter(expected, one -> not {has}), null)) as missing",
    )
    versions_text = (
        "transform(array_sort(copies), one -> format_string('broker %d: up to %d, epoch %d, checksum %08x',"
        " one.broker, one.version.last_offset, one.version.leader_epoch, one.version.crc))"
    )
    lacks = said("its log lacks a batch that broker %s has", "concat_ws(', ', array_sort(copies.broker))")
    odd_one = "if(size(lone) = 1 and size(copies) > 2, lone[0].broker, null)"  # else nobody knows which
    place = {"offset": "base_offset", "end": "last_offset + 1"}
    return found(
        whole,
        case("versions > 1", "diverged", f"concat_ws('; ', {versions_text})", **place, broker=odd_one),
        case("versions = 1", "absent", lacks, **place, broker="missing.broker"),
    )
