"""Steps of a node that take long, by a clock that the steps themselves move."""

import asyncio
from typing import Any

import pytest
from tests.rows import each

from strandline.base.effects import Answered, Caller, Effect, Event, Received, ReplyTo
from strandline.base.time import NEVER, Instant
from strandline.bench.scale_cluster import HELD
from strandline.server.clock import Clock
from strandline.server.metrics import long_steps
from strandline.server.metrics.exposition import text_of
from strandline.server.metrics.long_steps import LongSteps, WatchedPump
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest

MS = 1_000_000
ASKED = Received(ReplyTo(1, 0, 0, HeartbeatRequest.api_key, 4), Caller("c", "h", "PLAINTEXT"), HeartbeatRequest())


class SlowNode:
    def __init__(self) -> None:
        self.now_ns = self.takes_ns = 0

    def step(self, event: Event, now: Instant) -> list[Effect]:
        self.now_ns += self.takes_ns
        return []

    def expire(self, now: Instant) -> list[Effect]:
        self.now_ns += self.takes_ns
        return []

    def deadline(self) -> Instant:
        return NEVER if self.takes_ns == 0 else Instant(0)


class Sent:
    pass


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Any:
    loop = asyncio.new_event_loop()
    node: Any = SlowNode()
    pump = LongSteps().pump(node, loop, Clock(), lambda status, why: pytest.fail(why))
    monkeypatch.setattr(pump, "due", lambda: ["groups", "FlushedLogs.flush"])
    monkeypatch.setattr(long_steps, "perf_counter_ns", lambda: node.now_ns)
    yield pump
    loop.close()


def seen(pump: WatchedPump) -> dict[str, int]:
    (family,) = pump.long_steps.families()
    return {cause: histogram.total for (cause,), histogram in family.samples}


@each("takes_ns, counts", [(10 * MS - 1, False), (10 * MS, True)])
def test_a_step_of_ten_milliseconds_is_long(slow: Any, takes_ns: int, counts: bool) -> None:
    slow.node.takes_ns = takes_ns
    slow.event(ASKED)
    assert seen(slow) == ({"Heartbeat": takes_ns} if counts else {})


def test_the_cause_is_the_request_or_what_was_answered_or_whose_deadline_it_was(slow: Any) -> None:
    slow.node.takes_ns = 20 * MS
    slow.event(ASKED)
    slow.event(Answered(Sent(), None))
    slow.fire()
    slow.event(ASKED)
    assert seen(slow) == {"Heartbeat": 40 * MS, "Answered Sent": 20 * MS, "groups, FlushedLogs.flush": 20 * MS}


def test_a_benchmark_reads_the_causes_from_the_page(slow: Any) -> None:
    slow.node.takes_ns = 30 * MS
    for event in (ASKED, ASKED, Answered(Sent(), None)):
        slow.event(event)
    page = "".join(text_of(slow.long_steps.families()))
    assert HELD["count"].findall(page) == [("Answered Sent", "1"), ("Heartbeat", "2")]
    assert HELD["sum"].findall(page) == [("Answered Sent", "30.0"), ("Heartbeat", "60.0")]
