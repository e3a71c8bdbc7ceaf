"""Metrics over HTTP: GET /metrics in Prometheus' text format, on a port of its own.

A scrape reads the node's state between its events, a few hundred partitions at a time, and lets the node work in
between. One scrape runs at a time; the others wait. What goes wrong in one is an answer with status 500 and a line in
the log: reading changes nothing, so the node goes on.

Bounds: `CONNECTIONS_MAX` connections, `REQUEST_BYTES_MAX` bytes and `HEAD_S` seconds for a request, `PATIENCE_S` for
its answer. Over the number, the oldest connection whose other side is waited for gives way to the new one, so that idle
connections block no scrape.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus

from strandline.base.effects import Endpoint
from strandline.base.metrics import Family
from strandline.broker.metrics import gauges
from strandline.broker.node import Node
from strandline.server.clock import Clock
from strandline.server.metrics import of_limits, process
from strandline.server.metrics.exposition import CONTENT_TYPE, text_of
from strandline.server.metrics.long_steps import LongSteps
from strandline.server.metrics.otlp import Otlp, is_installed
from strandline.server.metrics.pushed import text_of_pushed
from strandline.server.metrics.traffic import Traffic
from strandline.server.network.net import Net

log = logging.getLogger("strandline")

CONNECTIONS_MAX = 16
REQUEST_BYTES_MAX = 16 * 1024
HEAD_S = 5.0
PATIENCE_S = 10.0
PARTITIONS_PER_TURN = 500


class MetricsServer:
    def __init__(self, at: Endpoint, net: Net) -> None:
        self.at = at
        self.net = net
        self.clock = Clock()
        self.traffic = Traffic()
        self.long_steps = LongSteps()
        net.make_connection = self.traffic.connection
        self.node: Node | None = None
        self.sock: socket.socket | None = None
        self.server: asyncio.Server | None = None
        self.connections: dict[asyncio.Task[None], None] = {}  # the oldest first
        self.idle: dict[asyncio.Task[None], None] = {}  # those that send no request, or do not read the answer
        self.scraping = asyncio.Lock()

    def bind(self) -> Endpoint:
        """Take the port; nobody is answered before `serve`. Returns where it really is."""
        assert self.sock is None, "bound once"
        family = socket.AF_INET6 if ":" in self.at.host else socket.AF_INET
        sock = self.sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self.at.host, self.at.port))
        except OSError as error:
            why = f"cannot serve metrics on {self.at.host}:{self.at.port}: {error.strerror}"
            raise OSError(error.errno, why) from error
        return Endpoint(self.at.host, sock.getsockname()[1])

    def show_telemetry(self, node: Node) -> None:
        """Before the node starts: from now on, clients may push metrics to it, if the library for them is there."""
        if node.broker is not None and is_installed():
            node.broker.telemetry.decoder = Otlp()

    async def serve(self, node: Node) -> None:
        assert self.sock is not None, "bound first"
        assert self.node is None, "served once"
        self.node = node
        self.server = await asyncio.start_server(self.connected, sock=self.sock, limit=REQUEST_BYTES_MAX)

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        if self.sock is not None:
            self.sock.close()
        tasks = list(self.connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- HTTP

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None and task not in self.connections
        if len(self.connections) >= CONNECTIONS_MAX and self.idle:
            oldest = next(iter(self.idle))
            del self.idle[oldest], self.connections[oldest]
            oldest.cancel()
        self.connections[task] = self.idle[task] = None
        writer.transport.set_write_buffer_limits(0)  # `drain` returns when the system has all of it
        try:
            if len(self.connections) <= CONNECTIONS_MAX:
                async with asyncio.timeout(HEAD_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                del self.idle[task]
                async with asyncio.timeout(PATIENCE_S):
                    writer.write(await self.answer(head))
                    self.idle[task] = None
                    await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # the asker is gone, too slow, or not an HTTP client: closing the connection is the answer
        except asyncio.CancelledError:
            # The node stops, or the connection gives way; Python 3.11 would report a cancelled task of a server as an
            # error of the loop.
            pass
        finally:
            self.connections.pop(task, None)
            self.idle.pop(task, None)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()  # it would wait for its reader for ever
            else:
                writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n"
        elif path != b"/metrics":
            status, body = HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n"
        else:
            status, body = await self.scraped()
        kind = CONTENT_TYPE if status is HTTPStatus.OK else "text/plain; charset=utf-8"
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        headers = "\r\n".join((*lines, "", "")).encode()
        return headers if method == b"HEAD" else headers + body

    async def scraped(self) -> tuple[HTTPStatus, bytes]:
        try:
            async with self.scraping:
                return HTTPStatus.OK, await self.page()
        except Exception:
            log.exception("metrics cannot be read")
            return HTTPStatus.INTERNAL_SERVER_ERROR, b"metrics cannot be read; the node's log says why\n"

    # --- the page

    async def page(self) -> bytes:
        node = self.node
        assert node is not None
        assert self.scraping.locked(), "one scrape at a time"
        readings: list[gauges.PartitionReading] = []
        if node.broker is not None:
            for reading in gauges.partition_readings(node.broker.replicas):
                readings.append(reading)
                if len(readings) % PARTITIONS_PER_TURN == 0:
                    await asyncio.sleep(0)
        pieces = []
        for text in text_of(self.families(node, readings)):
            pieces.append(text)
            if len(readings) > PARTITIONS_PER_TURN:
                await asyncio.sleep(0)
        if node.broker is not None:
            for text in text_of_pushed(node.broker.telemetry.pushed):
                pieces.append(text)
                await asyncio.sleep(0)
        return "".join(pieces).encode()

    def families(self, node: Node, readings: list[gauges.PartitionReading]) -> Iterator[Family]:
        yield from gauges.families(node, readings, self.clock.now())
        yield from self.traffic.families(self.net)
        yield from of_limits.families(self.net)
        yield from self.long_steps.families()
        yield from process.families()
