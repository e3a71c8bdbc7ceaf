"""Metrics that clients push (KIP-714): GetTelemetrySubscriptions and PushTelemetry.

A client asks which metrics it is to push, and how often; it pushes them, and asks again if it is told that its
subscription id is unknown. What it pushes is shown with the node's own metrics (`pushed.py`). A driver that shows them
sets `decoder`; without one the two APIs are not advertised, as in Kafka without a receiver.

What a push costs is bounded: by `telemetry.max.bytes`, by `UNPACKED_BYTES_MAX` when it is decompressed, and by
`ITEMS_MAX` things in it that are looked at. A client that pushes what it was not asked for has that left out.

Invariants (executed by `check`):
  - without a decoder nothing is known of any client;
  - there is a deadline while anything is to be forgotten.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from strandline.base.effects import Effect, Received, Reply, Report, in_a_line
from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid, uuid_text
from strandline.base.metrics import Histogram
from strandline.base.ports import Rng
from strandline.base.time import NEVER, Instant, after
from strandline.broker.telemetry.instances import Instance, Instances
from strandline.broker.telemetry.pushed import SILENT_MS, Point, PushedSeries
from strandline.broker.telemetry.subscriptions import Subscription, interest_in, subscription_id, subscriptions_in
from strandline.metadata.image import Delta, Image
from strandline.metadata.records import CLIENT_METRICS_RESOURCE
from strandline.wire.compress import Codec, Corrupt, Oversized, decompress
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.telemetry.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from strandline.wire.messages.telemetry.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

E = ErrorCode
ACCEPTED = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)  # in Kafka's order: the first is the best
RESERVED = (ZERO_UUID, METADATA_TOPIC_ID)
UNPACKED_BYTES_MAX = 2 << 20
ITEMS_MAX = 4_000  # metrics and their points that are looked at in one push
ATTRIBUTE_MAX = 250  # letters of an attribute that subscriptions match
PURGE_MS = 10_000
BOUNDS_NS = tuple(1_000_000 * ms for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500))


class Undecodable(ValueError):
    """These bytes are not OpenTelemetry's MetricsData."""


class Decoder(Protocol):
    """OpenTelemetry's library, wherever it is."""

    def prepare(self) -> None:
        """Something may be pushed soon."""

    def points(self, data: bytes, items_max: int) -> Sequence[Point]:
        """The numbers in a MetricsData message, until so many things were looked at. Raises `Undecodable` alone."""


class Telemetry:
    def __init__(self, max_bytes: int, rng: Rng, stopwatch: Callable[[], int]) -> None:
        """`max_bytes`: telemetry.max.bytes. `stopwatch`: nanoseconds, from any beginning."""
        self.max_bytes = max_bytes
        self.rng = rng
        self.stopwatch = stopwatch
        self.decoder: Decoder | None = None
        self.subscriptions: tuple[Subscription, ...] = ()
        self.version = 0  # grows with each change of the subscriptions
        self.instances = Instances()
        self.pushed = PushedSeries()
        self.software: dict[int, tuple[str, str]] = {}  # by connection: name and version of the client
        self.purge_at = NEVER
        # Since the start, for metrics.
        self.unknown_subscriptions = self.throttled = self.exported = self.failed = 0
        self.export_time = Histogram(BOUNDS_NS)

    @property
    def is_on(self) -> bool:
        return self.decoder is not None

    # --- what it follows

    def apply(self, image: Image, delta: Delta) -> list[Effect]:
        if not (delta.reloaded or any(kind == CLIENT_METRICS_RESOURCE for kind, _ in delta.configs)):
            return []
        old, self.subscriptions = self.subscriptions, subscriptions_in(image.configs)
        if self.subscriptions == old:
            return []
        self.version += 1
        if self.decoder is not None:
            self.decoder.prepare()
        elif not old:
            names = ", ".join(in_a_line(one.name) for one in self.subscriptions[:5])
            needs = "strandline.metrics.listener, and pip install 'strandline[telemetry]'"
            return [Report("warning", f"clients push no metrics to this node ({names}): it needs {needs}")]
        return []

    def introduced(self, received: Received) -> None:
        """ApiVersions says what a client's software is."""
        request: ApiVersionsRequest = received.message
        if self.is_on and request.client_software_name:
            name, version = request.client_software_name, request.client_software_version
            self.software[received.to.connection] = (name[:ATTRIBUTE_MAX], version[:ATTRIBUTE_MAX])

    def disconnected(self, connection: int) -> None:
        self.software.pop(connection, None)
        self.instances.disconnected(connection)

    # --- requests

    def answer(self, received: Received, now: Instant) -> list[Effect]:
        request = received.message
        is_push = isinstance(request, PushTelemetryRequest)
        if not self.is_on:
            response = PushTelemetryResponse if is_push else GetTelemetrySubscriptionsResponse
            return [Reply(received.to, response(error_code=E.UNSUPPORTED_VERSION))]
        done = self.push(received, now) if is_push else self.asked(received, now)
        if self.purge_at == NEVER:
            self.purge_at = after(now, PURGE_MS)
        return [Reply(received.to, done)]

    def asked(self, received: Received, now: Instant) -> GetTelemetrySubscriptionsResponse:
        request: GetTelemetrySubscriptionsRequest = received.message
        instance = self.instance(request.client_instance_id, received, now)
        assert instance.version == self.version, "it is asked for what is wanted now"
        if not instance.may_ask(now):
            self.throttled += 1
            return GetTelemetrySubscriptionsResponse(error_code=E.THROTTLING_QUOTA_EXCEEDED)
        instance.asked(now)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance.instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=ACCEPTED,
            push_interval_ms=instance.interest.interval_ms,
            telemetry_max_bytes=self.max_bytes,
            delta_temporality=True,
            requested_metrics=instance.interest.metrics,
        )

    def push(self, received: Received, now: Instant) -> PushTelemetryResponse:
        request: PushTelemetryRequest = received.message
        if request.client_instance_id in RESERVED:
            return PushTelemetryResponse(error_code=E.INVALID_REQUEST)
        instance = self.instance(request.client_instance_id, received, now)
        error = self.why_not_pushed(instance, request, now)
        if error is E.NONE and len(request.metrics) > 0 and instance.interest.metrics:
            error = self.export(instance, request, now)
        instance.is_terminating |= request.terminating
        instance.last_error = error
        return PushTelemetryResponse(error_code=error)

    def why_not_pushed(self, instance: Instance, request: PushTelemetryRequest, now: Instant) -> ErrorCode:
        """In Kafka's order. NONE: it is accepted, and counts as this interval's push."""
        if instance.is_terminating:
            return E.INVALID_REQUEST
        if instance.may_push(now):
            instance.pushed(now)
        elif not request.terminating:
            self.throttled += 1
            return E.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription_id:
            self.unknown_subscriptions += 1
            return E.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in tuple(Codec):
            return E.UNSUPPORTED_COMPRESSION_TYPE
        return E.TELEMETRY_TOO_LARGE if len(request.metrics) > self.max_bytes else E.NONE

    def export(self, instance: Instance, request: PushTelemetryRequest, now: Instant) -> ErrorCode:
        assert self.decoder is not None, "answered before"
        began = self.stopwatch()
        silent_at = after(now, max(SILENT_MS, 3 * instance.interest.interval_ms))
        try:
            data = decompress(Codec(request.compression_type), request.metrics, UNPACKED_BYTES_MAX)
            points = wanted(instance, self.decoder.points(data, ITEMS_MAX))
            self.pushed.take(instance.instance_id, instance.attributes.get("client_id", ""), points, silent_at)
        except (Corrupt, Undecodable) as error:
            self.failed += 1
            return E.TELEMETRY_TOO_LARGE if isinstance(error, Oversized) else E.INVALID_RECORD
        self.exported += 1
        self.export_time.observe(max(0, self.stopwatch() - began))
        return E.NONE

    # --- clients

    def instance(self, instance_id: Uuid, received: Received, now: Instant) -> Instance:
        """The client's, with what it is asked for now. A new id if it has none yet."""
        known = self.instances.heard(instance_id, now)
        assert known is None or known.instance_id == instance_id
        if instance_id == ZERO_UUID:
            instance_id = self.new_id()
        attributes = self.attributes_of(instance_id, received)
        connection = received.to.connection
        if known is not None and (known.version, known.connection) == (self.version, connection):
            return known
        interest = interest_in(self.subscriptions, attributes)
        number = subscription_id(interest, instance_id)
        instance = Instance(instance_id, connection, attributes, interest, number, self.version, now)
        if known is not None and known.subscription_id == number:
            # It is asked for nothing else than before, and so its interval goes on.
            instance.asked_at, instance.pushed_at, instance.has_asked = known.asked_at, known.pushed_at, known.has_asked
            instance.is_terminating, instance.last_error = known.is_terminating, known.last_error
        self.instances.put(instance)
        return instance

    def new_id(self) -> Uuid:
        while True:
            made = Uuid(self.rng.randbytes(16))
            # As Kafka's: an id that begins with a hyphen looks like an option in commands.
            if made not in RESERVED and made not in self.instances.by_id and not uuid_text(made).startswith("-"):
                return made

    def attributes_of(self, instance_id: Uuid, received: Received) -> Mapping[str, str]:
        caller = received.caller
        name, version = self.software.get(received.to.connection, ("", ""))
        found = {
            "client_instance_id": uuid_text(instance_id),
            "client_id": caller.client_id[:ATTRIBUTE_MAX],
            "client_software_name": name,
            "client_software_version": version,
            "client_source_address": caller.host,
            "client_source_port": str(caller.port) if caller.port else "",
        }
        return {key: text for key, text in found.items() if text}

    # --- time

    def expire(self, now: Instant) -> list[Effect]:
        if now >= self.purge_at:
            self.instances.forget_silent(now)
            self.pushed.forget_silent(now)
            due = min(self.instances.next_silent(), self.pushed.next_silent())
            self.purge_at = due if due == NEVER else max(due, after(now, PURGE_MS))
            assert self.purge_at > now
        return []

    def check(self) -> None:
        self.instances.check()
        self.pushed.check()
        assert self.is_on or not (self.instances or self.software or self.pushed.count)
        assert self.purge_at < NEVER or not (self.instances or self.pushed.count)


def wanted(instance: Instance, points: Iterable[Point]) -> Iterator[Point]:
    return (point for point in points if instance.interest.wants(point.name))
