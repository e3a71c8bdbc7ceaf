"""While a partition is loaded: what clients are answered, and what becomes of markers that are committed meanwhile."""

from collections import deque
from typing import Any

from tests.rows import each
from tests.unit.group.consuming import SESSION_MS, Consumer, Consumers
from tests.unit.group.coordination import Coordination, commit_request, join_request, pending_request

from strandline.base.errors import ErrorCode as E
from strandline.base.ids import LeaderEpoch
from strandline.base.time import NEVER, Instant
from strandline.group.offsets.offsets import CommittedOffset, batch_of, offset_record
from strandline.group.serving.consumer_heartbeat import DUE_MAX
from strandline.wire.control import EndTxnMarker, build_end_txn
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.delete_groups import DeleteGroupsRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_delete import OffsetDeleteRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from strandline.wire.messages.groups.sync_group import SyncGroupRequest

PRODUCER = 7


def begin_load(c: Coordination, step_bytes: int = 1) -> None:
    """In steps of one batch."""
    c.groups.shards.step_bytes = step_bytes
    c.log.epoch = LeaderEpoch((c.log.epoch or 0) + 1)
    c.take(c.groups.follow_leadership(Instant(c.now)))


def pend(c: Coordination, offset: int) -> int:
    """An offset that the producer's transaction has committed, in the log only."""
    row = offset_record("g", "t", 0, CommittedOffset(offset, 0, "", Instant(c.now), c.image.topic_ids["t"]))
    return c.log.written(bytes(batch_of([row], Instant(c.now), (PRODUCER, 0))))


def mark(c: Coordination, *, commits: bool = True) -> int:
    marker = build_end_txn(EndTxnMarker(commits, 0), timestamp=c.now, producer_id=PRODUCER, producer_epoch=0)
    return c.log.written(marker)


def shown(c: Coordination) -> int | None:
    found = c.shard.offsets.get("g", {}).get(("t", 0))
    return None if found is None else found.offset


def error_in(answer: Any) -> E:
    """The first error that it has, wherever."""
    if isinstance(getattr(answer, "error_code", None), int) and answer.error_code:
        return E(answer.error_code)
    for name in ("groups", "topics", "partitions", "results", "members"):
        for row in getattr(answer, name, None) or ():
            if (found := error_in(row)) is not E.NONE:
                return found
    return E.NONE


REQUESTS = [
    join_request(),
    join_request("m"),
    SyncGroupRequest(group_id="g", member_id="m", generation_id=1),
    HeartbeatRequest(group_id="g", member_id="m", generation_id=1),
    LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id="m"),)),
    commit_request(5),
    pending_request(5),
    OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g"),)),
    OffsetDeleteRequest(group_id="g"),
    ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1),
    ConsumerGroupDescribeRequest(group_ids=("g",)),
    DescribeGroupsRequest(groups=("g",)),
    DeleteGroupsRequest(groups_names=("g",)),
    ListGroupsRequest(),
]


def test_clients_are_asked_to_wait_until_a_partition_is_loaded_and_nothing_is_written() -> None:
    c = Coordination()
    for number in range(3):
        pend(c, number)
    begin_load(c)
    for request in REQUESTS:
        assert error_in(c.answers[c.send(request)]) is E.COORDINATOR_LOAD_IN_PROGRESS, request
    assert c.log.under_way == []
    c.wait(10)
    assert 0 in c.groups.shards.loaded
    assert error_in(c.answers[c.send(DescribeGroupsRequest(groups=("g",)))]) is E.NONE


def test_a_small_log_is_loaded_in_the_step_in_which_leadership_begins() -> None:
    c = Coordination()
    pend(c, 5)
    mark(c)
    begin_load(c, step_bytes=64 << 10)
    assert shown(c) == 5


@each("when", ["while it is loaded", "afterwards"])
def test_a_marker_that_is_written_while_a_partition_is_loaded_counts_when_it_is_committed(when: str) -> None:
    c = Coordination()
    pend(c, 5)
    pend(c, 6)
    begin_load(c)
    assert c.groups.shards.loading
    marker = mark(c)
    if when == "afterwards":
        c.wait(10)
        assert shown(c) is None, "it may be lost"
    c.marker_committed(marker, PRODUCER)
    c.wait(10)
    assert shown(c) == 6


@each("when", ["while it is loaded", "afterwards"])
def test_a_marker_that_is_read_by_the_load_does_not_count_again_when_it_is_committed(when: str) -> None:
    """Else it would end the producer's next transaction."""
    c = Coordination()
    pend(c, 5)
    marker = mark(c)
    pend(c, 6)
    begin_load(c)
    if when == "afterwards":
        c.wait(10)
    c.marker_committed(marker, PRODUCER)
    c.wait(10)
    assert shown(c) == 5
    assert c.shard.pending.is_unstable(("g", "t", 0))


def test_leadership_that_is_lost_during_a_load_ends_it_and_the_next_one_reads_everything() -> None:
    c = Coordination()
    for number in range(3):
        pend(c, number)
    begin_load(c)
    c.log.epoch = None
    c.take(c.groups.follow_leadership(Instant(c.now)))
    assert error_in(c.answers[c.send(DescribeGroupsRequest(groups=("g",)))]) is E.NOT_COORDINATOR
    c.wait(10)
    assert not c.groups.shards.loaded
    mark(c)
    c.log.epoch = LeaderEpoch(9)
    c.take(c.groups.follow_leadership(Instant(c.now)))
    c.wait(10)
    assert shown(c) == 2


def test_members_have_a_whole_session_from_when_their_coordinator_serves() -> None:
    """However long it has read, and however many there are."""
    c = Coordination()
    for number in range(1_500):
        members = tuple(
            MemberMetadata(member_id=f"m{at}", session_timeout=10_000, rebalance_timeout=60_000) for at in range(4)
        )
        value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", members=members)
        c.log.written(bytes(batch_of([(GroupMetadataKey(group=f"g{number}"), value)], Instant(c.now))))
    begin_load(c, step_bytes=64 << 10)
    while c.groups.shards.loading:
        c.now += 100  # a slow machine
        c.take(c.groups.expire(Instant(c.now)))
    begun = c.now
    assert c.groups.deadline() == begun + 1, "sessions begin in steps, too"
    c.wait(50)
    ends = {m.session_ends for group in c.shard.groups.values() for m in group.members.values()}
    assert begun + 10_000 <= min(ends) <= max(ends) <= begun + 10_050
    c.wait(10_100)
    assert not any(group.members for group in c.shard.groups.values())


def test_consumers_have_a_whole_session_from_when_their_coordinator_serves() -> None:
    c = Consumers()
    a, b = c.consumer("a"), c.consumer("b")
    c.reconcile(a, b)
    begin_load(c)
    while c.groups.shards.loading:
        c.now += 10_000
        c.take(c.groups.expire(Instant(c.now)))
    served = c.now
    c.wait(SESSION_MS - 1)
    assert b.beat().error_code == E.NONE
    c.wait(1)
    c.commit()
    assert set(c.consumers.members) == {"b"}, f"{c.now - served} ms after the coordinator began to serve"
    c.move_away()
    c.wait(2 * SESSION_MS)
    assert (c.log.under_way, c.groups.shards.dead, c.groups.shards.timers.deadline()) == ([], deque(), NEVER)


def test_many_sessions_of_a_group_that_end_at_once_end_in_turns_each_with_one_write() -> None:
    c = Consumers()
    for number in range(DUE_MAX + 2):
        c.ask(Consumer(c, f"m{number}").first())
    c.wait(SESSION_MS)
    assert [len(c.log.under_way), len(c.consumers.members)] == [1, 2]
    c.wait(1)
    assert [len(c.log.under_way), len(c.consumers.members)] == [2, 0]
