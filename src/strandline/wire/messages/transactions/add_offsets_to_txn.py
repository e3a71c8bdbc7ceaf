"""AddOffsetsToTxn (key 25): the offsets of a group join a transaction."""

from strandline.wire.schema import Int16, Int32, Int64, Message, String, message


@message(key=25, kind="request", versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message, frozen=True):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@message(key=25, kind="response", versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
