"""Accepting connections of one listener, within the limits.

While the limits let no connection in, none is accepted: those that come wait in the kernel's queue
(`socket.listen.backlog.size`), as with Kafka's acceptor. A connection that is refused costs one system call to accept
it and one to close it, and no object of the loop.

Invariants:
  - every connection that `ConnectionLimits.opened` counted is in the hands of the loop, or `closed` was called for it;
  - an acceptor that waits is woken: by time, or by the next connection that closes.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress

from strandline.server.network.limits import NOW, UNTIL_ONE_CLOSES, ConnectionLimits, plain
from strandline.server.network.refusals import REFUSED, LogLimit, log

AT_ONCE_MAX = 32  # connections, then others have their turn
PAUSED_MAX = 256  # connections over the rate of their address, that wait to be closed
LIMITS_S = 5.0  # after that the limits may be others
PAUSE_S = 0.5  # when there are no files left
NO_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

# Makes the loop serve a connection of this address. Raises OSError if the other side has gone meanwhile.
Admit = Callable[[socket.socket, str], None]


class Acceptor:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        sock: socket.socket,
        limits: ConnectionLimits,
        log_limit: LogLimit,
        admit: Admit,
    ) -> None:
        self.loop = loop
        self.name = name
        self.sock = sock
        self.limits = limits
        self.log_limit = log_limit
        self.admit = admit
        self.is_listening = False  # does the loop call `ready`?
        self.wake: asyncio.TimerHandle | None = None
        self.waits_for_close = False
        self.paused: dict[socket.socket, asyncio.TimerHandle] = {}
        self.throttled_ms = 0  # that it has waited for rates

    def begin(self, backlog: int) -> None:
        self.sock.setblocking(False)
        self.sock.listen(backlog)
        self.listen()

    def listen(self) -> None:
        self.wake = None
        if not self.is_listening:
            self.is_listening = True
            self.loop.add_reader(self.sock.fileno(), self.ready)

    def rest(self, wait_ms: int) -> None:
        """Accept nothing for so long, or until a connection closes, or the limits may be others."""
        assert self.wake is None, "it waits already"
        if self.is_listening:
            self.is_listening = False
            self.loop.remove_reader(self.sock.fileno())
        self.waits_for_close = wait_ms == UNTIL_ONE_CLOSES
        self.wake = self.loop.call_later(LIMITS_S if self.waits_for_close else wait_ms / 1000, self.listen)

    def one_closed(self) -> None:
        if self.waits_for_close and self.wake is not None:
            self.wake.cancel()
            self.listen()

    def ready(self) -> None:
        for _ in range(AT_ONCE_MAX):
            now_ms = self.now_ms()
            wait_ms = self.limits.wait_ms(self.name, now_ms)
            if wait_ms != NOW:
                self.throttled_ms += max(wait_ms, 0)
                self.rest(wait_ms)
                return
            try:
                sock, peer = self.sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_RESOURCES:
                    if self.log_limit.may_print("failures to accept", self.name, now_ms):
                        log.warning("cannot accept connections on %s: %s", self.name, error.strerror)
                    self.rest(int(1000 * PAUSE_S))
                    return
                continue  # the other side has gone already: there may be another one behind it
            self.accepted(sock, plain(peer[0]), now_ms)

    def accepted(self, sock: socket.socket, address: str, now_ms: int) -> None:
        refusal = self.limits.why_refused(address, now_ms)
        if refusal is not None:
            why, pause_ms = refusal
            if self.log_limit.may_print(REFUSED, address, now_ms):
                log.warning("refused a connection from %s on %s: %s", address, self.name, why)
            if pause_ms and len(self.paused) < PAUSED_MAX:
                self.paused[sock] = self.loop.call_later(pause_ms / 1000, self.pause_over, sock)
            else:
                sock.close()
            return
        sock.setblocking(False)
        self.limits.opened(self.name, address, now_ms)
        self.admit(sock, address)

    def pause_over(self, sock: socket.socket) -> None:
        del self.paused[sock]
        sock.close()

    def now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def close(self) -> None:
        if self.is_listening:
            self.is_listening = False
            self.loop.remove_reader(self.sock.fileno())
        if self.wake is not None:
            self.wake.cancel()
            self.wake = None
        for sock, timer in list(self.paused.items()):
            timer.cancel()
            sock.close()
        self.paused.clear()
        with suppress(OSError):
            self.sock.close()
