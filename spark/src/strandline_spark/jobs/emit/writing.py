"""Carries one lane to its topic: reads rows, does what the tracks decide, keeps rows until they are proven to be there.

Nothing is decided here; what the tracks need to know of the cluster comes through an `Outlet`.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from strandline_spark.errors import DataLoss, StrandlineError
from strandline_spark.jobs.emit.lane import (
    Acknowledged,
    Decision,
    Event,
    Fail,
    Found,
    Offered,
    Refused,
    Search,
    Searched,
    Send,
    Track,
)
from strandline_spark.jobs.emit.plan import Lane, Written
from strandline_spark.jobs.emit.staged.rows import Chosen, Piece, memory_of
from strandline_spark.sink.layout import Rows

HELD_BYTES_MAX = 48 << 20  # of pieces with rows that are not proven yet; where there are more, none is added
Encode = Callable[[Chosen, int], Any]  # rows and the first one's sequence -> a record batch


class Outlet(Protocol):
    """The topic, as one lane sees it."""

    def send(self, partition: int, first: int, count: int, sequence: int, batch: Any) -> None:
        """Send the batch of rows `first` … to the leader; its answer comes from `answers`."""

    def answers(self) -> Iterable[tuple[int, Acknowledged | Refused]]:
        """At least one answer, waited for, by partition. Something is under way."""

    def search(self, partition: int, offset: int, leader_epoch: int) -> Iterable[Found | Searched]:
        """This lane's batches from `offset` on; at the end, Searched. Raises DataLoss if the log has lost `offset`."""


class Kept(NamedTuple):
    first: int
    rows: Chosen

    @property
    def end(self) -> int:
        return self.first + self.rows.length


class Held:
    """Pieces in memory: each of them all of it, as long as anything of it is kept."""

    def __init__(self) -> None:
        self.kept: Counter[int] = Counter()  # by the piece's id, which is its own as long as it is held
        self.bytes = 0

    def has(self, piece: Rows) -> bool:
        return id(piece) in self.kept

    def keep(self, piece: Rows) -> None:
        if not self.has(piece):
            self.bytes += memory_of(piece)
        self.kept[id(piece)] += 1

    def let_go(self, piece: Rows) -> None:
        self.kept[id(piece)] -= 1
        if not self.kept[id(piece)]:
            del self.kept[id(piece)]
            self.bytes -= memory_of(piece)


class Writing:
    def __init__(
        self,
        lane: Lane,
        tracks: Mapping[int, Track],
        outlet: Outlet,
        encode: Encode,
        *,
        topic: str,
        batch_bytes: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.lane = lane
        self.tracks = tracks
        self.outlet = outlet
        self.encode = encode
        self.topic = topic
        self.batch_bytes = batch_bytes
        self.sleep = sleep
        self.kept: dict[int, deque[Kept]] = {partition: deque() for partition in tracks}
        self.held = Held()

    def run(self, pieces: Iterable[Piece]) -> tuple[Written, ...]:
        """Send all rows that are not there yet; return when each one is. Raises StrandlineError if that cannot be."""
        for partition, rows in pieces:
            while self.held.bytes > HELD_BYTES_MAX and not self.held.has(rows.rows):
                self.hear()
            self.take(partition, rows)
        while any(not track.is_finished for track in self.tracks.values()):
            self.hear()
        return tuple(
            Written(self.lane.number, partition, track.offered, track.end_offset, track.leader_epoch)
            for partition, track in sorted(self.tracks.items())
            if track.offered
        )

    def take(self, partition: int, rows: Chosen) -> None:
        track = self.tracks[partition]
        for first, count in rows.cuts(self.batch_bytes):
            begin, end = track.offered, track.offered + count
            if end > track.written:
                self.kept[partition].append(Kept(begin, rows.part(first, count)))
                self.held.keep(rows.rows)
            self.notify(partition, Offered(count))

    def hear(self) -> None:
        for partition, answer in self.outlet.answers():
            self.notify(partition, answer)

    def notify(self, partition: int, event: Event) -> None:
        """One event, and all that follows from it at once."""
        todo = deque(self.tracks[partition].step(event))
        while todo:
            todo.extend(self.perform(partition, todo.popleft()))
        self.forget_written(partition)

    def perform(self, partition: int, decision: Decision) -> list[Decision]:
        match decision:
            case Send(first, count, sequence):
                batch = self.encode(self.rows_of(partition, first, count), sequence)
                self.outlet.send(partition, first, count, sequence, batch)
            case Search(offset, leader_epoch, wait_ms):
                self.sleep(wait_ms / 1000)
                track = self.tracks[partition]
                return [d for found in self.outlet.search(partition, offset, leader_epoch) for d in track.step(found)]
            case Fail(problem, advice, lost):
                kind = DataLoss if lost else StrandlineError
                raise kind(f"lane {self.lane.number}, {self.topic}-{partition}: {problem}", advice)
        return []

    def rows_of(self, partition: int, first: int, count: int) -> Chosen:
        """Spans are never joined, so what is sent lies in one piece."""
        for kept in self.kept[partition]:
            if kept.first <= first < kept.end:
                assert first + count <= kept.end
                return kept.rows.part(first - kept.first, count)
        raise AssertionError(f"row {first} is not kept any more")

    def forget_written(self, partition: int) -> None:
        kept, written = self.kept[partition], self.tracks[partition].written
        while kept and kept[0].end <= written:
            self.held.let_go(kept.popleft().rows.rows)
