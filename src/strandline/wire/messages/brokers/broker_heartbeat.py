"""BrokerHeartbeat (key 63): a broker is alive, how much metadata it has, and whether it wants to leave (KIP-631).

`lost_replicas` is of our own, as in BrokerRegistration: what the broker has found since.
"""

from typing import Annotated

from strandline.wire.messages.brokers.broker_registration import LostTopic
from strandline.wire.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    Nullable,
    Tag,
    UuidField,
    V,
    message,
)


@message(key=63, kind="request", versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(Message, frozen=True):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    want_fence: Bool = False
    want_shut_down: Bool = False
    offline_log_dirs: Annotated[tuple[UuidField, ...], V("1+"), Tag(0)] = ()
    cordoned_log_dirs: Annotated[tuple[UuidField, ...] | None, V("2+"), Nullable("2+"), Tag(1)] = None
    lost_replicas: Annotated[tuple[LostTopic, ...], Tag(10_000)] = ()


@message(key=63, kind="response", versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool = False
