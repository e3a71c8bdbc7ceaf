"""Agreement of replicas that cleaners have been at, each at its own time: records, not batches.

Two records of one offset are the same record, where both replicas know it to be committed. And a cleaner takes a record
only for a later one of its key, which stays, but for a tombstone, which may be gone in the end.

So a key's last record is the one that a witness has: a replica that knows of all that any cleaner has seen. (One that
was stopped, or is behind, does not: its last record of a key may rightly be gone elsewhere, and nothing be left of the
tombstone that it went for.) Every other replica that knows of its offset has it, or one that is newer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.replicas import HOLDERS, Known, holders, with_bounds
from strandline_spark.jobs.audit.rows import PARTITION, REPLICA, case, found, frame, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "record-diverged": "replicas of a compacted topic have different records at one offset",
    "key-lost": "a replica of a compacted topic lacks the last record of a key",
}
CONTENT = "xxhash64(key, value, leader_epoch)"


def compacted_agreement(records: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """`records`: of the partitions whose batches differ, and of their replicas all."""
    kept = (
        with_bounds(records, known)
        .where("offset >= start and not is_control")
        .selectExpr(
            *(*REPLICA, "offset", "offset < high_watermark as is_committed", "high_watermark"),
            *("key", "value is null as is_tombstone", f"{CONTENT} as content"),
        )
    )
    different = (
        kept.where("is_committed")
        .groupBy(*PARTITION, "offset")
        .agg(F.expr("count(distinct content) as versions"), F.expr("array_sort(collect_set(broker)) as brokers"))
    )
    have = said("brokers %s have different records", "concat_ws(', ', brokers)")
    two = case("versions > 1", "record-diverged", have, offset="offset", end="offset + 1", broker="null")
    lacks = said("its log lacks the last record of a key, which broker %d has", "latest.broker")
    lost = case("true", "key-lost", lacks, offset="latest.offset", end="latest.offset + 1", broker="lacking.broker")
    return found(different, two).unionByName(found(lacking(kept, known), lost))


def lacking(kept: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """PARTITION, `key`, `latest` (its last record), `lacking` (a replica without it)."""
    of_replica = (
        kept.where("key is not null")
        .groupBy(*REPLICA, "high_watermark", "key")
        .agg(
            F.expr("max(offset) as newest"),
            F.expr("max(offset) filter (where is_committed) as offset"),
            F.expr("max_by(is_tombstone, offset) filter (where is_committed) as is_tombstone"),
        )
    )
    held = "collect_list(struct(broker, directory, high_watermark, newest, offset, is_tombstone)) as held"
    witnesses = "filter(held, one -> one.high_watermark >= cleaned_to and one.offset is not null)"
    has = "has.broker = one.broker and has.directory = one.directory and has.newest >= latest.offset"
    knows = "one.start <= latest.offset and one.high_watermark > latest.offset"
    return (
        of_replica.groupBy(*PARTITION, "key")
        .agg(F.expr(held))
        .join(F.broadcast(frame(kept.sparkSession, holders(known), HOLDERS)), list(PARTITION))
        .selectExpr(
            "*", f"array_max(transform({witnesses}, one -> struct(one.offset, one.is_tombstone, one.broker))) as latest"
        )
        .where("not latest.is_tombstone")
        .selectExpr(
            *(*PARTITION, "key", "latest"),
            f"explode(filter(holders, one -> {knows} and not exists(held, has -> {has}))) as lacking",
        )
    )
