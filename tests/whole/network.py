"""A network in virtual time: connections that delay, break and are cut off, as TCP's are seen by a driver.

Every message is encoded and decoded by the real codecs. What is sent into a partition is retransmitted until the
partition heals or the sender gives up. Nobody listening is REFUSED; a machine without power says nothing at all.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from strandline.base.effects import (
    Answered,
    Caller,
    Disconnected,
    Endpoint,
    Event,
    Failed,
    Failure,
    Probe,
    Probed,
    Received,
    Reply,
    ReplyTo,
    Send,
)
from strandline.base.time import Instant
from strandline.wire.api import api_of
from strandline.wire.frame import decode_request, decode_response, encode_request, encode_response

RETRANSMIT_MS = 20
START = 1_700_000_000_000
LISTENERS = {9092: "PLAINTEXT", 9093: "CONTROLLER"}
Task = Callable[[], None]


class Timeline:
    """Virtual time: tasks run in the order of their instants, then of their making."""

    def __init__(self) -> None:
        self.now = Instant(START)
        self.tasks: list[tuple[int, int, Task]] = []
        self.serial = count()

    def later(self, span_ms: int, task: Task) -> None:
        heapq.heappush(self.tasks, (self.now + max(span_ms, 0), next(self.serial), task))

    def run(self, span_ms: int) -> None:
        end = self.now + span_ms
        while self.tasks and self.tasks[0][0] <= end:
            at, _, task = heapq.heappop(self.tasks)
            self.now = Instant(at)
            task()
        self.now = Instant(end)


class Station:
    """A machine on the network, and the process on it. `life` counts the processes."""

    def __init__(self, name: str, network: "Network") -> None:
        self.name = name
        self.network = network
        self.life = 0
        self.is_running = False
        self.is_powered = True
        self.is_paused = False
        self.inbox: deque[Task] = deque()
        self.outbound: dict[tuple[Endpoint, str], Connection] = {}
        self.inbound: dict[int, Connection] = {}
        self.ghosts: list[tuple[Connection, bool]] = []  # what a power cut left with the peers
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
        self.is_paused = False
        while self.inbox and not self.is_paused:
            self.inbox.popleft()()

    def vanish(self, *, power: bool) -> None:
        """The process ends. Its kernel closes what it had open, unless that went away too."""
        inbound, outbound = list(self.inbound.values()), list(self.outbound.values())
        self.inbound, self.outbound = {}, {}
        self.is_running = self.is_paused = False
        self.inbox.clear()
        self.life += 1
        ends = [(one, True) for one in inbound] + [(one, False) for one in outbound]
        if power:
            self.is_powered = False
            self.ghosts += ends
        else:
            reset(ends)

    def power_on(self) -> None:
        self.is_powered = True
        reset(self.ghosts)
        self.ghosts = []


def reset(ends: list[tuple["Connection", bool]]) -> None:
    for connection, is_target in ends:
        if is_target:
            connection.down.push(connection.source_lost)
        else:
            connection.up.push(connection.target_lost)


class Pipe:
    """One direction of a connection: in order, delayed, retransmitted."""

    def __init__(self, network: "Network", source: Station, target: Station) -> None:
        self.network = network
        self.source = source
        self.target = target
        self.queue: deque[tuple[int, Task]] = deque()
        self.is_scheduled = False

    def push(self, task: Task) -> None:
        at = self.network.time.now + self.network.latency(self.source.name, self.target.name)
        if self.queue:
            at = max(at, self.queue[-1][0])
        self.queue.append((at, task))
        self.schedule(at - self.network.time.now)

    def schedule(self, span_ms: int) -> None:
        if not self.is_scheduled:
            self.is_scheduled = True
            self.network.time.later(span_ms, self.run)

    def run(self) -> None:
        self.is_scheduled = False
        while self.queue and self.queue[0][0] <= self.network.time.now:
            if self.network.is_cut(self.source.name, self.target.name) or not self.target.is_powered:
                self.schedule(RETRANSMIT_MS)
                return
            self.queue.popleft()[1]()
        if self.queue:
            self.schedule(self.queue[0][0] - self.network.time.now)


class Connection:
    def __init__(self, network: "Network", source: Station, endpoint: Endpoint, channel: str) -> None:
        self.network = network
        self.source, self.target = source, network.stations[endpoint.host]
        self.source_life, self.target_life = source.life, -1
        self.key = (endpoint, channel)
        self.listener = LISTENERS[endpoint.port]
        self.up = Pipe(network, self.source, self.target)
        self.down = Pipe(network, self.target, self.source)
        self.number = next(network.numbers)
        self.waiting: deque[tuple[int, Send]] = deque()
        self.correlation = count()
        self.received = 0
        self.answers: dict[int, bytes | None] = {}
        self.answered = 0
        self.is_failed = False  # at the source
        self.up.push(self.dialled)

    # --- at the source

    def send(self, effect: Send) -> None:
        correlation = next(self.correlation)
        frame = b"".join(bytes(part) for part in encode_request(effect.message, effect.version, correlation, "sim"))
        self.waiting.append((correlation, effect))
        self.up.push(lambda: self.arrived(frame))
        life = self.source.life
        timer = lambda: self.source.deliver(life, lambda: self.timed_out(correlation))  # noqa: E731
        self.network.time.later(effect.timeout_ms, timer)

    def timed_out(self, correlation: int) -> None:
        if not self.is_failed and any(entry[0] == correlation for entry in self.waiting):
            late = [entry for entry in self.waiting if entry[0] == correlation]
            self.waiting = deque(late + [entry for entry in self.waiting if entry[0] != correlation])
            self.up.push(self.target_lost)
            self.fail(Failure.TIMED_OUT)

    def source_lost(self, why: Failure = Failure.CLOSED) -> None:
        self.source.deliver(self.source_life, lambda: self.fail(why, why if why is Failure.REFUSED else None))

    def fail(self, first: Failure, others: Failure | None = None) -> None:
        if self.is_failed:
            return
        self.is_failed = True
        if self.source.outbound.get(self.key) is self:
            del self.source.outbound[self.key]
        why = first
        for _, effect in self.waiting:
            self.source.event(Failed(effect.token, why))
            why = others or Failure.CLOSED
        self.waiting.clear()

    def answer_arrived(self, frame: bytes) -> None:
        self.source.deliver(self.source_life, lambda: self.take_answer(frame))

    def take_answer(self, frame: bytes) -> None:
        if self.is_failed:
            return
        correlation, effect = self.waiting.popleft()
        view = memoryview(bytearray(frame))[4:]
        found, message = decode_response(api_of(effect.message).response, effect.version, view)
        assert found == correlation
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

    def arrived(self, frame: bytes) -> None:
        if not self.is_accepted():
            self.down.push(self.source_lost)
            return
        self.target.deliver(self.target_life, lambda: self.take_request(frame))

    def take_request(self, frame: bytes) -> None:
        if not self.is_accepted():
            return
        request = decode_request(memoryview(bytearray(frame))[4:])
        to = ReplyTo(self.number, self.received, request.correlation_id, request.api_key, request.api_version)
        self.received += 1
        caller = Caller(request.client_id or "", self.source.name, self.listener)
        self.target.event(Received(to, caller, request.message))

    def target_lost(self) -> None:
        if self.is_accepted():
            del self.target.inbound[self.number]
            self.target.deliver(self.target_life, lambda: self.target.event(Disconnected(self.number)))

    def reply(self, effect: Reply) -> None:
        to, message = effect.to, effect.message
        assert to.sequence not in self.answers, "answered twice"
        frame = None
        if message is not None:
            parts = encode_response(message, to.api_version, to.correlation_id)
            frame = b"".join(bytes(part) for part in parts)
        self.answers[to.sequence] = frame
        while self.answered in self.answers:
            ready = self.answers[self.answered]
            self.answered += 1
            if ready is not None:
                self.down.push(lambda frame=ready: self.answer_arrived(frame))  # type: ignore[misc]

    def close(self) -> None:
        self.down.push(self.source_lost)
        self.network.time.later(0, self.target_lost)

    def break_off(self) -> None:
        """A middle box forgets the connection: both sides see it closed."""
        self.source_lost()
        self.target_lost()


class Network:
    def __init__(self, time: Timeline, rng: Random) -> None:
        self.time = time
        self.rng = rng
        self.stations: dict[str, Station] = {}
        self.numbers = count(1)
        self.cuts: dict[tuple[str, str], None] = {}  # what no longer passes, by direction
        self.slow: dict[tuple[str, str], int] = {}

    def latency(self, source: str, target: str) -> int:
        if source == target:
            return 0
        return self.rng.randrange(0, 4) + self.slow.get((source, target), 0)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cuts

    def cut(self, a: str, b: str, *, both: bool = True) -> None:
        self.cuts[a, b] = None
        if both:
            self.cuts[b, a] = None

    def heal(self) -> None:
        self.cuts.clear()
        self.slow.clear()

    def send(self, source: Station, effect: Send) -> None:
        key = (effect.endpoint, effect.channel)
        connection = source.outbound.get(key)
        if connection is None:
            connection = source.outbound[key] = Connection(self, source, effect.endpoint, effect.channel)
        connection.send(effect)

    def probe(self, source: Station, effect: Probe) -> None:
        target = self.stations[effect.endpoint.host]
        life = source.life
        up, down = Pipe(self, source, target), Pipe(self, target, source)
        told: list[Any] = []

        def tell(why: Failure | None) -> None:
            if not told:
                told.append(why)
                source.deliver(life, lambda: source.event(Probed(effect.token, why)))

        def seen() -> None:
            why = None if target.is_running else Failure.REFUSED
            down.push(lambda: tell(why))

        up.push(seen)
        self.time.later(effect.timeout_ms, lambda: tell(Failure.TIMED_OUT))

    def connections(self) -> list[Connection]:
        return [one for name in sorted(self.stations) for one in self.stations[name].outbound.values()]
