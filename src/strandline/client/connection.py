"""One blocking connection to one broker: requests go out, answers come back in the same order.

What a connection knows of its broker: the versions of each API, learned when it opens. Invariants:
  - answers are matched to requests by order and by correlation id; any mismatch breaks the connection
  - after any error the connection is closed: nobody reads the rest of an answer
  - the memory of an answer belongs to the connection and holds until the next answer is read from it
"""

import socket
import ssl
import time
from collections import deque
from struct import error as struct_error
from typing import Any, NamedTuple

from strandline.base import VERSION
from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer
from strandline.client.config import ClientConfig
from strandline.client.errors import Unreachable, Unsupported, refused
from strandline.client.security.sasl_options import Sasl
from strandline.client.security.tls import context_of
from strandline.wire.api import API_BY_KEY, OWN_KEYS, response_of
from strandline.wire.frame import Malformed, decode_response, encode_request
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.schema import Message

SOFTWARE = "strandline"
ANSWER_BYTES_MIN = 256 << 20  # of an answer's bound, which rises with fetch.max.bytes
FIRST_BUFFER_BYTES = 64 << 10
GATHERED_BYTES_MAX = 64 << 10  # smaller requests are sent in one piece
OF_LIFETIME = 0.85  # after which share of its lifetime a session is renewed, as Kafka's clients do
ERROR_AT = 4  # in an answer to ApiVersions, after the correlation id


class InFlight(NamedTuple):
    correlation_id: int
    response: type[Message]
    version: int


class Connection:
    def __init__(self, host: str, port: int, config: ClientConfig, *, learns_versions: bool = True) -> None:
        """Connects; raises `Unreachable`, `AuthenticationFailed` or `Unsupported`. Without `learns_versions` each
        request says its own."""
        self.host = host
        self.port = port
        self.config = config
        self.in_flight: deque[InFlight] = deque()
        self.correlation_id = 0
        self.buffer = bytearray(FIRST_BUFFER_BYTES)
        self.versions: dict[int, range] = {}
        self.is_open = False
        self.used_at = time.monotonic()
        self.log_in_at = 0.0  # again, before the broker insists (KIP-368); 0: never
        self.socket = self.connected()
        self.is_open = True
        try:
            if learns_versions:
                self.learn_versions()
            if config.sasl is not None:
                self.log_in(config.sasl)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"{self.host}:{self.port}"

    def connected(self) -> socket.socket:
        config = self.config
        try:
            plain = socket.create_connection((self.host, self.port), config.setup_timeout_ms / 1000)
        except (OSError, UnicodeError) as error:  # the second for what can be no name of a host
            text = f"cannot connect to {self.host}:{self.port}: {reason_of(error)}"
            raise Unreachable(text, cause=error) from None
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if config.receive_buffer_bytes > 0:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer_bytes)
            if config.send_buffer_bytes > 0:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.send_buffer_bytes)
            if config.tls is None:
                return plain
            return context_of(config.tls).wrap_socket(plain, server_hostname=self.host)
        except OSError as error:
            plain.close()
            hint = "does the broker speak TLS there?" if not isinstance(error, ssl.SSLCertVerificationError) else ""
            raise Unreachable(f"no TLS with {self.host}:{self.port}: {reason_of(error)}", hint, error) from None
        except BaseException:
            plain.close()
            raise

    def close(self) -> None:
        self.is_open = False
        self.in_flight.clear()
        self.socket.close()

    def log_in(self, sasl: Sasl) -> None:
        from strandline.client.security.sasl import authenticate  # most connections need none

        self.log_in_at = 0.0  # or the requests for it would ask for it
        self.buffer = bytearray(FIRST_BUFFER_BYTES)  # views of the old one may be alive
        lifetime_ms = authenticate(self, sasl)
        if lifetime_ms:
            self.log_in_at = time.monotonic() + lifetime_ms / 1000 * OF_LIFETIME

    # --- versions

    def learn_versions(self) -> None:
        cls = ApiVersionsRequest
        answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        for version in (3, 0):  # who does not know the first answers the second, whatever was asked (KIP-511)
            message = cls(client_software_name=SOFTWARE, client_software_version=VERSION)
            self.send(message, version)
            frame = self.receive_frame(self.config.setup_timeout_ms)
            self.in_flight.popleft()
            is_old = int.from_bytes(frame[ERROR_AT : ERROR_AT + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
            answer = self.decoded(ApiVersionsResponse, 0 if is_old else version, frame, self.correlation_id)
            if not is_old:
                break
        if answer.error_code:
            raise refused(answer.error_code, f"{self} does not report its versions")
        self.versions = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}

    def has_api(self, key: int) -> bool:
        """Is the broker known to answer requests of this key? Brokers do not list our own APIs."""
        return key in self.versions

    def version_of(self, cls: type[Message]) -> int:
        """The highest version that both sides know. Raises `Unsupported`."""
        theirs = self.versions.get(cls.api_key)
        if theirs is None and cls.api_key >= OWN_KEYS:
            return cls.versions[-1]
        name = API_BY_KEY[cls.api_key].name if cls.api_key in API_BY_KEY else cls.__name__
        if theirs is None:
            raise Unsupported(f"{self} does not offer the API {name}")
        version = min(theirs[-1], cls.versions[-1])
        if version not in theirs or version not in cls.versions:
            raise Unsupported(
                f"{self} offers the API {name} in versions {theirs[0]} to {theirs[-1]},"
                f" and we speak {cls.versions[0]} to {cls.versions[-1]}"
            )
        return version

    # --- requests and answers

    def send(
        self, message: Message, version: int, *, response: type[Message] | None = None, expects_answer: bool = True
    ) -> None:
        """Send one request. Raises `Unreachable`. Without an answer (Produce with acks=0) nothing is noted."""
        if self.log_in_at and not self.in_flight and time.monotonic() >= self.log_in_at:
            assert self.config.sasl is not None
            self.log_in(self.config.sasl)
        self.correlation_id = (self.correlation_id + 1) & 0x7FFF_FFFF
        chunks = encode_request(message, version, self.correlation_id, self.config.client_id)
        if expects_answer:
            cls = response or response_of(message.api_key)
            self.in_flight.append(InFlight(self.correlation_id, cls, version))
        self.socket_timeout(self.config.request_timeout_ms)
        try:
            self.write(chunks)
        except OSError as error:
            raise self.broken(error) from None

    def write(self, chunks: list[Buffer]) -> None:
        small: list[Buffer] = []
        for chunk in chunks:
            if len(chunk) < GATHERED_BYTES_MAX:
                small.append(chunk)
                continue
            if small:
                self.socket.sendall(b"".join(small))
                small = []
            self.socket.sendall(chunk)
        if small:
            self.socket.sendall(b"".join(small))

    def receive(self, timeout_ms: float | None = None) -> Any:
        """The answer to the oldest request in flight. Its records, if any, hold until the next call.

        Raises `Unreachable` if it does not come within `timeout_ms` (default: request.timeout.ms)."""
        frame = self.receive_frame(self.config.request_timeout_ms if timeout_ms is None else timeout_ms)
        asked = self.in_flight.popleft()
        return self.decoded(asked.response, asked.version, frame, asked.correlation_id)

    def ask(self, message: Message, version: int | None = None, timeout_ms: float | None = None, **how: Any) -> Any:
        """The answer to one request; none may be in flight before it."""
        assert not self.in_flight
        self.send(message, self.version_of(type(message)) if version is None else version, **how)
        return self.receive(timeout_ms)

    def decoded(self, cls: type[Message], version: int, frame: memoryview, expected: int) -> Any:
        try:
            correlation_id, answer = decode_response(cls, version, frame)
        except (Malformed, struct_error) as error:
            raise self.broken(error) from None
        if correlation_id != expected:
            raise self.broken(f"answer {correlation_id} came where {expected} was awaited")
        return answer

    def receive_frame(self, timeout_ms: float) -> memoryview:
        until = time.monotonic() + timeout_ms / 1000
        self.fill(memoryview(self.buffer)[:4], until)
        size = int.from_bytes(self.buffer[:4], "big")
        if not 4 <= size <= max(ANSWER_BYTES_MIN, 2 * self.config.fetch_max_bytes):
            raise self.broken(f"an answer of {size} bytes is announced")
        if size > len(self.buffer):
            # A new one: views of the old one may be alive. Not more than arrives is ever touched.
            self.buffer = bytearray(size + (size >> 3))
        frame = memoryview(self.buffer)[:size]
        self.fill(frame, until)
        self.used_at = time.monotonic()
        return frame

    def fill(self, view: memoryview, until: float) -> None:
        """Receive until `view` is full."""
        position, size = 0, len(view)
        while position < size:
            self.socket_timeout((until - time.monotonic()) * 1000)
            try:
                count = self.socket.recv_into(view[position:])
            except OSError as error:
                raise self.broken(error) from None
            if not count:
                raise self.broken("it closed the connection")
            position += count

    def socket_timeout(self, timeout_ms: float) -> None:
        self.socket.settimeout(max(timeout_ms, 1) / 1000)

    def broken(self, why: object) -> Unreachable:
        self.close()
        cause = why if isinstance(why, Exception) else None
        return Unreachable(f"the connection to {self} broke: {reason_of(why)}", cause=cause)

    def is_stale(self) -> bool:
        """Has the other side closed it, or sent what nobody asked for, while it lay idle?"""
        if not self.is_open or self.in_flight:
            return True
        try:
            self.socket.settimeout(0)
            if isinstance(self.socket, ssl.SSLSocket):
                return bool(self.socket.recv(1)) or True
            return len(self.socket.recv(1, socket.MSG_PEEK)) >= 0
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True


def reason_of(error: object) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
