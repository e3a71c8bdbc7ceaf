"""Carries one lane to its topic: reads rows, does what the tracks decide, keeps rows until they are proven to be there.

Nothing is decided here; what the tracks need to know of the cluster comes through an `Outlet`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from strandline.pipeline.errors import DataLoss, PipelineError
from strandline.pipeline.jobs.emit.lane import (
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
from strandline.pipeline.jobs.emit.plan import Lane, Written
from strandline.pipeline.jobs.emit.rows import Chosen, Piece

KEPT_BYTES_MAX = 48 << 20  # of rows that are not proven yet, and of a piece
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
    size: int

    @property
    def end(self) -> int:
        return self.first + self.rows.length


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
        self.kept_bytes = 0
        self.sent_rows = 0

    def run(self, pieces: Iterable[Piece]) -> tuple[Written, ...]:
        """Send all rows that are not there yet; return when each one is. Raises PipelineError if that cannot be."""
        for partition, rows in pieces:
            self.take(partition, rows)
            while self.kept_bytes > KEPT_BYTES_MAX:
                self.hear()
        while any(not track.is_settled for track in self.tracks.values()):
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
                part = rows.part(first, count)
                self.kept[partition].append(Kept(begin, part, part.size))
                self.kept_bytes += part.size
            self.tell(partition, Offered(count))

    def hear(self) -> None:
        for partition, answer in self.outlet.answers():
            self.tell(partition, answer)

    def tell(self, partition: int, event: Event) -> None:
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
                self.sent_rows += count
            case Search(offset, leader_epoch, wait_ms):
                self.sleep(wait_ms / 1000)
                track = self.tracks[partition]
                return [d for found in self.outlet.search(partition, offset, leader_epoch) for d in track.step(found)]
            case Fail(problem, advice, lost):
                kind = DataLoss if lost else PipelineError
                raise kind(f"lane {self.lane.number}, {self.topic}-{partition}: {problem}", advice)
        return []

    def rows_of(self, partition: int, first: int, count: int) -> Chosen:
        """Spans are never joined, so what is sent lies in one piece."""
        for kept in self.kept[partition]:
            if kept.first <= first < kept.end:
                assert first + count <= kept.end
                return kept.rows.part(first - kept.first, count)
        raise AssertionError(f"row {first} is kept no longer")

    def forget_written(self, partition: int) -> None:
        kept, written = self.kept[partition], self.tracks[partition].written
        while kept and kept[0].end <= written:
            self.kept_bytes -= kept.popleft().size
