"""Producer ids for idempotent producers, handed out from blocks that the controller allocates (KIP-730).

Invariant: an id is given out at most once; a block is used by one incarnation of one broker only.
"""

from strandline.base.effects import Answered, Effect, Failed, Reply, ReplyTo, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.wire.messages.brokers.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

REQUEST_TIMEOUT_MS = 1000
WAITING_MAX = 10_000
ID_END = 1 << 63


class BlockAsked(Value, frozen=True):
    """The token of a request for more ids; one is on its way at a time."""


class ProducerIds:
    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.block = range(0)
        self.waiting: list[ReplyTo] = []
        self.asking = False
        self.next_try: Instant = NEVER

    def init_producer_id(self, to: ReplyTo, request: InitProducerIdRequest, epoch: int, now: Instant) -> list[Effect]:
        """`epoch` is this broker's epoch."""
        if request.transactional_id is not None:
            # There is no transaction coordinator, and clients ask for one first (see handlers/find_coordinator.py).
            # This is the error that librdkafka and the Java client take as fatal.
            return [Reply(to, refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))]
        if len(self.waiting) >= WAITING_MAX:
            return [Reply(to, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))]
        self.waiting.append(to)
        assert len(self.waiting) <= WAITING_MAX
        return self.hand_out() + self.ask(epoch, now)

    def hand_out(self) -> list[Effect]:
        count = min(len(self.block), len(self.waiting))
        ids, self.block = self.block[:count], self.block[count:]
        served, self.waiting = self.waiting[:count], self.waiting[count:]
        assert not self.block or not self.waiting, "who waits has what there is"
        return [
            Reply(to, InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))
            for to, producer_id in zip(served, ids, strict=True)
        ]

    def ask(self, epoch: int, now: Instant) -> list[Effect]:
        if self.asking or not self.waiting:
            return []
        self.asking = True
        assert not self.block, "who waits has what there is"
        self.next_try = after(now, REQUEST_TIMEOUT_MS)
        request = AllocateProducerIdsRequest(broker_id=self.me, broker_epoch=epoch)
        return [ToController(request, 0, REQUEST_TIMEOUT_MS, BlockAsked())]

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        assert self.asking and not self.block, "more were asked for, since there were none"
        self.asking = False
        match event:
            case Answered(message=AllocateProducerIdsResponse(error_code=ErrorCode.NONE) as answer) if is_block(answer):
                self.block = range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)
                self.next_try = now if len(self.waiting) > len(self.block) else NEVER
                return self.hand_out()
            case _:
                # Nobody is kept waiting for a controller that may be long in coming: clients try again by themselves.
                waiting, self.waiting = self.waiting, []
                self.next_try = NEVER
                return [Reply(to, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) for to in waiting]

    def deadline(self) -> Instant:
        return NEVER if self.asking else self.next_try

    def expire(self, epoch: int, now: Instant) -> list[Effect]:
        if now < self.deadline():
            return []
        self.next_try = NEVER
        return self.ask(epoch, now)

    def check(self) -> None:
        assert not self.block or not self.waiting, "who waits has what there is"
        assert 0 <= self.block.start <= self.block.stop <= ID_END
        assert len(self.waiting) <= WAITING_MAX


def is_block(answer: AllocateProducerIdsResponse) -> bool:
    """Are these ids that there can be?"""
    start, size = answer.producer_id_start, answer.producer_id_len
    return start >= 0 and size > 0 and start + size <= ID_END


def refused(error: ErrorCode) -> InitProducerIdResponse:
    assert error is not ErrorCode.NONE
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
