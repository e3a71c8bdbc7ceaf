"""How far a group is, for whoever asks: whom a rebalance waits for, and which members went, and why."""

from tests.rows import each
from tests.unit.group.consuming import REBALANCE_MS, SESSION_MS, Consumers
from tests.unit.group.coordination import Coordination, commit_request, pending_request

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.group.departures import DEPARTURES_MAX, SHOWN_MAX, Departures
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.progress import GroupProgress
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.leave_group import MemberIdentity


def asked(c: Coordination, *, version: int = 6, with_progress: bool = True) -> GroupProgress | None:
    (row,) = c.ask(DescribeGroupsRequest(groups=("g",), with_progress=with_progress), version).groups
    found: GroupProgress | None = row.progress
    return found


def progress(c: Coordination) -> GroupProgress:
    found = asked(c)
    assert found is not None
    return found


def why_gone(c: Coordination) -> list[str]:
    return [one.why for one in progress(c).departures]


def test_only_who_asks_for_it_is_told() -> None:
    c = Coordination()
    c.stable()
    assert asked(c, with_progress=False) is None
    assert asked(c, version=4) is None
    assert asked(c, version=5) is not None


def test_a_group_that_only_committed_offsets_has_no_progress() -> None:
    c = Coordination()
    c.ask(commit_request(1), 9)
    assert asked(c) is None


def test_a_stable_group_says_since_when_and_how_long_each_session_lasts() -> None:
    c = Coordination()
    a = c.stable(session=10_000, rebalance=60_000)
    c.wait(4_000)
    found = progress(c)
    assert (found.generation, found.leader, found.in_state_ms, found.phase_left_ms) == (1, a, 4_000, -1)
    (member,) = found.members
    assert (member.member_id, member.waits_for, member.session_left_ms) == (a, "", 6_000)
    assert member.rebalance_timeout_ms == 60_000


def test_a_rebalance_says_who_has_joined_and_how_long_the_others_have() -> None:
    c = Coordination()
    a = c.stable(session=30_000, rebalance=60_000)
    b, _ = c.enter(session=30_000, rebalance=60_000)
    c.answers[c.join(session=30_000)]  # another one, which never comes back with its id
    c.wait(5_000)
    found = progress(c)
    assert {row.member_id: row.waits_for for row in found.members} == {a: "", b: "join"}
    assert {row.member_id: row.session_left_ms for row in found.members} == {a: 25_000, b: -1}
    assert (found.promised, found.in_state_ms, found.phase_left_ms) == (1, 5_000, 55_000)
    c.join(a, session=30_000, rebalance=60_000)
    assert [(row.waits_for, row.session_left_ms) for row in progress(c).members] == [("join", -1)] * 2


def test_who_waits_for_the_leaders_assignment_is_known() -> None:
    c = Coordination()
    a, first = c.enter()
    assert progress(c).members[0].waits_for == ""
    assert c.joined(first).leader == a
    b, _ = c.enter()
    c.join(a)
    c.sync(b, 2)
    assert {row.member_id: row.waits_for for row in progress(c).members} == {a: "", b: "sync"}


@each(
    ("reason", "why"),
    [(None, "left"), ("", "left"), ("consumer poll timeout has expired.", "left: consumer poll timeout has expired.")],
)
def test_who_leaves_is_remembered_with_its_reason(reason: str | None, why: str) -> None:
    c = Coordination()
    a = c.stable()
    c.leave(MemberIdentity(member_id=a, reason=reason))
    c.wait(1_000)
    (gone,) = progress(c).departures
    assert (gone.member_id, gone.client_id, gone.client_host, gone.why) == (a, "app", "/10.0.0.1", why)
    assert gone.ago_ms == 1_000


def test_who_is_removed_is_remembered_with_the_timeout_that_it_exceeded() -> None:
    c = Coordination()
    c.stable(session=10_000)
    c.wait(11_000)
    assert why_gone(c) == ["sent no heartbeat for 10000 ms (session.timeout.ms)"]
    c.enter(session=500_000, rebalance=60_000)
    c.wait(61_000)
    assert why_gone(c)[1:] == ["joined, and did not come for its assignment within 60000 ms"]
    assert progress(c).cause == "members did not come for their assignment"


def test_who_does_not_rejoin_in_time_is_remembered() -> None:
    c = Coordination()
    c.stable(session=500_000, rebalance=60_000)
    c.enter(session=500_000, rebalance=60_000)
    c.wait(60_000)
    assert why_gone(c) == ["did not rejoin within 60000 ms (max.poll.interval.ms)"]


@each(
    ("reason", "changed", "cause"),
    [
        (None, True, "joined with another subscription"),
        ("subscription has changed", True, "joined with another subscription: subscription has changed"),
        ("need to revoke partitions and re-join", False, "joined again: need to revoke partitions and re-join"),
        ("x" * 500, False, f"joined again: {'x' * 500}"),
    ],
)
def test_a_rebalance_has_a_cause_which_later_ones_do_not_replace(reason: str | None, changed: bool, cause: str) -> None:
    """Clients say why they join again (KIP-800)."""
    c = Coordination()
    a = c.stable(session=30_000)
    assert progress(c).cause == f"{a} (client app) joined"
    b, _ = c.enter(session=30_000)
    assert progress(c).cause == f"{b} (client app) joined"
    c.joined(c.join(a, session=30_000))
    c.sync(a, 2, {a: b"all"})
    c.commit()
    c.join(a, session=30_000, reason=reason, **({"protocols": {"range": b"new"}} if changed else {}))
    assert progress(c).cause == f"{a} (client app) {cause[:SHOWN_MAX]}"
    c.enter(session=30_000)
    assert progress(c).cause.startswith(a), "it is one rebalance"


def test_who_left_or_was_removed_is_a_cause_too() -> None:
    c = Coordination()
    a = c.stable(session=10_000)
    b, number = c.enter(session=30_000)
    c.join(a, session=10_000)
    c.joined(number)
    c.wait(11_000)
    assert progress(c).cause == f"{a} (client app) sent no heartbeat for 10000 ms (session.timeout.ms)"
    assert [row.member_id for row in progress(c).members] == [b]


def test_a_new_process_of_a_static_member_and_a_record_that_failed_are_causes_too() -> None:
    c = Coordination()
    c.static("i")
    new = c.joined(c.join(group_instance_id="i", protocols={"range": b"new"})).member_id
    assert progress(c).cause == f"{new} (client app) came back as instance i"
    c.sync(new, 2, {new: b"all"}, group_instance_id="i")
    c.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert progress(c).cause == "the assignment could not be written"


def test_a_member_is_known_by_its_last_commit_and_when_it_has_gone_too() -> None:
    c = Coordination()
    a = c.stable(session=500_000, rebalance=60_000)
    assert progress(c).members[0].committed_ms == -1
    for transactional in (False, True):
        if transactional:
            c.ask(pending_request(7, a, 1))
        else:
            c.ask(commit_request(5, a, 1), 9)
        c.wait(70_000)
        assert progress(c).members[0].committed_ms == 70_000
    c.leave(MemberIdentity(member_id=a))
    c.wait(1_000)
    (gone,) = progress(c).departures
    assert (gone.committed_ms, gone.rebalance_timeout_ms) == (70_000, 60_000)
    c.ask(commit_request(6), 9)
    assert not c.group.departures.commits, "it is not a member who commits"


def test_a_commit_that_failed_is_none() -> None:
    for request in (commit_request, pending_request):
        c = Coordination()
        a = c.stable()
        c.send(request(5, a, 1))
        c.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert progress(c).members[0].committed_ms == -1


def test_commits_of_ids_that_static_members_had_are_forgotten() -> None:
    departures = Departures()
    for member_id in ("old", "b", "new"):
        departures.committed(member_id, ("old", "b") if member_id == "old" else ("b", "new"), Instant(1))
    assert departures.commits.keys() == {"b", "new"}


def test_a_group_remembers_a_few_departures_and_short_texts() -> None:
    c = Coordination()
    for number in range(DEPARTURES_MAX + 2):
        member_id, _ = c.enter()
        c.leave(MemberIdentity(member_id=member_id, reason=f"{number} {'x' * 500}"))
    gone = progress(c).departures
    assert [one.why[:7] for one in gone] == [f"left: {number}" for number in range(2, DEPARTURES_MAX + 2)]
    assert {len(one.why) for one in gone} == {SHOWN_MAX}


# --- the consumer protocol


def of_consumers(world: Consumers, *, with_progress: bool = True) -> GroupProgress | None:
    (row,) = world.ask(ConsumerGroupDescribeRequest(group_ids=("g",), with_progress=with_progress)).groups
    found: GroupProgress | None = row.progress
    return found


def consumer_progress(world: Consumers) -> GroupProgress:
    found = of_consumers(world)
    assert found is not None
    return found


def test_a_group_of_the_consumer_protocol_says_since_when_it_rebalances_and_how_long_a_member_may_take() -> None:
    world = Consumers()
    a = world.consumer("a")
    assert of_consumers(world, with_progress=False) is None
    world.wait(4_000)
    assert consumer_progress(world).in_state_ms == 4_000
    b = world.consumer("b")
    a.beat(topic_partitions=None)
    world.wait(5_000)
    b.beat()
    found = consumer_progress(world)
    assert (found.generation, found.in_state_ms) == (2, 5_000), "a rebalance is one phase, whatever happens in it"
    reported = {row.member_id: (row.session_left_ms, row.revoke_left_ms) for row in found.members}
    assert reported == {"a": (SESSION_MS - 5_000, REBALANCE_MS - 5_000), "b": (SESSION_MS, -1)}
    assert {row.rebalance_timeout_ms for row in found.members} == {REBALANCE_MS}
    world.reconcile(a, b)
    world.wait(1_000)
    assert consumer_progress(world).in_state_ms == 1_000
    world.fail_over()
    world.wait(2_000)
    assert consumer_progress(world).in_state_ms == 2_000, (
        "the next coordinator counts from when it has loaded the group"
    )


def test_whoever_leaves_or_is_removed_from_a_group_of_the_consumer_protocol_is_remembered() -> None:
    world = Consumers()
    a, b, c = (world.consumer(name) for name in "abc")
    world.ask(commit_request(5, "c", c.epoch), 9)
    assert [row.committed_ms for row in consumer_progress(world).members] == [-1, -1, 0]
    world.wait(3_000)
    c.leave()
    assert consumer_progress(world).departures[0].committed_ms == 3_000
    for _ in range(4):
        world.wait(REBALANCE_MS // 3)
        a.beat(topic_partitions=None)
        b.beat()
    assert world.consumers.members.keys() == {"b"}
    world.consumer("s", instance="i").leave(-2)
    world.consumer("s2", instance="i")
    world.wait(SESSION_MS)
    assert [(one.member_id, one.why) for one in consumer_progress(world).departures] == [
        ("c", "left"),
        ("a", f"did not revoke its partitions within {REBALANCE_MS} ms (max.poll.interval.ms)"),
        ("b", f"sent no heartbeat for {SESSION_MS} ms (group.consumer.session.timeout.ms)"),
        ("s2", f"sent no heartbeat for {SESSION_MS} ms (group.consumer.session.timeout.ms)"),
    ]
    assert consumer_progress(world).in_state_ms == 0
