"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids."""

from strandline.wire.schema import Int16, Int32, Int64, Message, message


@message(key=67, kind="request", versions="0", flexible="0+")
class AllocateProducerIdsRequest(Message, frozen=True):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message(key=67, kind="response", versions="0", flexible="0+")
class AllocateProducerIdsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
