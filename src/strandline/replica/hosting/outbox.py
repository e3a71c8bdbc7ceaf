"""What a broker asks of the controller for its replicas, by one API: one request under way at a time, and a pause
before the next one where it came to nothing.

What waits is its owner's, and so is what an answer says; a request that is over must be taken back, answered or not.
"""

from typing import Any, Generic, TypeVar

from strandline.base.effects import Effect, ToController
from strandline.base.ids import TopicIdPartition
from strandline.base.time import Instant
from strandline.base.timers import Alarm
from strandline.replica.hosting.host import Host
from strandline.replica.tokens import AssignmentSent, IsrChangeSent

What = TypeVar("What")  # is said of a partition


class Outbox(Generic[What]):
    def __init__(self, host: Host, token: type[AssignmentSent | IsrChangeSent], version: int) -> None:
        self.host = host
        self.token = token
        self.version = version
        self.sequence = 0
        self.is_in_flight = False
        self.asked: dict[TopicIdPartition, What] = {}  # in the request under way
        self.pause = Alarm(host.timers, lambda _: [])  # `Replicas` flushes after every step

    @property
    def is_free(self) -> bool:
        return not self.is_in_flight and self.pause.done

    def ask(self, request: Any, asked: dict[TopicIdPartition, What]) -> list[Effect]:
        assert not self.is_in_flight
        assert self.pause.done
        assert asked
        self.is_in_flight = True
        self.asked = asked
        self.sequence += 1
        timeout_ms = self.host.config.alter_partition_timeout_ms
        return [ToController(request, self.version, timeout_ms, self.token(self.sequence))]

    def take(self) -> dict[TopicIdPartition, What]:
        """The request is over: what it was about."""
        assert self.is_in_flight
        self.is_in_flight = False
        asked, self.asked = self.asked, {}
        return asked

    def check(self) -> None:
        assert self.is_in_flight or not self.asked
        assert self.pause.done or not self.is_in_flight, "nothing is asked in a pause"

    def back_off(self, now: Instant) -> None:
        assert not self.is_in_flight, "the pause is before the next request"
        self.pause.set(now + self.host.config.alter_partition_retry_ms)
