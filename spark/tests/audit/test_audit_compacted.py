"""Compacted replicas that lived through a small history of their own, before a plain twin of the rule for lost keys."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from strandline_spark import schemas
from strandline_spark.jobs.audit.replicas import Known
from strandline_spark.jobs.audit.rows import REPLICA, frame
from strandline_spark.jobs.audit.subjects.compacted import compacted_agreement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = tuple[str, bool]  # key, is it a tombstone?
Lost = set[tuple[int, int, int]]  # partition, broker, offset


@dataclass
class Replica:
    broker: int
    records: dict[int, Record] = field(default_factory=dict)
    end: int = 0
    saved: int = 0  # high watermark
    cleaned_to: int = 0
    is_up: bool = True

    def newest(self, key: str, below: int = 1 << 62) -> int:
        return max((at for at, (own, _) in self.records.items() if own == key and at < below), default=-1)


@dataclass
class Partition:
    """The first replica leads. Those that are up are in sync, but for one that has yet to copy its first records."""

    replicas: list[Replica]
    high_watermark: int = 0

    def append(self, rng: random.Random) -> None:
        leader = self.replicas[0]
        leader.records[leader.end] = (rng.choice("abcd"), rng.random() < 0.3)
        leader.end += 1

    def copy(self, rng: random.Random) -> None:
        leader, follower = self.replicas[0], rng.choice(self.replicas)
        if follower.is_up and follower is not leader:
            end = min(leader.end, follower.end + rng.randint(1, 8))
            follower.records |= {at: leader.records[at] for at in range(follower.end, end) if at in leader.records}
            follower.end = end
        ends = [one.end for one in self.replicas if one.is_up and one.end >= self.high_watermark]
        self.high_watermark = max(self.high_watermark, min(ends))

    def save(self, rng: random.Random) -> None:
        one = rng.choice(self.replicas)
        one.saved = min(self.high_watermark, one.end) if one.is_up else one.saved

    def clean(self, rng: random.Random) -> None:
        """Tombstones that an earlier pass has seen go, once all that are up have read them."""
        one = rng.choice(self.replicas)
        bound = rng.randint(one.cleaned_to, max(min(self.high_watermark, one.end), one.cleaned_to))
        if not one.is_up:
            return
        read = min(other.end for other in self.replicas if other.is_up)
        for at, (key, is_tombstone) in sorted(one.records.items()):
            is_old = is_tombstone and at < min(one.cleaned_to, read) and rng.random() < 0.5
            if is_old or (at < bound and at < one.newest(key, bound)):
                del one.records[at]
        one.cleaned_to = bound

    def stop_one(self, rng: random.Random) -> None:
        if len(self.replicas) == 3:
            rng.choice(self.replicas[1:]).is_up = False
            self.replicas.append(Replica(4))  # begins to copy


def partition_of(rng: random.Random) -> Partition:
    made = Partition([Replica(broker) for broker in (1, 2, 3)])
    steps = [made.append, made.copy, made.copy, made.save, made.clean]
    for _ in range(rng.randint(20, 120)):
        rng.choice(steps)(rng)
        if rng.random() < 0.01:
            made.stop_one(rng)
    return made


def lost(made: Partition) -> Iterator[tuple[int, int]]:
    """Broker and offset: what it lacks, by the plain rule."""
    cleaned_to = max(one.cleaned_to for one in made.replicas)
    witnesses = [one for one in made.replicas if one.saved >= cleaned_to]
    for key in "abcd":
        last, who = max(((one.newest(key, one.saved), one.broker) for one in witnesses), default=(-1, 0))
        has = next((one.records[last] for one in witnesses if one.broker == who and last >= 0), None)
        if has is None or has[1]:
            continue
        for one in made.replicas:
            if one.saved > last > one.newest(key):
                yield one.broker, last


def judged(spark: "SparkSession", partitions: list[Partition]) -> Lost:
    known, rows = [], []
    names: dict[str, Any] = {**dict.fromkeys(schemas.REPLICA_RECORD.names), "is_control": False, "leader_epoch": 0}
    for number, made in enumerate(partitions):
        for one in made.replicas:
            key = (one.broker, "/d", "t", "id", number)
            known.append(Known(key, 0, one.saved, one.end, one.cleaned_to, False, True, 0, 0, 0, 0))
            named = {**names, **dict(zip(REPLICA, key, strict=True))}
            rows += [
                {**named, "offset": at, "key": text.encode(), "value": None if is_tombstone else b"v"}
                for at, (text, is_tombstone) in one.records.items()
            ]
    found = compacted_agreement(frame(spark, rows, schemas.REPLICA_RECORD), known).collect()
    assert {row["rule"] for row in found} <= {"key-lost"}
    return {(row["partition"], row["broker"], row["offset"]) for row in found}


def test_no_key_is_lost_whatever_cleaners_took_and_one_that_is_gone_is_found_as_the_plain_twin_does(
    spark: "SparkSession",
) -> None:
    """Half of the partitions are sound; of each other one a replica loses a key's last record."""
    rng = random.Random(1)
    partitions = [partition_of(rng) for _ in range(400)]
    harmed = []
    for number, made in enumerate(partitions[200:], 200):
        one = rng.choice(made.replicas)
        lasting = [at for at, (key, is_gone) in one.records.items() if not is_gone and at == one.newest(key)]
        if lasting:
            harmed.append((number, one.broker, rng.choice(lasting)))
            del one.records[harmed[-1][2]]
    expected = {(number, *place) for number, made in enumerate(partitions) for place in lost(made)}
    assert judged(spark, partitions) == expected
    assert all(number >= 200 for number, _, _ in expected)  # sound ones give none
    assert len(expected.intersection(harmed)) > 30
    assert any(len(partitions[number].replicas) == 4 for number, _, _ in expected)
