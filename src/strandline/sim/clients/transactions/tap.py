"""Reads what others have committed, from any position on, for a transaction that depends on it."""

from collections.abc import Generator
from typing import Any

from msgspec.structs import replace

from strandline.history.operation import Kind, Operation, Read
from strandline.sim.clients.client import Route
from strandline.sim.clients.transactions.committed_reader import CommittedReader
from strandline.wire.messages.records.fetch import FetchRequest

BYTES_MAX = 600  # few batches, so that there are many transactions
Taken = tuple[tuple[Read, ...], int]  # what was read, and where to read next


class Tap(CommittedReader):
    """What it reads is recorded with the transaction, and not here."""

    taken: tuple[Read, ...] = ()

    def request(self, route: Route, position: int, rack: str = "") -> FetchRequest:
        asked = super().request(route, position, rack)
        rows = tuple(
            replace(topic, partitions=tuple(replace(row, partition_max_bytes=BYTES_MAX) for row in topic.partitions))
            for topic in asked.topics
        )
        return replace(asked, topics=rows, max_wait_ms=20)

    def record(self, operation: Operation) -> None:
        if operation.kind is Kind.POLL:
            self.taken = operation.reads

    def poll(self, position: int) -> Generator[Any, Any, Taken | None]:
        """One look. None: it must be tried again."""
        if self.route is None:
            self.route = yield from self.find_leader(self.at)
            if self.route is None:
                yield self.pause(20, 100)
                return None
        route, began = self.route, self.stage.now_ms()
        answer = yield self.fetch(route, position)
        if answer is None or answer.error_code or not answer.responses:
            self.route = None
            yield 50
            return None
        data = answer.responses[0].partitions[0]
        if data.error_code:
            self.refused(route, position, data)
            yield 30
            return None
        self.taken = ()
        self.take(route.topic_id, position, data, began)
        return self.taken, self.positions[route.topic_id]
