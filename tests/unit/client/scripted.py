"""A broker of few words for tests: real sockets and frames, answers by a table, and SASL and TLS if asked for.

Each connection has a thread, which ends with its connection.
"""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from strandline.wire.api import API_BY_KEY
from strandline.wire.codec import decoder_of
from strandline.wire.frame import encode_response, has_tagged_response_header
from strandline.wire.messages.cluster.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

REQUESTS = {17: SaslHandshakeRequest, 36: SaslAuthenticateRequest}
Answer = Callable[[Any], Any]


class Session:
    """What one connection has said so far; answers may keep what they like in it."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.scram: Any = None


class ScriptedBroker:
    """`answers[api key](session, request)` is the response, or None to close the connection."""

    def __init__(
        self,
        answers: dict[int, Callable[[Session, Any], Any]] | None = None,
        tls: ssl.SSLContext | None = None,
        versions_max: dict[int, int] | None = None,
    ) -> None:
        self.answers = {3: self.metadata, 18: self.api_versions, **(answers or {})}
        self.tls = tls
        self.versions_max = versions_max or {}
        self.sessions: list[Session] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]

    def __enter__(self) -> Self:
        self.threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(5)

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                plain = self.listener.accept()[0]
                thread = threading.Thread(target=self.serve, args=(plain,), daemon=True)
                self.threads.append(thread)
                thread.start()

    def serve(self, plain: socket.socket) -> None:
        session = Session()
        self.sessions.append(session)
        plain.settimeout(2)
        with suppress(OSError), plain:
            connection = self.tls.wrap_socket(plain, server_side=True) if self.tls else plain
            with connection:
                while frame := received(connection):
                    answer = self.answered(session, frame)
                    if answer is None:
                        return
                    connection.sendall(answer)

    def answered(self, session: Session, frame: bytes) -> bytes | None:
        key, version, correlation_id = (int.from_bytes(frame[a:b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
        cls: Any = REQUESTS.get(key) or API_BY_KEY[key].request
        if version not in self.range_of(key):
            assert key == 18
            return b"".join(encode_response(ApiVersionsResponse(error_code=35), 0, correlation_id))
        position = 10 + int.from_bytes(frame[8:10], "big") + (1 if version in cls.flexible else 0)
        message = decoder_of(cls, version)(memoryview(frame), position)[0]
        session.said.append(message)
        answer = self.answers[key](session, message)
        if answer is None:
            return None
        assert has_tagged_response_header(type(answer), version) in (True, False)
        return b"".join(encode_response(answer, version, correlation_id))

    def range_of(self, key: int) -> range:
        cls: Any = REQUESTS.get(key) or API_BY_KEY[key].request
        return range(cls.versions[0], min(cls.versions[-1], self.versions_max.get(key, 99)) + 1)

    def api_versions(self, session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse:
        rows = [(key, self.range_of(key)) for key in sorted(self.answers)]
        return ApiVersionsResponse(
            api_keys=tuple(ApiVersion(api_key=k, min_version=r[0], max_version=r[-1]) for k, r in rows)
        )

    def metadata(self, session: Session, request: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port),))


def received(connection: socket.socket) -> bytes:
    size = int.from_bytes(exactly(connection, 4), "big")
    return exactly(connection, size)


def exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            return b""
        found += piece
    return found
