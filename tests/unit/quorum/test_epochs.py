"""How far a message may move the epoch, and which stored epoch is repaired."""

import pytest

from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import Instant
from strandline.quorum.elections.election_state import ElectionState
from strandline.quorum.elections.epochs import EPOCH_MAX, MARGIN, REACH, Allowance, repaired

ME, OTHER = NodeId(1), NodeId(2)


def test_a_laggard_may_be_moved_by_two_million_epochs_at_once() -> None:
    assert Allowance(Instant(0)).steps(Instant(0)) == REACH == 1 << 21


def test_what_is_taken_grows_back_slowly_and_never_beyond_where_it_began() -> None:
    allowance = Allowance(Instant(0))
    allowance.take(REACH, Instant(0))
    assert [allowance.steps(Instant(ms)) for ms in (0, 9, 10, 1_000, 3_600_000)] == [0, 0, 1, 100, 360_000]
    assert allowance.steps(Instant(1 << 60)) == REACH


def test_a_mad_peer_needs_months_for_all_epochs() -> None:
    allowance, epochs, now = Allowance(Instant(0)), 0, Instant(0)
    for hour in range(24 * 200):
        now = Instant(hour * 3_600_000)
        steps = allowance.steps(now)
        allowance.take(steps, now)
        epochs += steps
    assert epochs < EPOCH_MAX


def test_the_operator_gets_one_report_a_minute() -> None:
    allowance = Allowance(Instant(0))
    assert [allowance.is_news(Instant(ms)) for ms in (0, 1, 59_999, 60_000, 60_001)] == [
        True,
        False,
        False,
        True,
        False,
    ]


def test_what_a_sound_voter_wrote_is_kept() -> None:
    for state in (ElectionState(7, OTHER, ME), ElectionState(EPOCH_MAX - 1), ElectionState(7, NOBODY, OTHER)):
        assert repaired(state, 5) == state


def test_the_log_may_be_ahead_of_the_file() -> None:
    assert repaired(ElectionState(4, OTHER, ME), 5) == ElectionState(5)


@pytest.mark.parametrize(
    "poisoned",
    [
        ElectionState(EPOCH_MAX + 1, NOBODY, ME),  # a candidate in an epoch that it could tell nobody
        ElectionState(EPOCH_MAX),  # moved by one pre-vote
        ElectionState(EPOCH_MAX, OTHER),  # moved by one BeginQuorumEpoch
    ],
)
def test_a_poisoned_epoch_becomes_one_after_all_in_which_this_voter_voted(poisoned: ElectionState) -> None:
    assert repaired(poisoned, 5) == ElectionState(5 + MARGIN)


def test_the_other_voters_can_follow_a_repaired_voter() -> None:
    assert MARGIN <= REACH // 2  # so a voter may lack as many epochs again


def test_a_vote_that_another_voter_may_have_counted_is_not_forgotten() -> None:
    assert repaired(ElectionState(EPOCH_MAX, NOBODY, OTHER), 5) == ElectionState(EPOCH_MAX, NOBODY, OTHER)


def test_a_log_with_records_of_the_last_epoch_proves_that_it_was_real() -> None:
    state = ElectionState(EPOCH_MAX + 1, NOBODY, ME)
    assert repaired(state, EPOCH_MAX) == ElectionState(EPOCH_MAX, NOBODY, ME)
    assert repaired(ElectionState(EPOCH_MAX, OTHER), EPOCH_MAX) == ElectionState(EPOCH_MAX, OTHER)
