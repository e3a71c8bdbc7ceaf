"""Deadlines: in order, never twice, and settled ones do not pile up."""

from strandline.base.effects import Effect, Report
from strandline.base.time import NEVER, Instant
from strandline.replica.timers import SWEEP_MIN, Alarm, Timers


class Entry:
    def __init__(self, name: str) -> None:
        self.name = name
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        self.done = True
        return [Report("info", self.name)]


def test_entries_expire_in_order_and_once() -> None:
    timers = Timers()
    late, early, settled = Entry("late"), Entry("early"), Entry("settled")
    timers.push(20, late)
    timers.push(10, early)
    timers.push(15, early)
    timers.push(5, settled)
    settled.done = True
    timers.entry_done()
    assert timers.deadline() == 10
    assert timers.expire(Instant(9)) == []
    assert timers.expire(Instant(19)) == [Report("info", "early")]
    assert timers.deadline() == 20
    assert timers.expire(Instant(20)) == [Report("info", "late")]
    assert timers.deadline() == NEVER


def test_settled_entries_are_swept_when_they_are_the_majority() -> None:
    timers = Timers()
    waiting = Entry("waiting")
    timers.push(50_000, waiting)
    for number in range(10 * SWEEP_MIN):
        entry = Entry(str(number))
        timers.push(30_000 + number, entry)
        entry.done = True
        timers.entry_done()
    assert len(timers.heap) <= SWEEP_MIN + 1
    assert timers.expire(Instant(60_000)) == [Report("info", "waiting")]


def test_an_alarm_that_is_set_already_keeps_its_time_and_may_be_set_again_when_it_rings() -> None:
    timers = Timers()

    def ring(now: Instant) -> list[Effect]:
        if now < 20:
            alarm.set(now + 10)
        return [Report("info", str(now))]

    alarm = Alarm(timers, ring)
    assert timers.deadline() == NEVER
    alarm.set(10)
    alarm.set(5)
    assert timers.deadline() == 10
    assert timers.expire(Instant(10)) == [Report("info", "10")]
    assert not alarm.done
    assert timers.expire(Instant(19)) == []
    assert timers.expire(Instant(20)) == [Report("info", "20")]
    assert alarm.done
    assert timers.deadline() == NEVER
