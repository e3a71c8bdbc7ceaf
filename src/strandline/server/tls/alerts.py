"""TLS alerts of handshakes that fail: the other side learns from them why.

asyncio and uvloop close the connection without the alert that OpenSSL has written for it. So an error of the handshake
carries it out to whoever waits for the connection, who sends it by a second descriptor of the same socket.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class AlertingObject(ssl.SSLObject):
    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            error.alert = self.outgoing.read()  # type: ignore[attr-defined]  # for `alerts`
            raise


class AlertingContext(ssl.SSLContext):
    sslobject_class = AlertingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, AlertingObject)
        made.outgoing = outgoing
        return made


@contextmanager
def alerts(sock: socket.socket) -> Iterator[None]:
    """While a handshake of this socket is waited for, which is open now, and perhaps closed when that fails."""
    try:
        spare = sock.dup()
    except OSError:  # no more files: there will be no alert
        yield
        return
    try:
        yield
    except ssl.SSLError as error:
        with suppress(OSError):  # the other side is gone, or takes nothing
            spare.send(getattr(error, "alert", b""))
        raise
    finally:
        spare.close()
