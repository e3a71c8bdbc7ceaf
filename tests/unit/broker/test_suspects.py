"""Metadata that would name a leader that has perhaps just died waits a moment."""

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant
from strandline.broker.suspects import GLANCE_MS, HELD_MAX, HOLD_MS, Suspects

NOW = Instant(1_000)
LATER = Instant(NOW + HOLD_MS)
ASKED = Received(ReplyTo(1, 0, 0, 3, 12), Caller("c", "h", "PLAINTEXT"), None)
DEAD, ALIVE = NodeId(1), NodeId(2)


def test_a_question_is_looked_at_a_moment_after_it_came() -> None:
    """The same kill that made the client ask has closed our own connection, and that may be read after the question."""
    suspects = Suspects()
    suspects.take_in(ASKED, NOW)
    assert suspects.deadline() == NOW + GLANCE_MS
    assert suspects.due(Instant(NOW + GLANCE_MS - 1), moved=True) == []
    assert suspects.due(Instant(NOW + GLANCE_MS), moved=False) == [ASKED]
    assert suspects.deadline() == NEVER


def test_an_answer_that_names_a_suspect_waits_until_metadata_moves() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert suspects.hold(ASKED, [DEAD, ALIVE], NOW)
    assert suspects.due(NOW, moved=False) == []
    assert suspects.due(NOW, moved=True) == [ASKED]
    assert suspects.due(NOW, moved=True) == []
    assert suspects.deadline() == NEVER


def test_an_answer_waits_no_longer_than_the_bound() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert suspects.hold(ASKED, [DEAD], NOW)
    assert suspects.deadline() == LATER
    assert suspects.due(Instant(LATER - 1), moved=False) == []
    assert suspects.due(LATER, moved=False) == [ASKED]
    assert not suspects.hold(ASKED, [DEAD], LATER)


def test_an_old_suspect_does_not_shorten_the_wait_for_another() -> None:
    suspects = Suspects()
    suspects.lost(ALIVE, Instant(NOW - HOLD_MS))
    suspects.lost(DEAD, NOW)
    assert suspects.hold(ASKED, [DEAD, ALIVE], NOW)
    assert suspects.deadline() == LATER


def test_an_answer_without_suspects_does_not_wait() -> None:
    suspects = Suspects()
    assert not suspects.hold(ASKED, [DEAD], NOW)
    suspects.lost(DEAD, NOW)
    assert not suspects.hold(ASKED, [ALIVE], NOW)
    assert not suspects.hold(ASKED, [], NOW)
    assert suspects.held == []


def test_a_leader_is_waited_for_once_until_it_is_heard_again() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    suspects.lost(DEAD, Instant(LATER - 1))  # it still refuses: that adds no time
    assert not suspects.hold(ASKED, [DEAD], LATER)
    suspects.heard(DEAD)
    suspects.lost(DEAD, LATER)
    assert suspects.hold(ASKED, [DEAD], LATER)


def test_what_waits_is_bounded() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert all(suspects.hold(ASKED, [DEAD], NOW) for _ in range(HELD_MAX))
    assert not suspects.hold(ASKED, [DEAD], NOW)
