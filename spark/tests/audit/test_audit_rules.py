"""The audit's rules against a plain twin that looks at every offset by itself, over replica sets of many kinds."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from spark.tests.audit.replica_sets import LARGEST, Replica, Row, Set, damaged, rows_of, sound

from strandline_spark import schemas
from strandline_spark.jobs.audit.levels import Levels, by_log
from strandline_spark.jobs.audit.metadata import registrations, segments, state
from strandline_spark.jobs.audit.replicas import measured
from strandline_spark.jobs.audit.rows import frame
from strandline_spark.jobs.audit.rules import RULES, all_findings, known_replicas
from strandline_spark.jobs.audit.subjects import beside, presence, stopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = dict[tuple[str, str], set[int]]  # of a topic and a rule: the offsets


def levels_of(spark: "SparkSession", sets: list[Set]) -> Levels:
    rows = rows_of(sets)
    batches = by_log(frame(spark, rows["batch"], schemas.REPLICA_BATCH)).localCheckpoint()
    indexes = frame(spark, rows["index"], schemas.REPLICA_INDEX)
    return Levels(
        batches, indexes, measured(batches), rows["checkpoint"], rows["epoch"], rows["segment"], lambda topics: batches
    )


def judged(spark: "SparkSession", sets: list[Set]) -> Found:
    levels = levels_of(spark, sets)
    rows = all_findings(levels, known_replicas(levels)).collect()
    found: Found = defaultdict(set)
    for row in rows:
        assert row["rule"] in RULES
        assert row["what"]
        assert row["end"] > row["offset"]
        found[row["topic"], row["rule"]] |= set(range(row["offset"], row["end"]))
    return found


# --- the plain twin


def plain(made: Set) -> Iterator[tuple[str, int, int]]:
    """Rule, first offset, end."""
    for replica in made.replicas:
        yield from broken(replica)
        yield from walked(replica)
        yield from sequences(replica)
        yield from own_epochs(replica)
        yield from pointed(replica)
        if replica.high_watermark > replica.end:
            yield "high-watermark", replica.end, replica.high_watermark
        if replica.log_start > replica.end:
            yield "checkpoint", replica.end, replica.log_start
    yield from compared(made.replicas)
    yield from epoch_starts(made.replicas)


def readable(replica: Replica) -> list[Row]:
    rows = [b for b in replica.batches if b["fault"] in (None, "crc")]
    return sorted(rows, key=lambda b: (b["segment"], b["position"]))


def following(replica: Replica, segment: int) -> int | None:
    return min((s for s in replica.segments if s > segment), default=None)


def broken(replica: Replica) -> Iterator[tuple[str, int, int]]:
    for row in replica.batches:
        if row["fault"] == "crc":
            yield "crc", row["base_offset"], row["last_offset"] + 1
        if row["fault"] in ("torn", "corrupt"):
            before = [
                b for b in readable(replica) if b["segment"] == row["segment"] and b["position"] < row["position"]
            ]
            start = max((b["last_offset"] + 1 for b in before), default=row["segment"])
            after = [b for b in readable(replica) if b["segment"] == row["segment"] and b["position"] > row["position"]]
            end = after[0]["base_offset"] if after else following(replica, row["segment"]) or replica.high_watermark
            yield row["fault"], start, max(end, start + 1)
    for row in readable(replica):
        after = following(replica, row["segment"])
        if after is not None and after <= row["last_offset"] < replica.high_watermark:
            yield "misplaced", row["base_offset"], row["last_offset"] + 1


def walked(replica: Replica) -> Iterator[tuple[str, int, int]]:
    for before, row in pairwise(readable(replica)):
        expected, first, end = before["last_offset"] + 1, row["base_offset"], row["last_offset"] + 1
        if first > expected and first > replica.start:
            yield "gap", expected, first
        if first < expected:
            yield "overlap", first, min(end, expected)
        if row["leader_epoch"] < before["leader_epoch"]:
            yield "epoch-order", first, end
    for row in readable(replica):
        if not row["fault"] and row["records"] != row["last_offset"] - row["base_offset"] + 1:
            yield "record-count", row["base_offset"], row["last_offset"] + 1


def sequences(replica: Replica) -> Iterator[tuple[str, int, int]]:
    seen: dict[int, list[int]] = defaultdict(list)
    rows = [b for b in readable(replica) if not b["fault"] and b["producer_id"] >= 0]
    for row in sorted(rows, key=lambda b: b["base_offset"]):
        known, first = seen[row["producer_id"]], row["base_sequence"]
        last = (first + row["last_offset"] - row["base_offset"]) & LARGEST
        may_begin_again = max([*known, last]) >= 1 << 30
        if known:
            before = known[-1] if may_begin_again else max(known)
            step = (first - before - 1) & LARGEST
            if step:
                rule = "duplicate-sequence" if step >= 1 << 30 else "sequence-gap"
                yield rule, row["base_offset"], row["last_offset"] + 1
        known.append(last)


def known_committed(replica: Replica) -> list[Row]:
    return [
        b for b in readable(replica) if b["base_offset"] >= replica.start and b["last_offset"] < replica.high_watermark
    ]


def own_epochs(replica: Replica) -> Iterator[tuple[str, int, int]]:
    if not replica.epochs:
        return
    rows = [b for b in known_committed(replica) if not b["fault"] and b["base_offset"] >= replica.epochs[0][1]]
    for epoch in sorted({b["leader_epoch"] for b in rows}):
        own = [b for b in rows if b["leader_epoch"] == epoch]
        first, end = min(b["base_offset"] for b in own), max(b["last_offset"] for b in own) + 1
        starts = [start for e, start in replica.epochs if e == epoch]
        if not starts:
            yield "epoch-checkpoint", first, end
            continue
        if first < starts[0]:
            yield "epoch-checkpoint", first, min(end, starts[0])
        if first > starts[0] > max(replica.start, replica.epochs[0][1]):
            yield "epoch-checkpoint", starts[0], first
        later = [start for e, start in replica.epochs if e > epoch]
        if later and later[0] < end:
            yield "epoch-checkpoint", max(first, later[0]), end


def epoch_starts(replicas: list[Replica]) -> Iterator[tuple[str, int, int]]:
    starts: dict[int, list[int]] = defaultdict(list)
    for replica in replicas:
        for epoch, start in replica.epochs[1:]:
            if max(replica.start, replica.epochs[0][1]) < start < replica.high_watermark:
                starts[epoch].append(start)
    for found in starts.values():
        if len(set(found)) > 1:
            yield "epoch-start", min(found), max(found)


def pointed(replica: Replica) -> Iterator[tuple[str, int, int]]:
    for entry in replica.indexes:
        offset, segment = entry["offset"], entry["segment"]
        unread = [
            b["position"] for b in replica.batches if b["segment"] == segment and b["fault"] in ("torn", "corrupt")
        ]
        if not replica.start <= offset < replica.high_watermark or (unread and entry["position"] >= min(unread)):
            continue
        there = [b for b in readable(replica) if (b["segment"], b["position"]) == (segment, entry["position"])]
        if not any(b["base_offset"] <= offset for b in there):
            yield "index", offset, offset + 1


def compared(replicas: list[Replica]) -> Iterator[tuple[str, int, int]]:
    for base in sorted({b["base_offset"] for r in replicas for b in known_committed(r)}):
        copies = [b for r in replicas for b in known_committed(r) if b["base_offset"] == base]
        last = max(b["last_offset"] for b in copies)
        expected = [r for r in replicas if r.start <= base and r.high_watermark > last]
        if len({(b["last_offset"], b["leader_epoch"], b["crc"]) for b in copies}) > 1:
            yield "diverged", base, last + 1
        elif len(copies) < len(expected):
            yield "absent", base, last + 1


# --- situations


def test_sound_replicas_give_no_finding_and_damaged_ones_give_what_the_plain_twin_finds(spark: "SparkSession") -> None:
    rng = random.Random(1)
    sets = [sound(f"sound-{at}", rng) for at in range(150)] + [damaged(f"damaged-{at}", rng) for at in range(350)]
    expected: Found = defaultdict(set)
    for made in sets:
        for rule, start, end in plain(made):
            expected[made.topic, rule] |= set(range(start, end))
    assert not [key for key in expected if key[0].startswith("sound")]
    found = judged(spark, sets)
    wrong = {key: (found.get(key), expected.get(key)) for key in {*found, *expected} if found[key] != expected[key]}
    assert not wrong
    harmed = Counter(made.damage for made in sets if any(topic == made.topic for topic, _ in found))
    assert len(harmed) == 11
    reported = {rule for _, rule in found}
    others = {rule for rule in RULES if rule.startswith(("acknowledged", "key", "record-d"))}
    of_files = (beside, presence, stopped, registrations, segments, state)  # no rows of a partition's log say so
    assert reported == RULES.keys() - others - {rule for subject in of_files for rule in subject.RULES}
