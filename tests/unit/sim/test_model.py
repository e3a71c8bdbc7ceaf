"""The model of the controller's partitions: complete, without a violation, and every law notices when it is broken."""

import pytest
from msgspec.structs import replace

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.controller import reassignments
from strandline.controller.partition import LastResort, Rules, Wish, plan_change
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, Partition
from strandline.metadata.records import PartitionChangeRecord
from strandline.sim.model import Setup, explore, ladder
from strandline.sim.model.events import ALTER, STALE, Event
from strandline.sim.model.exploration import Planner, Search, take
from strandline.sim.model.laws import Step, why_badly_led, why_misshapen, why_wrong
from strandline.sim.model.state import ACTIVE, AT, FENCED, TOPIC_ID, State, image_of, initial, renamed, renaming

Change = PartitionChangeRecord | None

SMALL = Setup(shutdown=False, unregister=False, reassign=False)
PLAIN = Setup(elr=False, shutdown=False, unregister=False, reassign=False)
ALL_BUT_REASSIGNMENT = Setup(reassign=False)
REASSIGNED = Setup(shutdown=False, unregister=False)
MOVED = Setup(unclean=False, shutdown=False, unregister=False, several=True, redirect=True, fewest=1, symmetry=True)
FOUR = Setup(brokers=4, min_isr=3, shutdown=False, unregister=False, reassign=False, symmetry=True)

COUNTS = [
    ("three brokers", SMALL, 974, 11),
    ("three brokers without ELR", PLAIN, 300, 10),
    ("three brokers that also shut down and are given up", ALL_BUT_REASSIGNMENT, 4322, 13),
    ("three brokers, and a reassignment", replace(REASSIGNED, symmetry=True), 1956, 13),
    ("three brokers, several replicas at once, one reassignment replaced by another", MOVED, 1736, 11),
    ("four brokers, min ISR 3, in any order", FOUR, 838, 13),
]


@pytest.mark.parametrize(("title", "setup", "states", "depth"), COUNTS, ids=[row[0] for row in COUNTS])
def test_every_state_is_reached_and_none_is_wrong(title: str, setup: Setup, states: int, depth: int) -> None:
    found = explore(setup)
    assert found.counterexample is None, "\n".join(found.counterexample or ())
    assert (found.states, found.depth) == (states, depth)


def test_the_same_exploration_twice_finds_the_same() -> None:
    first, second = explore(PLAIN), explore(PLAIN)
    assert (first.states, first.transitions, first.depth) == (second.states, second.transitions, second.depth)


def test_symmetry_merges_only_what_differs_in_order() -> None:
    """Every order is explored one by one, and then folded: that must be what symmetry finds at once."""
    base = replace(REASSIGNED, unclean=False)
    by_order = Search(replace(base, reorder=True))
    by_symmetry = Search(replace(base, symmetry=True))
    assert by_order.run().counterexample is None
    assert by_symmetry.run().counterexample is None
    folded = {renamed(state, renaming(state, True), True) for state in by_order.reached}
    assert folded == set(by_symmetry.reached)
    assert len(folded) < len(by_order.reached)


def test_brokers_that_leave_one_at_a_time_lead_wherever_several_would() -> None:
    """Who is not active is, to a partition, as good as fenced."""

    def seen(setup: Setup) -> set[State]:
        search = Search(setup)
        assert search.run().counterexample is None
        return {
            state._replace(statuses=tuple(s if s == ACTIVE else FENCED for s in state.statuses))
            for state in search.reached
        }

    one = Setup(reassign=False, unclean=False)
    several = Setup(reassign=False, unclean=False, crowded=True)
    assert seen(one) == seen(several)


def test_the_ladder_has_the_sizes_that_the_public_specification_left_out() -> None:
    assert [(s.brokers, s.min_isr, s.symmetry) for s in ladder()] == [
        (3, 2, False),
        (4, 2, True),
        (4, 3, True),
        (5, 3, True),
    ]


# --- what the model looks away from unless asked, and what answers that overtake the log would do


def told(setup: Setup, planner: Planner = plan_change) -> list[str]:
    found = explore(setup, planner=planner).counterexample
    assert found is not None, "nothing was noticed"
    return found


def test_without_elr_the_last_replica_in_sync_may_have_lost_what_was_committed() -> None:
    """KIP-966 exists for this: the last member stays in the ISR, and leads again, whatever became of its log."""
    lines = told(Setup(elr=False, reassign=False, shutdown=False, unregister=False, last_standing=True))
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
        return None if wish.renews_epoch else plan_change(at, old, wish, rules)

    lines = told(SMALL, begins_no_epoch)
    assert "of which the leader believes 1" in lines[-2]
    assert lines[-1] == (
        "wrong: broker 2 and broker 3 may lack committed records, and could be elected as if nothing were missing"
    )
    assert explore(replace(SMALL, leader_lags=False), planner=begins_no_epoch).counterexample is None


def test_a_transcript_keeps_the_names_that_brokers_had_at_first() -> None:
    """The model renames brokers on the way: after a reassignment to [2,3] its broker 1 is broker 2."""

    def never_ends_well(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
        change = plan_change(at, old, wish, rules)
        if change is not None and change.replicas is not None and old.leader not in change.replicas:
            return replaced(change, leader=NOBODY)
        return change

    lines = told(REASSIGNED, never_ends_well)
    text = "\n".join(lines)
    assert "a reassignment to [2,3] begins" in text
    assert "so: replicas [2,3], leader none, ISR [2,3]" in lines[-2]
    assert lines[-1] == "wrong: there is no leader although a member of the ISR or ELR could lead"


def test_without_elr_a_reassignment_does_not_end_in_an_unclean_election() -> None:
    found = explore(Setup(elr=False, shutdown=False, unregister=False)).counterexample
    assert found is None, "\n".join(found or ())


def test_a_reassignment_that_adds_replicas_ends_with_an_isr_that_is_large_enough_for_them() -> None:
    found = explore(Setup(min_isr=3, fewest=2, shutdown=False, unregister=False, symmetry=True)).counterexample
    assert found is None, "\n".join(found or ())


def test_a_cancel_that_takes_away_whom_min_isr_needs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: whatever it costs, what an operator wants is done."""
    monkeypatch.setattr(reassignments, "why_unsafe", lambda *_: None)
    lines = told(replace(REASSIGNED, symmetry=True))
    assert lines[-4] == "4. the reassignment is cancelled", "\n".join(lines)
    assert lines[-1] == "wrong: a reassignment ended with an ISR of 1, below min ISR 2"


# --- planted bugs: what a wrong partition builder would do


def replaced(change: PartitionChangeRecord, **fields: object) -> PartitionChangeRecord:
    values = {name: getattr(change, name) for name in change.__struct_fields__}
    return PartitionChangeRecord(**{**values, **fields})


def empty(at: TopicIdPartition) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=at.partition, topic_id=at.topic_id, leader=NO_LEADER_CHANGE)


def writes_the_elr_in_another_order(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.eligible_leader_replicas is not None:
        return change
    return replaced(change, eligible_leader_replicas=old.elr[::-1])


def emits_nothing_new(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    return plan_change(at, old, wish, rules) or empty(at)


def bumps_the_epoch_on_a_shrink(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.isr is None or change.leader != NO_LEADER_CHANGE:
        return change
    return replaced(change, leader=old.leader)


def opens_no_epoch_when_replicas_go(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.replicas is None or change.leader != old.leader:
        return change
    return replaced(change, leader=NO_LEADER_CHANGE)


def believes_in_a_lost_tail(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    return plan_change(at, old, Wish(wish.isr, wish.election, wish.recovery_state), rules)


def forgets_the_elr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T9: a call site that does not say that the feature is on."""
    return plan_change(at, old, wish, replace(rules, is_elr_enabled=False))


def keeps_the_elr_for_ever(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.eligible_leader_replicas != () or change.leader_recovery_state == RECOVERING:
        return change
    isr = old.isr if change.isr is None else change.isr
    return replaced(change, eligible_leader_replicas=tuple(n for n in old.elr if n not in isr) or None)


def joins_without_leaving_the_elr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """KIP-966's third step left out: as in the public specification."""
    change = plan_change(at, old, wish, rules)
    if change is None or not change.eligible_leader_replicas or not old.elr:
        return change
    return replaced(change, eligible_leader_replicas=old.elr)


def forgets_who_was_lost(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    return None if change is None else replaced(change, last_known_elr=None)


def remembers_the_lost_for_ever(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.last_known_elr != () or change.leader_recovery_state == RECOVERING:
        return change
    return replaced(change, last_known_elr=None)


def calls_unclean_clean(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.leader_recovery_state != RECOVERING:
        return change
    return replaced(change, leader_recovery_state=-1)


def calls_clean_unclean(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T7: uncleanness inferred from the new leader not having been in the ISR."""
    change = plan_change(at, old, wish, rules)
    if change is None or change.leader < 0 or change.leader in old.isr:
        return change
    return replaced(change, leader_recovery_state=RECOVERING if old.leader_recovery_state == RECOVERED else -1)


def is_unclean_unasked(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    return plan_change(at, old, wish, replace(rules, last_resort=LastResort.ANYBODY))


def elects_the_dead(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T8: nobody asks who is alive."""
    return plan_change(at, old, wish, replace(rules, is_acceptable=lambda *_: True, last_resort=LastResort.NOBODY))


def elects_nobody_on_arrival(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    return None if old.leader == NOBODY else plan_change(at, old, wish, rules)


def keeps_the_fenced_in_the_isr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    isr = old.isr if wish.isr is not None and old.leader in wish.isr else wish.isr
    return plan_change(at, old, Wish(isr, wish.election, wish.recovery_state, wish.lost_tail), rules)


def empties_the_isr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    return replaced(change, isr=()) if change is not None and change.leader == NOBODY else change


def ends_a_reassignment_thin(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T40: everything that is added is in sync, and nobody counts the rest."""
    change = plan_change(at, old, wish, rules)
    isr = old.isr if change is None or change.isr is None else change.isr
    staying = tuple(n for n in isr if n not in old.removing_replicas)
    leader = old.leader if change is None or change.leader == NO_LEADER_CHANGE else NodeId(change.leader)
    if not (old.adding_replicas or old.removing_replicas) or leader not in staying:
        return change
    replicas = tuple(n for n in old.replicas if n not in old.removing_replicas)
    final = replaced(change or empty(at), replicas=replicas, adding_replicas=(), removing_replicas=(), isr=staying)
    return replaced(final, leader=leader, eligible_leader_replicas=() if old.elr else None)


def leaves_the_removed_in_the_elr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """L3: whoever is removed stays eligible."""
    change = plan_change(at, old, wish, rules)
    if change is None or change.replicas is None or not old.removing_replicas:
        return change
    return replaced(change, eligible_leader_replicas=old.removing_replicas)


MAY_LACK = "may lack committed records, and could be elected as if nothing were missing"
PLANTED: list[tuple[Planner, Setup, str]] = [
    (emits_nothing_new, SMALL, "the partition was written although nothing changes"),
    (writes_the_elr_in_another_order, SMALL, "the ELR was written although it stays"),
    (bumps_the_epoch_on_a_shrink, SMALL, "the leader epoch grew by 1, and should by 0"),
    (opens_no_epoch_when_replicas_go, REASSIGNED, "the leader epoch grew by 0, and should by 1"),
    (believes_in_a_lost_tail, SMALL, f"broker 2 {MAY_LACK}"),
    (forgets_the_elr, SMALL, "ISR, ELR and last known ELR have fewer than 2 members together"),
    (keeps_the_elr_for_ever, SMALL, f"broker 3 {MAY_LACK}"),
    (joins_without_leaving_the_elr, FOUR, "ISR, ELR and last known ELR share a member"),
    (forgets_who_was_lost, SMALL, "ISR, ELR and last known ELR have fewer than 2 members together"),
    (remembers_the_lost_for_ever, SMALL, "the ISR is large enough, and the ELR not empty"),
    (calls_unclean_clean, SMALL, "broker 2 may lack committed records, and was elected without being RECOVERING"),
    (calls_clean_unclean, SMALL, "RECOVERING without an unclean election"),
    (is_unclean_unasked, SMALL, "broker 2 was elected uncleanly, which is not allowed"),
    (elects_the_dead, PLAIN, "the leader is not active"),
    (elects_nobody_on_arrival, SMALL, "there is no leader although a member of the ISR or ELR could lead"),
    (keeps_the_fenced_in_the_isr, PLAIN, "the ISR has a member that is not active"),
    (empties_the_isr, PLAIN, "the ISR is empty"),
    (ends_a_reassignment_thin, REASSIGNED, "a reassignment ended with an ISR of 1, below min ISR 2"),
    (leaves_the_removed_in_the_elr, REASSIGNED, "the ELR has members that are no replicas"),
]


@pytest.mark.parametrize(("planner", "setup", "why"), PLANTED, ids=[row[0].__name__ for row in PLANTED])
def test_a_planted_bug_is_found(planner: Planner, setup: Setup, why: str) -> None:
    lines = told(setup, planner)
    assert lines[-1] == f"wrong: {why}", "\n".join(lines)


def step_of(event: Event, *records: PartitionChangeRecord) -> Step:
    state = initial(SMALL)
    return take(SMALL, state, image_of(state, SMALL), event, records)


SHRINK = Event(ALTER, RECOVERED, (1, 2))
SHRUNK = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1, 2))


def test_a_shrink_is_no_violation() -> None:
    assert why_wrong(step_of(SHRINK, SHRUNK)) is None


def test_a_proposal_of_the_past_that_is_accepted_is_noticed() -> None:
    stale = Event(STALE, 1, (1, 2), "of an earlier leader epoch")
    assert why_wrong(step_of(stale, SHRUNK)) == "a proposal of an earlier leader epoch was accepted"
    assert why_wrong(step_of(stale)) is None


def test_two_changes_for_one_event_are_noticed() -> None:
    step = step_of(SHRINK, SHRUNK, PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1,)))
    assert why_wrong(step) is not None
    again = step_of(SHRINK, SHRUNK, SHRUNK)
    assert why_wrong(again) == "the partition epoch grew by 2"


def test_an_index_that_is_not_what_its_partitions_say_is_noticed() -> None:
    step = step_of(SHRINK, SHRUNK)
    step.image.eligible[NodeId(3)] = {AT: None}
    assert why_wrong(step) == "the image's own check fails: an index is not what its partitions say"


def test_a_state_is_wrong_by_itself_whatever_led_to_it() -> None:
    good = initial(SMALL)
    assert why_misshapen(SMALL, good) is None
    assert why_badly_led(SMALL, good) is None
    assert why_misshapen(SMALL, good._replace(isr=(1, 2), elr=(2,))) == "ISR, ELR and last known ELR share a member"
    assert why_misshapen(SMALL, good._replace(isr=(1, 2, 4))) == "the ISR has members that are no replicas"
    assert why_misshapen(PLAIN, good._replace(isr=(1,), elr=(2,))) == "there is an ELR although the feature is off"
    assert why_badly_led(SMALL, good._replace(leader=2, isr=(1, 3))) == "the leader is not in the ISR"


def test_the_controller_is_itself_again_after_a_planted_bug() -> None:
    told(PLAIN, empties_the_isr)
    assert explore(PLAIN).counterexample is None
