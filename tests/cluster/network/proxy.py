"""A relay before every listener of every node, where namespaces are not to be had.

All that goes to a node, from clients, brokers and controllers, goes through its relays; so a relay knows whom bytes
are for, and not whom they are from: a cut between two nodes becomes one between everybody and the second. Bytes of a
way that is cut are kept in the kernel's buffers until it heals, and connections stay up, as in a real partition.
"""

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.cluster.network.placing import CLIENTS, PlacedCluster, PlacedNode

from strandline.testing.local_cluster import HOST

CHUNK = 1 << 16
ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Way:
    """One direction through all relays of a node."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0


class Relay:
    """From one port to another."""

    def __init__(self, target: int, up: Way, down: Way) -> None:
        self.target = target
        self.up = up
        self.down = down
        self.pairs: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.up.is_open.wait()
        try:
            there, back = await asyncio.open_connection(HOST, self.target)
        except OSError:
            abort(writer)  # nobody listens there, which whoever asks shall see
            return
        self.pairs[writer] = back
        try:
            await asyncio.gather(self.pump(reader, back, self.up), self.pump(there, writer, self.down))
        finally:
            del self.pairs[writer]
            abort(writer)
            abort(back)

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Way) -> None:
        """Until either side ends; then both do."""
        try:
            while piece := await source.read(CHUNK):
                if way.delay_s:
                    await asyncio.sleep(way.delay_s)
                await way.is_open.wait()
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        raise ConnectionResetError


def abort(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    with suppress(RuntimeError):
        writer.transport.abort()


class Proxies:
    """Relays in a thread with a loop of its own; the methods are called from others."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.relays: list[Relay] = []
        self.ways: dict[int, tuple[Way, Way]] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True, name="proxies").start()

    def do(self, act: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(act, self.loop).result(10)

    def before(self, node: int, port: int) -> int:
        """A port that leads to this one of the node."""

        async def listen() -> int:
            up, down = self.ways.setdefault(node, (Way(), Way()))
            relay = Relay(port, up, down)
            self.relays.append(relay)

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with suppress(OSError):
                    await relay.serve(reader, writer)

            server = await asyncio.start_server(serve, HOST, 0)
            found: int = server.sockets[0].getsockname()[1]
            return found

        found: int = self.do(listen())
        return found

    # --- faults

    def cut(self, a: int, b: int, *, both: bool) -> None:
        node = b if b != CLIENTS else a
        self.isolate_ways(node, up=True, down=both)

    def isolate(self, node: int, *, both: bool) -> None:
        """One way: what it is asked arrives, and its answers are lost."""
        self.isolate_ways(node, up=both, down=True)

    def isolate_ways(self, node: int, *, up: bool, down: bool) -> None:
        async def close() -> None:
            for way, is_cut in zip(self.ways[node], (up, down), strict=True):
                if is_cut:
                    way.is_open.clear()

        self.do(close())

    def slow(self, node: int, delay_ms: int) -> bool:
        self.ways[node][1].delay_s = delay_ms / 1000
        return True

    def heal(self) -> None:
        async def open_all() -> None:
            for ways in self.ways.values():
                for way in ways:
                    way.delay_s = 0.0
                    way.is_open.set()

        self.do(open_all())

    def break_off(self, rng: Random) -> int:
        async def choose() -> int:
            found = [writer for relay in self.relays for writer in relay.pairs]
            chosen = rng.sample(found, min(5, len(found)))
            for writer in chosen:
                abort(writer)
            return len(chosen)

        count: int = self.do(choose())
        return count


class ProxiedCluster(PlacedCluster):
    def __init__(self, folder: Path, nodes: int, properties: dict[str, str]) -> None:
        super().__init__(folder, nodes, properties)
        self.wires = Proxies()
        self.controllers = {n.node_id: self.wires.before(n.node_id, n.controller_port) for n in self.nodes}
        self.place(
            [PlacedNode(node, HOST, f"{HOST}:{self.wires.before(node.node_id, node.port)}") for node in self.nodes]
        )

    def voter(self, asker: int, other: PlacedNode, key: str) -> str:
        is_way_there = key == "controller.quorum.voters" and asker != other.node_id
        return f"{HOST}:{self.controllers[other.node_id] if is_way_there else other.controller_port}"
