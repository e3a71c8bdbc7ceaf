"""Relays: who is cut off reaches nobody and is not reached, connections stay up, and all arrives once it heals."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from strandline.testing.local_cluster import HOST, free_ports
from strandline.testing.relays import CLIENTS, HEAD, Relays, Way


@pytest.fixture
def relays() -> Iterator[Relays]:
    with closing(Relays()) as relays:
        yield relays


@pytest.fixture
def echo() -> Iterator[int]:
    """A node's listener, which sends back what it gets; its port."""
    with socket.create_server((HOST, 0)) as server:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                while piece := connection.recv(1 << 16):
                    connection.sendall(piece)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def before(relays: Relays, node: int, port: int) -> int:
    (at,) = free_ports(1)
    relays.before(node, port, at)
    return at


def request(client_id: bytes, body: bytes = b"") -> bytes:
    return HEAD.pack(10 + len(client_id) + len(body), 3, 9, 7, len(client_id)) + client_id + body


def connected(port: int, client_id: bytes, body: bytes = b"") -> socket.socket:
    connection = socket.create_connection((HOST, port), timeout=5)
    connection.sendall(request(client_id, body))
    return connection


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        assert piece, "closed"
        found += piece
    return found


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)
    return False


def test_bytes_pass_both_ways_and_none_is_lost(relays: Relays, echo: int) -> None:
    body = bytes(range(256)) * 2000
    with connected(before(relays, 1, echo), b"strandline-2", body) as connection:
        assert received(connection, len(request(b"strandline-2", body))) == request(b"strandline-2", body)
        connection.sendall(b"more")
        assert received(connection, 4) == b"more"


@pytest.mark.parametrize("cut_off", [1, 2])
@pytest.mark.parametrize("client_id", [b"strandline-2", b"rdkafka"])
def test_a_node_that_is_cut_off_reaches_no_other_and_is_not_reached(
    relays: Relays, echo: int, cut_off: int, client_id: bytes
) -> None:
    """Node 2, or a client, speaks with node 1."""
    with connected(before(relays, 1, echo), client_id) as connection:
        received(connection, len(request(client_id)))
        relays.cut_off(cut_off)
        connection.sendall(b"held back")
        concerned = cut_off == 1 or client_id == b"strandline-2"
        assert is_silent(connection) == concerned
        relays.heal()
        assert received(connection, 9) == b"held back"


def test_a_connection_that_is_opened_to_a_node_that_is_cut_off_waits(relays: Relays, echo: int) -> None:
    port = before(relays, 1, echo)
    relays.cut_off(1)
    with connected(port, b"x") as connection:
        assert is_silent(connection)
        relays.heal()
        assert received(connection, len(request(b"x"))) == request(b"x")


def test_where_nobody_listens_nobody_is_let_in_and_the_port_is_kept(relays: Relays) -> None:
    (port,) = free_ports(1)
    at = relays.before(1, port)
    with pytest.raises(ConnectionRefusedError):
        connected(at, b"x")
    with socket.create_server((HOST, port)) as server:
        connection = eventually_connected(at)
        with connection, server.accept()[0]:
            pass


def test_when_the_node_ends_its_connections_end_and_further_ones_are_refused_from_then_on(relays: Relays) -> None:
    with socket.create_server((HOST, 0)) as server:
        at = relays.before(1, server.getsockname()[1])
        server.accept()[0].close()  # the relay's own look
        connection = connected(at, b"x")
        there = server.accept()[0]
        received(there, len(request(b"x")))
    there.close()
    with connection, pytest.raises(OSError, match="reset"):
        connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connected(at, b"x")


def test_a_node_that_is_cut_off_does_not_get_what_it_is_sent(relays: Relays) -> None:
    with socket.create_server((HOST, 0)) as server:
        at = relays.before(1, server.getsockname()[1])
        server.accept()[0].close()
        with connected(at, b"x") as connection, server.accept()[0] as there:
            received(there, len(request(b"x")))
            relays.cut_off(1)
            connection.sendall(b"held back")
            assert is_silent(there)
            relays.heal()
            assert received(there, 9) == b"held back"


def eventually_connected(port: int) -> socket.socket:
    for _ in range(500):
        try:
            return connected(port, b"x")
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("refused for 5 s")


@pytest.mark.parametrize("way", [Way(2, 1), Way(1, 2), Way(2, 1, 0), Way(CLIENTS, 1), Way(2, 3)])
def test_one_way_is_cut_and_the_other_is_not(relays: Relays, echo: int, way: Way) -> None:
    """Node 2 asks node 1. A port of 0 stands for that of the listener."""
    way = Way(way.source, way.target, None if way.port is None else echo)
    with connected(before(relays, 1, echo), b"strandline-2") as connection:
        received(connection, len(request(b"strandline-2")))
        relays.cut(way)
        connection.sendall(b"held back")
        concerned = {way.source, way.target} == {1, 2}
        assert is_silent(connection) == concerned
        relays.mend(way)
        assert received(connection, 9) == b"held back"


def test_a_cut_of_another_listener_does_not_count(relays: Relays, echo: int) -> None:
    relays.cut(Way(2, 1, echo + 1), Way(1, 2, echo + 1))
    with connected(before(relays, 1, echo), b"strandline-2") as connection:
        assert received(connection, len(request(b"strandline-2")))


def test_a_slow_way_delivers_late_and_in_order(relays: Relays, echo: int) -> None:
    with connected(before(relays, 1, echo), b"strandline-2") as connection:
        received(connection, len(request(b"strandline-2")))
        relays.slow(0.5, Way(1, 2))
        connection.sendall(b"late")
        assert is_silent(connection)
        relays.mend(Way(1, 2))
        assert relays.delays_s == {}
        connection.sendall(b"r")
        assert received(connection, 5) == b"later"


def test_a_client_that_disconnects_leaves_nothing(relays: Relays, echo: int) -> None:
    port = before(relays, 1, echo)
    socket.create_connection((HOST, port)).close()
    with connected(port, b"x") as connection:
        assert received(connection, len(request(b"x"))) == request(b"x")
