"""A network that can be partitioned, for nodes of one machine: a relay before each listener through which others come.

A relay knows whom bytes are for, and learns from the first request of a connection whom they are from: nodes say who
they are in their client id. So a node can be cut off from all others and from clients, in both directions. What is sent
meanwhile waits in the kernel's buffers, and connections stay up, as when a cable is pulled.
"""

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from strandline.testing.local_cluster import HOST

CHUNK = 1 << 16
HEAD = struct.Struct(">ihhih")  # of a frame: its size, API key and version, correlation id, length of the client id
NODE = re.compile(rb"strandline-(\d+)")
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Relays:
    """They run in a thread with a loop of its own; the methods are called from others."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lost: dict[int, None] = {}  # nodes that are cut off
        self.changed = asyncio.Event()
        self.servers: list[asyncio.Server] = []
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="relays")
        self.thread.start()

    def do(self, act: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(act, self.loop).result(10)

    def before(self, node: int, port: int, at: int) -> None:
        """Whoever comes to the port `at` is led to this one of the node."""

        async def listen() -> None:
            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    # asyncio complains of a connection's task that ends as one that was cancelled.
                    with suppress(OSError, EOFError, asyncio.CancelledError):
                        await self.serve(node, port, reader, writer)
                finally:
                    abort(writer)

            self.servers.append(await asyncio.start_server(serve, HOST, at))

        self.do(listen())

    async def serve(self, node: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(HEAD.size)
        head += await reader.readexactly(max(0, HEAD.unpack(head)[4]))
        asker = NODE.fullmatch(head[HEAD.size :])
        ends = (node, int(asker[1])) if asker else (node,)
        await self.passable(ends)
        there, back = await asyncio.open_connection(HOST, port)
        back.write(head)
        both = (self.pump(reader, back, ends), self.pump(there, writer, ends))
        pumps = [self.loop.create_task(pump) for pump in both]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            abort(back)

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, ends: tuple[int, ...]) -> None:
        with suppress(OSError):
            while piece := await source.read(CHUNK):
                await self.passable(ends)
                sink.write(piece)
                await sink.drain()

    async def passable(self, ends: tuple[int, ...]) -> None:
        while any(node in self.lost for node in ends):
            await self.changed.wait()

    async def change(self, lost: dict[int, None]) -> None:
        self.lost = lost
        self.changed.set()
        self.changed = asyncio.Event()

    def cut_off(self, node: int) -> None:
        self.do(self.change({**self.lost, node: None}))

    def heal(self) -> None:
        self.do(self.change({}))

    def close(self) -> None:
        async def end() -> None:
            for server in self.servers:
                server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.01)  # transports close in the loop's next turns

        self.do(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def abort(writer: asyncio.StreamWriter) -> None:
    """Whoever waits at the other end sees at once that nobody is there."""
    connection = writer.get_extra_info("socket")
    with suppress(OSError, RuntimeError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()
