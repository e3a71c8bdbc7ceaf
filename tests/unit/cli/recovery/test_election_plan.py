"""The plan of an election by hand: who would lead, by what right, and what that loses."""

import pytest
from msgspec.structs import replace

from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.diagnosis.election_plan import ElectionResult, Kind, lines_of, losses_of, plan_election
from strandline.metadata.losses import AT_MOST, UNKNOWN

# Nobody leads since epoch 6 began; broker 1 led in epoch 5, and is gone.
LOST = PartitionState(
    Place("t", 0), (1, 2, 3), (), -1, 6, last_known_elr=(2, 3), last_known_leader=1, offline=(1,), min_isr=2
)
GONE = Unasked(1, "does not run: nobody listens at h:1")
DANGEROUS = [kind for kind in Kind if kind is not Kind.PREFERRED]


def log(replica: int, last_epoch: int, end: int, high_watermark: int = 0, current: int = 6) -> ReplicaLog:
    return ReplicaLog(replica, last_epoch, end, high_watermark, current)


def candidate(
    state: PartitionState, reports: tuple[LogReport, ...], kind: Kind, designated: int = -1
) -> tuple[ElectionResult, int]:
    plan = plan_election(state, reports, kind, designated)
    return plan.candidate.outcome, plan.candidate.node


@pytest.mark.parametrize("kind", DANGEROUS)
def test_a_leader_goes_on(kind: Kind) -> None:
    led = replace(LOST, isr=(2,), leader=2)
    assert candidate(led, (), kind, 3) == (ElectionResult.NOT_NEEDED, 2)


@pytest.mark.parametrize("kind", DANGEROUS)
def test_an_in_sync_or_eligible_replica_goes_before_all_others_and_loses_nothing(kind: Kind) -> None:
    reports = (GONE, log(2, 5, 100), log(3, 5, 10))
    for state in (replace(LOST, isr=(3,)), replace(LOST, elr=(3, 1))):
        plan = plan_election(state, reports, kind, 2)
        assert (plan.candidate.outcome, plan.candidate.node, losses_of(plan)) == (ElectionResult.CLEAN, 3, ["nothing"])
    dead = replace(LOST, isr=(1,), elr=(3,))  # an ISR whose members are all dead: the eligible wait behind it
    waits = kind is Kind.LONGEST_LOG_BALANCED  # for all who have everything
    assert candidate(dead, reports, kind, 2)[0] is (ElectionResult.NOBODY if waits else ElectionResult.UNCLEAN)


def test_the_longest_log_is_that_of_the_highest_epoch_then_of_the_highest_end_then_the_first() -> None:
    """The KIP: the one with the highest leader epoch plus the longest log end offset."""
    kind = Kind.LONGEST_LOG_AGGRESSIVE
    assert candidate(LOST, (GONE, log(2, 5, 10), log(3, 4, 99)), kind) == (ElectionResult.UNCLEAN, 2)
    assert candidate(LOST, (GONE, log(2, 5, 10), log(3, 5, 11)), kind) == (ElectionResult.UNCLEAN, 3)
    assert candidate(LOST, (GONE, log(2, 5, 10), log(3, 5, 10)), kind) == (ElectionResult.UNCLEAN, 2)
    other_order = replace(LOST, replicas=(3, 2, 1))
    assert candidate(other_order, (log(3, 5, 10), log(2, 5, 10), GONE), kind) == (ElectionResult.UNCLEAN, 3)


def test_a_replica_that_does_not_know_the_latest_election_or_is_offline_does_not_count() -> None:
    kind = Kind.LONGEST_LOG_AGGRESSIVE
    assert candidate(LOST, (GONE, log(2, 5, 99, current=5), log(3, 5, 1)), kind) == (ElectionResult.UNCLEAN, 3)
    fenced = (log(1, 5, 99), log(2, 5, 2), log(3, 5, 1))
    assert candidate(LOST, fenced, kind) == (ElectionResult.UNCLEAN, 2)
    assert candidate(LOST, (GONE, Unasked(2, "…"), Unasked(3, "…")), kind) == (ElectionResult.NOBODY, -1)
    assert candidate(replace(LOST, offline=(1, 2, 3)), fenced, kind) == (ElectionResult.NOBODY, -1)


@pytest.mark.parametrize(
    ("known", "reports", "outcome", "node"),
    [
        ((2, 3), (GONE, log(2, 5, 10), log(3, 5, 11)), ElectionResult.UNCLEAN, 3),
        ((2,), (GONE, log(2, 5, 10), log(3, 5, 11)), ElectionResult.UNCLEAN, 3),  # others that answered count too
        ((2, 3), (GONE, log(2, 5, 10), Unasked(3, "…")), ElectionResult.NOBODY, -1),
        ((2, 3), (GONE, log(2, 5, 10), log(3, 5, 11, current=5)), ElectionResult.NOBODY, -1),
        ((1, 2), (GONE, log(2, 5, 10), log(3, 5, 11)), ElectionResult.NOBODY, -1),
        ((), (GONE, log(2, 5, 10), log(3, 5, 11)), ElectionResult.NOBODY, -1),
    ],
    ids=["all answered", "one is enough if it is all", "one is silent", "one is behind", "one is dead", "unknown"],
)
def test_balanced_needs_an_answer_of_every_replica_that_was_eligible_last(
    known: tuple[int, ...], reports: tuple[LogReport, ...], outcome: ElectionResult, node: int
) -> None:
    state = replace(LOST, last_known_elr=known)
    assert candidate(state, reports, Kind.LONGEST_LOG_BALANCED) == (outcome, node)


def test_balanced_waits_for_one_that_is_still_eligible() -> None:
    state = replace(LOST, elr=(1,), last_known_elr=(2,))
    reports = (GONE, log(2, 5, 10), log(3, 5, 11))
    assert candidate(state, reports, Kind.LONGEST_LOG_BALANCED) == (ElectionResult.NOBODY, -1)
    assert candidate(state, reports, Kind.LONGEST_LOG_AGGRESSIVE) == (ElectionResult.UNCLEAN, 3)


def test_a_replica_that_is_still_being_added_is_taken_after_all_others_or_if_it_is_designated() -> None:
    moving = replace(LOST, replicas=(2, 1, 3), adding=(2,), last_known_elr=(1, 3))
    reports = (log(2, 9, 99), GONE, log(3, 5, 11))
    assert candidate(moving, reports, Kind.LONGEST_LOG_AGGRESSIVE) == (ElectionResult.UNCLEAN, 3)
    assert candidate(moving, reports, Kind.UNCLEAN) == (ElectionResult.UNCLEAN, 3)
    assert candidate(moving, reports, Kind.DESIGNATION, 2) == (ElectionResult.UNCLEAN, 2)
    alone = replace(moving, offline=(1, 3))
    assert candidate(alone, reports, Kind.LONGEST_LOG_AGGRESSIVE) == (ElectionResult.NOBODY, -1)
    assert candidate(alone, reports, Kind.UNCLEAN) == (ElectionResult.UNCLEAN, 2)


def test_a_designation_takes_the_named_one_whatever_it_has_if_it_can_lead_and_says_what_it_has() -> None:
    reports = (GONE, log(2, 5, 100), log(3, 4, 10))
    assert candidate(LOST, reports, Kind.DESIGNATION, 3) == (ElectionResult.UNCLEAN, 3)
    silent = (GONE, log(2, 5, 10), Unasked(3, "says nothing"))
    assert candidate(LOST, silent, Kind.DESIGNATION, 3) == (ElectionResult.NOBODY, -1)
    assert candidate(LOST, reports, Kind.DESIGNATION, 1) == (ElectionResult.NOBODY, -1)
    assert candidate(LOST, reports, Kind.DESIGNATION, 9) == (ElectionResult.NOBODY, -1)


def test_an_unclean_election_takes_the_last_leader_or_the_first_that_lives() -> None:
    reports = (GONE, log(2, 5, 10), log(3, 5, 11))
    assert candidate(LOST, reports, Kind.UNCLEAN) == (ElectionResult.UNCLEAN, 2)
    assert candidate(replace(LOST, last_known_leader=3), reports, Kind.UNCLEAN) == (ElectionResult.UNCLEAN, 3)
    waiting = replace(LOST, last_known_leader=3, elr=(1,))
    assert candidate(waiting, reports, Kind.UNCLEAN) == (ElectionResult.UNCLEAN, 2), "who led last is for an empty ELR"


def test_one_that_wrote_with_the_last_leader_loses_at_most_what_lies_behind_its_end() -> None:
    plan = plan_election(LOST, (GONE, log(2, 5, 100, 90), log(3, 5, 80, 70)), Kind.LONGEST_LOG_AGGRESSIVE)
    assert plan.loss is not None
    assert (plan.loss.start, plan.loss.certainty, plan.loss.replica) == (100, AT_MOST, 2)
    assert (plan.loss.old_epoch, plan.loss.new_epoch) == (6, 7)
    assert losses_of(plan) == ["at most what was committed from offset 100 on"]


def test_one_of_an_older_epoch_may_lose_all_behind_its_high_watermark() -> None:
    plan = plan_election(LOST, (GONE, log(2, 4, 100, 60), log(3, 4, 80, 70)), Kind.LONGEST_LOG_AGGRESSIVE)
    assert losses_of(plan) == ["at most what was committed from offset 60 on"]


def test_what_others_have_beyond_the_candidate_is_reported_and_what_of_it_was_certainly_committed() -> None:
    reports = (GONE, log(2, 5, 100, 90), log(3, 5, 80, 70))
    plan = plan_election(LOST, reports, Kind.DESIGNATION, 3)
    assert losses_of(plan) == [
        "for certain 10 records that had been committed, offsets 80 to 89",
        "at most what was committed from offset 80 on",
        "what broker 2 has: 20 records from offset 80 on, whether they were committed or not",
    ]


def test_a_high_watermark_of_a_time_before_the_candidates_epoch_proves_no_new_loss() -> None:
    """What broker 2 had and 3 has not, was lost when somebody else began epoch 5."""
    reports = (GONE, log(2, 4, 100, 90), log(3, 5, 80, 70))
    plan = plan_election(LOST, reports, Kind.LONGEST_LOG_AGGRESSIVE)
    assert (plan.candidate.node, plan.certainly_lost) == (3, (80, 80))
    assert losses_of(plan) == ["at most what was committed from offset 80 on"]


def test_the_loss_is_unknown_for_a_replica_that_did_not_report_its_log() -> None:
    plan = plan_election(LOST, (GONE, Unasked(2, "…"), log(3, 5, 100, 90)), Kind.UNCLEAN)
    assert plan.loss is not None
    assert plan.loss.certainty == UNKNOWN
    assert losses_of(plan) == ["unknown: nobody can say which records"]


def test_a_plan_names_the_candidate_who_answered_who_did_not_and_what_is_lost() -> None:
    reports = (GONE, log(2, 5, 100, 90), replace(log(3, 4, 80, 70), recovered_uncleanly=True))
    assert lines_of(plan_election(LOST, reports, Kind.LONGEST_LOG_AGGRESSIVE)) == [
        "t-0: broker 2 would lead: of the replicas that answered, 2 of 3, it has the longest log",
        "  it has: end offset 100, last epoch 5, high watermark 90",
        "  answered: broker 3: end offset 80, last epoch 4, high watermark 70; its last stop was unclean",
        "  not asked: broker 1 does not run: nobody listens at h:1",
        "  lost: at most what was committed from offset 100 on",
    ]
    assert lines_of(plan_election(replace(LOST, last_known_elr=()), reports, Kind.LONGEST_LOG_BALANCED))[0] == (
        "t-0: nobody would lead: LastKnownElr is empty, and the last eligible replicas are unknown"
    )
    led = replace(LOST, leader=3, isr=(3,))
    assert lines_of(plan_election(led, (), Kind.UNCLEAN)) == ["t-0: nothing to do, broker 3 leads"]
