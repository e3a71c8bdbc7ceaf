"""Relays that understand what clients ask: they capture requests, and answer some themselves, by rules.

Kafka's answers on one connection come in the order of the requests. So an answer that a rule makes waits until all
earlier ones are sent, and behind one that never arrives none arrives on that connection any more. Connections of nodes
are passed on as they are.
"""

import asyncio
from typing import NamedTuple

from strandline.client.ask import CLIENT_ID
from strandline.testing.answers.captured import Captured, Request, heard
from strandline.testing.answers.refusals import refusal, with_error
from strandline.testing.answers.rules import Rule, Rules
from strandline.testing.relays import CLIENTS, Relays, Streams, Way, first_of
from strandline.wire.api import response_of
from strandline.wire.frame import decode_response, encode_response
from strandline.wire.primitive import Malformed

SIZE_BYTES = 4
DRAINED_S = 0.01


class Asked(NamedTuple):
    """A request whose answer is due. `request`: None if it is not one that we know."""

    request: Request | None
    rule: Rule | None


class KafkaRelays(Relays):
    def __init__(self) -> None:
        super().__init__()
        self.captured = Captured()
        self.rules = Rules()

    async def between(self, head: bytes, asker: Streams, node: Streams, ways: tuple[Way, Way]) -> None:
        if ways[0].source != CLIENTS:
            await super().between(head, asker, node, ways)
            return
        talk = Talk(self, head, asker, node, ways)
        await first_of(talk.ask(), talk.hear(), talk.answer())


class Talk:
    """One connection of a client with a node."""

    def __init__(self, relays: KafkaRelays, head: bytes, asker: Streams, node: Streams, ways: tuple[Way, Way]) -> None:
        self.relays = relays
        self.head = head  # what was read from the client already
        self.asker = asker
        self.node = node
        self.up, self.down = ways
        self.due: asyncio.Queue[Asked] = asyncio.Queue()
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()  # answers of the node
        self.is_answering = False

    async def ask(self) -> None:
        """Requests to the node, until the client ends."""
        while (frame := await self.next_request()) is not None:
            request = heard(self.up.target, frame)
            rule = None
            if request is not None and request.client_id != CLIENT_ID:  # that is a question of this package
                self.relays.captured.add(request)
                rule = self.relays.rules.take(request)
            if rule is None or rule.performed:
                await self.relays.send(self.node[1], sized(frame), self.up)
            if request is None or request.expects_answer:
                self.due.put_nowait(Asked(request, rule))
            elif rule is not None and rule.closes:
                return

    async def next_request(self) -> bytes | None:
        try:
            missing = max(0, SIZE_BYTES - len(self.head))
            self.head += await self.asker[0].readexactly(missing)
            size = int.from_bytes(self.head[:SIZE_BYTES], "big")
            rest = size + SIZE_BYTES - len(self.head)
            frame = self.head[SIZE_BYTES:] + await self.asker[0].readexactly(rest)
            self.head = b""
            return frame
        except (EOFError, OSError):
            return None

    async def hear(self) -> None:
        """Answers from the node, until it ends; those that it has given are still sent."""
        try:
            while True:
                size = int.from_bytes(await self.node[0].readexactly(SIZE_BYTES), "big")
                self.heard.put_nowait(await self.node[0].readexactly(size))
        except (EOFError, OSError):
            while not self.heard.empty() or self.is_answering:
                await asyncio.sleep(DRAINED_S)

    async def answer(self) -> None:
        """Answers to the client, in order, until a rule closes the connection."""
        while True:
            asked = await self.due.get()
            rule = asked.rule
            frame = await self.heard.get() if rule is None or rule.performed else b""
            self.is_answering = True
            if rule is not None:
                assert asked.request is not None
                if rule.closes:
                    return
                if rule.is_lost:
                    self.is_answering = False
                    await asyncio.Event().wait()
                await asyncio.sleep(rule.delay_s)
                if rule.error is not None:
                    frame = refused(asked.request, rule, frame)
            await self.relays.send(self.asker[1], sized(frame), self.down)
            self.is_answering = False


def refused(request: Request, rule: Rule, frame: bytes) -> bytes:
    """The answer with the rule's error. `frame`: the node's, if it was asked."""
    assert rule.error is not None
    cls = response_of(request.message.api_key)
    if frame:
        try:
            answer = with_error(decode_response(cls, request.version, memoryview(frame))[1], rule.error)
        except Malformed:  # of a version that the node does not know
            answer = refusal(request.message, rule.error)
    else:
        answer = refusal(request.message, rule.error)
    return b"".join(encode_response(answer, request.version, request.correlation_id))[SIZE_BYTES:]


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(SIZE_BYTES, "big") + frame
