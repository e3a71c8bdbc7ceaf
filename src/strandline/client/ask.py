"""One question to one node over a blocking socket, or to any node that answers: for commands that look at a cluster."""

import socket
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.client.errors import BadOption, StrandlineError
from strandline.wire.api import response_of
from strandline.wire.frame import Malformed, decode_response, encode_request

ANSWER_BYTES_MAX = 100 << 20
ANY_TIMEOUT_S = 10.0
CLIENT_ID = "strandline-ask"


def ask(host: str, port: int, message: Any, version: int, timeout_s: float = 5.0) -> Any:
    """The answer to `message`. Raises OSError if there is none in time, Malformed if it makes no sense."""
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(b"".join(encode_request(message, version, 1, CLIENT_ID)))
        size = int.from_bytes(receive(connection, 4), "big")
        if not 0 <= size <= ANSWER_BYTES_MAX:
            raise ConnectionError(f"{host}:{port} announces an answer of {size} bytes")
        frame = memoryview(receive(connection, size))
    return decode_response(response_of(message.api_key), version, frame)[1]


def receive(connection: socket.socket, size: int) -> bytearray:
    buffer = bytearray()
    while len(buffer) < size:
        piece = connection.recv(min(size - len(buffer), 1 << 20))
        if not piece:
            raise ConnectionError("the connection was closed before the answer was complete")
        buffer += piece
    return buffer


def ask_any(bootstrap: str, message: Any, version: int, timeout_s: float = ANY_TIMEOUT_S) -> Any:
    """The answer of the first node of "host:port,host:port" that gives one. Raises StrandlineError if none does, or if
    the answer refuses the whole request."""
    problems = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not port.isdigit():
            raise BadOption(f"{server!r} is not host:port")
        try:
            answer = ask(host.strip("[]") or "127.0.0.1", int(port), message, version, timeout_s)
        except (OSError, Malformed) as error:
            problems.append(f"{server}: {error}")
            continue
        error_code = ErrorCode(getattr(answer, "error_code", 0))
        if error_code is not ErrorCode.NONE:
            raise StrandlineError(getattr(answer, "error_message", None) or error_code.name)
        return answer
    raise StrandlineError(
        f"no node answers ({'; '.join(problems)})",
        "start a cluster with `strandline up`, or name another with --bootstrap-server",
    )
