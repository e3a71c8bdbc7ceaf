"""Inbound: listeners, and connections whose answers go out in the order of their requests.

Invariants:
  - answers leave in the order of requests, whatever order the node replies in;
  - a connection has at most `UNANSWERED_MAX` unanswered requests: at the bound, while its write buffer is above the
    high-water mark, and while it is throttled, nothing more is read from it;
  - a frame that cannot be parsed, or an answer that cannot be written, costs its own connection and at most one log
    line, nothing else, even if the codec raises something that it should not;
  - the node hears of every connection's end, once.
"""

import asyncio
import socket
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from msgspec.structs import replace

from strandline.base.answer_memory import AnswerMemory
from strandline.base.effects import (
    Authenticated,
    Caller,
    Close,
    Disconnected,
    Endpoint,
    Event,
    Received,
    Refuse,
    Reply,
    ReplyTo,
    Throttle,
)
from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer
from strandline.base.traces import SECRET_APIS, trace_of
from strandline.server.network.accepting import Acceptor
from strandline.server.network.counted_requests import count_requests
from strandline.server.network.limits import ConnectionLimits
from strandline.server.network.listener import Listener as Listener
from strandline.server.network.listener import NetConfig as NetConfig
from strandline.server.network.refusals import CLOSED, LogLimit, log, printable
from strandline.server.network.request_memory import RequestMemory
from strandline.server.network.session import Session
from strandline.server.network.unsent import WRITE_BUFFER_BYTES, Slot, Unsent
from strandline.server.network.watch import Watch
from strandline.server.tls import handshakes
from strandline.server.tls.encrypted import Encrypted
from strandline.server.tls.handshakes import Refusal, shake_hands
from strandline.server.tls.listener_tls import ListenerTls, Unmapped
from strandline.wire.api import API_BY_KEY, API_VERSIONS, APIS, advertised_versions, is_allowed
from strandline.wire.frame import Unsupported, UnsupportedVersion, decode_request, encode_response
from strandline.wire.messages.cluster.api_versions import ApiVersionsResponse
from strandline.wire.primitive import Malformed

UNANSWERED_MAX = 64
PARTS_OF_FRAMES = 2  # parts of large frames have memory for so many of the largest, over all connections
PARTS_BYTES_MIN = 64 * 1024 * 1024
TRACED_MAX = 100
TLS_HANDSHAKE = 0x1603  # the first two bytes of every TLS connection: a handshake record, of version 3
# Which APIs a listener answers: key is_controller.
SERVED = {
    is_controller: frozenset(api.key for api in APIS if is_allowed(api.key, is_controller=is_controller))
    for is_controller in (True, False)
}


class Connection(Session, Unsent):
    looked_at = 0  # when the clock was last read, by a connection that measures
    address = ""  # of the other side
    is_counted = False  # by the limits

    def __init__(self, net: "Net", number: int, listener: Listener) -> None:
        super().__init__(net.config.request_bytes_max, net.requests)
        self.net = self.owner = net
        self.loop = net.loop
        self.number = number
        self.on_event: Callable[[Event], None] = net.on_event
        self.listener = listener
        self.begin(SERVED[listener.is_controller], self.frame_bytes_max, listener.stranger_bytes_max)
        self.transport: asyncio.Transport
        self.write: Callable[[Sequence[Buffer]], None]
        self.first = 0  # sequence of slots[0]
        self.slots: deque[Slot] = deque()
        self.caller = Caller("", "", listener.name)
        self.heard = True  # since the last sweep of idle connections
        self.closed = False
        self.opened_s = net.loop.time()
        self.throttles = 0  # that are not over

    @property
    def is_protected(self) -> bool:
        return self.listener.name in self.net.limits.config.node_listeners

    @property
    def is_waiting(self) -> bool:
        """For memory."""
        return self in self.memory.waiting

    @property
    def is_set_up(self) -> bool:
        """Has it sent a request, and authenticated where it must?"""
        return self.first + len(self.slots) > 0 and not self.is_stranger

    @property
    def is_of_node(self) -> bool:
        return self.is_protected if self.net.config.believes_strangers else self.caller.is_node

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self.number not in self.net.connections
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are not a subclass of it
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        peer = transport.get_extra_info("peername") or ("", 0)
        believed = self.net.config.believes_strangers
        self.caller = Caller("", peer[0], self.listener.name, is_node=believed, port=peer[1])
        self.write = transport.writelines
        sock = transport.get_extra_info("socket")
        with suppress(OSError):  # the other side may have closed already; the transport reports that
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.net.config.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.net.config.send_buffer_bytes)
        self.net.connections[self.number] = self
        if self.listener.tls is not None:
            self.encrypted(self.listener.tls)

    def encrypted(self, tls: ListenerTls) -> None:
        encrypted = Encrypted(self.transport, WRITE_BUFFER_BYTES, self.pause_writing, self.resume_writing)
        inner: Any = self  # uvloop's calls are about the inner transport from now on
        inner.pause_writing, inner.resume_writing = encrypted.block, encrypted.unblock
        self.transport, self.write = encrypted, encrypted.writelines
        if self.must_authenticate:
            return  # its principal is what it proves by SASL; a certificate only lets it in (KIP-684)
        try:
            certificate = self.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            self.caller = replace(self.caller, principal=tls.principal_of(certificate))
        except Unmapped as error:
            self.refuse(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        assert self.net.connections.get(self.number) is self, "a connection ends once"
        self.closed = self.stopped = True
        if self.listener.tls is not None:
            cast(Encrypted, self.transport).ended()
        self.end_timer()
        self.net.gone(self)
        self.net.on_event(Disconnected(self.number))

    def frame_received(self, frame: memoryview) -> None:
        assert len(self.slots) < UNANSWERED_MAX, "at the bound nothing more is read"
        self.heard = True
        try:
            request = decode_request(frame)
        except UnsupportedVersion as error:
            self.version_refused(error)
            return
        except (Malformed, Unsupported) as error:
            self.refuse(f"{type(error).__name__}: {error}")
            return
        except Exception as error:  # a defect of ours, or no memory; nothing has changed
            self.raised("decoding", int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big"), error)
            return
        if request.api_key not in self.served:
            self.refuse(self.why_not_served(request.api_key))
            return
        caller = self.caller
        client_id = request.client_id or ""
        if caller.client_id != client_id:
            caller = self.caller = replace(caller, client_id=client_id)
        slots = self.slots
        sequence = self.first + len(slots)
        to = ReplyTo(
            self.number, sequence, request.correlation_id, request.api_key, request.api_version, self.looked_at
        )
        slots.append(None)
        if len(slots) >= UNANSWERED_MAX:
            self.stop()
        self.on_event(Received(to, caller, request.message))

    def version_refused(self, error: UnsupportedVersion) -> None:
        """A newer client asks for ApiVersions in a version that we lack: it learns ours from the answer (KIP-511).
        For any other API it should have asked first."""
        if error.api_key != API_VERSIONS:
            self.refuse(str(error))
            return
        self.slots.append(None)
        if len(self.slots) >= UNANSWERED_MAX:
            self.stop()
        answer = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            # Just this API, so that the client can ask again in a version that we have (KIP-511).
            api_keys=tuple(
                row
                for row in advertised_versions(on_controller=self.listener.is_controller)
                if row.api_key == API_VERSIONS
            ),
        )
        assert answer.api_keys, "or the client learns nothing"
        self.fill(self.first + len(self.slots) - 1, encode_response(answer, 0, error.correlation_id))

    def reply(self, effect: Reply) -> None:
        to = effect.to
        if effect.message is None:
            self.fill(to.sequence, ())
        else:
            try:
                answer = encode_response(effect.message, to.api_version, to.correlation_id)
            except Exception as error:
                # What the node did is whole; this client cannot be told.
                self.raised("answering", to.api_key, to.api_version, error)
                return
            self.fill(to.sequence, answer)

    def fill(self, sequence: int, answer: Sequence[Buffer]) -> None:
        """Put an answer into its slot, and send all answers that no earlier request holds up."""
        slots = self.slots
        place = sequence - self.first
        assert 0 <= place < len(slots), "a request is answered once"
        if place > 0:
            assert slots[place] is None, "a request is answered once"
            slots[place] = answer
            self.keep(answer)
            return
        slots.popleft()
        self.first += 1
        if slots and slots[0] is not None:
            ready = list(answer)
            while slots and (following := slots[0]) is not None:
                ready += following
                slots.popleft()
                self.first += 1
            answer = ready
            if self.kept:
                self.recount_kept()
        if answer:
            self.write(answer)
        if self.stopped:
            self.answered_while_stopped()

    def answered_while_stopped(self) -> None:
        if not self.writable:
            self.unsent_grew()
        elif len(self.slots) <= UNANSWERED_MAX // 2:
            # Later, because parsing gives events to the node, which may be performing effects right now.
            self.net.loop.call_soon(self.resume)

    def resume(self) -> None:
        assert self.stopped or not self.closed, "nothing more is read"
        if (
            self.stopped
            and self.writable
            and not self.throttles
            and not self.closed
            and len(self.slots) < UNANSWERED_MAX
            and self.kept <= WRITE_BUFFER_BYTES
        ):
            self.stopped = False
            self.parse_rest()
            if not self.stopped:
                self.transport.resume_reading()

    def throttle(self, ms: int) -> None:
        """Read nothing more for this long. Of several throttles the last to end counts."""
        self.throttles += 1
        self.stop()
        self.net.loop.call_later(ms / 1000, self.throttled)

    def throttled(self) -> None:
        assert self.throttles > 0
        self.throttles -= 1
        self.heard = True  # it was not idle
        self.resume()

    def wait_for_memory(self) -> None:
        self.stop()
        self.memory.wait(self)
        self.net.watch.requests_wait()

    def size_refused(self, size: int) -> None:
        assert not 0 <= size <= self.frame_bytes_max
        if size >> 16 == TLS_HANDSHAKE:
            self.refuse("this looks like TLS, and the listener speaks PLAINTEXT: check the client's security.protocol")
        else:
            self.refuse(f"a request of {size} bytes; the limit is {self.frame_bytes_max}")

    def refuse(self, why: str, kind: str = CLOSED) -> None:
        assert why
        if self.net.log_limit.may_print(kind, self.caller.host, self.net.now_ms()):
            why, host = printable(why), self.caller.host
            log.warning("closing connection %d from %s on %s: %s", self.number, host, self.listener.name, why)
        self.close()

    def raised(self, doing: str, key: int, version: int, error: Exception) -> None:
        """It costs the connection. A trace for the first of its kind."""
        name = f"{API_BY_KEY[key].name} v{version}" if key in API_BY_KEY else f"API {key} v{version}"
        where = traceback.extract_tb(error.__traceback__, limit=-1)
        kind = (doing, key, f"{where[0].name}:{where[0].lineno}" if where else "")
        if kind not in self.net.traced and len(self.net.traced) < TRACED_MAX:
            self.net.traced.add(kind)
            trace = trace_of(error, hides=key in SECRET_APIS)
            log.error("%s %s from %s raised; nothing was changed by that\n%s", doing, name, self.caller.named, trace)
        self.refuse(f"{doing} {name} raised {type(error).__name__}")

    def close(self) -> None:
        """What is already written still goes out."""
        self.closed = self.stopped = True
        self.rest = b""
        self.transport.close()


class Net:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: NetConfig,
        on_event: Callable[[Event], None],
    ) -> None:
        self.loop = loop
        self.config = config
        self.on_event = on_event
        self.connections: dict[int, Connection] = {}
        self.last_number = 0
        self.traced: set[tuple[str, int, str]] = set()  # kinds of exceptions that were logged with their trace
        self.bound: list[tuple[Listener, socket.socket]] = []
        self.acceptors: list[Acceptor] = []
        self.coming: set[asyncio.Task[None]] = set()  # connections that the loop does not serve yet
        self.sweeper: asyncio.TimerHandle | None = None
        self.limits = ConnectionLimits(config.limits)
        self.log_limit = LogLimit()
        self.answers = AnswerMemory()
        parts_max = max(PARTS_OF_FRAMES * config.request_bytes_max, PARTS_BYTES_MIN)
        self.requests = RequestMemory(parts_max, config.queued_request_bytes_max, loop.call_soon)
        self.watch = Watch(self, config.setup_ms_max, config.idle_ms_max)
        self.make_connection: Callable[[Net, int, Listener], Connection] = Connection  # or one that measures

    def bind(self, listeners: Sequence[Listener]) -> dict[str, Endpoint]:
        """Take the ports; nobody can connect before `serve`. Returns where each listener really is."""
        assert not self.bound, "bound once"
        where: dict[str, Endpoint] = {}
        for listener in listeners:
            family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.config.receive_buffer_bytes > 0:
                # Accepted sockets inherit it; set later, it could not widen the TCP window any more.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.config.receive_buffer_bytes)
            try:
                sock.bind((listener.host, listener.port))
            except OSError as error:
                sock.close()
                at = f"{listener.host}:{listener.port}"
                raise OSError(error.errno, f"cannot listen on {listener.name}://{at}: {error.strerror}") from error
            self.bound.append((listener, sock))
            where[listener.name] = Endpoint(listener.host, sock.getsockname()[1])
        assert len(where) == len(listeners), "each has a name of its own"
        return where

    async def serve(self) -> None:
        assert not self.acceptors, "served once"
        assert self.bound, "bound first"
        for listener, sock in self.bound:
            admit = self.admitting(listener)
            acceptor = Acceptor(self.loop, listener.name, sock, self.limits, self.log_limit, admit)
            acceptor.begin(self.config.backlog)
            self.acceptors.append(acceptor)
        if self.config.idle_ms_max > 0:
            self.sweep()
        self.watch.begin()

    def admitting(self, listener: Listener) -> Callable[[socket.socket, str], None]:
        def admit(sock: socket.socket, address: str) -> None:
            # Half of the places are for nodes: clients that open connections and say nothing must not keep them out.
            places = handshakes.HANDSHAKES_MAX * (2 if listener.name in self.limits.config.node_listeners else 1)
            if listener.tls is not None and len(self.coming) >= places:
                self.limits.closed(listener.name, address)
                sock.close()
                return
            self.last_number += 1
            assert self.last_number not in self.connections
            connection = self.make_connection(self, self.last_number, listener)
            connection.address, connection.is_counted = address, True
            if self.requests.counts_all:
                count_requests(connection)
            if self.limits.is_over:
                self.watch.give_one_up()
            task = self.loop.create_task(self.open(connection, sock))
            self.coming.add(task)
            task.add_done_callback(self.coming.discard)

        return admit

    async def open(self, connection: Connection, sock: socket.socket) -> None:
        tls = connection.listener.tls
        try:
            if tls is None:
                await self.loop.connect_accepted_socket(lambda: connection, sock)
            elif (refusal := await shake_hands(self.loop, sock, lambda: connection, tls)) is not None:
                self.report_handshake(connection, refusal)
        except OSError:  # the other side has gone
            sock.close()
        finally:
            if connection.number not in self.connections:
                self.uncount(connection)

    def report_handshake(self, connection: Connection, refusal: Refusal) -> None:
        """Whoever only looks whether somebody listens closes the connection, and looks often."""
        host, name = connection.address, connection.listener.name
        if refusal.is_closed:
            log.debug("no TLS with %s on %s: %s", host, name, refusal.why)
        elif self.log_limit.may_print(f"failed handshakes on {name}", host, self.now_ms()):
            log.warning("no TLS with %s on %s: %s", host, name, printable(refusal.why))

    def gone(self, connection: Connection) -> None:
        """Nothing of a connection is left."""
        del self.connections[connection.number]
        connection.forget_answers()
        connection.forget_large()
        self.requests.waiting.pop(connection, None)
        self.uncount(connection)

    def uncount(self, connection: Connection) -> None:
        if connection.is_counted:
            connection.is_counted = False
            self.limits.closed(connection.listener.name, connection.address)
            for acceptor in self.acceptors:
                acceptor.one_closed()

    def answers_grew(self) -> None:
        if self.answers.held > self.answers.bytes_max:
            self.watch.relieve_soon()

    def now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def reply(self, effect: Reply) -> None:
        connection = self.connections.get(effect.to.connection)
        if connection is not None and not connection.closed:  # else nobody is left to hear the answer
            connection.reply(effect)

    def throttle(self, effect: Throttle) -> None:
        connection = self.connections.get(effect.connection)
        if connection is not None and not connection.closed:
            connection.throttle(effect.ms)

    def authenticated(self, effect: Authenticated) -> None:
        connection = self.connections.get(effect.connection)
        if connection is not None and not connection.closed:
            connection.authenticated(effect)

    def close_one(self, effect: Close) -> None:
        connection = self.connections.get(effect.connection)
        if connection is not None and not connection.closed:
            connection.refuse(effect.why)

    def refuse_one(self, effect: Refuse) -> None:
        connection = self.connections.get(effect.to.connection)
        if connection is None or connection.closed:
            return
        connection.stop()
        connection.closed = True  # nothing more is read or answered
        self.loop.call_later(effect.after_ms / 1000, self.refuse_now, connection, effect)

    def refuse_now(self, connection: Connection, effect: Refuse) -> None:
        if self.connections.get(effect.to.connection) is connection:
            connection.reply(Reply(effect.to, effect.message))
            connection.refuse(effect.why, "failed logins")

    def sweep(self) -> None:
        """Close connections that were silent for a whole round and wait for no answer. A connection is closed after
        one to two times the idle limit's half, so never before half of it and never after the whole."""
        assert self.config.idle_ms_max > 0
        for connection in list(self.connections.values()):
            is_idle = not (connection.heard or connection.slots or connection.throttles)
            if is_idle and not connection.closed:
                log.debug("closing idle connection %d from %s", connection.number, connection.caller.host)
                connection.close()
            connection.heard = False
        self.sweeper = self.loop.call_later(self.config.idle_ms_max / 2000, self.sweep)

    async def close(self, patience: float = 0.5) -> None:
        """Stop listening; let what is written go out for at most `patience` seconds."""
        if self.sweeper is not None:
            self.sweeper.cancel()
        self.watch.end()
        for acceptor in self.acceptors:
            acceptor.close()
        for _, sock in self.bound:
            sock.close()
        for task in list(self.coming):
            task.cancel()
        for connection in list(self.connections.values()):
            connection.close()
        deadline = self.loop.time() + patience
        while self.connections and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in list(self.connections.values()):
            connection.transport.abort()
