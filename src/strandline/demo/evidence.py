"""What the demonstration proves, as pure functions: nothing acknowledged is missing, order holds, logs are equal."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from strandline.base.value import Value
from strandline.wire.batch import batches

Place = tuple[int, int]  # partition, offset


class Verdict(Value, frozen=True):
    """`lost`: acknowledged records that are not where they were acknowledged. `misplaced`: read out of order."""

    acknowledged: int
    read: int
    lost: tuple[Place, ...]
    duplicates: int
    misplaced: tuple[Place, ...]

    @property
    def holds(self) -> bool:
        return not self.lost and not self.misplaced and not self.duplicates


def judge(acknowledged: Mapping[Place, int], read: Iterable[tuple[Place, int]]) -> Verdict:
    """Hold what was acknowledged (place → number) against what was read, in the order of reading.

    Numbers of a partition were sent in growing order, so they must be read in growing order, each once.
    """
    found: dict[Place, int] = {}
    newest: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    misplaced: list[Place] = []
    duplicates = 0
    for place, number in read:
        partition = place[0]
        found[place] = number
        if (partition, number) in seen:
            duplicates += 1
        elif number < newest.get(partition, -1):
            misplaced.append(place)
        seen.add((partition, number))
        newest[partition] = max(number, newest.get(partition, -1))
    lost = tuple(sorted(place for place, number in acknowledged.items() if found.get(place) != number))
    return Verdict(len(acknowledged), len(found), lost, duplicates, tuple(misplaced))


class LogDigest(Value, frozen=True):
    """A replica's log from offset 0 on, without a hole, up to `end_offset`."""

    size: int
    end_offset: int
    digest: str


def digest_log(directory: Path, upto: int) -> LogDigest:
    """All batches of a partition's directory that end below or at the offset `upto`, byte for byte.

    It ends at the first hole: what lies behind one does not make a log complete.
    """
    total, end_offset, digest = 0, 0, hashlib.sha256()
    for path in sorted(directory.glob("*.log")):
        content = memoryview(path.read_bytes())
        for header in batches(content):
            if header.next_offset > upto or header.base_offset != end_offset:
                return LogDigest(total, end_offset, digest.hexdigest())
            digest.update(content[header.position : header.end])
            total += header.size
            end_offset = header.next_offset
    return LogDigest(total, end_offset, digest.hexdigest())


def are_logs_equal(replicas: Iterable[LogDigest], high_watermark: int) -> bool:
    """Whole and the same. Logs that are equally short, or equally absent, prove nothing."""
    logs = list(replicas)
    return (
        bool(logs)
        and all(log.end_offset == high_watermark for log in logs)
        and len({(log.size, log.digest) for log in logs}) == 1
    )


def interruption(times: Sequence[float], *, start: float, until: float, end: float) -> float:
    """The longest time without an acknowledgement, of those that touch the span from `start` to `until`.

    One that goes on beyond the span counts whole; one without a further acknowledgement lasts until `end`.
    """
    marks = [*sorted(times), end]
    return max((b - a for a, b in pairwise(marks) if a < until and b > start), default=end - start)
