"""The look at all connections, every few seconds: some of them take and give nothing, and are closed.

- a connection that sends no request within the time for setting it up
- a connection that was closed, and whose other side does not take what was written before
- a connection that has not read its answers for as long as it may be idle
- slow ones, if memory is short (`slowness`)
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from strandline.base.answer_memory import AnswerMemory
from strandline.server.network.limits import ConnectionLimits
from strandline.server.network.refusals import LogLimit, log
from strandline.server.network.request_memory import RequestMemory
from strandline.server.network.slowness import SlowFrame, SlowReader, too_slow_to_read, too_slow_to_send
from strandline.server.network.unsent import WRITE_BUFFER_BYTES

LOOK_S = 5.0
FRAMES_S = 1.0  # between two looks at large frames while others wait for their memory
FRAME_WAITS_MAX = 5  # looks for which a frame may wait itself
NO_REQUEST, READS_SLOWLY, SENDS_SLOWLY, GAVE_WAY = "no request", "reads slowly", "sends slowly", "gave way"
REASONS = (NO_REQUEST, READS_SLOWLY, SENDS_SLOWLY, GAVE_WAY)


class Watched(Protocol):
    """What the watch knows of a connection."""

    @property
    def number(self) -> int: ...
    @property
    def transport(self) -> asyncio.Transport: ...
    @property
    def first(self) -> int: ...
    @property
    def is_set_up(self) -> bool: ...
    @property
    def slots(self) -> Sequence[object]: ...
    @property
    def filled(self) -> int: ...
    @property
    def large(self) -> bytearray | None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def writable(self) -> bool: ...
    @property
    def heard(self) -> bool: ...
    @property
    def opened_s(self) -> float: ...
    @property
    def stalled_looks(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def is_waiting(self) -> bool: ...
    @property
    def is_of_node(self) -> bool: ...
    @property
    def is_protected(self) -> bool: ...
    def look(self) -> None: ...
    def count_unsent(self) -> None: ...
    def refuse(self, why: str) -> None: ...


class Connections(Protocol):
    """All connections, and what they share."""

    loop: asyncio.AbstractEventLoop
    answers: AnswerMemory
    requests: RequestMemory
    limits: ConnectionLimits
    log_limit: LogLimit

    @property
    def connections(self) -> Mapping[int, Watched]: ...


class Watch:
    def __init__(self, net: Connections, setup_ms_max: int, idle_ms_max: int) -> None:
        """0 or less: no bound."""
        self.net = net
        self.setup_ms_max = setup_ms_max
        self.idle_ms_max = idle_ms_max
        self.frames: dict[int, tuple[int, int]] = {}  # large ones a second ago: sequence and bytes received
        self.waits: dict[int, int] = {}  # connections that wait for memory, and in how many looks at frames they did
        self.frames_timer: asyncio.TimerHandle | None = None
        self.dropped = Counter(dict.fromkeys(REASONS, 0))
        self.is_relieving = False
        self.timer: asyncio.TimerHandle | None = None
        self.on_look: Callable[[], None] = lambda: None  # to read limits that may have changed

    def begin(self) -> None:
        self.timer = self.net.loop.call_later(LOOK_S, self.begin)
        self.look()

    def end(self) -> None:
        for timer in (self.timer, self.frames_timer):
            if timer is not None:
                timer.cancel()

    # --- a look

    def look(self) -> None:
        self.on_look()
        now_s = self.net.loop.time()
        # Below what stops the writing, a few connections cannot hold much.
        is_crowded = len(self.net.connections) * WRITE_BUFFER_BYTES > self.net.answers.bytes_max
        for connection in list(self.net.connections.values()):
            if is_crowded and not connection.closed:
                connection.count_unsent()
            why = self.why_over(connection, now_s)
            if why is not None:
                self.drop(connection, *why)
        self.relieve()
        for line in self.net.log_limit.summaries(int(now_s * 1000)):
            log.warning("%s", line)

    def why_over(self, connection: Watched, now_s: float) -> tuple[str, str] | None:
        """Why this connection is closed whatever the others do: the reason for the metric, and in words."""
        if connection.closed or not connection.writable or connection.held:
            connection.look()
            stalled_ms = connection.stalled_looks * LOOK_S * 1000
            if connection.closed and stalled_ms:
                return READS_SLOWLY, "it does not take what was written before it was closed"
            if 0 < self.idle_ms_max <= stalled_ms:
                return READS_SLOWLY, f"it has not read for {stalled_ms / 1000:.0f} s"
        elif not connection.is_set_up:
            age_ms = 1000 * (now_s - connection.opened_s)
            if 0 < self.setup_ms_max <= age_ms:
                return NO_REQUEST, f"no request in {age_ms / 1000:.0f} s"
        return None

    def drop(self, connection: Watched, reason: str, why: str) -> None:
        self.dropped[reason] += 1
        if not connection.closed:
            connection.refuse(why)
        connection.transport.abort()

    # --- memory

    def relieve_soon(self) -> None:
        """Answers hold more than they may. Later, since the node's effects may be under way."""
        if not self.is_relieving:
            self.is_relieving = True
            self.net.loop.call_soon(self.relieve)

    def relieve(self) -> None:
        self.is_relieving = False
        answers, connections = self.net.answers, self.net.connections
        if answers.held <= answers.bytes_max // 2:
            return
        rows = [
            SlowReader(one.number, one.held, one.stalled_looks, one.is_of_node)
            for one in connections.values()
            if one.held
        ]
        for number in list(too_slow_to_read(rows, answers.held, answers.bytes_max)):
            connection = connections[number]
            mib = connection.held / (1024 * 1024)
            self.drop(connection, READS_SLOWLY, f"it reads slowly, and {mib:.1f} MiB of answers wait for it")

    def requests_wait(self) -> None:
        """For memory, since parts of large requests, or all requests, have all of it."""
        if self.frames_timer is None:
            self.frames = dict(self.large_frames())
            self.frames_timer = self.net.loop.call_later(FRAMES_S, self.relieve_frames)

    def relieve_frames(self) -> None:
        self.frames_timer = None
        requests, connections = self.net.requests, self.net.connections
        earlier = self.frames
        if not requests.waiting or requests.may_begin:
            return
        self.requests_wait()
        # A frame that waits for more memory cannot come on. But it holds what it has, and may not do so for long.
        self.waits = {one.number: self.waits.get(one.number, 0) + 1 for one in connections.values() if one.is_waiting}
        rows = []
        for number, (sequence, received) in self.frames.items():
            large = connections[number].large
            before = earlier.get(number)
            is_waiting = 0 < self.waits.get(number, 0) < FRAME_WAITS_MAX
            if large is not None and before is not None and before[0] == sequence and not is_waiting:
                rows.append(SlowFrame(number, len(large), received - before[1]))
        parts_max = min(requests.parts_max, requests.queued_max)
        for number in list(too_slow_to_send(rows, requests.parts, parts_max)):
            self.drop(connections[number], SENDS_SLOWLY, "its request comes slowly, and memory for others is short")

    def large_frames(self) -> Iterator[tuple[int, tuple[int, int]]]:
        for number, connection in self.net.connections.items():
            if connection.large is not None:
                yield number, (connection.first + len(connection.slots), connection.filled)

    # --- places

    def give_one_up(self) -> None:
        """Nodes need a place, over `max.connections`: a connection of another listener gives way, one that is idle if
        there is one, and of those the oldest (KIP-402)."""
        connections = self.net.connections.values()
        others = [one for one in connections if not (one.is_protected or one.is_of_node or one.closed)]
        if others:
            last = min(others, key=lambda one: (bool(one.slots), one.heard, one.number))
            self.drop(last, GAVE_WAY, "a node needs its place (max.connections)")
