"""Connections of a listener with TLS: accepted here, and given to the node when the handshake has succeeded.

asyncio's own servers report no failed handshake, and have one context for ever. So each socket is accepted here and is
given the context of the moment.

Invariants:
  - the node hears of no connection whose handshake did not succeed;
  - a handshake lasts at most `HANDSHAKE_S`, and at most `HANDSHAKES_MAX` are on their way at a listener.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from strandline.base.value import Value
from strandline.server.tls.alerts import alerts
from strandline.server.tls.listener_tls import ListenerTls
from strandline.server.tls.words import is_closed, why_failed

log = logging.getLogger("strandline")

HANDSHAKE_S = 10.0
SHUTDOWN_S = 5.0  # for a client that does not answer the end of the encrypted stream
HANDSHAKES_MAX = 1000
ACCEPTED_AT_ONCE = 64
NO_FILES_S = 0.5  # until the next try, where the process has no more files to open
NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Refusal(Value, frozen=True):
    why: str
    is_closed: bool  # by the other side, without a word


async def shake_hands(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, make: Callable[[], asyncio.BaseProtocol], tls: ListenerTls
) -> Refusal | None:
    """None: the handshake has succeeded, and the protocol has its connection. The loop owns the socket from here on,
    and closes it otherwise."""
    try:
        with alerts(sock):
            await loop.connect_accepted_socket(
                make, sock, ssl=tls.server, ssl_handshake_timeout=HANDSHAKE_S, ssl_shutdown_timeout=SHUTDOWN_S
            )
    except (OSError, TimeoutError) as error:
        return Refusal(why_failed(error), is_closed(error))
    return None


class TlsServer:
    """As asyncio's servers, with `close`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        backlog: int,
        tls: ListenerTls,
        make: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self.loop = loop
        self.sock = sock
        self.tls = tls
        self.make = make
        self.on_their_way: set[asyncio.Task[None]] = set()
        self.is_accepting = False
        self.is_closed = False
        sock.setblocking(False)
        sock.listen(backlog)
        self.accept_again()

    def accept_again(self) -> None:
        if not self.is_accepting and not self.is_closed and len(self.on_their_way) < HANDSHAKES_MAX:
            self.is_accepting = True
            self.loop.add_reader(self.sock.fileno(), self.accept)

    def pause(self) -> None:
        assert self.is_accepting
        self.is_accepting = False
        self.loop.remove_reader(self.sock.fileno())

    def accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, address = self.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_FILES:
                    raise
                log.error("listener %s cannot accept connections: %s", self.tls.name, error.strerror)
                self.pause()
                self.loop.call_later(NO_FILES_S, self.accept_again)
                return
            sock.setblocking(False)
            task = self.loop.create_task(self.let_in(sock, address[0]))
            self.on_their_way.add(task)
            task.add_done_callback(self.ended)
            if len(self.on_their_way) >= HANDSHAKES_MAX:
                self.pause()
                return

    async def let_in(self, sock: socket.socket, host: str) -> None:
        refusal = await shake_hands(self.loop, sock, self.make, self.tls)
        if refusal is not None:
            # Whoever only looks whether somebody listens closes the connection, and looks often.
            level = logging.DEBUG if refusal.is_closed else logging.WARNING
            log.log(level, "no TLS with %s on %s: %s", host, self.tls.name, refusal.why)

    def ended(self, task: "asyncio.Task[None]") -> None:
        self.on_their_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.loop.call_exception_handler({"message": "a handshake", "exception": error})
        self.accept_again()

    def close(self) -> None:
        self.is_closed = True
        if self.is_accepting:
            self.pause()
        for task in list(self.on_their_way):
            task.cancel()
