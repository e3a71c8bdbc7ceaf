"""The audit of all replicas of a cluster: read them, judge them, and believe what a second look finds again.

Under load a log may be caught while it changes. What was wrong only for that moment is wrong no longer a moment later,
or elsewhere; damage stays where it is, but for what of it retention takes meanwhile (`among`). Where all brokers were
stopped in an orderly way, one look is enough.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from strandline_spark.jobs.audit.levels import Unread, read_levels
from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import Key, all_of, frame, in_runs, of_several
from strandline_spark.jobs.audit.rules import all_findings, known_replicas
from strandline_spark.replica.rows import CHANGED
from strandline_spark.schemas import FINDING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAUSE_S = 1.0
CHECKPOINT_S = 6.0  # a high watermark that is saved for a log that is gone is there for five seconds
LOOKS_MAX = 5
PARTITIONS_MAX = 1000  # that a further look names one by one
SAVED = ("high-watermark", "checkpoint", "missing-replica")  # rules of files that are saved every few seconds
SAME = ("rule", "topic", "partition")
Place = tuple[str, int]


class Audited(NamedTuple):
    findings: "DataFrame"  # schemas.FINDING
    replicas: Sequence[Known]
    unread: Mapping[Key, Unread]


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
    the topics that are. What cannot be read is in `unread`."""
    latest = look(spark, options, acknowledged, losses, compacted)
    changed = changed_in(latest)
    if all(one.is_stopped for one in latest.replicas) and not changed:
        return latest._replace(findings=of_several(latest.findings))
    unread = dict(latest.unread)
    known = {one.key: one for one in latest.replicas}
    seen, confirmed = latest.findings, [frame(spark, [], FINDING)]
    pending = places_of(latest.findings) | changed
    for _ in range(LOOKS_MAX - 1):
        if not pending:
            break
        has_marks = not latest.findings.where(F.col("rule").isin(*SAVED)).isEmpty()
        time.sleep(max(pause_s, CHECKPOINT_S) if has_marks else pause_s)
        chosen = narrowed(options, pending, dict.fromkeys(place_of(key) for key in known) | changed)
        latest = look(spark, chosen, acknowledged, losses, compacted)
        known |= {one.key: one for one in latest.replicas}
        confirmed.append(among(latest.findings, seen))
        seen = seen.unionByName(latest.findings)
        # Another look at what changed again, and at what changed before, so that it was judged only once.
        unread = {**{key: one for key, one in unread.items() if one.fault != CHANGED}, **latest.unread}
        pending = {place: None for place in places_of(latest.findings) if place in changed}
        changed = changed_in(latest)
        pending |= changed
    return Audited(of_several(in_runs(all_of(confirmed))), list(known.values()), unread)


def look(
    spark: "SparkSession",
    options: Mapping[str, str],
    acknowledged: "DataFrame | None",
    losses: "DataFrame | None",
    compacted: Sequence[str] | None,
) -> Audited:
    with read_levels(spark, dict(options), compacted) as levels:
        known = known_replicas(levels)
        chosen = None if acknowledged is None else sought(acknowledged, options, levels.unread)
        # Not to be computed again, ever: the logs go on.
        findings = all_findings(levels, known, chosen, losses).localCheckpoint()
    return Audited(findings if findings.count() else frame(spark, [], FINDING), known, levels.unread)


def sought(acknowledged: "DataFrame", options: Mapping[str, str], unread: Mapping[Key, Unread]) -> "DataFrame":
    """The partitions of which a look could read all replicas; the leader may be among the others."""
    place, schema = ["topic", "partition"], "topic string, partition int"
    spark, chosen = acknowledged.sparkSession, acknowledged
    wanted = json.loads(options.get("assign", "{}"))
    if wanted:
        rows = [(topic, partition) for topic, numbers in wanted.items() for partition in numbers]
        chosen = chosen.join(F.broadcast(spark.createDataFrame(rows, schema)), place)
    if unread:
        others = spark.createDataFrame([place_of(key) for key in unread], schema)
        chosen = chosen.join(F.broadcast(others), place, "left_anti")
    return chosen


def among(findings: "DataFrame", seen: "DataFrame") -> "DataFrame":
    """What of these was seen before: the offsets that both have. `broker` null: nobody knows which, it may be any.

    All rules but two are about what a log has at offsets that it keeps. A run of damage may begin elsewhere in the next
    look, where retention took some of it, and end elsewhere; what looked wrong only since a log changed (at its end, or
    where retention or a cleaner was) is at other offsets a moment later. But a `high-watermark` or `checkpoint`
    finding reaches from where the log ends to something that moves by itself: if that end moves, the log is being
    filled."""
    names = (*SAME, "broker", "offset", "end", "what")
    others = seen.select(*(F.col(name).alias(f"seen_{name}") for name in names))
    same = " and ".join(f"{name} = seen_{name}" for name in SAME)
    there = "(broker = seen_broker or broker is null or seen_broker is null)"
    is_still = "(rule not in ('high-watermark', 'checkpoint') or offset = seen_offset)"
    meets = f"offset < seen_end and end > seen_offset and {is_still}"
    both = {
        "offset": "greatest(offset, seen_offset)",
        "end": "least(end, seen_end)",
        "what": "if(offset >= seen_offset, what, seen_what)",
    }
    met = findings.join(F.broadcast(others), F.expr(f"{same} and {there} and {meets}"))
    return met.selectExpr(*(f"{both.get(name, name)} as {name}" for name in FINDING.names))


def narrowed(options: Mapping[str, str], pending: Mapping[Place, None], there: Mapping[Place, None]) -> dict[str, str]:
    """Only these partitions, if all of them are known and they are not too many to be named."""
    if len(pending) > PARTITIONS_MAX or any(place not in there for place in pending):
        return dict(options)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(pending):
        by_topic.setdefault(topic, []).append(partition)
    rest = {key: text for key, text in options.items() if not key.lower().startswith("subscribe")}
    return {**rest, "assign": json.dumps(by_topic)}


def changed_in(latest: Audited) -> dict[Place, None]:
    """Where another look may help: a log that changes may be read a moment later. A broker was waited for already."""
    return {place_of(key): None for key, one in latest.unread.items() if one.fault == CHANGED}


def places_of(findings: "DataFrame") -> dict[Place, None]:
    rows = findings.select("topic", "partition").distinct().limit(PARTITIONS_MAX + 1).collect()
    return {(row["topic"], row["partition"]): None for row in rows}


def place_of(key: Key) -> Place:
    return key[2], key[4]
