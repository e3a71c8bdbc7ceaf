"""Deadlines of members, and which writes of a group are proven."""

from strandline.base.errors import ErrorCode as E
from strandline.base.time import NEVER, Instant
from strandline.group.consumer.timers import REBALANCE, SESSION, Timers
from strandline.group.shards.proving import Proof


def test_a_deadline_that_moves_is_waited_for_once() -> None:
    timers, key, other = Timers(), (SESSION, "g", "a"), (REBALANCE, "g", "a")
    for ends in (50, 20, 80, 30):
        timers.set(key, Instant(ends))
    timers.set(other, Instant(25))
    assert timers.deadline() == 20, "not later than the first"
    assert timers.due(Instant(24)) == {}
    assert timers.due(Instant(29)) == {"g": [other]}
    assert timers.due(Instant(30)) == {"g": [key]}
    assert timers.due(Instant(1000)) == {}
    assert timers.deadline() == NEVER


def test_members_that_come_and_go_leave_no_entries_behind() -> None:
    timers, key = Timers(), (SESSION, "g", "a")
    for _ in range(100):
        timers.set(key, Instant(50))
        del timers.ends[key]
    assert len(timers.heap) == 1


def test_a_write_that_is_committed_proves_those_before_it() -> None:
    proof, told = Proof(), []
    first, second = proof.begin(), proof.begin()
    proof.wait(lambda error: told.append(error) or [])  # type: ignore[func-returns-value]
    proof.end(second, E.NONE)
    assert (told, proof.is_complete) == ([E.NONE], True)
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
