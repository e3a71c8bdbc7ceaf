"""One sample: how far one reader is in one partition at one time; and how samples are kept in a file.

Lag is the number of offsets between the position and the end of what may be read: the high watermark, or, with
isolation read_committed, the last stable offset. Compaction and transaction markers take offsets without a record, so
it is what is left at most. What was deleted before it was read is not lag but `expired`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import DecodeError, ValidationError, json

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError

LINE_MAX = 64 << 10  # bytes of one sample: names of topics and groups are bounded
BEGIN = b'{"time_ms":'  # of each line
GROUP, QUERY, TOPIC = "group", "query", "topic"


class Ends(Value, frozen=True):
    """Where a partition begins, and where its readable records end."""

    log_start_offset: int
    end_offset: int


class Sample(Value, frozen=True, omit_defaults=True):
    """`kind` topic has no reader: it says what was written. None: not known, or nothing was committed yet."""

    time_ms: int
    kind: str
    reader: str  # the group's or query's name; empty for kind topic
    topic: str
    partition: int
    log_start_offset: int
    end_offset: int
    position: int | None = None
    lag: int | None = None
    expired: int | None = None  # offsets that were deleted before they were read
    delay_ms: int | None = None  # age of the next record to be read, by its timestamp; 0 if there is none
    batch: int | None = None  # of a query: its last committed batch


def sampled(
    time_ms: int, kind: str, reader: str, topic: str, partition: int, ends: Ends, position: int | None
) -> Sample:
    start, end = ends.log_start_offset, ends.end_offset
    if position is None:
        return Sample(time_ms, kind, reader, topic, partition, start, end)
    return Sample(
        time_ms,
        kind,
        reader,
        topic,
        partition,
        start,
        end,
        position,
        lag=max(0, end - max(position, start)),
        expired=max(0, start - position),
    )


def delay_of(time_ms: int, next_timestamp_ms: int | None, lag: int) -> int | None:
    """How old the next record is: what is read now was written so long ago."""
    if lag == 0:
        return 0
    if next_timestamp_ms is None or next_timestamp_ms < 0:
        return None
    return max(0, time_ms - next_timestamp_ms)


def append(path: Path, samples: Sequence[Sample]) -> None:
    """JSON lines, at the end of the file; behind the last whole line, if a run was killed while it wrote one.

    Raises StrandlineError, with nothing changed, if the last line is half of something else."""
    with open(path, "a+b") as file:
        size = file.seek(0, os.SEEK_END)
        tail_at = max(0, size - LINE_MAX)
        file.seek(tail_at)
        tail = file.read()
        if tail and not tail.endswith(b"\n"):
            whole = tail.rfind(b"\n") + 1
            torn = tail[whole : whole + len(BEGIN)]
            if not BEGIN.startswith(torn):
                raise StrandlineError(f"{path} is not a file of samples, so none can be appended", "name a new file")
            file.truncate(tail_at + whole)
        file.write(b"".join(json.encode(sample) + b"\n" for sample in samples))


def read(path: Path) -> Iterator[Sample]:
    """Samples as they were appended. A last line that is not whole, of a run that was killed, is passed over.

    Raises StrandlineError if the file holds something else.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.decode(line, type=Sample)
            except (DecodeError, ValidationError) as error:
                if not line.endswith(b"\n"):
                    return
                problem = f"{path}, line {number}, is not a sample of lag: {error}"
                raise StrandlineError(problem, "name a file that `lag --file` wrote") from None


class Rate(Value, frozen=True):
    """Records a second between two samples; None where there are not two."""

    written: float | None
    read: float | None


def rate(before: Sample | None, after: Sample) -> Rate:
    """What moved since the sample before. A position or an end that fell (a reset, a truncation) has no rate."""
    if before is None or after.time_ms <= before.time_ms:
        return Rate(None, None)
    seconds = (after.time_ms - before.time_ms) / 1000
    return Rate(moved(before.end_offset, after.end_offset, seconds), moved(before.position, after.position, seconds))


def moved(before: int | None, after: int | None, seconds: float) -> float | None:
    if before is None or after is None or after < before:
        return None
    return (after - before) / seconds


def by_reader(samples: Iterable[Sample]) -> dict[tuple[str, str, str], list[Sample]]:
    """Samples of one time, by (kind, reader, topic), each in the order of partitions."""
    found: dict[tuple[str, str, str], list[Sample]] = {}
    for sample in sorted(samples, key=lambda s: (s.kind, s.reader, s.topic, s.partition)):
        found.setdefault((sample.kind, sample.reader, sample.topic), []).append(sample)
    return found
