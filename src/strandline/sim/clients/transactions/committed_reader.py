"""A read_committed consumer: it drops what was aborted, by the list that comes with each answer (KIP-98)."""

from typing import Any

from msgspec.structs import replace

from strandline.base.ids import Uuid
from strandline.sim.clients.client import Route
from strandline.sim.clients.consumer import Consumer
from strandline.wire.batch import BatchHeader
from strandline.wire.control import read_marker
from strandline.wire.messages.records.fetch import FetchRequest

READ_COMMITTED = 1


class CommittedReader(Consumer):
    is_read_committed = True

    def request(self, route: Route, position: int, rack: str = "") -> FetchRequest:
        return replace(super().request(route, position, rack), isolation_level=READ_COMMITTED)

    def end_of(self, data: Any) -> int:
        return int(data.last_stable_offset)

    def take(self, topic_id: Uuid, position: int, data: Any, began: int) -> None:
        """What was aborted is known for each answer anew."""
        self.coming = sorted(data.aborted_transactions or (), key=lambda row: row.first_offset)
        self.aborted: set[int] = set()
        super().take(topic_id, position, data, began)

    def delivers(self, header: BatchHeader, buffer: Any) -> bool:
        while self.coming and self.coming[0].first_offset <= header.last_offset:
            self.aborted.add(self.coming.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(memoryview(buffer)[header.position : header.end])
            if marker is not None and not marker.commits:
                self.aborted.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self.aborted)
