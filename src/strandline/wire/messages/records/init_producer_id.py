"""InitProducerId (key 22): a producer asks for its id and epoch."""

from typing import Annotated

from strandline.wire.schema import Bool, Int16, Int32, Int64, Message, NullableString, Tag, V, message


@message(key=22, kind="request", versions="0-6", flexible="2+")
class InitProducerIdRequest(Message, frozen=True):
    transactional_id: NullableString = None
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, V("3+")] = -1
    producer_epoch: Annotated[Int16, V("3+")] = -1
    enable2_pc: Annotated[Bool, V("6+")] = False
    keep_prepared_txn: Annotated[Bool, V("6+")] = False
    # Of our own, with enable2_pc: how long a transaction may be open. 0: for ever, as in KIP-939.
    two_phase_timeout_ms: Annotated[Int32, V("6+"), Tag(10_000)] = 0


@message(key=22, kind="response", versions="0-6", flexible="2+")
class InitProducerIdResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, V("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, V("6+")] = -1
