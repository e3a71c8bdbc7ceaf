"""UnregisterBroker (key 64): forget a broker that is gone for good."""

from strandline.wire.schema import Int16, Int32, Message, NullableString, message


@message(key=64, kind="request", versions="0", flexible="0+")
class UnregisterBrokerRequest(Message, frozen=True):
    broker_id: Int32 = 0


@message(key=64, kind="response", versions="0", flexible="0+")
class UnregisterBrokerResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
