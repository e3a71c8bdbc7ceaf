"""A `Telemetry` with a library that says what a test wants, and clients that ask it and push to it."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from strandline.base.effects import Caller, Effect, Received, Reply, ReplyTo
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.base.time import Instant
from strandline.broker.telemetry.pushed import Point
from strandline.broker.telemetry.telemetry import Telemetry, Undecodable
from strandline.metadata.image import Image
from strandline.metadata.records import CLIENT_METRICS_RESOURCE, ConfigRecord
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.telemetry.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from strandline.wire.messages.telemetry.push_telemetry import PushTelemetryRequest

MAX_BYTES = 1000
BROKEN = b"broken"
LATENCY = "org.apache.kafka.producer.request.latency.avg"


class Library:
    """Every payload but BROKEN has `said`."""

    def __init__(self) -> None:
        self.said: Sequence[Point] = (Point(LATENCY, (), 1.5, False, False),)
        self.decoded: list[bytes] = []
        self.prepared = 0

    def prepare(self) -> None:
        self.prepared += 1

    def points(self, data: bytes, items_max: int) -> Sequence[Point]:
        if data == BROKEN:
            raise Undecodable("it is broken")
        self.decoded.append(data)
        return self.said[:items_max]


class World:
    def __init__(self) -> None:
        self.library = Library()
        self.telemetry = Telemetry(MAX_BYTES, Random(1), lambda: 0)
        self.telemetry.decoder = self.library
        self.image = Image()
        self.now = 1_000_000

    def subscribe(self, name: str, settings: Mapping[str, str | None]) -> list[Effect]:
        for key, value in settings.items():
            record = ConfigRecord(resource_type=CLIENT_METRICS_RESOURCE, resource_name=name, name=key, value=value)
            self.image.apply(record)
        return self.telemetry.apply(self.image, self.image.take_delta())

    def answer(self, message: Any, connection: int, client_id: str = "app") -> Any:
        to = ReplyTo(connection, 0, 0, type(message).api_key, 0)
        received = Received(to, Caller(client_id, "10.0.0.7", "PLAINTEXT", port=4711), message)
        if isinstance(message, ApiVersionsRequest):
            self.telemetry.introduced(received)
            return None
        (reply,) = self.telemetry.answer(received, Instant(self.now))
        assert isinstance(reply, Reply)
        self.telemetry.check()
        return reply.message

    def pass_ms(self, ms: int) -> None:
        """With the timers that the driver would run."""
        self.now += ms
        if self.telemetry.purge_at <= self.now:
            self.telemetry.expire(Instant(self.now))
        self.telemetry.check()

    def ask(
        self, instance_id: Uuid = ZERO_UUID, connection: int = 1, client_id: str = "app"
    ) -> GetTelemetrySubscriptionsResponse:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        answer = self.answer(request, connection, client_id)
        assert isinstance(answer, GetTelemetrySubscriptionsResponse)
        return answer

    def push(self, asked: GetTelemetrySubscriptionsResponse, connection: int = 1, **changed: Any) -> int:
        """The error code."""
        values = {
            "client_instance_id": asked.client_instance_id,
            "subscription_id": asked.subscription_id,
            "metrics": b"some",
            **changed,
        }
        code = self.answer(PushTelemetryRequest(**values), connection).error_code
        assert isinstance(code, int)
        return code

    def shown(self) -> dict[str, float]:
        """By name; of clients and labels, the sum."""
        return {name: sum(value for _, value in samples) for name, samples in self.telemetry.pushed.families()}
