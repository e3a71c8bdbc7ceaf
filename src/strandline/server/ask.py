"""One question to one node over a blocking socket: for tools that look at a cluster from outside."""

import socket
from typing import Any

from strandline.wire.api import response_of
from strandline.wire.frame import decode_response, encode_request

ANSWER_BYTES_MAX = 100 << 20
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
