"""The audit of all replicas of a cluster: read them, judge them, and believe what a second look finds again.

Under load a log may be caught while it changes. What was wrong only for that moment is wrong no longer a moment later,
or elsewhere; damage stays where it is. Where all brokers were stopped in an orderly way, one look is enough.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline.jobs.audit.levels import read_levels, without_changed
from strandline.pipeline.jobs.audit.rules import all_findings, known_replicas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAUSE_S = 1.0
CHECKPOINT_S = 6.0  # a high watermark that is saved for a log that is gone is there for five seconds
PARTITIONS_MAX = 1000  # that a second look names one by one


class Audited(NamedTuple):
    findings: "DataFrame"  # schemas.FINDING
    replicas: "DataFrame"  # see `audit.replicas`
    changed: tuple[str, ...]  # logs that could not be read, since they changed all the time


def audit(
    spark: "SparkSession",
    options: Mapping[str, str],
    *,
    acknowledged: "DataFrame | None" = None,
    losses: "DataFrame | None" = None,
    compacted: Sequence[str] | None = None,
    pause_s: float = PAUSE_S,
) -> Audited:
    """`options`: those of `format("strandline-replica")` that say where and what. `acknowledged`: what producers were
    told (schemas.ACKNOWLEDGED), read before; `losses`: the loss ledger (`audit.ledger`). `compacted`: over the wire,
    the topics that are. Raises what Spark raises if something cannot be read."""
    first = look(spark, options, acknowledged, losses, compacted)
    odd = first.findings.select("topic", "partition").distinct().limit(PARTITIONS_MAX + 1).collect()
    is_stopped = first.replicas.where("not is_stopped").isEmpty()
    if is_stopped or not (odd or first.changed):
        return first
    has_marks = not first.findings.where("rule = 'high-watermark'").isEmpty()
    time.sleep(max(pause_s, CHECKPOINT_S) if has_marks else pause_s)
    chosen = dict(options)
    if len(odd) <= PARTITIONS_MAX and not first.changed:
        chosen = {key: text for key, text in chosen.items() if not key.lower().startswith("subscribe")}
        chosen["assign"] = json.dumps(by_topic([(row["topic"], row["partition"]) for row in odd]))
    again = look(spark, chosen, acknowledged, losses, compacted)
    same = ["rule", "topic", "partition", "offset"]
    seen = first.findings.select(*same, F.coalesce("broker", F.lit(-1)).alias("seen_by"))
    both = [*(again.findings[name] == seen[name] for name in same)]
    confirmed = again.findings.join(
        F.broadcast(seen), [*both, F.coalesce(again.findings["broker"], F.lit(-1)) == seen["seen_by"]], "left_semi"
    )
    return Audited(confirmed.persist(), first.replicas, tuple(one for one in again.changed if one in first.changed))


def look(
    spark: "SparkSession",
    options: Mapping[str, str],
    acknowledged: "DataFrame | None",
    losses: "DataFrame | None",
    compacted: Sequence[str] | None,
) -> Audited:
    levels, changed = without_changed(read_levels(spark, dict(options), compacted))
    known = known_replicas(levels)
    chosen = acknowledged
    if acknowledged is not None and "assign" in options:
        wanted = json.loads(options["assign"])
        places = [(topic, partition) for topic, numbers in wanted.items() for partition in numbers]
        among = spark.createDataFrame(places, "topic string, partition int")
        chosen = acknowledged.join(F.broadcast(among), ["topic", "partition"])
    findings = all_findings(levels, known, chosen, losses).persist()
    findings.count()
    levels.forget()
    return Audited(findings, known, changed)


def by_topic(places: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return found
