"""Agreement of replicas that cleaners have been at, each at its own time: records, not batches.

Below the high watermark that all of them have saved, the last record of each key is the same one everywhere, but for a
tombstone, which may be gone already. And two records of one offset are the same record.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit.replicas import Known
from strandline.pipeline.jobs.audit.rows import KEYS, PARTITION, REPLICA, case, found, frame, said
from strandline.pipeline.schemas import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "record-diverged": "replicas of a compacted topic have different records at one offset",
    "key-lost": "a replica of a compacted topic lacks the last record of a key",
}
COMMON = rows(*KEYS[2:], "upto long", "from long", "replicas int")
CONTENT = "xxhash64(key, value, leader_epoch)"


def compacted_agreement(records: "DataFrame", known: Sequence[Known]) -> "DataFrame":
    """`records`: of the partitions whose batches differ, and of their replicas all."""
    held: dict[tuple[str, str, int], list[Known]] = {}
    for one in known:
        held.setdefault(one.partition, []).append(one)
    common = [
        {
            **dict(zip(PARTITION, place, strict=True)),
            "upto": min(one.high_watermark for one in ones),
            "from": max(one.start for one in ones),
            "replicas": len(ones),
        }
        for place, ones in held.items()
    ]
    kept = (
        records.join(F.broadcast(frame(records.sparkSession, common, COMMON)), list(PARTITION))
        .where("offset < upto and offset >= from and not is_control")
        .selectExpr(*REPLICA, "replicas", "key", "value is null as is_tombstone", "offset", f"{CONTENT} as content")
    )
    different = kept.groupBy(*PARTITION, "offset").agg(
        F.expr("count(distinct content) as versions"), F.expr("array_sort(collect_set(broker)) as brokers")
    )
    last = (
        kept.where("key is not null")
        .groupBy(*REPLICA, "replicas", "key")
        .agg(F.expr("max(offset) as offset"), F.expr("max_by(is_tombstone, offset) as is_tombstone"))
    )
    per_key = (
        last.groupBy(*PARTITION, "replicas", "key")
        .agg(
            F.expr("max(offset) as newest"),
            F.expr("max_by(is_tombstone, offset) as is_tombstone"),
            F.expr("max_by(broker, offset) as owner"),
            F.expr("collect_list(struct(broker, offset)) as held"),
        )
        .where("not is_tombstone")
        .selectExpr("*", "filter(held, one -> one.offset < newest) as behind")
    )
    lacks = said("broker %d has a record of a key here that others lack, and nothing newer", "owner")
    have = said("brokers %s have different records", "concat_ws(', ', brokers)")
    one_behind = "if(size(behind) = 1, behind[0].broker, null)"
    is_lost = "size(behind) > 0 or size(held) < replicas"
    two = case("versions > 1", "record-diverged", have, offset="offset", end="offset + 1", broker="null")
    lost = case(is_lost, "key-lost", lacks, offset="newest", end="newest + 1", broker=one_behind)
    return found(different, two).unionByName(found(per_key, lost))
