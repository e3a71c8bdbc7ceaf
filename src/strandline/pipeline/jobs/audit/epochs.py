"""The lineage of leader epochs: what each log's `leader-epoch-checkpoint` says, its batches show and replicas share.

Only committed batches are compared with the file, which is read after them: it has had their epochs since before they
were written. Where retention has moved a log's start, the first entry moves with it, and says nothing.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit.replicas import committed
from strandline.pipeline.jobs.audit.rows import PARTITION, REPLICA, case, found, local, said

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RULES = {
    "epoch-checkpoint": "batches have other leader epochs than the log's checkpoint says",
    "epoch-start": "a leader epoch begins at different offsets in different replicas",
}


def epoch_lineage(batches: "DataFrame", epochs: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    order = f"over (partition by {', '.join(REPLICA)} order by leader_epoch)"
    entries = local(
        epochs.selectExpr(
            *(*REPLICA, "leader_epoch", "start_offset"),
            f"lead(start_offset) {order} as next_start",
            f"first_value(start_offset) {order} as first_start",
        )
    )
    return against_the_file(batches, entries, replicas).unionByName(across_replicas(entries, replicas))


def against_the_file(batches: "DataFrame", entries: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    began = local(entries.groupBy(*REPLICA).agg(F.min("first_start").alias("known_from")))
    runs = (
        committed(batches, replicas)
        .join(F.broadcast(began), list(REPLICA))
        .where("base_offset >= known_from and fault is null")
        .groupBy(*REPLICA, "leader_epoch", "cleaned_to", "start")
        .agg(F.min("base_offset").alias("first"), F.max("last_offset").alias("last"))
    )
    rows = runs.join(F.broadcast(entries), [*REPLICA, "leader_epoch"], "left")
    begins = said("leader epoch %d begins at %d, the file says at %d", "leader_epoch", "first", "start_offset")
    unknown = said("batches from %d on have leader epoch %d, which the file lacks", "first", "leader_epoch")
    place = ("leader_epoch", "last", "next_start")
    reaches = said("leader epoch %d reaches to %d, the file has the next from %d", *place)
    # The first batch of an epoch is where the epoch begins; but for the first entry, and where a cleaner has been.
    is_gone = "cleaned_to is null and start_offset > first_start and start_offset > start and first > start_offset"
    rule = "epoch-checkpoint"
    return found(
        rows,
        case("start_offset is null", rule, unknown, offset="first", end="last + 1"),
        case("first < start_offset", rule, begins, offset="first", end="least(last + 1, start_offset)"),
        case("last >= next_start", rule, reaches, offset="greatest(first, next_start)", end="last + 1"),
        case(is_gone, rule, begins, offset="start_offset", end="first"),
    )


def across_replicas(entries: "DataFrame", replicas: "DataFrame") -> "DataFrame":
    known = entries.join(F.broadcast(replicas.select(*REPLICA, "start", "high_watermark")), list(REPLICA))
    judged = known.where("start_offset > first_start and start_offset > start and start_offset < high_watermark")
    starts = judged.groupBy(*PARTITION, "leader_epoch").agg(
        F.expr("min(start_offset) as least"),
        F.expr("max(start_offset) as most"),
        F.expr("array_sort(collect_list(struct(broker, start_offset))) as told"),
    )
    places = "transform(told, one -> format_string('on broker %d at %d', one.broker, one.start_offset))"
    what = said("leader epoch %d begins %s", "leader_epoch", f"concat_ws(', ', {places})")
    return found(starts, case("least < most", "epoch-start", what, offset="least", end="most", broker="null"))
