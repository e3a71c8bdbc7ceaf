"""A consumer with a fetch session for the partitions of several topics (KIP-227): it names only what changed.

Nothing is recorded of what it reads: `laws/clients/permissions.py` looks at what it is answered. What it did not name
in a request is answered by the rights of that time, not by those of when the session began.
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.ids import TopicPartition, Uuid
from strandline.sim.clients.client import Client, Life, Request, Stage
from strandline.wire.batch import batches
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

VERSION = 15
WAIT_MS = 20  # shorter than the pause between two batches: most answers are empty, and name nothing
FULL, NO_SESSION = 0, 0
EPOCH_MAX = 0x7FFF_FFFF
Where = tuple[Uuid, int]


class Sessioned(Client):
    def __init__(self, stage: Stage, name: str, ats: Sequence[TopicPartition]) -> None:
        super().__init__(stage, name)
        self.ats = tuple(ats)
        self.positions: dict[Where, int] = {}
        self.read = 0  # answers of a session that had something in them

    def live(self) -> Life:
        while not self.is_stopped:
            places = yield from self.find_places()
            if not places:
                yield self.pause(20, 100)
                continue
            leader = self.rng.choice(sorted(places, key=str))
            yield from self.follow(leader, places[leader])
        self.report(f"was answered {self.read} times in sessions")

    def find_places(self) -> Generator[Any, Any, dict[Endpoint, list[Where]]]:
        places: dict[Endpoint, list[Where]] = {}
        for at in self.ats:
            route = yield from self.find_leader(at)
            if route is not None:
                places.setdefault(route.leader, []).append((route.topic_id, at.partition))
        return places

    def follow(self, leader: Endpoint, wheres: Sequence[Where]) -> Life:
        """One session, until it is over, or something is refused."""
        session_id, epoch, named = NO_SESSION, FULL, list(wheres)
        while not self.is_stopped:
            answer = yield Request(leader, self.request(session_id, epoch, named), VERSION, 2000)
            if answer is None or answer.error_code or (answer.session_id == NO_SESSION):
                yield self.pause(20, 100)
                return
            session_id, epoch, named = answer.session_id, 1 if epoch == EPOCH_MAX else epoch + 1, []
            self.read += bool(answer.responses)
            for topic in answer.responses:
                for row in topic.partitions:
                    if row.error_code:
                        yield self.pause(20, 100)
                        return
                    if self.take((topic.topic_id, row.partition_index), row):
                        named.append((topic.topic_id, row.partition_index))
            yield self.pause(1, 60)

    def request(self, session_id: int, epoch: int, named: Sequence[Where]) -> FetchRequest:
        by_topic: dict[Uuid, list[FetchPartition]] = {}
        for topic_id, index in named:
            offset = self.positions.setdefault((topic_id, index), 0)
            row = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 16)
            by_topic.setdefault(topic_id, []).append(row)
        topics = tuple(FetchTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in by_topic.items())
        return FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics)

    def take(self, where: Where, row: Any) -> bool:
        """Is its position another one now?"""
        before = self.positions[where]
        after = max([before, *(header.next_offset for header in batches(memoryview(row.records or b"")))])
        self.positions[where] = after
        return after > before
