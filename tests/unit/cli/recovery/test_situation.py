"""Why a partition is as it is, what it waits for, what each way out costs: each case of the KIP's decision table."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.cli.recovery.facts import ALL, AT, BROKERS, DOWN, ELECT, commands, costs, leaderless, one

from strandline.cli.admin.explain import lines_of
from strandline.client.admin.behind import Behind
from strandline.client.admin.loss_ledger import WITHDRAWN, Ledger
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.replica_logs import LogReport, ReplicaLog, Unasked
from strandline.diagnosis.explaining import as_json, is_healthy, judge, max_status
from strandline.diagnosis.ledger_facts import LedgerEntries, written
from strandline.diagnosis.replica_logs import words
from strandline.diagnosis.situation import (
    ACTION,
    HEALTHY,
    MISSING,
    Facts,
    judge_control,
    judge_withdrawn,
    status_of,
)
from strandline.metadata.acknowledgements import Acknowledged
from strandline.metadata.losses import AT_MOST, CAUSES, Cause
from strandline.wire.messages.own.describe_losses import Loss

# --- nobody leads: the KIP's decision table


def test_1_a_member_of_the_isr_that_is_down_is_waited_for_and_loses_nothing() -> None:
    """Without Eligible Leader Replicas the last member stays in the ISR."""
    finding = one(leaderless(isr=(2,), down=(2,), strategy="Balanced"))
    assert finding.waits_for == "broker 2 to return"
    assert finding.needs_action
    assert finding.ways[0].costs == "none"
    assert commands(finding) == [
        "node --config FILE_OF_NODE_2",
        f"{ELECT} longest_log_aggressive {AT}",
        f"{ELECT} designation --designated-leader 1 {AT}",
    ]


def test_2_an_eligible_replica_that_is_there_is_about_to_lead() -> None:
    finding = one(leaderless(elr=(1, 2), down=(1,)))
    assert finding.waits_for == "its election: broker 2 can lead, and the controller has not elected yet"
    assert (finding.needs_action, finding.ways) == (False, ())


def test_3_eligible_replicas_that_are_down_are_waited_for_whichever_returns_first() -> None:
    for strategy in ("Balanced", "None"):
        finding = one(leaderless(elr=(1, 2), down=(1, 2), strategy=strategy))
        assert finding.why[0] == "nobody is in sync; eligible: brokers 1,2, with everything that was committed"
        assert finding.waits_for == "broker 1 or 2 to return"
        assert commands(finding)[:2] == ["node --config FILE_OF_NODE_1", "node --config FILE_OF_NODE_2"]
        assert costs(finding, "node")[0].startswith("none; but if its last stop was unclean")
        assert costs(finding, ELECT) == ["at most what was committed from offset 30 on"]


def test_3_1_aggressive_does_not_wait_for_eligible_replicas_that_are_down() -> None:
    managed = one(leaderless(elr=(1,), down=(1,), strategy="Aggressive"))
    assert "without waiting for broker 1" in managed.why[0]
    assert managed.waits_for.startswith("answers of all replicas, or the end of unclean.recovery.timeout.ms")
    assert not managed.needs_action
    alone = one(leaderless(elr=(1,), down=(1,), strategy="Aggressive", managed=False))
    assert alone.waits_for == "its election: brokers 2,3 can lead, and the controller has not elected yet"
    assert not alone.needs_action


def test_4_1_aggressive_recovers_as_soon_as_anybody_is_there() -> None:
    assert not one(leaderless(strategy="Aggressive", down=(1, 2))).needs_action
    for managed in (True, False):
        finding = one(leaderless(strategy="Aggressive", down=ALL, managed=managed))
        assert finding.needs_action
        assert finding.waits_for == "broker 1 or 2 or 3 to return"
        assert len(commands(finding)) == 3, "nobody is there to be elected"


def test_4_1_replicas_that_are_still_being_added_are_not_what_a_recovery_waits_for() -> None:
    facts = leaderless(elr=(3,), down=(3,), strategy="Aggressive")
    finding = one(replace(facts, state=replace(facts.state, adding=(1, 2), removing=(3,))))
    assert (finding.waits_for, finding.needs_action) == ("broker 3 to return", True)
    assert commands(finding) == [
        "node --config FILE_OF_NODE_3",
        f"{ELECT} designation --designated-leader 1 {AT}",
        f"{ELECT} designation --designated-leader 2 {AT}",
    ]


def test_4_2_balanced_recovers_while_all_of_last_known_elr_are_there() -> None:
    finding = one(leaderless(known=(1, 2), down=(3,)))
    assert finding.waits_for == (
        "answers of brokers 1,2, all of them; and of other replicas until unclean.recovery.timeout.ms is over"
    )
    assert not finding.needs_action


def test_4_2_balanced_waits_for_the_last_of_last_known_elr() -> None:
    finding = one(leaderless(known=(1, 2), down=(1,)))
    assert finding.waits_for == "brokers 1,2 to be there, all of them; missing: 1"
    assert finding.needs_action
    assert commands(finding) == [
        "node --config FILE_OF_NODE_1",
        f"{ELECT} longest_log_aggressive {AT}",
        f"{ELECT} designation --designated-leader 2 {AT}",
    ]
    assert finding.ways[0].costs.startswith("what it lost when it stopped")


def test_4_2_balanced_with_an_unknown_last_known_elr_waits_for_an_operator() -> None:
    finding = one(leaderless())
    assert (finding.waits_for, finding.needs_action) == ("an operator", True)
    assert "the last eligible replicas are unknown" in finding.why[0]
    gone = one(leaderless(known=(1, 2), registered=(2, 3), down=(1,)))
    assert gone.waits_for == "an operator"
    assert "broker 1 is not registered" in gone.why


def test_4_3_none_waits_for_an_operator() -> None:
    finding = one(leaderless(known=(1, 2), down=(1,), strategy="None"))
    assert (finding.waits_for, finding.needs_action) == ("an operator", True)
    assert "unclean.recovery.strategy is None" in finding.why[0]
    assert commands(finding)[0] == "node --config FILE_OF_NODE_1"
    assert finding.ways[0].what.endswith("so that it says what it has, and may be elected")


def test_none_with_everybody_there_offers_the_balanced_election_first() -> None:
    finding = one(leaderless(known=(1, 2), strategy="None"))
    assert commands(finding) == [
        f"{ELECT} longest_log_balanced {AT}",
        f"{ELECT} designation --designated-leader 1 {AT}",
        f"{ELECT} designation --designated-leader 2 {AT}",
    ]
    assert costs(finding, f"{ELECT} designation")[0] == (
        "at most what was committed from offset 10 on; "
        "what broker 2 has: 10 records from offset 10 on, whether they were committed or not; "
        "what broker 3 has: 20 records from offset 10 on, whether they were committed or not"
    )


def test_without_a_manager_balanced_waits_for_the_last_leader() -> None:
    """The KIP's delivery plan."""
    finding = one(leaderless(known=(1, 2), managed=False, last=3, down=(3,)))
    assert (finding.waits_for, finding.needs_action) == ("broker 3 to return", True)
    there = one(leaderless(known=(1, 2), managed=False, last=3, down=(1, 2)))
    assert not there.needs_action
    unknown = one(leaderless(known=(1, 2), managed=False))
    assert (unknown.waits_for, unknown.needs_action) == ("an operator", True)


def test_the_eligible_are_gone_for_good() -> None:
    finding = one(leaderless(elr=(1,), registered=(2, 3), down=(1,)))
    assert finding.waits_for == "an operator"
    assert finding.why[0] == "the replicas that could lead without loss are no longer registered: broker 1"


def test_a_replica_that_is_there_and_says_nothing_is_a_missing_fact() -> None:
    facts = leaderless(known=(1, 2), logs={1: (4, 10, 10)})
    finding = one(facts)
    assert finding.is_missing
    assert [text for text in finding.why if "does not answer" in text] == [
        "broker 2 should be there, but does not answer",
        "broker 3 should be there, but does not answer",
    ]
    assert status_of((finding,)) == MISSING
    assert status_of(judge(replace(facts, state=replace(facts.state, strategy="None")))) == ACTION


# --- somebody leads


def led(isr: tuple[int, ...], *, down: tuple[int, ...] = (), min_isr: int = 2, **facts: Any) -> Facts:
    state = PartitionState(
        Place("t", 0), ALL, isr, isr[0], 5, offline=down, min_isr=min_isr, partition_epoch=9, strategy="Balanced"
    )
    reports = tuple(Unasked(node, DOWN) if node in down else ReplicaLog(node, 5, 10 + node, 10, 5) for node in ALL)
    return Facts(**{"state": state, "brokers": BROKERS, "reports": reports, **facts})


def test_a_healthy_partition_is_one_line() -> None:
    facts = led((1, 2, 3))
    assert is_healthy(facts.state)
    assert judge(facts) == ()
    assert status_of(()) == HEALTHY
    assert lines_of(facts, ()) == ["t-0: healthy: broker 1 leads, 1,2,3 in sync"]


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (LedgerEntries(1), "  the loss ledger has 1 entry of it: strandline losses t:0"),
        (LedgerEntries(2, 1), "  the loss ledger has 2 entries, and 1 acknowledged of it: strandline losses t:0 --all"),
        (LedgerEntries(0, 3), "  the loss ledger has no entry but 3 acknowledged of it: strandline losses t:0 --all"),
    ],
)
def test_what_the_ledger_has_is_named_and_what_was_acknowledged_of_it(found: LedgerEntries, line: str) -> None:
    assert lines_of(replace(led((1, 2, 3)), ledger=found), ())[1] == line


def test_under_min_isr_says_what_that_means_and_both_ways_out() -> None:
    finding = one(led((1,), down=(2, 3)))
    assert finding.what == "under min ISR"
    assert finding.why[:2] == (
        "in sync: 1; min.insync.replicas is 2",
        "acks=all is rejected (NOT_ENOUGH_REPLICAS), and consumers do not see new records",
    )
    assert commands(finding) == [
        "node --config FILE_OF_NODE_2",
        "node --config FILE_OF_NODE_3",
        "configs alter --entity-type topics --entity-name t --add-config min.insync.replicas=1",
    ]
    assert finding.needs_action


def test_a_replica_that_is_down_needs_action_even_if_enough_are_in_sync() -> None:
    finding = one(led((1, 2), down=(3,)))
    assert (finding.what, finding.waits_for) == ("3 not in sync", "replica 3 to be in sync")
    assert commands(finding) == ["node --config FILE_OF_NODE_3"]


def test_a_follower_that_catches_up_needs_no_action() -> None:
    facts = led((1, 2), behind={3: Behind(3, 70, 2048)}, moved=frozenset((3,)))
    finding = one(facts)
    assert finding.why == ("replica 3 is behind by 70 records, 2.0 KiB, and is catching up",)
    assert (finding.needs_action, status_of((finding,))) == (False, HEALTHY)


def test_a_follower_that_does_not_move_is_stuck() -> None:
    finding = one(led((1, 2), behind={3: Behind(3, 70)}))
    assert finding.why == ("replica 3 is behind by 70 records, and has not moved for 3 s: it is stuck, or slow",)
    assert finding.needs_action
    never = one(led((1, 2), behind={3: Behind(3, why="it has fetched nothing from 1 since that leads")}))
    assert never.why[0].startswith("replica 3 is behind by an unknown number (it has fetched nothing")


def test_a_follower_with_everything_is_about_to_be_let_in_or_the_leader_cannot_say_so() -> None:
    facts = led((1, 2), behind={3: Behind(3, 0)})
    same = tuple(ReplicaLog(node, 5, 10, 10, 5) for node in ALL)
    finding = one(replace(facts, reports=same))
    assert finding.why == (
        "replica 3 has all that the leader has, and is about to join the ISR; "
        "if that lasts, broker 1 does not reach the controller",
    )
    assert not finding.needs_action


def test_a_broker_that_runs_and_is_fenced_or_hangs_or_has_lost_its_directory_is_distinguished() -> None:
    facts = led((1, 2), down=(3,))
    mine = facts.reports[:2]

    def why(report: LogReport, is_fenced: bool = True) -> tuple[str, str]:
        brokers = {**BROKERS, 3: replace(BROKERS[3], is_fenced=is_fenced)}
        finding = one(replace(facts, reports=(*mine, report), brokers=brokers))
        assert finding.needs_action
        return finding.why[0], finding.ways[0].what

    log = ReplicaLog(3, 5, 9, 9, 5)
    assert why(log)[0] == "broker 3 runs, but is fenced: it does not reach the controller"
    assert why(log, is_fenced=False)[0] == "broker 3 runs, but has an offline log directory"
    assert why(Unasked(3, "refuses: KAFKA_STORAGE_ERROR"))[1].startswith("repair the log directory of replica 3")
    assert why(Unasked(3, "does not answer at h:1 within 5 s", hangs=True))[1].startswith("find out why broker 3 hangs")
    assert why(Unasked(3, DOWN))[1] == "start broker 3 (it was at h:9003)"


def test_a_follower_that_is_there_and_does_not_answer_is_a_missing_fact() -> None:
    facts = led((1, 2))
    finding = one(
        replace(facts, reports=(*facts.reports[:2], Unasked(3, "does not answer at h:1 within 5 s", hangs=True)))
    )
    assert (finding.needs_action, finding.is_missing) == (False, True)
    assert status_of((finding,)) == MISSING


def test_a_reassignment_says_what_it_waits_for_and_how_it_is_cancelled() -> None:
    facts = led((1, 2), waits_for="replica 3 is not in sync", behind={3: Behind(3, 70)}, moved=frozenset((3,)))
    state = replace(facts.state, adding=(3,), removing=(1,))
    finding = one(replace(facts, state=state))
    assert (finding.what, finding.waits_for) == (
        "it is being reassigned: adds 3, removes 1",
        "replica 3 is not in sync",
    )
    assert not finding.needs_action
    stuck = one(replace(facts, state=state, moved=frozenset()))
    assert stuck.needs_action
    assert commands(stuck)[-1] == (
        'echo \'{"partitions": [{"topic": "t", "partition": 0}]}\' > cancel.json && '
        "strandline reassignments cancel cancel.json"
    )


def test_a_leader_that_was_elected_uncleanly_says_so() -> None:
    facts = led((1, 2, 3))
    alone = replace(facts.state, isr=(1,), min_isr=1, is_recovering=True)
    finding = judge(replace(facts, state=alone))[-1]
    assert (finding.what, finding.needs_action) == ("it recovers from an unclean election", False)
    assert not judge(replace(facts, state=replace(facts.state, is_recovering=True))), "with one replica it stays so"


def test_a_leader_that_is_gone_is_about_to_be_replaced() -> None:
    facts = led((1, 2, 3))
    finding = one(replace(facts, state=replace(facts.state, offline=(1,))))
    assert (finding.what, finding.waits_for, finding.needs_action) == ("its leader is offline", "an election", False)


def test_without_a_controller_nothing_is_healthy_and_no_election_comes_by_itself() -> None:
    for facts in (led((1, 2, 3)), leaderless(elr=(2,))):
        finding, *_ = judge(replace(facts, has_controller=False))
        assert (finding.what, finding.needs_action) == ("without a controller", True)
        assert status_of(judge(facts)) == HEALTHY


def test_the_status_of_several_partitions_is_the_one_that_matters_most() -> None:
    assert max_status([HEALTHY, MISSING, ACTION]) == ACTION
    assert max_status([HEALTHY, MISSING]) == MISSING
    assert max_status([HEALTHY]) == HEALTHY


@pytest.mark.parametrize("options", ["", " --bootstrap-server h:1"])
def test_what_is_printed_has_each_way_with_its_costs_and_the_whole_command(options: str) -> None:
    facts = replace(leaderless(known=(1, 2), down=(1,)), options=options)
    assert lines_of(facts, judge(facts)) == [
        "t-0: nobody leads",
        "  why: nobody is in sync or eligible, and unclean.recovery.strategy is Balanced: "
        "the last eligible replicas are asked what they still have",
        f"  why: broker 1 {DOWN}",
        "  waits for: brokers 1,2 to be there, all of them; missing: 1",
        "  data: broker 2: end offset 20, last epoch 4, high watermark 10",
        "  data: broker 3: end offset 30, last epoch 4, high watermark 10",
        "  way out: start broker 1 (it was at h:9001)",
        "    costs: what it lost when it stopped; the ledger will say as much of it as can be known",
        "    $ strandline node --config FILE_OF_NODE_1",
        "  way out: elect broker 3: of the replicas that answered, 2 of 3, it has the longest log",
        "    costs: at most what was committed from offset 30 on",
        f"    $ strandline {ELECT} longest_log_aggressive {AT}{options}",
        "  way out: elect broker 2, whatever it has",
        "    costs: at most what was committed from offset 20 on; "
        "what broker 3 has: 10 records from offset 20 on, whether they were committed or not",
        f"    $ strandline {ELECT} designation --designated-leader 2 {AT}{options}",
    ]


# --- damage


def damaged(replicas: tuple[int, ...] = ALL) -> Facts:
    reports = tuple(ReplicaLog(node, 4, 10, 10, damaged=(5, 8) if node == 2 else None) for node in replicas)
    state = PartitionState(Place("t", 0), replicas, replicas, 2, 5, min_isr=1)
    return Facts(state, BROKERS, reports)


def test_what_is_damaged_on_a_disk_is_repaired_by_itself_where_there_are_others() -> None:
    facts = damaged()
    found = one(facts)
    assert found.what == "offsets 5 to 7 are damaged on the disk of broker 2"
    assert found.waits_for == "records of brokers 1,3 to repair them with"
    assert status_of((found,)) == HEALTHY
    assert any("broker 2: end offset 10" in line and "damaged" in line for line in lines_of(facts, (found,)))


def test_what_is_damaged_on_the_only_disk_is_lost() -> None:
    found = one(damaged((2,)))
    assert "they are lost" in found.why[1]
    assert status_of((found,)) == ACTION


# --- what the ledger says


@pytest.mark.parametrize(
    ("topic", "words"), [("__transaction_state", "not atomic"), ("__consumer_offsets", "reads again"), ("t", "")]
)
def test_a_loss_in_an_internal_topic_is_said_to_mean_more_than_a_missing_record(topic: str, words: str) -> None:
    """Where something is in the ledger, and where nobody leads, so that a way out may lose something."""
    for facts, has_lost in (
        (led((1, 2, 3)), False),
        (replace(led((1, 2, 3)), ledger=LedgerEntries(1)), True),
        (replace(led((1, 2, 3)), ledger=LedgerEntries(0, 1)), True),
        (leaderless(known=(1,), down=(1,)), True),
    ):
        there = replace(facts, state=replace(facts.state, at=Place(topic, 0)))
        said = [line for line in lines_of(there, judge(there)) if line.startswith("  if one is lost: ")]
        assert bool(said) == (has_lost and bool(words))
        assert not said or any(words in line for line in said)
        reported = as_json(there, judge(there))["if_one_is_lost"]
        assert [f"  if one is lost: {text}" for text in reported] == said


def withdrawal(node: int, time_ms: int = 1000, start: int = 5) -> Loss:
    return Loss(
        topic="t",
        where=WITHDRAWN,
        start=start,
        end=8,
        certainty=AT_MOST,
        replica=node,
        time_ms=time_ms,
        cause=CAUSES[Cause.SHORT],
    )


def test_a_replica_that_was_withdrawn_is_named_with_the_reason_until_it_is_back() -> None:
    facts = led((1, 2), ledger=LedgerEntries(1, 0, (withdrawal(3),)), behind={})
    (found,) = judge_withdrawn(facts)
    assert found.what == "replica 3 was withdrawn"
    assert found.why == (
        "replica 3 left ISR and ELR at 1970-01-01T00:00:01Z: after a clean stop its log ended before what the stop "
        "had left; at most 3 records, offsets 5 to 7",
    )
    assert found.waits_for == "replica 3 to copy from broker 1 what it lacks"
    assert commands(found) == ["log-dirs describe --broker 3"]
    assert not found.needs_action, "it copies by itself"
    assert found in judge(facts)
    assert judge_withdrawn(led((1, 2, 3), ledger=facts.ledger)) == ()


def test_one_that_is_eligible_again_is_not_named_and_one_that_is_no_replica_any_more_is_not_either() -> None:
    assert judge_withdrawn(replace(leaderless(elr=(3,)), ledger=LedgerEntries(1, 0, (withdrawal(3),)))) == ()
    assert judge_withdrawn(led((1, 2), ledger=LedgerEntries(1, 0, (withdrawal(9),)))) == ()


def test_without_a_leader_there_is_nobody_to_copy_from() -> None:
    (found,) = judge_withdrawn(replace(leaderless(elr=(1, 2)), ledger=LedgerEntries(1, 0, (withdrawal(3),))))
    assert found.waits_for == "a leader to copy from"


def test_entries_are_counted_by_partition_and_the_last_withdrawal_of_each_replica_is_known() -> None:
    first, last, other = withdrawal(3, 1000), withdrawal(3, 2000, start=6), withdrawal(2, 500)
    elsewhere = replace(other, topic="u")
    seen = {first: Acknowledged("somebody", 3000), elsewhere: Acknowledged("somebody", 3000)}
    found = written(Ledger((other, first, last, elsewhere), {}, acknowledged=seen))
    assert found[Place("t", 0)] == LedgerEntries(2, 1, (other, last))
    assert found[Place("u", 0)].words == "no entry but 1 acknowledged"


def test_a_cluster_without_a_controller_may_wait_for_a_voter_that_lost_metadata() -> None:
    (found,) = judge_control(led((1, 2, 3), has_controller=False))
    assert found.needs_action
    assert commands(found) == ["node --config FILE_OF_THE_NODE", "grep 'this voter' LOG_OF_EACH_CONTROLLER"]
    assert "lost metadata" in found.ways[1].what


def test_a_log_that_is_whole_after_a_kill_is_reported() -> None:
    log = ReplicaLog(1, 4, 10, 10, recovered_uncleanly=True)
    doubt = "its last stop was unclean"
    assert words(log).endswith(doubt)
    assert words(replace(log, is_whole=True)).endswith(f"{doubt}, but it has all that it had written")
