"""Producer ids, handed out from blocks that the controller allocates (KIP-730): to idempotent producers, and to the
transaction coordinator for its producers.

Invariant: an id is given out at most once; a block is used by one incarnation of one broker only.
"""

from collections.abc import Callable

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


# Called with an id that nobody else has, or with the error of who cannot have one now.
Given = Callable[[int | ErrorCode, Instant], list[Effect]]


class ProducerIds:
    def __init__(self, me: NodeId, epoch: Callable[[], int]) -> None:
        """`epoch`: this broker's epoch."""
        self.me = me
        self.epoch = epoch
        self.block = range(0)
        self.waiting: list[Given] = []
        self.asking = False
        self.next_try: Instant = NEVER

    def init_producer_id(self, to: ReplyTo, request: InitProducerIdRequest, now: Instant) -> list[Effect]:
        assert request.transactional_id is None, "that is for the transaction coordinator"

        def done(given: int | ErrorCode, now: Instant) -> list[Effect]:
            del now
            if isinstance(given, ErrorCode):
                return [Reply(to, refused(given))]
            return [Reply(to, InitProducerIdResponse(producer_id=given, producer_epoch=0))]

        return self.next(done, now)

    def next(self, done: Given, now: Instant) -> list[Effect]:
        if len(self.waiting) >= WAITING_MAX:
            return done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, now)
        self.waiting.append(done)
        assert len(self.waiting) <= WAITING_MAX
        return self.hand_out(now) + self.ask(now)

    def hand_out(self, now: Instant) -> list[Effect]:
        count = min(len(self.block), len(self.waiting))
        ids, self.block = self.block[:count], self.block[count:]
        served, self.waiting = self.waiting[:count], self.waiting[count:]
        assert not self.block or not self.waiting, "who waits has what there is"
        effects: list[Effect] = []
        for done, producer_id in zip(served, ids, strict=True):
            effects += done(producer_id, now)
        return effects

    def ask(self, now: Instant) -> list[Effect]:
        if self.asking or not self.waiting:
            return []
        self.asking = True
        assert not self.block, "who waits has what there is"
        self.next_try = after(now, REQUEST_TIMEOUT_MS)
        request = AllocateProducerIdsRequest(broker_id=self.me, broker_epoch=self.epoch())
        return [ToController(request, 0, REQUEST_TIMEOUT_MS, BlockAsked())]

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        assert self.asking and not self.block, "more were asked for, since there were none"
        self.asking = False
        match event:
            case Answered(message=AllocateProducerIdsResponse(error_code=ErrorCode.NONE) as answer) if is_block(answer):
                self.block = range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)
                assert 0 <= self.block.start < self.block.stop <= ID_END
                self.next_try = now if len(self.waiting) > len(self.block) else NEVER
                return self.hand_out(now)
            case _:
                # Nobody is kept waiting for a controller that may be long in coming: clients try again by themselves.
                waiting, self.waiting = self.waiting, []
                self.next_try = NEVER
                effects: list[Effect] = []
                for done in waiting:
                    effects += done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, now)
                return effects

    def deadline(self) -> Instant:
        return NEVER if self.asking else self.next_try

    def expire(self, now: Instant) -> list[Effect]:
        if now < self.deadline():
            return []
        self.next_try = NEVER
        return self.ask(now)

    def check(self) -> None:
        assert not self.block or not self.waiting, "who waits has what there is"
        assert 0 <= self.block.start <= self.block.stop <= ID_END
        assert len(self.waiting) <= WAITING_MAX
        assert not self.waiting or self.asking or self.next_try != NEVER, "more is asked for"


def is_block(answer: AllocateProducerIdsResponse) -> bool:
    """Are these ids that there can be?"""
    start, size = answer.producer_id_start, answer.producer_id_len
    return start >= 0 and size > 0 and start + size <= ID_END


def refused(error: ErrorCode) -> InitProducerIdResponse:
    assert error is not ErrorCode.NONE
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
