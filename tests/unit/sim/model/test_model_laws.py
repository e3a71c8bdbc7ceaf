"""Every law of the model notices when it is broken: planted partition builders, each wrong in one way."""

import pytest
from msgspec.structs import replace
from tests.unit.sim.model.modelled import FOUR, MANAGED, PLAIN, REASSIGNED, SMALL, STORED, Change, transcript_of

from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, Uuid
from strandline.controller.partition import LastResort, Rules, Wish, plan_change
from strandline.controller.partitions import recovery
from strandline.controller.partitions.inquiries import Answer
from strandline.controller.partitions.standing import Standing
from strandline.metadata.image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, UNASSIGNED_DIRECTORY, Partition
from strandline.metadata.records import LossEvent, PartitionChangeRecord
from strandline.sim.model import Setup, explore
from strandline.sim.model.events import Event, Kind
from strandline.sim.model.exploration import Planner, take
from strandline.sim.model.laws import why_badly_led, why_misshapen, why_wrong
from strandline.sim.model.requests import StaleProposal
from strandline.sim.model.setup import BALANCED
from strandline.sim.model.state import AT, TOPIC_ID, image_of, initial
from strandline.sim.model.step import Step

pytestmark = pytest.mark.slow  # an exploration for each law


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
    final = replaced(final, original_replicas=())
    return replaced(final, leader=leader, eligible_leader_replicas=() if old.elr else None)


def leaves_the_removed_in_the_elr(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """L3: whoever is removed stays eligible."""
    change = plan_change(at, old, wish, rules)
    if change is None or change.replicas is None or not old.removing_replicas:
        return change
    return replaced(change, eligible_leader_replicas=old.removing_replicas)


# Of elections where nobody may lead cleanly.


def says_nothing_of_a_loss(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    return None if change is None else replaced(change, losses=())


def blames_another(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or not change.losses:
        return change
    return replaced(change, losses=(replace(change.losses[0], new_epoch=old.leader_epoch),))


def cries_wolf(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    return None if change is None else replaced(change, losses=(LossEvent(replica=1, cause="a shrink"),))


def elects_another_than_designated(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    if wish.designated is None:
        return plan_change(at, old, wish, rules)
    return plan_change(at, old, Wish(), replace(rules, last_resort=LastResort.ANYBODY))


def is_ahead_of_a_recovery(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    return plan_change(at, old, wish, replace(rules, last_resort=LastResort.LAST_KNOWN_LEADER))


def trusts_who_led_last_whatever_the_strategy(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """L8: elected after its own loss, with unclean elections forbidden."""
    return plan_change(at, old, wish, replace(rules, last_resort=LastResort.LAST_KNOWN_LEADER))


def takes_anybody_before_who_led_last(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    if rules.last_resort is not LastResort.ANYBODY or old.last_known_leader == NOBODY:
        return plan_change(at, old, wish, rules)
    change = plan_change(at, replace(old, last_known_leader=NOBODY), wish, rules)
    return change and replaced(change, last_known_leader=NOBODY)


def never_looks_again(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    resort = rules.last_resort if wish.isr is not None else LastResort.NOBODY
    return plan_change(at, old, wish, replace(rules, last_resort=resort))


def looks_away_from_who_led_last(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    resort = rules.last_resort
    if resort is LastResort.LAST_KNOWN_LEADER:
        resort = LastResort.NOBODY
    return plan_change(at, old, wish, replace(rules, last_resort=resort))


def forgets_who_led_last(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T10: whoever looks again while nobody leads remembers nobody."""
    change = plan_change(at, old, wish, rules)
    if change is None or old.leader != NOBODY or old.last_known_leader == NOBODY:
        return change
    return replaced(change, last_known_leader=NOBODY)


def remembers_another_leader(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    if change is None or change.leader != NOBODY:
        return change
    return replaced(change, last_known_leader=next(n for n in old.replicas if n != old.leader))


# Of directories and reassignments.


def forgets_the_elr_on_a_move(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """T9: as Kafka did until 4.3, where a broker says where its replicas lie."""
    if wish.located is not None and wish.isr is None:
        rules = replace(rules, is_elr_enabled=False)
    return plan_change(at, old, wish, rules)


def believes_an_empty_directory(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    """L5: eligible is who was, wherever its replica begins anew."""
    return plan_change(at, old, replace(wish, lost_tail=()) if wish.located is not None else wish, rules)


def elects_from_a_lost_directory(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    def is_acceptable(node: NodeId, _: Uuid) -> bool:
        return rules.is_acceptable(node, UNASSIGNED_DIRECTORY)

    return plan_change(at, old, wish, replace(rules, is_acceptable=is_acceptable))


def never_ends_a_reassignment(at: TopicIdPartition, old: Partition, wish: Wish, rules: Rules) -> Change:
    change = plan_change(at, old, wish, rules)
    has_ended = change is not None and change.removing_replicas == ()
    return None if has_ended and wish.isr is not None and old.leader in wish.isr else change


MAY_LACK = "may lack committed records, and could be elected as if nothing were missing"
PLANTED: list[tuple[Planner, Setup, str]] = [
    (emits_nothing_new, SMALL, "the partition was written although nothing changes"),
    (writes_the_elr_in_another_order, SMALL, "the ELR was written although it stays"),
    (bumps_the_epoch_on_a_shrink, SMALL, "the leader epoch grew by 1, and should by 0"),
    (opens_no_epoch_when_replicas_go, REASSIGNED, "the leader epoch grew by 0, and should by 1"),
    (believes_in_a_lost_tail, SMALL, f"broker 2 {MAY_LACK}"),
    (forgets_the_elr, SMALL, "ISR and ELR have 1 members after 0 lossy shutdowns, and min ISR is 2"),
    (keeps_the_elr_for_ever, SMALL, f"broker 3 {MAY_LACK}"),
    (joins_without_leaving_the_elr, FOUR, "ISR, ELR and last known ELR share a member"),
    (forgets_who_was_lost, SMALL, "the last known ELR is nobody, and should be broker 2"),
    (remembers_the_lost_for_ever, SMALL, "the last known ELR is broker 2, and should be nobody"),
    (calls_unclean_clean, SMALL, "broker 2 may lack committed records, and was elected without being RECOVERING"),
    (calls_clean_unclean, SMALL, "RECOVERING without an unclean election"),
    (is_unclean_unasked, SMALL, "broker 2 was elected uncleanly, which Balanced does not allow"),
    (elects_the_dead, PLAIN, "the leader is not active"),
    (elects_nobody_on_arrival, SMALL, "there is no leader although a member of the ISR or ELR could lead"),
    (keeps_the_fenced_in_the_isr, PLAIN, "the ISR has a member that is not active"),
    (empties_the_isr, PLAIN, "the ISR is empty"),
    (ends_a_reassignment_thin, REASSIGNED, "a reassignment ended with an ISR of 1, below min ISR 2"),
    (leaves_the_removed_in_the_elr, REASSIGNED, "the ELR has members that are no replicas"),
    (says_nothing_of_a_loss, SMALL, "broker 2 was elected uncleanly, and the loss ledger has 0 entries of it"),
    (cries_wolf, SMALL, "a loss was written down without an unclean election"),
    (elects_another_than_designated, SMALL, "broker 3 was designated, and broker 2 elected"),
    (is_ahead_of_a_recovery, MANAGED, "broker 3 was elected uncleanly, though recoveries are managed"),
    (
        trusts_who_led_last_whatever_the_strategy,
        SMALL,
        "broker 3 was elected uncleanly, which None does not allow",
    ),
    (takes_anybody_before_who_led_last, SMALL, "broker 2 was elected before who led last"),
    (never_looks_again, SMALL, "nobody leads although who led last lives, and nobody is eligible"),
    (looks_away_from_who_led_last, SMALL, "nobody leads although who led last lives, and nobody is eligible"),
    (forgets_who_led_last, SMALL, "the last known leader is nobody, and broker 3 led last"),
    (remembers_another_leader, SMALL, "the last known leader is broker 1, and broker 3 led last"),
    (forgets_the_elr_on_a_move, STORED, "a replica moved to another directory, and more was changed than that"),
    (believes_an_empty_directory, STORED, f"broker 2 {MAY_LACK}"),
    (elects_from_a_lost_directory, STORED, "the leader is not active"),
    (never_ends_a_reassignment, REASSIGNED, "a reassignment does not end though all its replicas are in sync"),
]


@pytest.mark.parametrize(("planner", "setup", "why"), PLANTED, ids=[row[0].__name__ for row in PLANTED])
def test_a_planted_bug_is_found(planner: Planner, setup: Setup, why: str) -> None:
    lines = transcript_of(setup, planner)
    assert lines[-1] == f"wrong: {why}", "\n".join(lines)


def first_answer(_: object, partition: Partition, __: object, known: dict[NodeId, Answer], ___: int) -> NodeId | None:
    return recovery.best_of(partition, known) if known else None


def test_a_recovery_that_does_not_wait_for_all_replicas_that_were_eligible_last_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Balanced: whoever is not there may be the one who has everything."""
    monkeypatch.setattr(recovery, "standing_in", lambda *_: Standing.RECOVERY)
    monkeypatch.setattr(recovery, "choice", first_answer)
    why = transcript_of(replace(MANAGED, strategies=(BALANCED,)))[-1]
    assert why == "wrong: broker 2 was elected by a recovery (Balanced) that may not end yet"


@pytest.mark.parametrize("setup", [SMALL, MANAGED], ids=["by hand", "managed"])
def test_a_recovery_that_never_ends_is_noticed(monkeypatch: pytest.MonkeyPatch, setup: Setup) -> None:
    monkeypatch.setattr(recovery, "choice", lambda *_: None)
    assert transcript_of(setup)[-1] == "wrong: broker 2 was designated, and nobody leads"


def test_an_entry_of_the_loss_ledger_that_is_not_true_is_noticed() -> None:
    why = transcript_of(SMALL, blames_another)[-1]
    assert why.startswith("wrong: broker 2 was elected uncleanly, and the loss ledger says something else: LossEvent(")


def step_of(event: Event, *records: PartitionChangeRecord) -> Step:
    state = initial(SMALL)
    return take(SMALL, state, image_of(state, SMALL), event, records)


SHRINK = Event(Kind.ALTER, RECOVERED, (1, 2))
SHRUNK = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=(1, 2))


def test_a_shrink_is_no_violation() -> None:
    assert why_wrong(step_of(SHRINK, SHRUNK)) is None


def test_a_proposal_of_the_past_that_is_accepted_is_noticed() -> None:
    stale = Event(Kind.STALE, 1, (1, 2), StaleProposal.EARLIER_LEADER_EPOCH)
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
    transcript_of(PLAIN, empties_the_isr)
    assert explore(PLAIN).counterexample is None
