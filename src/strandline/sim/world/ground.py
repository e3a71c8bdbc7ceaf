"""What machines of one world share: its time, its network, and what is noted of all that happens."""

import re
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from strandline.history.operation import History
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.world.network import Network
from strandline.sim.world.options import Options
from strandline.sim.world.timeline import Timeline
from strandline.sim.world.trace import Kind, Moment, Trace
from strandline.sim.world.violation import Violation

STEP_MS = 20  # how often a condition that is waited for is looked at
STORY_LINES = 400
MEMORY = re.compile(r"<memory at \w+>")  # an address would differ from process to process


class Ground:
    def __init__(self, seed: int, options: Options, trace: Trace | None = None) -> None:
        self.seed = seed
        self.options = options
        self.trace = trace
        self.time = Timeline()
        self.network = Network(self.time, self.random("network"), options.weather, trace)
        self.network.spring = self.spring
        self.story: deque[str] = deque(maxlen=STORY_LINES)
        self.events = 0
        self.seen: Counter[str] = Counter()  # what happened how often
        self.ambushes = self.network.ambushes
        self.history = History()

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    # --- what happened

    def note(
        self,
        kind: Kind,
        text: str,
        machine: str = "",
        *,
        hosted: Hosted | None = None,
        partition: str = "",
        leader_epoch: int = -1,
    ) -> None:
        now = self.time.now
        self.seen[kind] += 1
        if self.ambushes:
            self.spring(kind, machine)
        if kind is not Kind.HIGH_WATERMARK:
            self.story.append(f"{now:>8} {machine} {text}")
        if self.trace is not None:
            high_watermark = log_end = -1
            if hosted is not None:
                partition = str(hosted.name)
                high_watermark, log_end = hosted.high_watermark, hosted.log.log_end_offset
                leader_epoch = getattr(hosted.role, "epoch", -1)
            self.trace.moments.append(
                Moment(now, machine, kind, text, partition, high_watermark, log_end, leader_epoch)
            )

    def spring(self, what: str, machine: str) -> None:
        """Something happened that an ambush may wait for."""
        waiting = self.ambushes.get(what)
        if waiting and machine:
            waiting.pop(0)(machine)

    def holding(self, event: Any) -> "Holding":
        return Holding(self, event)

    def breach(self, error: Exception, event: Any) -> Violation:
        """What broke while `event` (or what that returns) was handled."""
        what = str(error) or type(error).__name__
        if not isinstance(error, AssertionError):
            what = f"{type(error).__name__}: {what}"
        event = event() if callable(event) else event
        return self.violated(what, f"while handling {MEMORY.sub('<memory>', str(event))[:1000]}")

    def violated(self, check: str, evidence: str = "") -> Violation:
        self.note(Kind.VIOLATION, check)
        return Violation(check, evidence, self.time.now)

    # --- running

    def run(self, span_ms: int) -> None:
        self.time.run(span_ms)

    def run_until(self, what: str, holds: Callable[[], Any], within_ms: int) -> None:
        """Go on until `holds` returns nothing; what it returns is why not yet."""
        end = self.time.now + within_ms
        while (why := holds()) is not None:
            if self.time.now >= end:
                raise self.violated(f"not within {within_ms} ms: {what}", str(why))
            self.run(STEP_MS)

    def digest(self) -> str:
        """Of every byte that machines sent or made durable, in order."""
        return self.network.digest.hexdigest()


class Holding:
    """Whatever breaks inside is a violation, reported with the event that it happened in (or what that returns)."""

    __slots__ = ("event", "world")

    def __init__(self, world: Ground, event: Any) -> None:
        self.world = world
        self.event = event

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, Violation):
            raise self.world.breach(error, self.event) from error
