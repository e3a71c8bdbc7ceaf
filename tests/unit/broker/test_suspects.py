"""Metadata that would name a leader that has perhaps just died waits a moment."""

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.ids import NodeId
from strandline.base.time import NEVER, Instant
from strandline.broker.suspects import HELD_MAX, HOLD_MS, Suspects

NOW = Instant(1_000)
LATER = Instant(NOW + HOLD_MS)
ASKED = Received(ReplyTo(1, 0, 0, 3, 12), Caller("c", "h", "PLAINTEXT"), None)
DEAD, ALIVE = NodeId(1), NodeId(2)


def test_an_answer_that_names_a_suspect_waits_until_metadata_moves() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert suspects.hold(ASKED, [DEAD, ALIVE], NOW)
    assert suspects.deadline() == LATER
    assert suspects.take_held() == [ASKED]
    assert suspects.take_held() == []
    assert suspects.deadline() == NEVER


def test_an_answer_without_suspects_does_not_wait() -> None:
    suspects = Suspects()
    assert not suspects.hold(ASKED, [DEAD], NOW)
    suspects.lost(DEAD, NOW)
    assert not suspects.hold(ASKED, [ALIVE], NOW)
    assert suspects.held == []


def test_a_leader_is_waited_for_once_and_no_longer_than_the_bound() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert suspects.hold(ASKED, [DEAD], Instant(LATER - 1))
    suspects.lost(DEAD, Instant(LATER - 1))  # it still refuses: that adds no time
    assert not suspects.hold(ASKED, [DEAD], LATER)


def test_a_leader_that_is_heard_again_may_be_waited_for_again() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    suspects.heard(DEAD)
    assert not suspects.hold(ASKED, [DEAD], NOW)
    suspects.lost(DEAD, LATER)
    assert suspects.hold(ASKED, [DEAD], LATER)


def test_what_waits_is_bounded() -> None:
    suspects = Suspects()
    suspects.lost(DEAD, NOW)
    assert all(suspects.hold(ASKED, [DEAD], NOW) for _ in range(HELD_MAX))
    assert not suspects.hold(ASKED, [DEAD], NOW)
