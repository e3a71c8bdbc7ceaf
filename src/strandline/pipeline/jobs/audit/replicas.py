"""What each replica is known to have: where its log starts and ends, and how far it knows it to be committed."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit.rows import PARTITION, REPLICA, local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

SOUND = "fault is null or (fault = 'crc' and last_offset >= base_offset)"  # the header says where the batch is


def replicas(batches: "DataFrame", checkpoints: "DataFrame", segments: "DataFrame") -> "DataFrame":
    """One row per replica that has a log: REPLICA, `start`, `high_watermark`, `end`, `cleaned_to` (null: a log without
    gaps), `is_stopped`, `is_compacted` (that one, or another of its partition), `latest` (leader epoch), `bytes`,
    `batches`, `records`.

    `checkpoints` read before the batches, `segments` after them.
    """
    held = local(segments.groupBy(*REPLICA).agg(F.min("segment").alias("first"), F.max("segment").alias("last")))
    found = held.join(F.broadcast(checkpoints), list(REPLICA), "left").join(
        F.broadcast(local(measured(batches))), list(REPLICA), "left"
    )
    return with_compacted(
        found.selectExpr(
            *REPLICA,
            "greatest(first, coalesce(log_start_offset, 0)) as start",
            "greatest(coalesce(high_watermark, 0), 0) as high_watermark",
            "greatest(last, coalesce(read_end, 0)) as end",
            "cleaned_to",
            "coalesce(clean_shutdown, false) as is_stopped",
            "coalesce(latest, -1) as latest",
            *(f"coalesce({name}, 0) as {name}" for name in ("bytes", "batches", "records")),
        )
    )


def replicas_over_the_wire(batches: "DataFrame", compacted: "Sequence[str]") -> "DataFrame":
    """As `replicas`, where nothing but batches can be read: each broker gives what it knows to be committed."""
    names = ", ".join(f"'{topic}'" for topic in compacted) or "''"
    return with_compacted(
        measured(batches).selectExpr(
            *REPLICA,
            "coalesce(read_start, 0) as start",
            "coalesce(read_end, 0) as high_watermark",
            "coalesce(read_end, 0) as end",
            f"if(topic in ({names}), read_end, null) as cleaned_to",
            "false as is_stopped",
            *("latest", "bytes", "batches", "records"),
        )
    )


def measured(batches: "DataFrame") -> "DataFrame":
    of_whole = {
        "read_start": "min(base_offset)",
        "read_end": "max(last_offset + 1)",
        "latest": "max(leader_epoch)",
        "records": "sum(cast(records as long))",
    }
    return batches.groupBy(*REPLICA).agg(
        *(F.expr(f"{what} filter (where fault is null) as {name}") for name, what in of_whole.items()),
        F.expr("sum(cast(size as long)) as bytes"),
        F.expr("count(*) as batches"),
    )


def with_compacted(found: "DataFrame") -> "DataFrame":
    over = f"over (partition by {', '.join(PARTITION)})"
    return local(found.selectExpr("*", f"max(cleaned_to is not null) {over} as is_compacted"))


def with_bounds(batches: "DataFrame", known: "DataFrame") -> "DataFrame":
    """Rows of batches with what is known of their replica."""
    bounds = known.select(*REPLICA, "start", "high_watermark", "cleaned_to", "is_compacted")
    return batches.join(F.broadcast(bounds), list(REPLICA))


def committed(batches: "DataFrame", known: "DataFrame") -> "DataFrame":
    """Batches that their own replica knows to be committed, and that retention has not taken."""
    return with_bounds(batches.where(SOUND), known).where("base_offset >= start and last_offset < high_watermark")
