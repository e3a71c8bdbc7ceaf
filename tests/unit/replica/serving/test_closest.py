"""Consumers that read from the closest replica (KIP-392)."""

from typing import Any

import pytest
from tests.unit.replica.asking import ask, offsets_in
from tests.unit.replica.conftest import World, a_batch, registration

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.replica.config import ReplicaConfig
from strandline.replica.serving.selection import LEADER_ONLY, RACK_AWARE
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

E = ErrorCode


def a_world(selector: str = RACK_AWARE) -> World:
    """Three brokers, each in a rack "r" and its number; broker 1 leads, and two records are committed everywhere."""
    world = World(config=ReplicaConfig(replica_selector=selector))
    for node in (1, 2, 3):
        world.commit(registration(NodeId(node), rack=f"r{node}"))
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    return world


@pytest.fixture
def racks() -> World:
    return a_world()


def fetch(
    world: World, node: int, offset: int, *, rack: str = "", epoch: int = 0, version: int = 11, **fields: Any
) -> Any:
    """The function that gives the partition's answer."""
    asked = FetchPartition(
        partition=0,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        partition_max_bytes=1 << 20,
        last_fetched_epoch=fields.pop("last_fetched_epoch", -1),
    )
    fields = {"session_epoch": -1, "min_bytes": 1, **fields}
    request = FetchRequest(rack_id=rack, topics=(FetchTopic(topic="t", partitions=(asked,)),), **fields)
    answer = ask(world, node, "fetch", request, version)
    return lambda: None if answer() is None else answer().responses[0].partitions[0]


# --- whom the leader names


def test_the_leader_names_the_replica_in_the_consumers_rack_and_reads_nothing(racks: World) -> None:
    row = fetch(racks, 1, 0, rack="r2", max_wait_ms=10_000)()
    assert (row.error_code, row.preferred_read_replica, len(row.records)) == (E.NONE, 2, 0)
    assert (row.high_watermark, row.log_start_offset) == (2, 0)


@pytest.mark.parametrize("rack", ["r1", "elsewhere", ""])
def test_the_leader_serves_consumers_of_its_rack_of_unknown_racks_and_of_none(racks: World, rack: str) -> None:
    row = fetch(racks, 1, 0, rack=rack)()
    assert (row.preferred_read_replica, offsets_in(row.records)) == (-1, [0])


@pytest.mark.parametrize("selector", ["", LEADER_ONLY])
def test_without_a_selector_the_leader_serves_everybody(selector: str) -> None:
    row = fetch(a_world(selector), 1, 0, rack="r2")()
    assert (row.preferred_read_replica, offsets_in(row.records)) == (-1, [0])


def test_a_consumer_at_the_end_is_sent_away_as_well(racks: World) -> None:
    assert fetch(racks, 1, 2, rack="r2", max_wait_ms=10_000)().preferred_read_replica == 2


def test_records_that_the_follower_lacks_come_from_the_leader(racks: World) -> None:
    """It has not fetched since; the high watermark passed nevertheless, since it is about to leave the ISR."""
    racks.cut = {2}
    racks.produce(1, 1, acks=1)
    assert fetch(racks, 1, 3, rack="r2", max_wait_ms=10_000)() is None
    assert fetch(racks, 1, 2, rack="r2")().preferred_read_replica == 2
    racks.run(60_000)
    assert racks.row(1)[4] == (1, 3)
    assert offsets_in(fetch(racks, 1, 0, rack="r2")().records) == [0, 2]  # 2 is out of sync


def test_a_wrong_epoch_is_refused_before_anybody_is_named(racks: World) -> None:
    assert fetch(racks, 1, 0, rack="r2", epoch=1)().error_code == E.UNKNOWN_LEADER_EPOCH


def test_a_session_names_the_closer_replica_as_often_as_it_is_asked(racks: World) -> None:
    asked = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="t", partitions=(asked,)),)
    opened = ask(racks, 1, "fetch", FetchRequest(session_epoch=0, rack_id="r2", topics=topics), 11)()
    for epoch in (1, 2):
        request = FetchRequest(session_id=opened.session_id, session_epoch=epoch, rack_id="r2", max_wait_ms=10_000)
        again = ask(racks, 1, "fetch", request, 11)()
        assert [row.preferred_read_replica for row in again.responses[0].partitions] == [2]


# --- what a follower serves


def test_a_follower_serves_what_it_knows_to_be_committed(racks: World) -> None:
    row = fetch(racks, 2, 0, rack="r2")()
    assert (row.error_code, row.high_watermark, offsets_in(row.records)) == (E.NONE, 2, [0])
    assert row.preferred_read_replica == -1
    assert offsets_in(fetch(racks, 3, 0)().records) == [0]  # also one whom nobody has named


def test_a_follower_does_not_show_what_is_not_committed(racks: World) -> None:
    racks.cut = {3}
    racks.produce(1, 1, acks=1)
    racks.run(1_000)
    assert racks.row(2)[2:4] == (2, 3)
    row = fetch(racks, 2, 2)()
    assert (row.error_code, row.high_watermark, len(row.records)) == (E.NONE, 2, 0)
    row = fetch(racks, 2, 3)()  # beyond the high watermark, within the log
    assert (row.error_code, row.high_watermark, len(row.records)) == (E.NONE, 2, 0)


def test_an_offset_that_a_follower_lacks_is_out_of_range_there(racks: World) -> None:
    row = fetch(racks, 2, 3)()
    assert (row.error_code, row.log_start_offset) == (E.OFFSET_OUT_OF_RANGE, 0)


def test_a_long_poll_at_a_follower_is_answered_as_soon_as_it_learns_of_the_high_watermark(racks: World) -> None:
    waiting = fetch(racks, 2, 2, max_wait_ms=60_000)
    racks.produce(1, 1)
    racks.run(racks.config.high_watermark_delay_ms)
    assert offsets_in(waiting().records) == [2]
    assert waiting().high_watermark == 3


def test_a_long_poll_at_a_follower_waits_for_its_bytes(racks: World) -> None:
    waiting = fetch(racks, 2, 2, max_wait_ms=60_000, min_bytes=2 * len(a_batch(1)))
    racks.produce(1, 1)
    racks.run(1_000)
    assert waiting() is None
    racks.produce(1, 1)
    racks.run(1_000)
    assert offsets_in(waiting().records) == [2, 3]


def test_a_session_at_a_follower_reports_what_is_new_there(racks: World) -> None:
    asked = FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="t", partitions=(asked,)),)
    opened = ask(racks, 2, "fetch", FetchRequest(session_epoch=0, topics=topics), 11)()
    request = FetchRequest(session_id=opened.session_id, session_epoch=1)
    assert ask(racks, 2, "fetch", request, 11)().responses == ()
    racks.produce(1, 1)
    racks.run(1_000)
    request = FetchRequest(session_id=opened.session_id, session_epoch=2)
    (row,) = ask(racks, 2, "fetch", request, 11)().responses[0].partitions
    assert offsets_in(row.records) == [2]


def test_deleted_records_are_out_of_range_at_a_follower_too(racks: World) -> None:
    waiting = fetch(racks, 2, 2, max_wait_ms=60_000)
    racks.produce(1, 1)
    (hosted,) = racks.nodes[NodeId(1)].host.partitions.all()
    hosted.log.advance_log_start(3)
    racks.nodes[NodeId(1)].fetching.log_start_moved(hosted, racks.now)
    racks.run(1_000)
    assert waiting() is not None
    row = fetch(racks, 2, 2)()
    assert (row.error_code, row.log_start_offset) == (E.OFFSET_OUT_OF_RANGE, 3)


def test_requests_from_before_the_closest_replica_are_served_by_leaders_only(racks: World) -> None:
    assert fetch(racks, 2, 0, version=10)().error_code == E.NOT_LEADER_OR_FOLLOWER
    assert fetch(racks, 2, 0, version=11)().error_code == E.NONE


def test_followers_are_served_by_the_leader_only(racks: World) -> None:
    row = fetch(racks, 2, 0, replica_id=3, version=12)()
    assert row.error_code == E.NOT_LEADER_OR_FOLLOWER


# --- epochs at a follower


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, E.FENCED_LEADER_EPOCH), (1, E.NONE), (2, E.UNKNOWN_LEADER_EPOCH), (-1, E.NONE)]
)
def test_a_follower_compares_leader_epochs_as_the_leader_does(racks: World, epoch: int, error: ErrorCode) -> None:
    racks.change(leader=3)
    racks.run(1_000)
    assert fetch(racks, 2, 0, epoch=epoch)().error_code == error


def test_a_fetch_that_waits_at_a_follower_learns_at_once_of_a_new_leader_epoch(racks: World) -> None:
    waiting = fetch(racks, 2, 2, max_wait_ms=60_000)
    racks.change(leader=3)
    assert waiting().error_code == E.FENCED_LEADER_EPOCH
    assert waiting().records == b""


def test_a_follower_that_becomes_the_leader_serves_on(racks: World) -> None:
    waiting = fetch(racks, 2, 2, epoch=-1, max_wait_ms=60_000)
    racks.change(leader=2)
    assert waiting() is not None
    racks.run(1_000)
    racks.produce(2, 1)
    racks.run(1_000)
    assert offsets_in(fetch(racks, 2, 2, epoch=1)().records) == [2]


def test_a_follower_without_an_epoch_that_the_consumer_has_read_sends_it_back_to_the_leader(racks: World) -> None:
    racks.change(leader=1, skip=(2,))
    racks.cut = {2}
    row = fetch(racks, 2, 2, epoch=-1, last_fetched_epoch=1, version=12)()
    assert row.error_code == E.OFFSET_OUT_OF_RANGE


def test_what_an_unclean_election_cut_from_a_follower_is_not_shown_there_any_more(racks: World) -> None:
    racks.produce(1, 2)
    racks.run(1_000)
    racks.cut = {3}
    waiting = fetch(racks, 2, 4, epoch=-1, max_wait_ms=60_000)
    racks.change(isr=(1, 2), leader=1)
    racks.produce(1, 5, acks=1)
    racks.run(40_000)
    assert waiting() is not None
    assert racks.row(2)[2:4] == (9, 9)
    racks.change(leader=3, isr=(3,))  # it lacks five records
    reader = fetch(racks, 2, 9, epoch=-1, max_wait_ms=60_000)
    assert reader() is None
    racks.cut = set()
    racks.run(2_000)
    assert reader().error_code == E.OFFSET_OUT_OF_RANGE
    assert racks.row(2)[2:4] == (4, 4)
