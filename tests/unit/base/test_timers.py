"""Deadlines: in order, never twice, and settled ones do not pile up."""

from strandline.base.effects import Effect, Report
from strandline.base.time import NEVER, Instant
from strandline.base.timers import SWEEP_MIN, Alarm, Deadline, Timers


class Entry:
    def __init__(self, name: str) -> None:
        self.name = name
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        self.done = True
        return [Report("info", self.name)]


def test_entries_expire_in_order_and_once() -> None:
    timers = Timers()
    late, early, done = Entry("late"), Entry("early"), Entry("settled")
    timers.push(20, late)
    timers.push(10, early)
    timers.push(15, early)
    timers.push(5, done)
    done.done = True
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


def test_a_deadline_rings_at_the_earliest_time_that_was_set_and_once() -> None:
    timers, rung = Timers(), list[int]()

    def ring(now: Instant) -> list[Effect]:
        rung.append(now)
        return []

    deadline = Deadline(timers, ring)
    for when in (30, 10, 20, NEVER):
        deadline.set(Instant(when))
    assert (deadline.when, timers.deadline()) == (10, 10)
    timers.expire(Instant(40))
    assert rung == [10 + 30]
    assert (deadline.when, timers.deadline()) == (NEVER, NEVER)
    deadline.set(Instant(50))
    deadline.cancel()
    deadline.cancel()
    assert timers.deadline() == NEVER
    deadline.set(Instant(60))
    assert timers.deadline() == 60


def test_deadlines_that_move_nearer_again_and_again_do_not_pile_up() -> None:
    timers = Timers()
    deadline = Deadline(timers, lambda now: [])
    for when in range(10 * SWEEP_MIN, 0, -1):
        deadline.set(Instant(when))
    assert len(timers.heap) <= SWEEP_MIN + 2


def test_what_is_due_in_great_number_is_done_in_parts_and_a_driver_waits_between_them() -> None:
    timers = Timers()
    for name in "abcde":
        timers.push(10, Entry(name))
    assert len(timers.expire(Instant(20), 2)) == 2
    assert timers.deadline() == 21
    assert len(timers.expire(Instant(21), 2)) == 2
    assert len(timers.expire(Instant(22), 2)) == 1
    assert timers.deadline() == NEVER
