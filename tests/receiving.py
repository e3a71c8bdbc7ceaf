"""Bytes of a socket, for tests that speak to one by hand."""

import socket


def receive(connection: socket.socket, size: int) -> bytearray:
    buffer = bytearray()
    while len(buffer) < size:
        piece = connection.recv(min(size - len(buffer), 1 << 20))
        if not piece:
            raise ConnectionError("the connection was closed before the answer was complete")
        buffer += piece
    return buffer
