"""Consumers that do not read from the leader if somebody is closer (KIP-392), and one that reads from anybody."""

from collections.abc import Generator
from typing import Any

from strandline.base.ids import TopicPartition
from strandline.sim.clients.client import Request, Route, Stage
from strandline.sim.clients.consumer import Consumer

FAITHFUL = 40  # answers from one replica, on average, before the leader is asked again (metadata.max.age.ms)


class Nearby(Consumer):
    """It sends the leader its rack, goes where that sends it, and back to the leader when it is rejected there."""

    def __init__(self, stage: Stage, name: str, at: TopicPartition) -> None:
        super().__init__(stage, name, at)
        self.rack = ""
        self.closer: int | None = None
        self.from_others = 0  # how many answers with records were not the leader's

    def find_leader(self, at: TopicPartition) -> Generator[Any, Any, Route | None]:
        self.closer = None
        route = yield from super().find_leader(at)
        if not self.rack and self.racks:
            self.rack = self.rng.choice(self.racks)
        return route

    def fetch(self, route: Route, position: int) -> Request:
        message = self.request(route, position, self.rack)
        to = route.leader if self.closer is None else self.endpoints[self.closer]
        return Request(to, message, 15, 2000)

    def sent_to(self, node: int) -> None:
        if node in self.endpoints:
            self.closer = node
        else:
            self.route = None  # Metadata must say first where that is

    def refused(self, route: Route, position: int, data: Any) -> None:
        if self.closer is None:
            super().refused(route, position, data)
        else:
            self.closer = None  # the leader knows better; also what is out of range elsewhere may be there
            self.idle = 0

    def take(self, topic_id: Any, position: int, data: Any, began: int) -> None:
        if self.closer is not None and len(data.records or b""):
            self.from_others += 1
        super().take(topic_id, position, data, began)
        if self.rng.randrange(FAITHFUL) == 0:
            self.closer = None


class Roamer(Nearby):
    """It asks any broker, in sync or not, a replica or not."""

    def find_leader(self, at: TopicPartition) -> Generator[Any, Any, Route | None]:
        route = yield from super().find_leader(at)
        self.roam()
        return route

    def take(self, topic_id: Any, position: int, data: Any, began: int) -> None:
        super().take(topic_id, position, data, began)
        if self.rng.randrange(3) == 0:
            self.roam()

    def roam(self) -> None:
        self.closer = self.rng.choice([None, *self.endpoints])
