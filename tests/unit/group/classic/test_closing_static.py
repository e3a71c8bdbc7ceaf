"""When does a static member end that was closed? It sends no LeaveGroup; its session must run out (KIP-345).

librdkafka's DescribeConsumerGroups test closes one such member for each of three groups and deletes the groups a second
after their sessions. Its last requests are tried here in every order, with every write of theirs in time and late.
"""

from itertools import permutations

from tests.rows import each
from tests.unit.group.coordination import Coordination, commit_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import Instant
from strandline.group.classic.group import State
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest

SESSION = 5000
LAST = ("heartbeat", "commit", "rejoin", "sync")
ORDERS = [order for count in range(len(LAST) + 1) for order in permutations(LAST, count)]


def deleted(c: Coordination) -> E:
    return E(c.ask(DeleteGroupsRequest(groups_names=("g",))).results[0].error_code)


def say(c: Coordination, what: str, member_id: str) -> None:
    generation = c.group.generation
    match what:
        case "heartbeat":
            c.heartbeat(member_id, generation, "i1")
        case "commit":
            c.send(commit_request(7, member_id, generation), 8)
        case "rejoin":
            c.join(member_id, group_instance_id="i1", session=SESSION)
        case "sync":
            c.sync(member_id, generation, {member_id: b"all"}, group_instance_id="i1")


@each("delay_ms", [0, 3000])
@each("gap_ms", [0, 1, 2999])
@each("write_ms", [0, 400])
def test_a_closed_static_member_ends_when_its_session_does_whatever_it_said_last(
    delay_ms: int, gap_ms: int, write_ms: int
) -> None:
    for order in ORDERS:
        c = Coordination(delay_ms=delay_ms, min_session_timeout_ms=1000)
        number = c.join(group_instance_id="i1", session=SESSION)
        c.wait(delay_ms)
        member_id = c.joined(number).member_id
        say(c, "sync", member_id)
        c.commit()
        for what in order:
            c.wait(gap_ms)
            say(c, what, member_id)
            if not write_ms:
                c.commit()
        # Closed. Nothing of it comes any more. What is being written ends later, and with it the wait of a SyncGroup.
        c.wait(write_ms)
        more_ms = write_ms if c.group.members[member_id].is_parked else 0
        c.commit()
        c.wait(SESSION - write_ms + more_ms - 1)
        assert deleted(c) is E.NON_EMPTY_GROUP, order
        c.wait(1)
        assert c.group.state is State.EMPTY, order
        assert deleted(c) is E.NONE, order


def test_what_lengthens_it_in_kafka_too_a_join_that_waits_for_others_and_a_coordinator_that_has_just_begun() -> None:
    """A member that waits for an answer has no session; with the answer, or a new coordinator, a whole one begins."""
    c = Coordination(delay_ms=3000, min_session_timeout_ms=1000)
    c.join(group_instance_id="i1", session=SESSION)  # and its client is closed at once
    c.wait(3000 + SESSION - 1)
    assert deleted(c) is E.NON_EMPTY_GROUP
    c.wait(1)
    assert deleted(c) is E.NONE

    c = Coordination(min_session_timeout_ms=1000)
    c.static(session=SESSION)
    c.wait(SESSION - 1)
    c.log.epoch = LeaderEpoch(1)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    c.wait(SESSION - 1)
    assert deleted(c) is E.NON_EMPTY_GROUP
    c.wait(1)
    assert deleted(c) is E.NONE
