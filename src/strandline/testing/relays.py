"""A network that can be partitioned, for nodes of one machine: a relay before each listener through which others come.

A relay knows whom bytes are for, and learns from the first request of a connection whom they are from: nodes say who
they are in their client id. So a node can be cut off from all others and from clients, or one way can be cut or slowed
down. What is sent meanwhile waits in the kernel's buffers, and connections stay up, as when a cable is pulled.

Before a listener with TLS a relay ends the client's TLS, with the node's own certificate, and begins one to the node.

A relay before a node that does not listen does not listen either: so who connects to a dead process is refused at once,
as without a relay, and others notice its death as soon. It keeps its port meanwhile.
"""

import asyncio
import re
import socket
import ssl
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from strandline.testing.local_cluster import HOST

CHUNK = 1 << 16
HEAD = struct.Struct(">ihhih")  # of a frame: its size, API key and version, correlation id, length of the client id
NODE = re.compile(rb"strandline-(\d+)")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LOOKS_S = 0.02  # how often for a node that does not listen
BACKLOG = 100
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


CLIENTS = -1  # where a node is named: all that is not a node


class Way(NamedTuple):
    """One direction between two nodes, or between a node and all clients. `port`: of the target's or the source's
    listener, if only what goes through that is meant."""

    source: int
    target: int
    port: int | None = None


class Listener:
    """What a relay stands before, and the relay itself. The contexts are None where the listener has no TLS."""

    def __init__(
        self, node: int, port: int, at: int, to_clients: ssl.SSLContext | None, to_node: ssl.SSLContext | None
    ) -> None:
        self.node = node
        self.port = port
        self.to_clients = to_clients
        self.to_node = to_node
        self.claim = bound(at)  # it never listens
        self.at: int = self.claim.getsockname()[1]
        self.entrance: socket.socket | None = None  # None: nobody is let in
        self.is_looking = False  # for the node to listen again


def bound(port: int) -> socket.socket:
    """A socket at this port, which others of this process can share."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((HOST, port))
    return made


class Relays:
    """They run in a thread with a loop of its own; the methods are called from others."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lost: dict[int, None] = {}  # nodes that are cut off
        self.cuts: dict[Way, None] = {}
        self.delays_s: dict[Way, float] = {}
        self.changed = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.listeners: list[Listener] = []
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="relays")
        self.thread.start()

    def do(self, act: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(act, self.loop).result(10)

    def before(
        self,
        node: int,
        port: int,
        at: int = 0,
        to_clients: ssl.SSLContext | None = None,
        to_node: ssl.SSLContext | None = None,
    ) -> int:
        """Whoever comes to the port `at` is led to this one of the node. 0: a free port, which is returned."""
        listener = Listener(node, port, at, to_clients, to_node)
        self.listeners.append(listener)
        self.do(self.look(listener))
        return listener.at

    async def look(self, listener: Listener) -> None:
        """Let connections in if the node listens, and nobody if it does not; then look again, until it does."""
        if listener.is_looking:
            return
        if await self.is_there(listener):
            self.open(listener)
            return
        self.shut(listener)
        if not listener.is_looking:
            listener.is_looking = True
            self.begin(self.wait_for(listener))

    async def wait_for(self, listener: Listener) -> None:
        try:
            while not await self.is_there(listener):
                await asyncio.sleep(LOOKS_S)
            self.open(listener)
        finally:
            listener.is_looking = False

    async def is_there(self, listener: Listener) -> bool:
        try:
            _, writer = await asyncio.open_connection(HOST, listener.port)
        except OSError:
            return False
        abort(writer)
        return True

    def open(self, listener: Listener) -> None:
        if listener.entrance is None:
            listener.entrance = bound(listener.at)
            listener.entrance.setblocking(False)
            listener.entrance.listen(BACKLOG)
            self.loop.add_reader(listener.entrance, self.let_in, listener, listener.entrance)

    def let_in(self, listener: Listener, entrance: socket.socket) -> None:
        with suppress(OSError):  # it may have gone again
            connection, _ = entrance.accept()
            connection.setblocking(False)
            self.begin(self.take(listener, connection))

    def shut(self, listener: Listener) -> None:
        if listener.entrance is not None:
            self.loop.remove_reader(listener.entrance)
            listener.entrance.close()
            listener.entrance = None

    def begin(self, act: Coroutine[Any, Any, None]) -> None:
        self.tasks.add(task := self.loop.create_task(act))
        task.add_done_callback(self.tasks.discard)

    async def take(self, listener: Listener, connection: socket.socket) -> None:
        reader = asyncio.StreamReader(loop=self.loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self.loop)
        try:
            with suppress(OSError, EOFError):
                how = await self.loop.connect_accepted_socket(lambda: protocol, connection, ssl=listener.to_clients)
                writer = asyncio.StreamWriter(how[0], protocol, reader, self.loop)
                try:
                    await self.serve(listener, reader, writer)
                finally:
                    abort(writer)
        except BaseException:
            connection.close()
            raise

    async def serve(self, listener: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(HEAD.size)
        head += await reader.readexactly(max(0, HEAD.unpack(head)[4]))
        asker = NODE.fullmatch(head[HEAD.size :])
        up = Way(int(asker[1]) if asker else CLIENTS, listener.node, listener.port)
        down = Way(up.target, up.source, up.port)
        await self.passable(up)
        await self.passable(down)
        try:
            there, back = await asyncio.open_connection(
                HOST, listener.port, ssl=listener.to_node, server_hostname=HOST if listener.to_node else None
            )
        except OSError:
            await self.look(listener)
            return
        try:
            await self.between(head, (reader, writer), (there, back), (up, down))
        finally:
            abort(back)
        if there.at_eof() or there.exception() is not None:
            await self.look(listener)  # has the node ended?

    async def between(self, head: bytes, asker: Streams, node: Streams, ways: tuple[Way, Way]) -> None:
        """Until one side ends. `head`: what the asker has sent already."""
        await self.send(node[1], head, ways[0])
        await first_of(self.pump(asker[0], node[1], ways[0]), self.pump(node[0], asker[1], ways[1]))

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Way) -> None:
        with suppress(OSError):
            while piece := await source.read(CHUNK):
                await self.send(sink, piece, way)

    async def send(self, sink: asyncio.StreamWriter, piece: bytes, way: Way) -> None:
        if self.delays_s:
            await asyncio.sleep(max((self.delays_s.get(one, 0.0) for one in covering(way)), default=0.0))
        await self.passable(way)
        sink.write(piece)
        await sink.drain()

    async def passable(self, way: Way) -> None:
        while self.is_cut(way):
            await self.changed.wait()

    def is_cut(self, way: Way) -> bool:
        return way.source in self.lost or way.target in self.lost or any(one in self.cuts for one in covering(way))

    # --- faults

    def change(self, lost: dict[int, None], cuts: dict[Way, None], delays_s: dict[Way, float]) -> None:
        async def apply() -> None:
            self.lost, self.cuts, self.delays_s = lost, cuts, delays_s
            self.changed.set()
            self.changed = asyncio.Event()

        self.do(apply())

    def cut_off(self, node: int) -> None:
        self.change({**self.lost, node: None}, self.cuts, self.delays_s)

    def cut(self, *ways: Way) -> None:
        self.change(self.lost, self.cuts | dict.fromkeys(ways), self.delays_s)

    def slow(self, delay_s: float, *ways: Way) -> None:
        """Each piece of up to 64 KiB takes so much longer."""
        self.change(self.lost, self.cuts, self.delays_s | dict.fromkeys(ways, delay_s))

    def mend(self, *ways: Way) -> None:
        """These are neither cut nor slow any more."""
        cuts = {way: None for way in self.cuts if way not in ways}
        self.change(self.lost, cuts, {way: delay for way, delay in self.delays_s.items() if way not in ways})

    def heal(self) -> None:
        self.change({}, {}, {})

    def close(self) -> None:
        async def end() -> None:
            for listener in self.listeners:
                self.shut(listener)
                listener.claim.close()
            tasks = list(self.tasks)
            await asyncio.sleep(0)  # a task that has not begun would leave its connection open
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
    connection = writer.get_extra_info("socket")  # None: it has ended already
    with suppress(OSError, RuntimeError):
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.transport.abort()


def covering(way: Way) -> tuple[Way, Way]:
    """The ways for which a fault counts here: this listener's, and that of all listeners."""
    return way, Way(way.source, way.target)


async def first_of(*acts: Coroutine[Any, Any, None]) -> None:
    """Until one of them ends; then none goes on."""
    tasks = [asyncio.ensure_future(act) for act in acts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
