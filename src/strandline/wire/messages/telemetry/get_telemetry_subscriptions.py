"""GetTelemetrySubscriptions (key 71): which metrics a client is asked to push, and how often (KIP-714)."""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Bool, Int8, Int16, Int32, Message, String, UuidField, message


@message(key=71, kind="request", versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message, frozen=True):
    client_instance_id: UuidField = ZERO_UUID  # zero: the broker makes one


@message(key=71, kind="response", versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: UuidField = ZERO_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: tuple[Int8, ...] = ()
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    requested_metrics: tuple[String, ...] = ()  # prefixes of names; "*" alone: all of them
