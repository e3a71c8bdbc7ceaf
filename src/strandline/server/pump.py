"""The driver of one node: events in, effects performed at once, in the same callback as the network read.

The node is pure; everything that touches the world hangs off this one table of effects. Nothing on the hot path is
queued and no task is started for it.

Invariants:
  - the node is never re-entered: performing an effect never produces an event before the effects of this step are done;
  - the timer never fires later than the node's deadline. It may fire earlier: when the deadline moved away, the old
    timer is left alone and the deadline is looked at again when it fires;
  - after an exception out of the node, or of an effect, nothing of the node runs again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from strandline.base.effects import (
    Authenticated,
    AwaitRoom,
    Close,
    Effect,
    Event,
    Halt,
    Probe,
    Refuse,
    Remove,
    Reply,
    Report,
    Save,
    Send,
    Sync,
    Throttle,
    Warm,
)
from strandline.base.ports import DiskError, DiskFull
from strandline.base.time import NEVER, Instant
from strandline.base.traces import said, trace_of
from strandline.server.clock import Clock

log = logging.getLogger("strandline")

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
CRASHED = 70  # EX_SOFTWARE
DISK_FAILED = 74  # EX_IOERR
OUT_OF_ROOM = 75  # EX_TEMPFAIL
DEADLINE = "deadline"  # in the place of an event
TIMER_MS_MAX = 60_000  # NEVER is too far for a timer


class Node(Protocol):
    def start(self, now: Instant) -> list[Effect]: ...

    def step(self, event: Event, now: Instant) -> list[Effect]: ...

    def deadline(self) -> Instant:
        """When `expire` must be called at the latest."""
        ...

    def expire(self, now: Instant) -> list[Effect]: ...

    def shutdown(self, now: Instant) -> list[Effect]:
        """Begin a controlled shutdown, which ends with the effect `Halt`."""
        ...


class Pump:
    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        on_stop: Callable[[int, str], None],
        on_disk_error: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_disk_error`: before the node stops for it."""
        self.node = node
        self.loop = loop
        self.now = clock.now
        self.on_stop = on_stop
        self.on_disk_error = on_disk_error
        self.stopped = False
        self.inside = False
        self.looks = False  # at the deadline, before the loop waits again
        self.armed = NEVER  # when the timer fires
        self.timer: asyncio.TimerHandle | None = None
        self.perform: dict[type, Callable[[Any], None]] = {Report: self.report, Halt: self.halt}

    def connect(
        self,
        reply: Callable[[Reply], None],
        authenticated: Callable[[Authenticated], None],
        throttle: Callable[[Throttle], None],
        close: Callable[[Close], None],
        refuse: Callable[[Refuse], None],
        send: Callable[[Send], None],
        probe: Callable[[Probe], None],
        flush: Callable[[Sync | Save], None],
        warm: Callable[[Warm], None],
        remove: Callable[[Remove], None],
        await_room: Callable[[AwaitRoom], None],
    ) -> None:
        """Say who performs the effects; they need the pump to be built first, for their events."""
        assert Reply not in self.perform, "connected once"
        self.perform |= {Reply: reply, Authenticated: authenticated, Throttle: throttle, Close: close}
        self.perform[Refuse] = refuse
        self.perform |= {Send: send, Probe: probe, Sync: flush, Save: flush}
        self.perform |= {Warm: warm, Remove: remove, AwaitRoom: await_room}

    def event(self, event: Event) -> None:
        self.run(self.node.step, event)

    def start(self) -> None:
        assert self.timer is None, "started once"
        assert Reply in self.perform, "connected before: effects follow at once"
        self.run(lambda _, now: self.node.start(now), "start")

    def shutdown(self) -> None:
        self.run(lambda _, now: self.node.shutdown(now), "shutdown")

    def run(self, step: Callable[[Any, Instant], list[Effect]], event: Any) -> None:
        if self.stopped:
            return
        assert not self.inside, "an effect produced an event synchronously"
        self.inside = True
        try:
            perform = self.perform
            for effect in step(event, self.now()):
                perform[type(effect)](effect)
            if not self.looks:
                self.looks = True
                self.loop.call_soon(self.look)
        except Exception as error:
            self.crash(error, event)
        finally:
            self.inside = False

    def look(self) -> None:
        """At the node's deadline, once for all events of a turn of the loop: every part of the node is asked."""
        assert self.looks
        self.looks = False
        if self.stopped:
            return
        try:
            deadline = self.node.deadline()
            # What is due already has its timer: to set it anew would put it off with every event.
            if deadline < self.armed and self.now() + 1 < self.armed:
                self.arm(deadline)
        except Exception as error:
            self.crash(error, DEADLINE)

    def arm(self, deadline: Instant) -> None:
        assert not self.stopped
        assert deadline < NEVER, "nothing is waited for"
        if self.timer is not None:
            self.timer.cancel()
        now = self.now()
        # At least 1 ms: the loop's clock may run a little ahead of ours, and a passed deadline must not starve the
        # network.
        delay_ms = min(max(deadline - now, 1), TIMER_MS_MAX)
        assert 1 <= delay_ms <= TIMER_MS_MAX
        self.armed = Instant(now + delay_ms)
        assert self.armed <= max(deadline, now + 1), "no later than the deadline"
        self.timer = self.loop.call_later(delay_ms / 1000, self.fire)

    def fire(self) -> None:
        assert not self.inside, "an effect produced an event synchronously"
        self.armed = NEVER
        self.timer = None
        if self.stopped:
            return
        deadline = self.node.deadline()
        if deadline <= self.now():
            self.run(lambda _, now: self.node.expire(now), DEADLINE)
        elif deadline < NEVER:
            self.arm(deadline)

    def report(self, effect: Report) -> None:
        log.log(LEVELS[effect.level], effect.text)

    def halt(self, effect: Halt) -> None:
        self.stop(effect.status, effect.why)

    def stop(self, status: int, why: str) -> None:
        """Nothing of the node runs after this."""
        if not self.stopped:
            self.stopped = True
            if self.timer is not None:
                self.timer.cancel()
            assert why, "whoever stops says why"
            self.on_stop(status, why)

    def crash(self, error: BaseException, event: object) -> None:
        """The node's state can no longer be trusted: stop at once, and say what led here. A disk that fails, or lacks
        room, is no defect: there is nothing to say but where."""
        if isinstance(error, DiskError):
            self.on_disk_error()
            if isinstance(error, DiskFull):
                self.stop(OUT_OF_ROOM, f"disk full: {error}")
            else:
                self.stop(DISK_FAILED, f"it cannot go on without this log directory: {error}")
            return
        log.error("the node crashed on %s\n%s", shorten(repr(event)), trace_of(error, hides=False))
        self.stop(CRASHED, f"crashed: {said(error, hides=False)}")


def shorten(text: str, longest: int = 2000) -> str:
    assert longest > 0
    return text if len(text) <= longest else text[:longest] + f"… ({len(text)} characters)"
