"""Requests that a client sends to any broker and only the active controller may answer.

The broker passes the message on unchanged and its answer back. While there is no controller, or it has just moved,
the request is tried again until its time is up; then the client gets REQUEST_TIMED_OUT in that response's own form. It
gets that at once if there is no place left, of all or of its connection: a client may say that it waits for days.
"""

from collections import Counter
from typing import Any

from strandline.base.effects import Answered, Effect, Failed, Failure, Reply, ReplyTo, ToController
from strandline.base.errors import ErrorCode
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.broker.refusals import error_in, refusal_of
from strandline.controller.partitions.manual import is_manual

RETRY_MS = 50
WAITING_MAX = 1000
WAITING_OF_CONNECTION_MAX = 100
OF_NOBODY = -1
ANSWER_MS = 1000  # for the answer to come of what was decided in the last moment
MOVED = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # the second in answers of the quorum


def connection_of(to: ReplyTo | None) -> int:
    """What nobody waits for shares the places of one: clients cause it."""
    return OF_NOBODY if to is None else to.connection


class Forwarded(Value, frozen=True):
    """The token of what was passed on."""

    number: int


class Waiting(Value, frozen=True):
    to: ReplyTo | None  # None: asked by this node itself, nobody waits for the answer
    message: Any
    version: int
    until: Instant


class Forwarding:
    def __init__(self, timeout_ms_max: int = 30_000) -> None:
        self.timeout_ms_max = timeout_ms_max  # request.timeout.ms
        self.count = 0
        self.controllers = 0  # how often this node has heard of another one
        self.out: dict[int, Waiting] = {}
        self.again: dict[int, Instant] = {}  # when to try which once more
        self.places: Counter[int] = Counter()  # that are taken, by connection

    def forward(
        self, to: ReplyTo | None, message: Any, version: int, timeout_ms: int | None, now: Instant
    ) -> list[Effect]:
        """`timeout_ms`: how long the client waits; None: its request does not say it."""
        connection = connection_of(to)
        if len(self.out) >= WAITING_MAX or self.places[connection] >= WAITING_OF_CONNECTION_MAX:
            return self.answer(to, refusal_of(message, ErrorCode.REQUEST_TIMED_OUT))
        self.count += 1
        patience = self.timeout_ms_max if timeout_ms is None else min(max(timeout_ms, 1000), self.timeout_ms_max)
        if timeout_ms is not None and is_manual(message, version):
            # A client that learns too early that nothing was elected may do worse; and the controller would go on.
            patience = max(timeout_ms, 0) + ANSWER_MS
        assert len(self.out) < WAITING_MAX
        assert self.count not in self.out
        self.out[self.count] = Waiting(to, message, version, after(now, patience))
        self.places[connection] += 1
        return [self.ask(self.count, now)]

    def ask(self, number: int, now: Instant) -> ToController:
        assert number not in self.again
        waiting = self.out[number]
        assert waiting.until > now, "else it is given up"
        return ToController(waiting.message, waiting.version, max(1, waiting.until - now), Forwarded(number))

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        asked: Forwarded = event.token
        number = asked.number
        assert number not in self.again, "it is on its way"
        waiting = self.out[number]
        match event:
            case Answered(message=message) if error_in(message) not in MOVED:
                self.release(number)
                return self.answer(waiting.to, message)
            case Failed(why=Failure.TIMED_OUT):
                self.release(number)
                return self.answer(waiting.to, refusal_of(waiting.message, ErrorCode.REQUEST_TIMED_OUT))
            case _:
                self.again[number] = after(now, RETRY_MS)
                return []

    def release(self, number: int) -> None:
        assert number not in self.again, "what is answered is not asked again"
        connection = connection_of(self.out.pop(number).to)
        assert self.places[connection] > 0
        self.places[connection] -= 1
        if not self.places[connection]:
            del self.places[connection]

    def answer(self, to: ReplyTo | None, message: Any) -> list[Effect]:
        return [] if to is None else [Reply(to, message)]

    def deadline(self) -> Instant:
        return min(self.again.values()) if self.again else NEVER

    def expire(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for number in [n for n, at in self.again.items() if at <= now]:
            del self.again[number]
            waiting = self.out[number]
            if waiting.until <= now:
                self.release(number)
                effects += self.answer(waiting.to, refusal_of(waiting.message, ErrorCode.REQUEST_TIMED_OUT))
            else:
                effects.append(self.ask(number, now))
        assert self.again.keys() <= self.out.keys()
        return effects

    def check(self) -> None:
        assert self.again.keys() <= self.out.keys(), "what is answered is not asked again"
        assert len(self.out) <= WAITING_MAX
        if not self.out:
            assert not self.places
            return
        assert self.places == Counter(connection_of(waiting.to) for waiting in self.out.values())
        assert max(self.places.values(), default=0) <= WAITING_OF_CONNECTION_MAX
        assert max(self.out, default=0) <= self.count
