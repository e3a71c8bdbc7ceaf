"""PushTelemetry (key 72): a client's metrics, as OpenTelemetry's MetricsData (KIP-714)."""

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Bool, Bytes, Int8, Int16, Int32, Message, UuidField, message


@message(key=72, kind="request", versions="0", flexible="0+")
class PushTelemetryRequest(Message, frozen=True):
    client_instance_id: UuidField = ZERO_UUID
    subscription_id: Int32 = 0
    terminating: Bool = False
    compression_type: Int8 = 0
    metrics: Bytes = b""


@message(key=72, kind="response", versions="0", flexible="0+")
class PushTelemetryResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
