"""The model of the controller's partitions: complete, without a violation, and no exception without a reason."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.unit.sim.model.modelled import (
    CLEAN,
    FOUR,
    GIVEN_UP,
    MANAGED,
    PLAIN,
    REASSIGNED,
    SMALL,
    STORED,
    Change,
    transcript_of,
)
from tests.unit.sim.model.test_model_laws import replaced

from strandline.base.ids import NOBODY, TopicIdPartition
from strandline.controller.partition import Rules, Wish, plan_change
from strandline.controller.partitions import reassignments
from strandline.metadata.image import Partition
from strandline.sim.model import Setup, exploration, explore, ladder
from strandline.sim.model.events import Event, Kind
from strandline.sim.model.exploration import Search
from strandline.sim.model.ghosts import ghosts
from strandline.sim.model.state import ACTIVE, FENCED, State, renamed, renaming

pytestmark = pytest.mark.slow  # whole explorations

MOVED = replace(REASSIGNED, several=True, redirect=True, fewest=1, symmetry=True)
TWO = replace(REASSIGNED, brokers=2, fewest=1, directories=True, symmetry=True)

COUNTS = [
    ("three brokers, and every strategy", SMALL, 1053, 9),
    ("two brokers, and replicas that lost records", replace(SMALL, brokers=2, torn=True), 162, 6),
    ("three brokers without ELR, and replicas that lost records", replace(PLAIN, torn=True), 126, 6),
    ("three brokers, and recoveries that are managed", MANAGED, 1053, 9),
    ("three brokers without ELR", PLAIN, 126, 7),
    ("two brokers that also shut down and are given up", replace(GIVEN_UP, brokers=2), 392, 8),
    ("two brokers, two log directories each", replace(STORED, brokers=2), 371, 7),
    ("three brokers, and a reassignment", replace(REASSIGNED, symmetry=True), 1533, 13),
    ("two brokers without ELR, two log directories each, and a reassignment", replace(TWO, elr=False), 368, 9),
    ("two brokers, one reassignment replaced by another", replace(MOVED, brokers=2), 257, 7),
    ("three brokers without ELR, several replicas at once", replace(MOVED, elr=False), 386, 9),
    ("four brokers, min ISR 3, in any order", FOUR, 753, 14),
]
LARGER = [  # for seconds each: in a campaign
    ("three brokers, and replicas that lost records", replace(SMALL, torn=True), 1053, 9),
    ("three brokers that also shut down and are given up", GIVEN_UP, 4251, 11),
    ("three brokers, two log directories each", STORED, 2158, 10),
    ("two brokers, two log directories each, and a reassignment", TWO, 3014, 12),
    ("three brokers, several replicas at once, one reassignment replaced by another", MOVED, 3477, 13),
]
ROWS = [pytest.param(*row, id=row[0]) for row in COUNTS]
ROWS += [pytest.param(*row, id=row[0], marks=pytest.mark.long) for row in LARGER]


@pytest.mark.parametrize(("title", "setup", "states", "depth"), ROWS)
def test_every_state_is_reached_and_none_is_wrong(title: str, setup: Setup, states: int, depth: int) -> None:
    found = explore(setup)
    assert found.counterexample is None, "\n".join(found.counterexample or ())
    assert (found.states, found.depth) == (states, depth)


def test_a_strategy_that_has_no_part_in_an_event_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is tried here: every event under every strategy."""
    setup = replace(SMALL, brokers=2)
    sparing = explore(setup)
    monkeypatch.setattr(exploration, "bears", lambda _: True)
    thorough = explore(setup)
    assert thorough.counterexample is None
    assert thorough.states == sparing.states
    assert thorough.transitions > sparing.transitions


def test_the_same_exploration_twice_finds_the_same() -> None:
    first, second = explore(PLAIN), explore(PLAIN)
    assert (first.states, first.transitions, first.depth) == (second.states, second.transitions, second.depth)


def test_symmetry_merges_only_what_differs_in_order() -> None:
    """Every order is explored one by one, and then folded: that must be what symmetry finds at once."""
    for setup in (replace(REASSIGNED, elr=False), replace(REASSIGNED, brokers=2, fewest=1)):
        by_order = Search(replace(setup, reorder=True))
        by_symmetry = Search(replace(setup, symmetry=True))
        assert by_order.run().counterexample is None
        assert by_symmetry.run().counterexample is None
        folded = {renamed(state, renaming(state, True), True) for state in by_order.reached}
        assert folded == set(by_symmetry.reached)
        assert len(folded) < len(by_order.reached)


def test_brokers_that_leave_one_at_a_time_lead_wherever_several_would() -> None:
    """Who is not active is, to a partition, as good as fenced."""

    def seen(setup: Setup) -> set[State]:
        search = Search(replace(setup, symmetry=True))
        assert search.run().counterexample is None
        fenced = (
            state._replace(statuses=tuple(s if s == ACTIVE else FENCED for s in state.statuses))
            for state in search.reached
        )
        return {renamed(state, renaming(state, True), True) for state in fenced}

    for setup in (replace(GIVEN_UP, elr=False), replace(GIVEN_UP, brokers=2)):
        assert seen(setup) == seen(replace(setup, crowded=True))


def test_the_ladder_has_the_sizes_that_the_public_specification_left_out() -> None:
    assert [(s.brokers, s.min_isr, s.symmetry) for s in ladder()] == [
        (3, 2, False),
        (4, 2, True),
        (4, 3, True),
        (5, 3, True),
    ]


# --- what the model looks away from unless asked, and what answers that overtake the log would do


def test_without_elr_the_last_replica_in_sync_may_have_lost_what_was_committed() -> None:
    """KIP-966 exists for this: the last member stays in the ISR, and leads again, whatever became of its log."""
    lines = transcript_of(replace(CLEAN, elr=False, last_standing=True))
    assert lines[2:] == [
        "1. leader 1 proposes the ISR [1]",
        "     wrote PartitionChangeRecord(isr=[1])",
        "  so: replicas [1,2,3], leader 1, ISR [1], min ISR 2",
        "2. broker 1 registers after an unclean stop",
        "     wrote PartitionChangeRecord(leader=none)",
        "     wrote RegisterBrokerRecord(broker=1, fenced=True)",
        "  so: replicas [1,2,3], leader none, ISR [1], min ISR 2, 1 fenced",
        "wrong: broker 1 may lack committed records, and could be elected as if nothing were missing",
    ]


def test_a_leader_that_believes_in_an_older_min_isr_commits_past_the_elr() -> None:
    """The answer to AlterPartition overtakes the metadata: the ISR is new to the leader, and its min ISR is old. So a
    new min ISR begins a partition epoch, which refuses that leader's proposals (L7); here it does not."""

    def begins_no_epoch(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
        is_raised = rules.min_isr > min(CLEAN.allowed_min_isrs)
        return None if wish.renews_epoch and is_raised else plan_change(at, old, wish, rules)

    lines = transcript_of(CLEAN, begins_no_epoch)
    assert "of which the leader believes 1" in lines[-2]
    assert lines[-1] == (
        "wrong: broker 2 and broker 3 may lack committed records, and could be elected as if nothing were missing"
    )
    assert explore(replace(CLEAN, leader_lags=False), planner=begins_no_epoch).counterexample is None


def test_a_transcript_keeps_the_names_that_brokers_had_at_first() -> None:
    """The model renames brokers on the way: after a reassignment to [2,3] its broker 1 is broker 2."""

    def never_ends_well(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
        change = plan_change(at, old, wish, rules)
        if change is not None and change.replicas is not None and old.leader not in change.replicas:
            return replaced(change, leader=NOBODY)
        return change

    lines = transcript_of(REASSIGNED, never_ends_well)
    text = "\n".join(lines)
    assert "a reassignment to [2,3] begins" in text
    assert "so: replicas [2,3], leader none, ISR [2,3]" in lines[-2]
    assert lines[-1] == "wrong: there is no leader although a member of the ISR or ELR could lead"


def test_without_elr_a_reassignment_does_not_end_in_an_unclean_election() -> None:
    found = explore(replace(SMALL, brokers=2, fewest=1, reassign=True, elr=False)).counterexample
    assert found is None, "\n".join(found or ())


def test_a_reassignment_that_adds_replicas_ends_with_an_isr_that_is_large_enough_for_them() -> None:
    found = explore(replace(REASSIGNED, brokers=2, fewest=1, symmetry=True)).counterexample
    assert found is None, "\n".join(found or ())


def test_a_cancel_that_removes_a_replica_that_min_isr_needs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: whatever it costs, what an operator wants is done."""
    monkeypatch.setattr(reassignments, "why_unsafe", lambda *_: None)
    lines = transcript_of(replace(REASSIGNED, symmetry=True))
    assert lines[-4] == "4. the reassignment is cancelled", "\n".join(lines)
    assert lines[-1] == "wrong: a reassignment ended with an ISR of 1, below min ISR 2"


# --- for how long lossy shutdowns are counted, and remembered: no exception can be left out


def by_another_min_isr(setup: Setup, event: Event, old: State, new: State) -> tuple[int, bool]:
    if event.kind is Kind.MIN_ISR:
        event, old = event._replace(kind=Kind.COMPLETE), old._replace(min_isr=new.min_isr)
    return ghosts(setup, event, old, new)


def by_an_unclean_election(setup: Setup, event: Event, old: State, new: State) -> tuple[int, bool]:
    return ghosts(setup, event, old, new._replace(leader=old.leader))


def by_a_reassignment(setup: Setup, event: Event, old: State, new: State) -> tuple[int, bool]:
    return ghosts(setup, event, old, new)[0], True


ENDS = [
    (by_another_min_isr, CLEAN, "ISR and ELR have 1 members after 0 lossy shutdowns, and min ISR is 2"),
    (by_an_unclean_election, SMALL, "ISR and ELR have 1 members after 0 lossy shutdowns, and min ISR is 2"),
    (
        by_a_reassignment,
        replace(REASSIGNED, symmetry=True, fewest=1),
        "ISR, ELR and last known ELR have fewer than 2 members together",
    ),
]


@pytest.mark.parametrize(("ignored", "setup", "why"), ENDS, ids=[row[0].__name__ for row in ENDS])
def test_what_ends_the_count_really_does(
    monkeypatch: pytest.MonkeyPatch, ignored: Callable[..., tuple[int, bool]], setup: Setup, why: str
) -> None:
    monkeypatch.setattr(exploration, "ghosts", ignored)
    assert transcript_of(setup)[-1] == f"wrong: {why}"
