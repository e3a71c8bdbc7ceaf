"""Deadlines of members, and which writes of a group are proven."""

from strandline.base.errors import ErrorCode as E
from strandline.base.time import NEVER, Instant
from strandline.base.timers import Deadline
from strandline.base.timers import Timers as BaseTimers
from strandline.group.consumer.timers import REBALANCE, SESSION, Timers
from strandline.group.shards.proving import Proof


def timers_of() -> tuple[Timers, list[Instant]]:
    """And when they were asked to look."""
    rung: list[Instant] = []
    clock = BaseTimers()
    return Timers(Deadline(clock, lambda now: rung.append(now) or [])), rung  # type: ignore[func-returns-value]


def test_a_deadline_that_moves_is_waited_for_once() -> None:
    timers, rung = timers_of()
    key, other = (SESSION, "g", "a"), (REBALANCE, "g", "a")
    for ends in (50, 20, 80, 30):
        timers.set(key, Instant(ends))
    timers.set(other, Instant(25))
    assert timers.alarm.when == 20, "not later than the first"
    for at, due in ((24, {}), (29, {"g": [other]}), (30, {"g": [key]}), (1000, {})):
        timers.alarm.timers.expire(Instant(at))
        assert timers.due(Instant(at), 10)[0] == due
    assert rung[:3] == [24, 29, 30]
    assert timers.alarm.when == NEVER


def test_many_deadlines_at_once_have_their_turns() -> None:
    timers, _ = timers_of()
    keys = [(SESSION, "g", f"m{number}") for number in range(5)]
    for key in keys:
        timers.set(key, Instant(10))
    found = []
    for at in (10, 11, 12):
        timers.alarm.timers.expire(Instant(at))
        due, looked = timers.due(Instant(at), 2)
        assert looked == len(due["g"])
        found.append(due["g"])
        assert timers.alarm.when == (at + 1 if at < 12 else NEVER)
    assert found == [keys[:2], keys[2:4], keys[4:]]


def test_members_that_come_and_go_leave_no_entries_behind() -> None:
    (timers, _), key = timers_of(), (SESSION, "g", "a")
    for _ in range(100):
        timers.set(key, Instant(50))
        del timers.ends[key]
    assert len(timers.heap) == 1


def test_a_write_that_is_committed_proves_those_before_it() -> None:
    proof, answers = Proof(), []
    first, second = proof.begin(), proof.begin()
    proof.wait(lambda error: answers.append(error) or [])  # type: ignore[func-returns-value]
    proof.end(second, E.NONE)
    assert (answers, proof.is_complete) == ([E.NONE], True)
    proof.end(first, E.REQUEST_TIMED_OUT)
    assert proof.is_complete
    third = proof.begin()
    proof.end(third, E.REQUEST_TIMED_OUT)
    assert proof.is_in_doubt
    fourth = proof.begin()
    assert not proof.is_in_doubt, "the fourth will tell"
    proof.take_back(fourth)
    assert proof.is_in_doubt
    fourth, fifth = proof.begin(), proof.begin()
    proof.end(fifth, E.NONE)
    proof.end(fourth, E.NONE)
    assert proof.is_complete
    proof.check()
