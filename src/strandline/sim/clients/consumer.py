"""A consumer of one partition, from its beginning, without a group."""

from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.history.operation import Kind as Action
from strandline.history.operation import Operation, Outcome, Read
from strandline.sim.clients.client import Client, Life, Request, Route, Stage, key_of
from strandline.wire.batch import BatchHeader, batches, why_invalid
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.record import records

E = ErrorCode
PATIENCE = 3  # empty answers at the end, before a reader believes that this is the end


class Consumer(Client):
    """It checks every batch, as consumers do (check.crcs), and never delivers one that is damaged."""

    is_read_committed = False

    def __init__(self, stage: Stage, name: str, at: TopicPartition) -> None:
        super().__init__(stage, name)
        self.at = at
        self.positions: dict[Uuid, int] = {}
        self.read = 0
        self.idle = 0  # how many answers in a row said that there is no more
        self.damaged = 0
        self.route: Route | None = None

    def live(self) -> Life:
        while not self.is_stopped or self.idle < PATIENCE:
            if self.route is None:
                self.route = yield from self.find_leader(self.at)
                if self.route is None:
                    yield self.pause(20, 100)
                    continue
            route = self.route
            if route.topic_id not in self.positions:
                self.seek(route.topic_id, 0)
            began, position = self.stage.now_ms(), self.positions[route.topic_id]
            answer = yield self.fetch(route, position)
            if answer is None or answer.error_code or not answer.responses:
                self.route = None
                yield 50
                continue
            data = answer.responses[0].partitions[0]
            if data.error_code:
                self.refused(route, position, data)
                yield 30
                continue
            if data.preferred_read_replica >= 0:
                self.sent_to(data.preferred_read_replica)
                continue
            self.take(route.topic_id, position, data, began)
            if self.positions[route.topic_id] >= self.end_of(data):
                self.idle += 1
            if self.damaged and position == self.positions[route.topic_id]:
                yield 200  # the broker's disk must be mended first
        self.report(f"has read {self.read} records")

    def fetch(self, route: Route, position: int) -> Request:
        return Request(route.leader, self.request(route, position), 15, 2000)

    def request(self, route: Route, position: int, rack: str = "") -> FetchRequest:
        row = FetchPartition(
            partition=self.at.partition,
            current_leader_epoch=route.leader_epoch,
            fetch_offset=position,
            partition_max_bytes=1 << 16,
        )
        topics = (FetchTopic(topic_id=route.topic_id, partitions=(row,)),)
        wait = 20 if self.is_stopped else 200  # only to see that this is the end
        return FetchRequest(max_wait_ms=wait, min_bytes=1, topics=topics, rack_id=rack)

    def sent_to(self, node: int) -> None:
        raise AssertionError("only who tells its rack is sent elsewhere")

    def refused(self, route: Route, position: int, data: Any) -> None:
        self.idle = 0
        self.route = None
        if E(data.error_code) is E.OFFSET_OUT_OF_RANGE:
            # Behind the log's start: its records were deleted. Beyond its end: they are lost.
            if data.log_start_offset <= position:
                at = TopicIdPartition(route.topic_id, self.at.partition)
                self.stage.suspect(at, f"{self.name} has read up to {position} and is told that this is out of range")
            self.seek(route.topic_id, max(data.log_start_offset, 0))

    def seek(self, topic_id: Uuid, offset: int) -> None:
        self.positions[topic_id] = offset
        now = self.stage.now_ms()
        self.record(Operation(process=self.name, kind=Action.ASSIGN, began_ms=now, ended_ms=now, outcome=Outcome.OK))

    def end_of(self, data: Any) -> int:
        """Behind everything that it may read."""
        return int(data.high_watermark)

    def delivers(self, header: BatchHeader, buffer: Any) -> bool:
        """Is this batch for the user? Called in order, for all of an answer."""
        return True

    def take(self, topic_id: Uuid, position: int, data: Any, began: int) -> None:
        key = key_of(self.at, topic_id)
        reads = []
        view = memoryview(data.records or b"")
        for header in batches(view):
            why = why_invalid(header, view)
            if why is not None:
                self.damaged += 1
                self.report(f"finds a damaged batch at {header.base_offset}: {why}")
                break
            for record in records(header, view) if self.delivers(header, view) else ():
                if record.offset >= position:
                    reads.append(Read(key, record.offset, bytes(record.value or b"")))
            position = max(position, header.next_offset)
        self.positions[topic_id] = position
        if not reads:
            return
        self.idle = 0
        self.read += len(reads)
        self.record(
            Operation(
                process=self.name,
                kind=Action.POLL,
                began_ms=began,
                ended_ms=self.stage.now_ms(),
                outcome=Outcome.OK,
                reads=tuple(reads),
                is_read_committed=self.is_read_committed,
            )
        )
        self.stage.consumed(TopicIdPartition(topic_id, self.at.partition), reads[-1].offset + 1)
