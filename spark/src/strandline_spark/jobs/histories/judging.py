"""Parts, sorted by key and within a key by index, in; a row per anomaly and one per key out. One key is in memory at a
time. The checks and what is tolerated are those of `history`."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from strandline.base.ids import uuid_text
from strandline.base.time import NEVER
from strandline.base.value import Value
from strandline.history.anomaly import EVIDENCE_MAX, Anomaly, shown
from strandline.history.judge import anomalies
from strandline.history.operation import Key, Operation
from strandline.history.policy import why_tolerated
from strandline.history.recorded import Known
from strandline.history.view import View
from strandline_spark.jobs.histories.parts import (
    KNOWN,
    NO_INDEX,
    OPERATION,
    UNREADABLE,
    Part,
    known_decoder,
    operation_decoder,
)

PROBLEMS_MAX = 20  # of one key that are listed


class Judged(Value, frozen=True):
    """`schemas.HISTORY_JUDGED` says the same to Spark. With a `name` it is an anomaly, with a `problem` something that
    could not be judged, else a key, and how much there was of it."""

    run: str
    topic: str
    topic_id: str
    partition: int
    name: str | None = None
    tolerated: str | None = None  # why; null: it is a violation
    text: str | None = None
    offsets: tuple[int, ...] | None = None
    values: tuple[bytes, ...] | None = None
    writers: tuple[str, ...] | None = None
    readers: tuple[str, ...] | None = None
    was_committed: bool | None = None
    proved_ms: int | None = None  # null: not before the end
    operations: int | None = None
    writes: int | None = None
    reads: int | None = None
    problem: str | None = None
    lines: int | None = None  # that have the problem


def judge_parts(parts: Iterable[Part]) -> Iterator[Judged]:
    for (run, topic, topic_id, partition), own in groupby(parts, place):
        if topic_id:
            yield from OfKey(run, Key(topic, topic_id, partition)).judged(own)  # type: ignore[arg-type]  # rows of Arrow have no types
        else:
            yield from unreadable(run, own)


def place(part: Part) -> tuple[str, str, bytes, int]:
    return part.run, part.topic, part.topic_id, part.partition


def unreadable(run: str, parts: Iterable[Part]) -> Iterator[Judged]:
    for part in parts:
        assert part.role == UNREADABLE
        yield Judged(run, "", "", -1, problem=part.content.decode(), lines=part.index)


class OfKey:
    """One key of one run."""

    def __init__(self, run: str, key: Key) -> None:
        self.run = run
        self.key = key
        self.known = Known(key, run)
        self.operations = self.writes = self.reads = 0
        self.problems: list[str] = []
        self.problem_count = 0

    def judged(self, parts: Iterable[Part]) -> Iterator[Judged]:
        # The view takes operations as they come; what is known of the key came before them.
        following = self.read(parts)
        first = next(following, None)
        if first is not None:
            view = View(self.key, chained(first, following), self.known.trimmed, self.known.final)
            facts = self.known.facts
            for anomaly in anomalies(view):
                yield self.row(anomaly, why_tolerated(anomaly, facts))
        for problem in self.problems:
            yield self.about(problem=problem, lines=1)
        if self.problem_count > PROBLEMS_MAX:
            yield self.about(problem="and more of the same kind", lines=self.problem_count - PROBLEMS_MAX)
        if first is not None:
            yield self.about(operations=self.operations, writes=self.writes, reads=self.reads)

    def read(self, parts: Iterable[Part]) -> Iterator[Operation]:
        last = NO_INDEX
        is_known = False
        for part in parts:
            if part.role == KNOWN:
                known = known_decoder.decode(part.content)
                if is_known and known != self.known:
                    self.blame("two lines contradict each other about this key")
                self.known, is_known = known, True
                continue
            operation = operation_decoder.decode(part.content)
            if part.role == OPERATION:
                if part.index == last:
                    self.blame(f"two operations have the index {last}: was the file given twice?")
                    continue
                last = part.index
                self.operations += 1
                self.writes += len(operation.writes)
                self.reads += len(operation.reads)
            yield operation

    def blame(self, problem: str) -> None:
        self.problem_count += 1
        if self.problem_count <= PROBLEMS_MAX:
            self.problems.append(problem)

    def about(self, **fields: object) -> Judged:
        return Judged(self.run, self.key.topic, uuid_text(self.key.topic_id), self.key.partition, **fields)  # type: ignore[arg-type]  # fields by name

    def row(self, anomaly: Anomaly, why: str | None) -> Judged:
        return self.about(
            name=anomaly.name,
            tolerated=why,
            text=anomaly.text,
            offsets=anomaly.offsets,
            values=anomaly.values,
            writers=evidence(anomaly.writers),
            readers=evidence(anomaly.readers),
            was_committed=anomaly.was_committed,
            proved_ms=None if anomaly.proved_ms == NEVER else anomaly.proved_ms,
        )


def evidence(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    return tuple(shown(operation) for operation in operations[:EVIDENCE_MAX])


def chained(first: Operation, following: Iterator[Operation]) -> Iterator[Operation]:
    yield first
    yield from following
