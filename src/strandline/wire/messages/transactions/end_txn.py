"""EndTxn (key 26): commit or abort. From version 5 on the answer names the producer's next epoch (KIP-890)."""

from typing import Annotated

from strandline.wire.schema import Bool, Int16, Int32, Int64, Message, String, V, message


@message(key=26, kind="request", versions="0-5", flexible="3+")
class EndTxnRequest(Message, frozen=True):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@message(key=26, kind="response", versions="0-5", flexible="3+")
class EndTxnResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Annotated[Int64, V("5+")] = -1
    producer_epoch: Annotated[Int16, V("5+")] = -1
