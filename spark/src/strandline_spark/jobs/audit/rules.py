"""All rules together: every finding that rows of replicas give rise to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from strandline_spark import schemas
from strandline_spark.jobs.audit.ledger import as_rows
from strandline_spark.jobs.audit.metadata import registrations, segments, state
from strandline_spark.jobs.audit.replicas import Known, replicas, replicas_over_the_wire
from strandline_spark.jobs.audit.rows import KEYS, PARTITION, REPLICA, all_of, frame, in_runs
from strandline_spark.jobs.audit.subjects import (
    acknowledged,
    agreement,
    batches,
    beside,
    compacted,
    epochs,
    indexes,
    offsets,
    presence,
    sequences,
    stopped,
    watermarks,
)
from strandline_spark.jobs.audit.walk import along_the_logs
from strandline_spark.schemas import FINDING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from strandline_spark.jobs.audit.levels import Levels

RULES: dict[str, str] = {}
SUBJECTS = (
    batches,
    offsets,
    agreement,
    compacted,
    epochs,
    watermarks,
    indexes,
    beside,
    sequences,
    presence,
    stopped,
    registrations,
    segments,
    state,
)
for subject in (*SUBJECTS, acknowledged):
    RULES |= subject.RULES


def known_replicas(levels: "Levels") -> list[Known]:
    if levels.compacted is not None:
        return replicas_over_the_wire(levels.measured, levels.compacted)
    return replicas(levels.measured, levels.checkpoints, levels.segments, levels.epochs)


def all_findings(
    levels: "Levels",
    known: Sequence[Known],
    acks: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
) -> "DataFrame":
    """`known`: what `known_replicas` says; `acks`: schemas.ACKNOWLEDGED; `losses`: see `ledger`. FINDING rows."""
    spark, rows = levels.batches.sparkSession, levels.batches
    is_of_files = levels.compacted is None
    few = [
        *watermarks.high_watermarks(known),
        *watermarks.other_checkpoints(known, levels.checkpoints),
        *epochs.across_replicas(levels.epochs, known),
        *(epochs.without_entries(levels.epochs, known) if is_of_files else ()),
        *beside.unusable_files(levels.beside, levels.checkpoints),
        *(presence.topic_ids(known) if is_of_files else ()),
        *levels.of_directories,
    ]
    odd = agreement.disagreements(rows, known)
    parts = [
        along_the_logs(rows, known, levels.segments),
        agreement.agreement(odd),
        *([frame(spark, few, FINDING)] if few else []),
        *([epochs.against_the_file(rows, levels.epochs, known)] if levels.epochs else []),
        *beside.against_the_batches(rows, levels.beside, known),
    ]
    if levels.indexes is not None:
        is_broken = any(counted["broken"] for counted in levels.measured.values())
        parts.append(indexes.index_entries(levels.indexes, rows, known, levels.segments, is_broken=is_broken))
    if any(one.is_compacted for one in known):
        differ = odd.where("is_compacted").select(*PARTITION).distinct().collect()
        if differ:
            records = levels.records(sorted({row["topic"] for row in differ}))
            chosen = F.broadcast(frame(spark, [row.asDict() for row in differ], schemas.rows(*KEYS[2:])))
            parts.append(compacted.compacted_agreement(records.join(chosen, list(PARTITION)), known))
    if acks is not None:
        losses = as_rows(spark, ()) if losses is None else losses
        written = [row["topic"] for row in acks.select("topic").distinct().collect()]
        records = levels.records(written).where("not is_control")
        sums = records.select(*REPLICA, "offset", F.crc32("value").alias("crc32"))
        parts.append(acknowledged.acknowledged_records(acks, sums, known, losses, levels.segments))
    return in_runs(all_of(parts))
