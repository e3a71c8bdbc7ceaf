"""Stations, and connections between them as drivers see TCP: in order, delayed, retransmitted, and now and then broken.

Every message is encoded and decoded by the real codecs. What is sent into a partition is retransmitted until the
partition heals or the sender gives up. Nobody listening is REFUSED; a machine without power says nothing at all.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Protocol

from msgspec.structs import replace

from strandline.base.effects import (
    ANONYMOUS,
    Answered,
    Caller,
    Disconnected,
    Endpoint,
    Event,
    Failed,
    Failure,
    Probe,
    Received,
    Reply,
    ReplyTo,
    Send,
)
from strandline.sim.world.timeline import Task, Timeline
from strandline.sim.world.trace import Passage
from strandline.wire.api import api_of
from strandline.wire.frame import decode_request, decode_response, encode_request, encode_response

RETRANSMIT_MS = 20
LISTENERS = {9092: "PLAINTEXT", 9093: "CONTROLLER"}


class Medium(Protocol):
    """What connections and stations ask of the network."""

    time: Timeline
    stations: dict[str, "Station"]
    numbers: "count[int]"
    cuts: dict[tuple[str, str], None]
    tamper: Callable[["Connection", Any, int], Any] | None

    @property
    def is_watched(self) -> bool: ...

    def send(self, source: "Station", effect: Send) -> None: ...
    def send_again(self, connection: "Connection", frame: bytes) -> None: ...
    def probe(self, source: "Station", effect: Probe) -> None: ...
    def latency(self, source: str, target: str) -> int: ...
    def duplicates(self, message: Any) -> bool: ...
    def count(self, frame: bytes) -> None: ...
    def leaving(self, source: "Station", target: "Station", message: Any, *, is_answer: bool) -> Passage | None: ...
    def arrives(self, passage: Passage | None, *, is_lost: bool = False) -> None: ...


class Station:
    """A machine on the network, and the process on it. `life` counts the processes."""

    # A machine has more attributes than Python 3.11 looks up fast in a dictionary (30): these are in none.
    __slots__ = (
        "ghosts",
        "inbound",
        "inbox",
        "is_node",
        "is_paused",
        "is_powered",
        "is_running",
        "life",
        "name",
        "network",
        "outbound",
        "principal",
        "resumed_at",
    )

    def __init__(self, name: str, network: Medium) -> None:
        self.name = name
        self.network = network
        self.life = 0
        self.is_node = False  # it knows the cluster's secret
        self.principal = ANONYMOUS  # who it is, as its certificate or its password proves
        self.is_running = False
        self.is_powered = True
        self.is_paused = False
        self.resumed_at = 0  # it stood still before, in the network's time
        self.inbox: deque[Task] = deque()  # what waits for a process that stands still
        self.outbound: dict[tuple[Endpoint, str], Connection] = {}
        self.inbound: dict[int, Connection] = {}
        self.ghosts: list[
            tuple[Connection, bool]
        ] = []  # what a power cut left with the peers; True: this was the target
        network.stations[name] = self

    def event(self, event: Event) -> None:
        raise NotImplementedError

    def deliver(self, life: int, task: Task) -> None:
        """Run something in the process, unless that is gone, and not while it stands still."""
        if life != self.life or not self.is_running:
            return
        if self.is_paused:
            self.inbox.append(lambda: self.deliver(life, task))
        else:
            task()

    def resume(self) -> None:
        self.is_paused, self.resumed_at = False, self.network.time.now
        while self.inbox and not self.is_paused:
            self.inbox.popleft()()

    def vanish(self, *, power: bool) -> None:
        """The process ends. Its kernel closes what it had open, unless that went away too."""
        ends = [(one, True) for one in self.inbound.values()] + [(one, False) for one in self.outbound.values()]
        self.inbound, self.outbound = {}, {}
        self.is_running = self.is_paused = False
        self.inbox.clear()
        self.life += 1
        if power:
            self.is_powered = False
            self.ghosts += ends
        else:
            reset(ends)

    def power_on(self) -> None:
        """A new kernel knows nothing of the connections before: it resets them when peers ask."""
        self.is_powered = True
        reset(self.ghosts)
        self.ghosts = []


class Pipe:
    """One direction."""

    def __init__(self, network: Medium, source: Station, target: Station) -> None:
        self.network = network
        self.source = source
        self.target = target
        self.queue: deque[tuple[int, Task]] = deque()
        self.is_scheduled = False
        self.lag_ms = 0

    def push(self, task: Task) -> None:
        network, queue = self.network, self.queue
        now = network.time.now
        at = now + network.latency(self.source.name, self.target.name) + self.lag_ms
        if queue and queue[-1][0] > at:
            at = queue[-1][0]
        queue.append((at, task))
        if not self.is_scheduled:
            self.is_scheduled = True
            network.time.later(at - now, self.run)

    def schedule(self, span_ms: int) -> None:
        if not self.is_scheduled:
            self.is_scheduled = True
            self.network.time.later(span_ms, self.run)

    def run(self) -> None:
        self.is_scheduled = False
        network, queue, target = self.network, self.queue, self.target
        time, cuts = network.time, network.cuts
        while queue and queue[0][0] <= time.now:
            if not target.is_powered or (cuts and (self.source.name, target.name) in cuts):
                self.schedule(RETRANSMIT_MS)
                return
            queue.popleft()[1]()
        if queue:
            self.schedule(queue[0][0] - time.now)


class Connection:
    def __init__(self, network: Medium, source: Station, endpoint: Endpoint, channel: str) -> None:
        self.network = network
        self.source, self.target = source, network.stations[endpoint.host]
        self.source_life, self.target_life = source.life, -1
        self.key = (endpoint, channel)
        self.listener = LISTENERS[endpoint.port]
        self.up = Pipe(network, self.source, self.target)
        self.down = Pipe(network, self.target, self.source)
        self.number = next(network.numbers)
        self.waiting: dict[int, Send] = {}  # by correlation id, in the order of sending
        self.correlation = count()
        self.received = 0
        self.answers: dict[int, bytes | None] = {}  # ready, but an earlier one is not
        self.answered = 0
        self.is_failed = False  # at the source
        self.is_shadow = False  # nobody waits for the answers
        self.reads_from = 0  # the time from which the target reads requests again
        self.held: deque[bytes] = deque()  # requests that it has not read
        self.caller = Caller("", source.name, self.listener, source.principal, is_node=source.is_node)
        self.up.push(self.dialled)

    # --- at the source

    def send(self, effect: Send) -> None:
        correlation = next(self.correlation)
        chunks = encode_request(effect.message, effect.version, correlation, self.source.name)
        frame = bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks)
        network = self.network
        is_answered = getattr(effect.message, "acks", -1) != 0
        network.count(frame)
        passage = None
        if network.is_watched:
            passage = network.leaving(self.source, self.target, effect.message, is_answer=False)
        self.up.push(partial(self.arrived, frame, passage))
        if not is_answered:
            return
        self.waiting[correlation] = effect
        network.time.later(effect.timeout_ms, partial(self.patience_ends, self.source.life, correlation))
        if network.duplicates(effect.message):
            network.send_again(self, frame)

    def patience_ends(self, life: int, correlation: int) -> None:
        if correlation in self.waiting:  # nearly all have been answered by then
            self.source.deliver(life, lambda: self.timed_out(correlation))

    def timed_out(self, correlation: int) -> None:
        if not self.is_failed and correlation in self.waiting:
            self.up.push(self.target_lost)
            self.fail(Failure.TIMED_OUT, late=correlation)

    def source_lost(self, why: Failure = Failure.CLOSED) -> None:
        self.source.deliver(self.source_life, lambda: self.fail(why))

    def fail(self, why: Failure, late: int = -1) -> None:
        """The source gives up this connection. Of a late answer only its own request is TIMED_OUT."""
        if self.is_failed:
            return
        self.is_failed = True
        if self.source.outbound.get(self.key) is self:
            del self.source.outbound[self.key]
        waiting, self.waiting = self.waiting, {}
        if late >= 0:
            self.source.event(Failed(waiting.pop(late).token, why))
            why = Failure.CLOSED
        for effect in waiting.values():
            self.source.event(Failed(effect.token, why))

    def take_answer(self, frame: bytes) -> None:
        if self.is_shadow:
            self.up.push(self.target_lost)
        if self.is_failed or self.is_shadow:
            return
        correlation = next(iter(self.waiting))
        effect = self.waiting.pop(correlation)
        view = memoryview(bytearray(frame))[4:]
        found, message = decode_response(api_of(effect.message).response, effect.version, view)
        assert found == correlation, "answers come in the order of requests"
        if self.network.tamper is not None:
            message = self.network.tamper(self, message, effect.version)
        self.source.event(Answered(effect.token, message))

    # --- at the target

    def dialled(self) -> None:
        if not self.target.is_running:
            self.down.push(lambda: self.source_lost(Failure.REFUSED))
            return
        self.target_life = self.target.life
        self.target.inbound[self.number] = self

    def is_accepted(self) -> bool:
        return self.target.life == self.target_life and self.target.inbound.get(self.number) is self

    def arrived(self, frame: bytes, passage: Passage | None) -> None:
        if not self.is_accepted():
            self.network.arrives(passage, is_lost=True)
            self.down.push(self.source_lost)
            return
        if passage is not None:
            self.network.arrives(passage)
        if self.target.is_paused:
            self.target.deliver(self.target_life, lambda: self.take_request(frame))
        elif self.held or self.reads_from > self.network.time.now:
            self.take_request(frame)
        else:
            self.take(frame)

    def throttle(self, ms: int) -> None:
        self.reads_from = max(self.reads_from, self.network.time.now + ms)
        self.network.time.later(ms, lambda: self.target.deliver(self.target_life, self.read_on))

    def read_on(self) -> None:
        while self.held and self.reads_from <= self.network.time.now:
            self.serve(self.held.popleft())

    def take_request(self, frame: bytes) -> None:
        if not self.held and self.reads_from <= self.network.time.now:
            self.serve(frame)
        else:
            self.held.append(frame)
            self.read_on()

    def serve(self, frame: bytes) -> None:
        if self.is_accepted():
            self.take(frame)

    def take(self, frame: bytes) -> None:
        request = decode_request(memoryview(bytearray(frame))[4:])
        to = ReplyTo(self.number, self.received, request.correlation_id, request.api_key, request.api_version)
        self.received += 1
        caller, client_id = self.caller, request.client_id or ""
        if caller.client_id != client_id:
            caller = self.caller = replace(caller, client_id=client_id)
        message: Any = request.message
        if self.network.tamper is not None:
            message = self.network.tamper(self, message, request.api_version)
        self.target.event(Received(to, caller, message))

    def target_lost(self) -> None:
        if self.is_accepted():
            del self.target.inbound[self.number]
            self.target.deliver(self.target_life, lambda: self.target.event(Disconnected(self.number)))

    def reply(self, effect: Reply) -> None:
        to, message = effect.to, effect.message
        assert to.sequence not in self.answers, "answered twice"
        frame: bytes | None = None
        passage = None
        if message is not None:
            chunks = encode_response(message, to.api_version, to.correlation_id)
            frame = bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks)
            self.network.count(frame)
            if self.network.is_watched:
                passage = self.network.leaving(self.target, self.source, message, is_answer=True)
        self.answers[to.sequence] = frame
        while self.answered in self.answers:
            ready = self.answers.pop(self.answered)
            self.answered += 1
            if ready is not None:
                self.down.push(partial(self.answer_arrived, ready, passage))

    def answer_arrived(self, frame: bytes, passage: Passage | None) -> None:
        if passage is not None:
            self.network.arrives(passage)
        source, life = self.source, self.source_life
        if source.is_paused:
            source.deliver(life, lambda: self.take_answer(frame))
        elif source.life == life and source.is_running:
            self.take_answer(frame)

    def close(self) -> None:
        self.down.push(self.source_lost)
        self.network.time.later(0, self.target_lost)

    def break_off(self) -> None:
        """A middle box forgets the connection: both sides see it closed."""
        self.source_lost()
        self.target_lost()


def reset(ends: list[tuple[Connection, bool]]) -> None:
    for connection, is_target in ends:
        if is_target:
            connection.down.push(connection.source_lost)
        else:
            connection.up.push(connection.target_lost)


def name_of(message: Any) -> str:
    return type(message).__name__.removesuffix("Request").removesuffix("Response")
