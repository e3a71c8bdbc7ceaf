"""Outbound: requests to other nodes, one connection per (endpoint, channel).

A connection is opened by the first request that needs it and serves until it breaks; requests are pipelined and
answered in order. When it breaks, everything that waits on it fails at once, and the next request opens a new one. How
often to try again is the node's business: it sees every failure.

Invariants:
  - every `Send` is answered exactly once, by `Answered` or `Failed`, and every `Probe` by `Probed`;
  - never while the effect is being performed: always from a later callback;
  - `REFUSED` is said only when the endpoint's host answered that nobody listens.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import cast

from strandline.base.effects import Answered, Endpoint, Event, Failed, Failure, Probe, Probed, Send
from strandline.base.ids import NodeId
from strandline.base.ports import Buffer
from strandline.security.sasl.node_secret import Introduction, version_of
from strandline.security.secret import ClusterSecret
from strandline.server.network.framing import Framed
from strandline.server.network.request_memory import RequestMemory
from strandline.server.tls.alerts import alerts
from strandline.server.tls.words import why_failed
from strandline.wire.api import api_of
from strandline.wire.frame import decode_response, encode_request
from strandline.wire.primitive import Malformed
from strandline.wire.schema import Message

log = logging.getLogger("strandline")

ANSWER_BYTES_MAX = 256 * 1024 * 1024  # a peer's answer; Kafka's clients have no bound here
WRITE_BUFFER_BYTES = 1024 * 1024
NONCE_BYTES = 24
Place = tuple[str, int, str, NodeId]  # host, port, channel, and who should be there
UNREACHABLE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENETUNREACH}


async def dial(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> socket.socket | Failure:
    """Connect to the first address of the endpoint's host that accepts."""
    try:
        found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError:
        return Failure.CLOSED
    codes = []
    for family, kind, protocol, _, address in found:
        outcome = await dial_address(loop, socket.socket(family, kind, protocol), address)
        if isinstance(outcome, socket.socket):
            return outcome
        codes.append(outcome)
    # A host may have addresses that we cannot even try (::1 without IPv6): they say nothing about its port.
    assert 0 not in codes, "every address was refused for a reason"
    tried = [code for code in codes if code not in UNREACHABLE]
    return Failure.REFUSED if tried and set(tried) == {errno.ECONNREFUSED} else Failure.CLOSED


async def dial_address(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, address: tuple[object, ...]
) -> socket.socket | int:
    """A connected socket, or the system's error number."""
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, address)
        if sock.getsockname() == sock.getpeername():
            # Linux connects a socket to itself when the port is ephemeral and nobody listens there.
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        sock.close()
        return error.errno or errno.EIO
    except BaseException:
        sock.close()
        raise
    return sock


def joined(transport: asyncio.Transport) -> Callable[[Sequence[Buffer]], None]:
    """Requests to nodes are small, and TLS would make a record of each buffer."""
    return lambda buffers: transport.write(b"".join(buffers))


class Link(Framed):
    """One outbound connection and the requests that wait on it."""

    def __init__(self, peers: "Peers", endpoint: Endpoint, channel: str, node: NodeId) -> None:
        super().__init__(ANSWER_BYTES_MAX, RequestMemory())
        self.peers = peers
        self.endpoint = endpoint
        self.channel = channel
        self.node = node
        self.next_correlation_id = 0
        self.waiting: deque[tuple[int, Send, asyncio.TimerHandle]] = deque()
        self.unsent: list[Buffer] = []  # until the connection stands, and its other side knows us
        self.is_ready = False
        self.introduction: Introduction | None = None  # while the other side does not know us yet
        self.transport: asyncio.Transport | None = None
        self.is_encrypted = False
        self.write: Callable[[Sequence[Buffer]], None]
        self.closed = False
        self.dialing = peers.loop.create_task(self.open())

    @property
    def place(self) -> Place:
        return self.endpoint.host, self.endpoint.port, self.channel, self.node

    async def open(self) -> None:
        assert self.transport is None
        outcome = await dial(self.peers.loop, self.endpoint)
        if isinstance(outcome, Failure):
            self.fail(outcome, outcome)
        elif self.closed:
            outcome.close()
        else:
            try:
                await self.connect(outcome)
            except OSError as error:  # the peer closed it already, or one side rejects the other's certificate
                if isinstance(error, ssl.SSLError):
                    log.warning("no TLS with %s: %s", self.name(), why_failed(error))
                self.fail(Failure.CLOSED, Failure.CLOSED)

    async def connect(self, sock: socket.socket) -> None:
        loop, tls = self.peers.loop, self.peers.tls_to(self.endpoint)
        if tls is None:
            await loop.create_connection(lambda: self, sock=sock)
            return
        self.is_encrypted = True
        with alerts(sock):
            await loop.create_connection(lambda: self, sock=sock, ssl=tls, server_hostname=self.endpoint.host)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self.transport is None
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are not a subclass of it
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self.write = joined(transport) if self.is_encrypted else transport.writelines
        if self.closed:
            transport.abort()
        elif self.peers.secret is None:
            self.ready()
        else:
            name, nonce = self.peers.client_id, token_hex(NONCE_BYTES)
            self.introduction = Introduction(self.peers.secret, name, nonce, self.node)
            for message in self.introduction.begin():
                self.introduce(message)

    def ready(self) -> None:
        """What waited goes out."""
        assert self.transport is not None
        self.is_ready = True
        self.introduction = None
        if self.unsent:
            self.write(self.unsent)
            self.unsent = []

    def introduce(self, message: Message) -> None:
        assert self.transport is not None
        self.write(encode_request(message, version_of(type(message)), 0, self.peers.client_id))

    def introduction_answered(self, introduction: Introduction, frame: memoryview) -> None:
        """Before anything else is answered: a request must not reach somebody who only pretends to be a node."""
        try:
            _, message = decode_response(introduction.awaits, version_of(introduction.awaits), frame)
            further = introduction.answered(message)
        except (Malformed, ValueError) as error:
            log.warning("%s does not prove that it is a node of this cluster: %s", self.name(), error)
            self.fail(Failure.MALFORMED, Failure.CLOSED)
            return
        if introduction.is_over:
            self.ready()
        elif further is not None:
            self.introduce(further)

    def send(self, effect: Send) -> None:
        assert not self.closed, "a link that is given up is forgotten"
        assert effect.timeout_ms >= 0
        correlation_id = self.next_correlation_id
        try:
            frame = encode_request(effect.message, effect.version, correlation_id, self.peers.client_id)
        except Exception as error:  # a client may have sent what is passed on
            log.error("%s v%d cannot be sent: %r", type(effect.message).__name__, effect.version, error)
            self.peers.loop.call_soon(self.peers.on_event, Failed(effect.token, Failure.MALFORMED))
            return
        self.next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        timer = self.peers.loop.call_later(effect.timeout_ms / 1000, self.timed_out, correlation_id)
        self.waiting.append((correlation_id, effect, timer))
        if self.is_ready:
            assert self.transport is not None
            self.write(frame)
        else:
            self.unsent += frame

    def frame_received(self, frame: memoryview) -> None:
        if self.introduction is not None:
            self.introduction_answered(self.introduction, frame)
            return
        if not self.waiting:
            self.fail(Failure.MALFORMED, Failure.CLOSED)
            return
        expected, effect, timer = self.waiting[0]
        try:
            correlation_id, message = decode_response(api_of(effect.message).response, effect.version, frame)
        except Exception as error:
            why = error if isinstance(error, Malformed) else repr(error)
            log.warning("%s answered %s malformed: %s", self.name(), type(effect.message).__name__, why)
            self.fail(Failure.MALFORMED, Failure.CLOSED)
            return
        if correlation_id != expected:
            log.warning("%s answered out of order: %d instead of %d", self.name(), correlation_id, expected)
            self.fail(Failure.MALFORMED, Failure.CLOSED)
            return
        self.waiting.popleft()
        timer.cancel()
        self.peers.on_event(Answered(effect.token, message))

    def size_refused(self, size: int) -> None:
        assert not 0 <= size <= self.frame_bytes_max
        log.warning("%s announced an answer of %d bytes", self.name(), size)
        self.fail(Failure.MALFORMED, Failure.CLOSED)

    def timed_out(self, correlation_id: int) -> None:
        """Answers come in order, so what is behind a request that got no answer will not get one in time either."""
        late = [entry for entry in self.waiting if entry[0] == correlation_id]
        assert len(late) == 1, "who was answered has no timer"
        self.waiting = deque(late + [entry for entry in self.waiting if entry[0] != correlation_id])
        self.fail(Failure.TIMED_OUT, Failure.CLOSED)

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(Failure.CLOSED, Failure.CLOSED)

    def fail(self, first: Failure, others: Failure) -> None:
        """Give the connection up: the first request that waits fails with one reason, the others with another."""
        if self.closed:
            return
        self.closed = self.stopped = True
        self.peers.forget(self)
        if self.transport is not None:
            self.transport.abort()
        else:
            self.dialing.cancel()
        assert self.peers.links.get(self.place) is not self
        waiting, self.waiting = self.waiting, deque()
        why = first
        for _, effect, timer in waiting:
            timer.cancel()
            self.peers.on_event(Failed(effect.token, why))
            why = others

    def name(self) -> str:
        return f"{self.endpoint.host}:{self.endpoint.port} ({self.channel})"


class Peers:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        on_event: Callable[[Event], None],
        tls_to: Callable[[Endpoint], ssl.SSLContext | None] = lambda _: None,
    ) -> None:
        self.tls_to = tls_to  # None: the connection is not encrypted
        self.loop = loop
        self.client_id = client_id
        self.on_event = on_event
        self.secret: ClusterSecret | None = None  # None: nobody is asked to prove anything
        self.links: dict[Place, Link] = {}
        self.probes: set[asyncio.Task[None]] = set()

    def send(self, effect: Send) -> None:
        to = (effect.endpoint.host, effect.endpoint.port, effect.channel, effect.node)
        link = self.links.get(to)
        if link is None:
            link = self.links[to] = Link(self, effect.endpoint, effect.channel, effect.node)
        link.send(effect)

    def probe(self, effect: Probe) -> None:
        assert effect.timeout_ms >= 0
        task = self.loop.create_task(self.connect_and_close(effect))
        self.probes.add(task)
        task.add_done_callback(self.probes.discard)

    async def connect_and_close(self, effect: Probe) -> None:
        why: Failure | None = None
        try:
            outcome = await asyncio.wait_for(dial(self.loop, effect.endpoint), effect.timeout_ms / 1000)
            if isinstance(outcome, Failure):
                why = outcome
            else:
                outcome.close()
        except TimeoutError:
            why = Failure.TIMED_OUT
        self.on_event(Probed(effect.token, why))

    def forget(self, link: Link) -> None:
        assert link.closed, "it may still be answered"
        if self.links.get(link.place) is link:
            del self.links[link.place]

    def close(self) -> None:
        """The node has stopped: nobody wants the answers any more."""
        for task in list(self.probes):
            task.cancel()
        for link in list(self.links.values()):
            link.fail(Failure.CLOSED, Failure.CLOSED)
        assert not self.links
