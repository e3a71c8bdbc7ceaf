"""All rules together: every finding that rows of replicas give rise to."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit import (
    acknowledged,
    agreement,
    batches,
    compacted,
    epochs,
    indexes,
    offsets,
    sequences,
    watermarks,
)
from strandline.pipeline.jobs.audit.replicas import replicas, replicas_over_the_wire
from strandline.pipeline.jobs.audit.rows import PARTITION, REPLICA, all_of, in_runs
from strandline.pipeline.jobs.audit.walk import along_the_logs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from strandline.pipeline.jobs.audit.levels import Levels

RULES: dict[str, str] = {}
for subject in (batches, offsets, agreement, compacted, epochs, watermarks, indexes, sequences, acknowledged):
    RULES |= subject.RULES


def known_replicas(levels: "Levels") -> "DataFrame":
    if levels.compacted is not None:
        return replicas_over_the_wire(levels.batches, list(levels.compacted))
    return replicas(levels.batches, levels.checkpoints, levels.segments)


def all_findings(
    levels: "Levels",
    known: "DataFrame",
    acks: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
) -> "DataFrame":
    """`known`: what `known_replicas` says; `acks`: schemas.ACKNOWLEDGED; `losses`: see `ledger`. FINDING rows."""
    odd = agreement.disagreements(levels.batches, known)
    parts = [along_the_logs(levels.batches, known, levels.segments), agreement.agreement(odd)]
    if levels.compacted is None:
        parts += [
            epochs.epoch_lineage(levels.batches, levels.epochs, known),
            watermarks.high_watermarks(known),
            indexes.index_entries(levels.indexes, levels.batches, known, levels.segments),
        ]
    if known.where("is_compacted").head(1):
        differ = odd.where("is_compacted").select(*PARTITION).distinct().collect()
        if differ:
            records = levels.records(sorted({row["topic"] for row in differ}))
            chosen = known.sparkSession.createDataFrame(differ)
            parts.append(compacted.compacted_agreement(records.join(F.broadcast(chosen), list(PARTITION)), known))
    if acks is not None:
        assert losses is not None
        written = [row["topic"] for row in acks.select("topic").distinct().collect()]
        records = levels.records(written).where("not is_control")
        sums = records.select(*REPLICA, "offset", F.crc32("value").alias("crc32"))
        leads = acknowledged.leading(known, levels.epochs)
        parts.append(acknowledged.acknowledged_records(acks, sums, leads, losses))
    return in_runs(all_of(parts))
