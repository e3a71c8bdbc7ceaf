"""Blocks of producer ids: every id is handed out once in the life of a cluster."""

from strandline.base.errors import ErrorCode
from strandline.controller.basis import Basis, Plan
from strandline.metadata.records import ProducerIdsRecord
from strandline.wire.messages.brokers.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_SIZE = 1000
ID_END = 1 << 63


def plan_allocation(request: AllocateProducerIdsRequest, basis: Basis) -> Plan:
    why = basis.why_stale(request.broker_id, request.broker_epoch)
    if why is not None:
        return Plan((), AllocateProducerIdsResponse(error_code=why))
    start = basis.image.next_producer_id
    if start + BLOCK_SIZE >= ID_END:
        return Plan((), AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert 0 <= start < ID_END - BLOCK_SIZE
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    return Plan((record,), AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE))
