"""Handshakes of TLS, on connections that were just accepted. Each gets the context of the moment.

Invariants:
  - the node hears of no connection whose handshake did not succeed;
  - a handshake lasts at most `HANDSHAKE_S`, and at most `HANDSHAKES_MAX` connections are on their way, and as many more
    on listeners of nodes.
"""

import asyncio
import socket
from collections.abc import Callable

from strandline.base.value import Value
from strandline.server.tls.alerts import alerts
from strandline.server.tls.listener_tls import ListenerTls
from strandline.server.tls.words import is_closed, why_failed

HANDSHAKE_S = 10.0
SHUTDOWN_S = 5.0  # for a client that does not answer the end of the encrypted stream
HANDSHAKES_MAX = 1000


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
