"""Made-up replicas of one partition, as rows that the replica source would give: sound ones, and ways to damage them.

A log is a list of batches; each replica has a stretch of it, in segments of its own, with a high watermark of its own.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
BATCH_BYTES = 100
LARGEST = (1 << 31) - 1


@dataclass
class Replica:
    broker: int
    topic: str
    high_watermark: int
    log_start: int
    cleaned_to: int | None
    batches: list[Row] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    indexes: list[Row] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)

    @property
    def key(self) -> Row:
        directory = f"/data/{self.broker}"
        return {
            "broker": self.broker,
            "directory": directory,
            "topic": self.topic,
            "topic_id": TOPIC_ID,
            "partition": 0,
        }

    @property
    def end(self) -> int:
        return max([*self.segments, *(b["last_offset"] + 1 for b in self.batches if not b["fault"])])

    @property
    def start(self) -> int:
        return max(self.log_start, self.segments[0])


@dataclass
class Set:
    topic: str
    replicas: list[Replica]
    damage: str = ""


def history(rng: random.Random) -> list[Row]:
    """The batches that leaders wrote, with rising epochs and a few idempotent producers."""
    offset, epoch = rng.choice([0, 0, 1000]), rng.randrange(3)
    sequences = {7: rng.choice([0, 0, LARGEST - 5]), 8: 0}
    rows = []
    for _ in range(rng.randint(6, 30)):
        if rng.random() < 0.15:
            epoch += rng.randint(1, 3)
        count = rng.randint(1, 4)
        producer = rng.choice([-1, 7, 8])
        sequence = sequences.get(producer, -1)
        if producer >= 0:
            sequences[producer] = (sequence + count) & LARGEST
        rows.append(
            {
                "base_offset": offset,
                "last_offset": offset + count - 1,
                "leader_epoch": epoch,
                "records": count,
                "producer_id": producer,
                "producer_epoch": 0 if producer >= 0 else -1,
                "base_sequence": sequence,
                "attributes": 0,
                "crc": rng.getrandbits(32),
                "crc_ok": True,
                "fault": None,
                "size": BATCH_BYTES,
            }
        )
        offset += count
    return rows


def sound(topic: str, rng: random.Random) -> Set:
    rows = history(rng)
    first, end = rows[0]["base_offset"], rows[-1]["last_offset"] + 1
    committed = rng.choice([end, rows[rng.randrange(len(rows))]["base_offset"]])
    replicas = []
    for broker in (1, 2, 3)[: rng.choice([1, 3, 3, 3])]:
        taken = rng.choice([0, 0, rng.randrange(len(rows) // 2)])  # by retention
        upto = rng.choice([end, rng.choice(rows)["base_offset"]])  # followers lag
        if upto < committed and rng.random() < 0.7:
            upto = committed
        own = [dict(row) for row in rows[taken:] if row["last_offset"] < upto]
        mark = rng.choice([0, min(committed, upto), min(committed, upto)])
        start = own[0]["base_offset"] if own else rows[taken]["base_offset"]
        if own and rng.random() < 0.2:
            start = min(mark, rng.choice(own)["base_offset"] + 1) if mark > start else start  # DeleteRecords
        replica = Replica(broker, topic, mark, max(start, first), None, own)
        replica.segments = [own[0]["base_offset"] if own else max(start, first)]
        lay_out(replica, rng)
        replicas.append(replica)
    return Set(topic, replicas)


def lay_out(replica: Replica, rng: random.Random) -> None:
    """Segments, positions, index entries and epochs of what the replica has."""
    position = 0
    for row in replica.batches:
        if position and rng.random() < 0.2:
            replica.segments.append(row["base_offset"])
            position = 0
        row |= {"segment": replica.segments[-1], "position": position}
        if rng.random() < 0.3:
            entry = {"segment": row["segment"], "entry": 0, "offset": row["last_offset"], "position": position}
            replica.indexes.append(entry)
        position += BATCH_BYTES
        if not replica.epochs or row["leader_epoch"] > replica.epochs[-1][0]:
            replica.epochs.append((row["leader_epoch"], row["base_offset"]))
    passed = [at for at, (_, start) in enumerate(replica.epochs) if start <= replica.start]
    if passed:  # the entry in force at the log's start begins there
        epoch = replica.epochs[passed[-1]][0]
        replica.epochs[: passed[-1] + 1] = [(epoch, replica.start)]


# --- damage: each does something to one replica, and returns whether it could


def picked(replica: Replica, rng: random.Random) -> Row | None:
    return rng.choice(replica.batches) if replica.batches else None


def bit_rot(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        row |= {"crc_ok": False, "fault": "crc"}


def torn(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        fault = rng.choice(["torn", "corrupt"])
        if fault == "torn":  # of something else than a batch the end may be known
            at = replica.batches.index(row)
            gone = [b for b in replica.batches[at + 1 :] if b["segment"] == row["segment"]]
            replica.batches = [b for b in replica.batches if b not in gone]
        row |= {
            "fault": rng.choice(["torn", "corrupt"]),
            "base_offset": None,
            "last_offset": None,
            "leader_epoch": None,
        }


def wrong_epoch(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        row["leader_epoch"] += rng.choice([-1, 1, 2, 5])


def missing(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        replica.batches.remove(row)


def duplicated(replica: Replica, rng: random.Random) -> None:
    idempotent = [b for b in replica.batches if b["producer_id"] >= 0]
    if len(idempotent) > 1:
        one, other = sorted(rng.sample(range(len(idempotent)), 2))
        old, new = idempotent[one], idempotent[other]
        new |= {key: old[key] for key in ("producer_id", "base_sequence")}


def high_watermark(replica: Replica, rng: random.Random) -> None:
    replica.high_watermark = replica.end + rng.randint(1, 9)


def stale_index(replica: Replica, rng: random.Random) -> None:
    for entry in replica.indexes:
        entry["position"] += rng.choice([0, 7, BATCH_BYTES])


def diverged(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        row["crc"] ^= 1


def misplaced(replica: Replica, rng: random.Random) -> None:
    row = picked(replica, rng)
    if row and len(replica.segments) > 1:
        row["segment"] = replica.segments[0]
        row["position"] += 10_000


def wrong_checkpoint(replica: Replica, rng: random.Random) -> None:
    if replica.epochs:
        at = rng.randrange(len(replica.epochs))
        epoch, start = replica.epochs[at]
        replica.epochs[at] = (epoch, start + rng.choice([-1, 1, 2]))


def miscounted(replica: Replica, rng: random.Random) -> None:
    if row := picked(replica, rng):
        row["records"] += 1


DAMAGES: list[Callable[[Replica, random.Random], None]] = [
    bit_rot,
    torn,
    wrong_epoch,
    missing,
    duplicated,
    high_watermark,
    stale_index,
    diverged,
    misplaced,
    wrong_checkpoint,
    miscounted,
]


def damaged(topic: str, rng: random.Random) -> Set:
    made = sound(topic, rng)
    damage = rng.choice(DAMAGES)
    damage(rng.choice(made.replicas), rng)
    made.damage = damage.__name__
    return made


# --- as rows


def rows_of(sets: list[Set]) -> dict[str, list[Row]]:
    """By level: batch, checkpoint, epoch, index, segment."""
    found: dict[str, list[Row]] = {name: [] for name in ("batch", "checkpoint", "epoch", "index", "segment")}
    for replica in (replica for one in sets for replica in one.replicas):
        key = replica.key
        found["batch"] += [{**key, **row, "base_timestamp": None, "max_timestamp": None} for row in replica.batches]
        found["checkpoint"].append(
            {
                **key,
                "high_watermark": replica.high_watermark,
                "recovery_point": 0,
                "log_start_offset": replica.log_start,
                "clean_shutdown": True,
                "log_end_offset": replica.end,
                "cleaned_to": replica.cleaned_to,
            }
        )
        found["epoch"] += [{**key, "leader_epoch": e, "start_offset": at} for e, at in replica.epochs]
        found["index"] += [{**key, **entry} for entry in replica.indexes]
        for at, segment in enumerate(replica.segments):
            counts = {"index_entries": 0, "index_last_offset": 0, "time_index_entries": 0, "producer_snapshot": False}
            is_active = at == len(replica.segments) - 1
            found["segment"].append({**key, "segment": segment, "size": 0, "is_active": is_active, **counts})
    return found
