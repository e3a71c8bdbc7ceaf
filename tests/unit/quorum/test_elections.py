"""Tallies, outreach, and who votes for whom."""

import pytest

from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import NEVER, Instant
from strandline.quorum.elections.elections import majority, outreach, tally
from strandline.quorum.roles import (
    Candidate,
    Fetching,
    Follower,
    Observing,
    Prospective,
    Resigned,
    Role,
    Seeking,
    Unattached,
    Voted,
    why_not_pre_vote,
    why_not_vote,
)

NOW = Instant(0)
THREE = [NodeId(n) for n in (1, 2, 3)]
FIVE = [NodeId(n) for n in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_majority(voters: int, needed: int) -> None:
    assert majority(voters) == needed


def test_a_voter_counts_once_and_its_first_answer_holds() -> None:
    votes = tally(FIVE)
    for _ in range(3):
        votes.grant(NodeId(1))
    votes.reject(NodeId(1))
    votes.grant(NodeId(9))
    assert (votes.granted, votes.rejected) == ([1], [])
    assert not votes.is_won()


def test_round_is_lost_when_it_cannot_be_won_any_more() -> None:
    votes = tally(FIVE)
    votes.reject(NodeId(2))
    votes.reject(NodeId(3))
    assert not votes.is_lost()
    votes.reject(NodeId(4))
    assert votes.is_lost()
    votes.check()


def test_two_survivors_that_voted_for_themselves_wait_for_nobody() -> None:
    votes = tally(THREE)
    votes.grant(NodeId(1))
    votes.reject(NodeId(2))
    assert not votes.is_hopeless()
    votes.absent.append(NodeId(3))
    assert votes.is_hopeless()
    assert not votes.is_lost()


def test_outreach_asks_each_peer_once_until_told_otherwise() -> None:
    peers = outreach(THREE, NOW)
    assert peers.take(NOW) == THREE
    assert peers.take(NOW) == []
    assert peers.deadline() == NEVER
    peers.again(NodeId(2), Instant(50))
    peers.done(NodeId(3))
    assert peers.take(Instant(49)) == []
    assert peers.take(Instant(50)) == [2]
    peers.done(NodeId(2))
    peers.again(NodeId(2), NOW)
    assert peers.take(NOW) == []


NOMINEE = (1, tally(THREE), outreach(THREE, NOW), NOW)
HEARING = Follower(NodeId(2), Fetching(NOW), NOW, has_fetched=True)
DEAF = Follower(NodeId(2), Fetching(NOW), NOW)

ROLES: list[tuple[Role, bool, bool]] = [  # would vote, would pre-vote, for an up-to-date candidate 3
    (Unattached(NOW), True, True),
    (Prospective(*NOMINEE), True, True),
    (Candidate(*NOMINEE), False, True),
    (HEARING, False, False),
    (DEAF, False, True),
    (Resigned(outreach(THREE, NOW), (), NOW), False, True),
    (Seeking(0, Fetching(NOW)), False, False),
    (Observing(NodeId(2), Fetching(NOW), NOW), False, False),
]


@pytest.mark.parametrize(("role", "votes", "pre_votes"), ROLES)
def test_who_votes_for_an_up_to_date_candidate(role: Role, votes: bool, pre_votes: bool) -> None:
    why = why_not_vote(role, candidate=NodeId(3), voted=NOBODY, has_leader=False, is_up_to_date=True)
    assert (why is None) is votes
    assert (why_not_pre_vote(role, is_up_to_date=True) is None) is pre_votes


@pytest.mark.parametrize(("role", "_votes", "_pre_votes"), ROLES)
def test_nobody_votes_for_a_candidate_that_lacks_records(role: Role, _votes: bool, _pre_votes: bool) -> None:
    assert why_not_vote(role, candidate=NodeId(3), voted=NOBODY, has_leader=False, is_up_to_date=False)
    assert why_not_pre_vote(role, is_up_to_date=False)


def test_a_vote_is_given_once() -> None:
    role = Voted(NodeId(2), NOW)
    assert why_not_vote(role, candidate=NodeId(3), voted=NodeId(2), has_leader=False, is_up_to_date=True)
    assert why_not_vote(role, candidate=NodeId(2), voted=NodeId(2), has_leader=False, is_up_to_date=True) is None


def test_no_vote_in_an_epoch_that_had_a_leader_though_it_is_lost() -> None:
    assert why_not_vote(Unattached(NOW), candidate=NodeId(3), voted=NOBODY, has_leader=True, is_up_to_date=True)
