"""Why a group does not make progress: each finding, with what it waits for and whether somebody must act."""

from typing import Any

from msgspec.structs import replace
from tests.rows import each
from tests.unit.cli.recovery.facts import BROKERS, commands

from strandline.base.errors import ErrorCode
from strandline.client.admin.groups.described import AWAY as AWAY_EPOCH
from strandline.client.admin.groups.described import CONSUMER, GroupState, Member
from strandline.client.admin.groups.offsets import Ends, Position
from strandline.client.admin.open_transactions import Held
from strandline.client.admin.partitions import PartitionState, Place
from strandline.client.admin.transactions import ProducerAt
from strandline.client.brokers import Silence
from strandline.client.groups import Committed
from strandline.diagnosis.groups.coordination import departure
from strandline.diagnosis.groups.facts import GroupFacts, span
from strandline.diagnosis.groups.progress import as_json, judge_group, lines_of
from strandline.diagnosis.situation import ACTION, HEALTHY, MISSING, Finding, status_of
from strandline.wire.messages.consumer_groups.progress import GroupProgress, MemberDeparture, MemberProgress

T0, T1 = Place("t", 0), Place("t", 1)
STATE = PartitionState(T0, (1, 2, 3), (1, 2, 3), 1, 5, min_isr=2)
KEEPER = replace(STATE, at=Place("__consumer_offsets", 7), leader=2)
A = Member("a", "app", "/10.0.0.1", subscribed=("t",), assigned=(T0,))
B = Member("b", "app", "/10.0.0.2", subscribed=("t",), assigned=(T1,))
READ = Position(T0, Committed(100), Ends(0, 100, 100))
STABLE = GroupState(
    "g", 2, "classic", "Stable", "consumer", "range", (A, B), progress=GroupProgress(generation=3, in_state_ms=12_000)
)
NAMED_A = "a (client app at 10.0.0.1)"


def facts(answer: Any = STABLE, **changes: Any) -> GroupFacts:
    states = {T0: STATE, T1: replace(STATE, at=T1)}
    given = {"positions": (READ, replace(READ, at=T1)), "states": states, "keeper": KEEPER, "brokers": BROKERS}
    return GroupFacts(**{"group_id": "g", "answer": answer, "coordinator": 2, **given, **changes})


def judged(answer: Any = STABLE, **changes: Any) -> tuple[int, list[Finding]]:
    found = judge_group(facts(answer, **changes))
    return status_of(found), list(found)


def only(answer: Any = STABLE, **changes: Any) -> tuple[int, Finding]:
    status, (finding,) = judged(answer, **changes)
    return status, finding


def at(committed: int | None, ends: Ends | str = READ.ends, place: Place = T0) -> Position:
    return Position(place, None if committed is None else Committed(committed), ends)


def test_a_group_that_has_read_everything_is_healthy() -> None:
    assert judged() == (HEALTHY, [])
    assert lines_of(facts(), ()) == [
        "group g: healthy: Stable for 12 s, 2 members with 2 partitions, lag 0; broker 2 coordinates it"
    ]


# --- the coordinator


@each(
    ("answer", "keeper", "what", "waits_for", "status", "has_way"),
    [
        (Silence("does not run"), KEEPER, "does not answer", "broker 2 to answer, or another", MISSING, True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, KEEPER, "is loading", "broker 2 to have read", MISSING, True),
        (ErrorCode.NOT_COORDINATOR, KEEPER, "has moved", "the next coordinator", MISSING, False),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, None, "no coordinator", "the first consumer", HEALTHY, False),
        (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            replace(KEEPER, leader=-1),
            "no coordinator",
            "a leader of __consumer_offsets-7",
            ACTION,
            True,
        ),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, KEEPER, "no coordinator", "a coordinator: repeat", MISSING, True),
    ],
)
def test_a_group_without_an_answer_waits_for_its_coordinator(
    answer: Any, keeper: PartitionState | None, what: str, waits_for: str, status: int, has_way: bool
) -> None:
    found, finding = only(answer, keeper=keeper)
    assert (found, what in finding.what, waits_for in finding.waits_for) == (status, True, True), finding
    assert commands(finding) == (["explain __consumer_offsets:7"] if has_way else [])
    row = as_json(facts(answer, keeper=keeper), (finding,))
    assert (row["described"], row["status"]) == (None, status)


# --- members


def progress(*members: MemberProgress, **changes: Any) -> GroupProgress:
    return GroupProgress(generation=3, in_state_ms=12_000, phase_left_ms=48_000, leader="a", members=members, **changes)


def gone(why: str, ago_ms: int = 5_000) -> MemberDeparture:
    return MemberDeparture("x", "old", "/10.0.0.9", ago_ms, why)


PARKED = MemberProgress("b", "join", -1, 60_000)
AWAY = MemberProgress("a", "", 7_000, 60_000)


def rebalancing(progress_of: GroupProgress | None, state: str = "PreparingRebalance") -> GroupState:
    return replace(
        STABLE, state=state, members=(replace(A, assigned=()), replace(B, assigned=())), progress=progress_of
    )


def test_a_rebalance_waits_for_members_that_have_not_rejoined() -> None:
    status, finding = only(rebalancing(progress(AWAY, PARKED)))
    assert status == HEALTHY
    assert finding.waits_for == f"{NAMED_A} to rejoin, for at most 48 s; then who has not rejoined is removed"
    assert finding.why == (
        "since 12 s; 1 member joined",
        f"{NAMED_A} has not rejoined: a client rejoins with its next poll, and may take 60 s (max.poll.interval.ms);"
        " its session ends in 7 s unless it sends a heartbeat",
    )


@each(
    ("rebalance", "waits_for"),
    [
        (
            progress(replace(AWAY, waits_for="join"), PARKED, promised=2),
            "clients to join with their ids, for at most 48 s",
        ),
        (
            progress(replace(AWAY, waits_for="join"), PARKED),
            "more members, for at most 48 s (group.initial.rebalance.delay.ms)",
        ),
    ],
)
def test_a_rebalance_that_everybody_has_joined_waits_for_more(rebalance: GroupProgress, waits_for: str) -> None:
    assert only(rebalancing(rebalance))[1].waits_for == waits_for


def test_of_another_cluster_it_is_not_known_whom_a_rebalance_waits_for() -> None:
    for state in ("PreparingRebalance", "CompletingRebalance"):
        assert only(rebalancing(None, state))[0] == MISSING


def test_the_second_phase_waits_for_the_leaders_assignment_and_then_for_its_record() -> None:
    status, finding = only(rebalancing(progress(AWAY, replace(PARKED, waits_for="sync")), "CompletingRebalance"))
    assert status == HEALTHY
    assert finding.waits_for == f"the assignment of {NAMED_A}, for at most 48 s; then it is removed"
    written = rebalancing(progress(replace(AWAY, waits_for="sync")), "CompletingRebalance")
    status, finding = only(written)
    assert (status, finding.waits_for, finding.ways) == (HEALTHY, "replicas of __consumer_offsets-7", ())
    status, finding = only(written, keeper=replace(KEEPER, isr=(2,)))
    assert (status, commands(finding)) == (ACTION, ["explain __consumer_offsets:7"])


def test_an_empty_group_says_who_went_and_how_far_behind_it_is() -> None:
    empty = replace(STABLE, state="Empty", members=(), progress=progress(departures=(gone("left"),)))
    status, finding = only(empty)
    assert (status, finding.what) == (HEALTHY, "it has no members for 12 s")
    assert finding.why == ("x (client old at 10.0.0.9) left, 5 s ago",)
    status, finding = only(empty, positions=(at(60),))
    assert (status, finding.why[-1]) == (ACTION, "it is 40 offsets behind, and nobody reads")
    status, finding = only(empty, positions=(at(60),), before=(at(50),))
    assert (status, finding.what) == (HEALTHY, "it has no members, and goes on")


@each(
    ("whys", "ago_ms", "status", "what"),
    [
        (["sent no heartbeat"], 5_000, HEALTHY, "1 member dropped out within 10 min"),
        (["did not rejoin"] * 3, 5_000, ACTION, "3 members dropped out within 10 min"),
        (["left: consumer poll timeout has expired."] * 3, 5_000, ACTION, "3 members dropped out within 10 min"),
        (["left"] * 3, 5_000, HEALTHY, "3 members left within 10 min"),
        (["left"] * 2, 5_000, HEALTHY, ""),
        (["sent no heartbeat"] * 3, 600_001, HEALTHY, ""),
    ],
)
def test_members_that_drop_out_again_and_again_are_a_finding(
    whys: list[str], ago_ms: int, status: int, what: str
) -> None:
    group = replace(STABLE, progress=progress(departures=tuple(gone(why, ago_ms) for why in whys)))
    found, findings = judged(group)
    assert found == status
    assert [finding.what.startswith(what) for finding in findings] == ([True] if what else [])


def test_the_cause_of_a_rebalance_is_reported_in_both_phases() -> None:
    for state in ("PreparingRebalance", "CompletingRebalance"):
        _, finding = only(rebalancing(progress(AWAY, PARKED, cause="c (client app) joined"), state))
        assert finding.why[1] == "the cause: c (client app) joined", state


# --- the consumer protocol


BACK = (
    "joined again with this id: it was not closed, but exceeded its max.poll.interval.ms (60 s), or unsubscribed",
    "60 s after its last commit: perhaps it exceeded its max.poll.interval.ms (60 s)",
)


@each(
    ("member_id", "epoch", "committed_ms", "why", "said"),
    [
        ("a", 5, -1, "left", BACK[0]),
        ("a", 5, 60_000, "left", BACK[0]),
        ("a", None, 60_000, "left", BACK[1]),  # in the classic protocol a coordinator may choose any id
        ("x", 5, 60_000, "left", BACK[1]),
        ("x", 5, 59_999, "left", ""),
        ("x", 5, -1, "left", ""),
        ("a", 5, 60_000, "sent no heartbeat", ""),
    ],
)
def test_what_a_departure_means_is_said_as_far_as_it_is_known(
    member_id: str, epoch: int | None, committed_ms: int, why: str, said: str
) -> None:
    one = MemberDeparture(member_id, "old", "/10.0.0.9", 5_000, why, committed_ms, 60_000)
    group = replace(STABLE, epoch=epoch, progress=progress(departures=(one,)))
    assert (
        departure(group, one) == f"{member_id} (client old at 10.0.0.9) {why}, 5 s ago{', and ' if said else ''}{said}"
    )


def test_a_consumer_that_leaves_and_comes_back_is_a_finding() -> None:
    rows = [MemberDeparture("x", "old", "/10.0.0.9", ago, "left", -1, 60_000) for ago in (9_000, 7_000, 5_000)]
    group = replace(STABLE, type=CONSUMER, epoch=5, progress=progress(departures=tuple(rows)))
    status, finding = only(group)
    assert (status, finding.what.split(",")[0]) == (HEALTHY, "2 members dropped out within 10 min"), "the last may stay"
    members = (replace(A, member_id="x"), B)
    status, finding = only(replace(group, members=members))
    assert (status, finding.what.split(",")[0]) == (ACTION, "3 members dropped out within 10 min")
    rows[0] = replace(rows[0], committed_ms=30)
    shown = as_json(facts(replace(group, progress=progress(departures=tuple(rows)))), ())["departures"]
    assert [row["committed_ms_before"] for row in shown] == [30, None, None]
    few = replace(group, progress=progress(departures=tuple(gone("left") for _ in range(3))))
    assert only(few)[1].why[-1].startswith("a client of the consumer protocol also leaves, and gives no reason")
    assert only(replace(few, epoch=None))[1].why[-1].startswith("librdkafka also leaves")


def test_a_partition_on_its_way_names_who_has_not_revoked_it() -> None:
    a = replace(A, epoch=4, assigned=(T0, T1), target=(T0,))
    b = replace(B, epoch=5, assigned=(), target=(T1,))
    group = replace(STABLE, type=CONSUMER, state="Reconciling", members=(a, b), epoch=5, progress=None)
    status, finding = only(group)
    assert (status, finding.what) == (HEALTHY, "partitions are on their way: t-1")
    assert finding.waits_for == f"{NAMED_A} to poll, and to revoke"
    assert finding.why == (
        f"t-1 is to go to b (client app at 10.0.0.2): {NAMED_A} has not revoked it",
        f"{NAMED_A} is in epoch 4, the group in 5",
    )
    hidden = replace(group, members=(replace(a, assigned=(T0,)), b))
    assert "no member says that it has it" in only(hidden)[1].why[0]
    stable = replace(group, state="Stable", members=(replace(a, epoch=5, assigned=(T0,)), replace(b, assigned=(T1,))))
    assert judged(stable) == (HEALTHY, [])


def test_a_coordinator_says_how_long_a_member_may_take_to_revoke() -> None:
    a = replace(A, epoch=4, assigned=(T0, T1), target=(T0,))
    b = replace(B, epoch=5, assigned=(), target=(T1,))
    rows = (MemberProgress("a", "", 40_000, 60_000, 48_000), MemberProgress("b", "", 40_000, 60_000))
    known = GroupProgress(generation=5, in_state_ms=12_000, members=rows)
    group = replace(STABLE, type=CONSUMER, state="Reconciling", members=(a, b), epoch=5, progress=known)
    _, finding = only(group)
    assert finding.why[0] == "since 12 s"
    limit = "for at most 48 s (max.poll.interval.ms); then who has not is removed"
    assert finding.waits_for == f"{NAMED_A} to poll, and to revoke, {limit}"


def test_a_static_member_that_has_left_keeps_its_partitions_for_its_session() -> None:
    a = replace(A, epoch=AWAY_EPOCH, instance_id="i", target=(T0,))
    b = replace(B, epoch=5, target=(T1,))
    known = GroupProgress(in_state_ms=12_000, members=(MemberProgress("a", "", 7_000, 60_000),))
    group = replace(STABLE, type=CONSUMER, state="Reconciling", members=(a, b), epoch=5, progress=known)
    status, finding = only(group)
    assert (status, finding.what) == (HEALTHY, "a (client app at 10.0.0.1, instance i) has left, and will be back")
    assert finding.why == (
        "t-0 waits for it, and nobody reads",
        "it was closed, or exceeded its max.poll.interval.ms (60 s): then it comes back with its next poll",
    )
    assert finding.waits_for == "a consumer with group.instance.id=i, or the end of its session in 7 s"
    _, (moving, _) = judged(replace(group, members=(replace(a, target=()), replace(b, target=(T0, T1)))))
    assert moving.waits_for == "the members' next heartbeats", "nobody who is there has anything to revoke"


def test_an_expression_that_no_topic_matches_is_named() -> None:
    a = replace(A, epoch=5, subscribed=(), assigned=(), target=(), regex="x.*")
    group = replace(STABLE, type=CONSUMER, members=(a,), epoch=5)
    status, finding = only(group, positions=())
    assert (status, finding.what, finding.waits_for) == (ACTION, "no topic matches 'x.*'", "a topic that matches")
    for healthy in (replace(a, assigned=(T0,), target=(T0,)), replace(a, subscribed=("t",))):
        found = judge_group(facts(replace(group, members=(healthy, B)), positions=()))
        assert not any("matches" in one.what for one in found)


# --- partitions


def test_topics_that_do_not_exist_and_partitions_that_nobody_reads_are_named() -> None:
    group = replace(STABLE, members=(replace(A, subscribed=("t", "u")),))
    status, (missing, unread) = judged(group, unknown=("u",))
    assert (status, missing.what, commands(missing)) == (ACTION, "topic 'u' does not exist", ["topics create u"])
    assert missing.why == (f"subscribed: {NAMED_A}",)
    assert (unread.what, unread.needs_action) == ("nobody reads t-1", False)
    joining = replace(group, state="PreparingRebalance", progress=progress(PARKED))
    assert all("nobody reads" not in finding.what for finding in judged(joining)[1])


def test_a_partition_without_a_leader_leads_to_its_own_explanation() -> None:
    status, finding = only(
        positions=(at(60, "it has no leader that is online"),), states={T0: replace(STATE, leader=-1)}, options=" -b x"
    )
    assert (status, finding.what) == (ACTION, "t-0 cannot be read: no leader is online")
    assert commands(finding) == ["explain t:0 -b x"]


@each(
    ("committed", "what", "status", "command"),
    [
        (
            5,
            "the committed offset 5 of t-0 is below the log's start 10",
            HEALTHY,
            "groups reset-offsets --group g --topic t:0 --to-earliest",
        ),
        (101, "the committed offset 101 of t-0 is above the log's end 100", ACTION, "losses t:0"),
    ],
)
def test_an_offset_outside_its_log_is_named(committed: int, what: str, status: int, command: str) -> None:
    found, finding = only(positions=(at(committed, Ends(10, 100, 100)),))
    assert (found, finding.what, commands(finding)) == (status, what, [command])


def test_a_member_that_does_not_commit_is_named_with_its_partitions() -> None:
    behind = (at(60), at(None, place=T1))
    limits = (MemberProgress("a", "", 5_000, 300_000), MemberProgress("b", "", 5_000, 300_000))
    group = replace(STABLE, progress=progress(*limits))
    status, (first, second) = judged(group, positions=behind, before=behind)
    assert (status, first.what) == (ACTION, f"{NAMED_A} committed nothing within 6 s")
    assert first.why[0] == "t-0: 40 offsets to read, committed offset 60"
    assert second.why[0] == "t-1: 100 offsets to read, no offset committed"
    assert first.waits_for.endswith("a client that does not poll within max.poll.interval.ms (5 min) leaves by itself")
    limits = (replace(limits[0], committed_ms=400_000), limits[1])
    _, (first, second) = judged(replace(group, progress=progress(*limits), epoch=5), positions=behind, before=behind)
    assert first.why[1] == "its last commit was 6 min ago"
    assert second.why[1].startswith("it sends heartbeats")
    assert first.waits_for.endswith("(5 min) leaves by itself (librdkafka: when it polls again)")
    assert judged(group, positions=(at(70),), before=(at(60),)) == (HEALTHY, []), "it commits"
    assert judged(group, positions=behind) == (HEALTHY, []), "it was not watched"
    assert judged(group, positions=(at(100),), before=(at(100),)) == (HEALTHY, []), "there is nothing to read"


def test_a_group_that_reads_slower_than_producers_write_falls_behind() -> None:
    after, before = at(70, Ends(0, 200, 200)), at(60, Ends(0, 150, 150))
    status, finding = only(positions=(after,), before=(before,))
    assert (status, finding.why) == (HEALTHY, ("t-0: 90 offsets behind, and 130 after 6 s",))
    assert judged(positions=(after,), before=(at(60, Ends(0, 190, 190)),)) == (HEALTHY, []), "as far behind as before"


def test_a_transaction_that_holds_readers_back_is_named_and_not_the_reader() -> None:
    waiting = at(90, Ends(0, 90, 100))
    hanging = Held(ProducerAt(T0, 7, 3, -1, 0, 60_000, 90), None, 90, 100)
    status, finding = only(positions=(waiting,), before=(waiting,), held={T0: hanging})
    assert (status, finding.what) == (ACTION, "t-0: a transaction of producer 7 holds the last stable offset at 90")
    assert commands(finding)[0].startswith("transactions abort --topic t --partition 0")


# --- words


@each(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (999, "1.0 s"),
        (1_000, "1 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 days"),
    ],
)
def test_spans_are_short(ms: int, text: str) -> None:
    assert span(ms) == text


def test_lines_end_with_what_is_to_do() -> None:
    given = facts(ErrorCode.NOT_COORDINATOR)
    assert lines_of(given, judge_group(given))[-1] == "  a fact is missing, so there may be more"
    given = facts(rebalancing(progress(AWAY, PARKED)))
    assert lines_of(given, judge_group(given))[-1] == "  there is nothing to do"
    given = facts(positions=(at(101),))
    assert lines_of(given, judge_group(given))[-3:] == [
        "  way out: see which records were lost",
        "    costs: none",
        "    $ strandline losses t:0",
    ]
