"""A node that answers heartbeats, for tests of the driver over real loopback sockets.

The generation id comes back as the throttle time, so that a test sees which answer is whose. The member id is an order
to the node: "hold" parks the request, "release" answers it and then all parked ones, newest first, "mute" answers with
nothing, "crash" raises.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from strandline.base.effects import Effect, Endpoint, Event, Halt, Received, Reply
from strandline.base.time import NEVER, Instant
from strandline.server.clock import Clock
from strandline.server.network.net import Listener, Net, NetConfig
from strandline.server.network.peers import Peers
from strandline.server.pump import Pump
from strandline.server.storage.disk import RealDisk
from strandline.server.storage.flusher import Flusher
from strandline.server.storage.remover import Remover
from strandline.server.storage.warmer import Warmer
from strandline.server.tls.listener_tls import ListenerTls
from strandline.wire.frame import decode_response, encode_request
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.records.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

STRANGER_BYTES_MAX = 1000


class EchoNode:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.parked: list[Received] = []
        self.first: list[Effect] = []  # what `start` returns
        self.then: list[Effect] = []  # what the next step returns besides its own
        self.records = b""  # that a Fetch gets
        self.wakes: list[Instant] = []
        self.expired: list[Instant] = []

    def start(self, now: Instant) -> list[Effect]:
        return self.first

    def step(self, event: Event, now: Instant) -> list[Effect]:
        self.events.append(event)
        effects, self.then = self.then, []
        return self.received(event) + effects if isinstance(event, Received) else effects

    def received(self, event: Received) -> list[Effect]:
        if isinstance(event.message, ProduceRequest):
            return [Reply(event.to, ProduceResponse())]
        if isinstance(event.message, FetchRequest):
            return [Reply(event.to, fetched(self.records))]
        match event.message.member_id:
            case "hold":
                self.parked.append(event)
                return []
            case "mute":
                return [Reply(event.to, None)]
            case "release":
                parked, self.parked = self.parked, []
                return [answer(e) for e in [event, *reversed(parked)]]
            case "crash":
                raise RuntimeError("told to")
        return [answer(event)]

    def deadline(self) -> Instant:
        return self.wakes[0] if self.wakes else NEVER

    def expire(self, now: Instant) -> list[Effect]:
        assert now >= self.wakes.pop(0), "too early"
        self.expired.append(now)
        return []

    def shutdown(self, now: Instant) -> list[Effect]:
        return [Halt("asked to", 0)]


def fetched(records: bytes) -> FetchResponse:
    rows = (FetchableTopicResponse(topic="t", partitions=(PartitionData(records=records),)),)
    return FetchResponse(responses=rows if records else ())


def answer(event: Received) -> Reply:
    return Reply(event.to, HeartbeatResponse(throttle_time_ms=event.message.generation_id))


class Rig:
    """A running driver around an EchoNode."""

    def __init__(self, config: NetConfig, tls: ListenerTls | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self.unhandled)
        self.node = EchoNode()
        self.clients: list[Client] = []
        self.stops: list[tuple[int, str]] = []
        self.pump = Pump(self.node, self.loop, Clock(), lambda status, why: self.stops.append((status, why)))
        self.net = Net(self.loop, config, self.pump.event)
        self.peers = Peers(self.loop, "me", self.pump.event)
        self.flusher = Flusher(self.loop, RealDisk(), self.pump.event, self.pump.crash)
        self.remover = Remover(RealDisk())
        self.short: list[str] = []  # directories that wait for room
        self.pump.connect(
            self.net.reply,
            self.net.authenticated,
            self.net.throttle,
            self.net.close_one,
            self.net.refuse_one,
            self.peers.send,
            self.peers.probe,
            self.flusher.submit,
            Warmer(self.loop, self.pump.event).submit,
            self.remover.submit,
            lambda effect: self.short.extend(effect.paths),
        )
        self.where = self.net.bind(
            [
                Listener("PLAINTEXT", "127.0.0.1", 0, False),
                Listener("CONTROLLER", "127.0.0.1", 0, True),
                Listener("SASL", "127.0.0.1", 0, False, stranger_bytes_max=STRANGER_BYTES_MAX),
                *([Listener("SSL", "127.0.0.1", 0, False, tls)] if tls is not None else []),
            ]
        )

    @property
    def endpoint(self) -> Endpoint:
        return self.where["PLAINTEXT"]

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.pump.crash(context.get("exception") or RuntimeError(context["message"]), context["message"])

    async def client(
        self, listener: str = "PLAINTEXT", receive_buffer: int = 100_000, context: ssl.SSLContext | None = None
    ) -> "Client":
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await self.loop.sock_connect(sock, ("127.0.0.1", self.where[listener].port))
        host = None if context is None else "127.0.0.1"
        client = Client(*await asyncio.open_connection(sock=sock, ssl=context, server_hostname=host))
        self.clients.append(client)
        return client

    async def until(self, is_so: Callable[[], Any]) -> None:
        """Let the loop run until something is so; the test's timeout is the bound."""
        while not is_so():
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        for client in self.clients:
            client.writer.transport.abort()
        await asyncio.sleep(0)
        await self.net.close()
        self.peers.close()
        self.flusher.close()
        self.remover.close()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0

    def send(self, generation: int, order: str = "") -> None:
        self.writer.write(heartbeat(self.correlation_id, generation, order))
        self.correlation_id += 1

    async def frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def answer(self) -> tuple[int, int]:
        """(correlation id, generation)."""
        correlation_id, message = decode_response(HeartbeatResponse, 4, memoryview(await self.frame()))
        return correlation_id, message.throttle_time_ms

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


def heartbeat(correlation_id: int, generation: int, order: str = "") -> bytes:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=order)
    return b"".join(encode_request(request, 4, correlation_id, "tester"))


def fetch(correlation_id: int) -> bytes:
    return b"".join(encode_request(FetchRequest(), 12, correlation_id, "tester"))


def produce(correlation_id: int, size: int) -> bytes:
    data = PartitionProduceData(index=0, records=b"x" * size)
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=(data,)),))
    return b"".join(encode_request(request, 9, correlation_id, "tester"))


@asynccontextmanager
async def rig(
    config: NetConfig | None = None, *, first: list[Effect] | None = None, tls: ListenerTls | None = None
) -> AsyncIterator[Rig]:
    it = Rig(config or NetConfig(), tls)
    it.node.first = first or []
    it.pump.start()
    await it.net.serve()
    try:
        yield it
    finally:
        await it.close()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        async def bounded() -> None:
            await asyncio.wait_for(scenario(), 20)

        runner.run(bounded())
