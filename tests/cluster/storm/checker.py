"""The judgement of a storm: what clients were told, against what is in the log. Nothing but the standard library.

- each acknowledged record is in its partition exactly once, with the content that was sent, at the offset that the
  acknowledgement named, if it named one
- an unacknowledged record is there at most once, and nothing is there that nobody sent
- in each partition the records of one producer are in the order in which it sent them
- what a consumer was shown at an offset is what the log has there
- committed offsets never move back: no read, and no commit that a member began later, is below what was committed
  before it began
- all replicas of a partition are equal

It knows no durations: only what began after something else had ended.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

NO_OFFSET = -1
CONTRADICTED = b""  # what no value's hash is
EXAMPLES_MAX = 5  # of each kind of anomaly
PADDING_MAX = 200


def value_of(seed: int, producer: str, partition: int, sequence: int) -> bytes:
    """What the record with this name says: all that follows from its name, and a hash of that."""
    head = f"{producer} {partition} {sequence} "
    padding = "x" * Random(f"{seed} {head}").randrange(PADDING_MAX)
    return f"{head}{hash_of(f'{seed} {head}{padding}')} {padding}".encode()


def hash_of(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


def name_in(value: bytes) -> tuple[str, int, int] | None:
    """Whose record it says that it is: the producer, the partition, the sequence."""
    try:
        producer, partition, sequence, _ = value.decode().split(" ", 3)
        return producer, int(partition), int(sequence)
    except ValueError:
        return None


@dataclass
class Sent:
    """What one producer sent to one partition. Sequences count from 0."""

    count: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)  # sequence: offset, or NO_OFFSET


@dataclass(frozen=True)
class Committed:
    """An offset that was acknowledged to a member, or that somebody read. `began` and `ended`: on one clock."""

    began: float
    ended: float
    offset: int
    who: str
    is_read: bool = False


@dataclass
class Evidence:
    seed: int
    sent: dict[tuple[str, int], Sent] = field(default_factory=dict)  # by producer and partition
    log: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)  # by partition: offsets and values, in order
    shown: dict[int, dict[int, bytes]] = field(default_factory=dict)  # by partition and offset: a hash of the value
    commits: dict[int, list[Committed]] = field(default_factory=dict)  # by partition
    replicas: dict[str, dict[str, str]] = field(default_factory=dict)  # by partition's name and node: a digest
    epochs: dict[int, dict[int, int]] = field(default_factory=dict)  # by partition and offset: the producer epoch
    sent_anew: int = 0  # records that are there once more, in a later producer epoch
    sent_anew_without_offset: int = 0  # of those, the ones whose acknowledgement names neither of the two

    def is_sent_anew(self, partition: int, first: int, second: int) -> bool:
        epochs = self.epochs.get(partition, {})
        return first in epochs and second in epochs and epochs[first] < epochs[second]

    def show(self, partition: int, offset: int, value: bytes) -> None:
        """A consumer was shown this; one that is shown something else there later must not be."""
        seen = digest(value)
        if self.shown.setdefault(partition, {}).setdefault(offset, seen) != seen:
            self.shown[partition][offset] = CONTRADICTED


class Anomalies:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []

    def add(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= EXAMPLES_MAX:
            self.examples.append(f"{kind}: {what}")


def judge(evidence: Evidence) -> Anomalies:
    found = Anomalies()
    places: dict[tuple[str, int], dict[int, int]] = {}
    for partition, records in sorted(evidence.log.items()):
        walk(evidence, partition, records, places, found)
    for (producer, partition), sent in sorted(evidence.sent.items()):
        look_up(producer, partition, sent, places.get((producer, partition), {}), found)
    for partition, shown in sorted(evidence.shown.items()):
        compare_shown(partition, shown, dict(evidence.log.get(partition, ())), found)
    for partition, commits in sorted(evidence.commits.items()):
        look_back(partition, commits, found)
    for name, digests in sorted(evidence.replicas.items()):
        if len(set(digests.values())) > 1:
            found.add("replicas differ", f"{name}: {digests}")
    return found


def walk(
    evidence: Evidence,
    partition: int,
    records: Iterable[tuple[int, bytes]],
    places: dict[tuple[str, int], dict[int, int]],
    found: Anomalies,
) -> None:
    """A partition from its beginning. `places`: where each record lies, for its first time."""
    last_offset = -1
    for offset, value in records:
        if offset <= last_offset:
            found.add("offsets go back", f"{partition}: {offset} follows {last_offset}")
        last_offset = offset
        name = name_in(value)
        sent = None if name is None else evidence.sent.get((name[0], partition))
        if name is None or sent is None or name[1] != partition or not 0 <= name[2] < sent.count:
            found.add("nobody sent it", f"partition {partition}, offset {offset}: {value[:60]!r}")
            continue
        producer, _, sequence = name
        if value != value_of(evidence.seed, producer, partition, sequence):
            found.add("content", f"partition {partition}, offset {offset}: {value[:60]!r} is not what was sent")
        mine = places.setdefault((producer, partition), {})
        if sequence in mine:
            if evidence.is_sent_anew(partition, mine[sequence], offset):
                evidence.sent_anew += 1
                evidence.sent_anew_without_offset += sent.acknowledged.get(sequence) == NO_OFFSET
                mine[sequence] = offset
            else:
                found.add("twice", f"{producer} {partition} {sequence} is at offsets {mine[sequence]} and {offset}")
            continue
        latest = next(reversed(mine), -1)
        if sequence < latest:
            found.add("out of order", f"{producer} {partition}: {sequence} at offset {offset} follows {latest}")
        mine[sequence] = offset


def look_up(producer: str, partition: int, sent: Sent, places: Mapping[int, int], found: Anomalies) -> None:
    for sequence, offset in sent.acknowledged.items():
        what = f"{producer} {partition} {sequence}, acknowledged at offset {offset}"
        if sequence not in places:
            found.add("lost" if offset != NO_OFFSET else "lost, acknowledged without an offset", what)
        elif offset not in (NO_OFFSET, places[sequence]):
            found.add("another offset", f"{what}, is at {places[sequence]}")


def compare_shown(partition: int, shown: Mapping[int, bytes], log: Mapping[int, bytes], found: Anomalies) -> None:
    for offset, seen in shown.items():
        value = log.get(offset)
        if value is None or digest(value) != seen:
            found.add("shown and gone", f"partition {partition}, offset {offset}: a consumer was shown something else")


def look_back(partition: int, commits: Sequence[Committed], found: Anomalies) -> None:
    """Each against the largest offset that was known to be committed when it began."""
    ends = sorted(commits, key=lambda one: one.ended)
    at, floor = 0, -1
    for one in sorted(commits, key=lambda one: one.began):
        while at < len(ends) and ends[at].ended < one.began:
            floor = max(floor, ends[at].offset)
            at += 1
        if one.offset < floor:
            did = "read" if one.is_read else "committed"
            found.add("committed offset back", f"partition {partition}: {one.who} {did} {one.offset} after {floor}")


def digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=8).digest()


def figures(evidence: Evidence) -> dict[str, int]:
    offsets = [offset for sent in evidence.sent.values() for offset in sent.acknowledged.values()]
    return {
        "sent": sum(sent.count for sent in evidence.sent.values()),
        "acknowledged": len(offsets),
        "acknowledged without an offset": offsets.count(NO_OFFSET),
        "sent again in a later producer epoch": evidence.sent_anew,
        "sent again, and acknowledged without an offset": evidence.sent_anew_without_offset,
        "in the log": sum(len(records) for records in evidence.log.values()),
        "shown to consumers": sum(len(shown) for shown in evidence.shown.values()),
        "commits and reads of commits": sum(len(commits) for commits in evidence.commits.values()),
    }
