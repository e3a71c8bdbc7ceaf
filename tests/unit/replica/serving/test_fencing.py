"""Who knows an older leadership is told so, and who knows a newer one too, by every API that reads (KIP-320)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replica.asking import ask, offsets_in
from tests.unit.replica.conftest import AT, CALLER, World, a_batch

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

E = ErrorCode
Ask = Callable[[World, int, int], Any]


def fetch(world: World, node: int, epoch: int, version: int = 10, **fields: Any) -> Any:
    asked = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20, **fields)
    topics = (FetchTopic(topic="t", partitions=(asked,)),)
    return (
        ask(world, node, "fetch", FetchRequest(session_epoch=-1, topics=topics), version)().responses[0].partitions[0]
    )


def list_offsets(world: World, node: int, epoch: int) -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-2, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="t", partitions=(asked,)),))
    return ask(world, node, "list_offsets", request, 7)().topics[0].partitions[0]


def offset_for_leader_epoch(world: World, node: int, epoch: int) -> Any:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(asked,)),))
    return ask(world, node, "offsets_for_leader_epoch", request, 4)().topics[0].partitions[0]


@pytest.mark.parametrize("api", [fetch, list_offsets, offset_for_leader_epoch])
@pytest.mark.parametrize(
    ("node", "epoch", "error"),
    [
        (2, 0, E.FENCED_LEADER_EPOCH),
        (2, 1, E.NONE),
        (2, 2, E.UNKNOWN_LEADER_EPOCH),
        (2, -1, E.NONE),
        # The broker does not lead: whose knowledge is older still says more.
        (1, 0, E.FENCED_LEADER_EPOCH),
        (1, 1, E.NOT_LEADER_OR_FOLLOWER),
        (1, 2, E.UNKNOWN_LEADER_EPOCH),
        (1, -1, E.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_an_epoch_is_compared_before_anything_is_read(
    world: World, api: Ask, node: int, epoch: int, error: ErrorCode
) -> None:
    world.create()
    world.change(leader=2)
    world.run(1_000)
    assert api(world, node, epoch).error_code == error


@pytest.mark.parametrize("api", [fetch, list_offsets, offset_for_leader_epoch])
def test_a_broker_without_the_partition_has_no_epoch_to_compare(world: World, api: Ask) -> None:
    world.create(replicas=(1, 2))
    assert api(world, 3, 7).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_has_not_heard_of_its_fencing_serves_its_own_epoch_only(world: World) -> None:
    world.create()
    world.change(leader=2, skip=(1,))
    assert fetch(world, 1, 0).error_code == E.NONE  # up to a high watermark that cannot move any more
    assert fetch(world, 1, 1).error_code == E.UNKNOWN_LEADER_EPOCH


def test_a_fenced_client_learns_the_leader(world: World) -> None:
    world.create()
    world.change(leader=2)
    row = fetch(world, 1, 0, version=12)
    assert (row.error_code, row.current_leader.leader_id) == (E.FENCED_LEADER_EPOCH, 2)
    assert row.current_leader.leader_epoch == 1


def test_a_consumer_whose_records_were_lost_learns_where_its_log_and_the_leaders_part(world: World) -> None:
    """Three records of epoch 1, which it has read, are gone since an unclean election; others are in their place."""
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.change(leader=1, isr=(1,))
    world.cut = {2}
    world.produce(1, 3)
    world.run(50_000)  # until 2, which is out of sync, no longer counts as caught up
    assert offsets_in(world.consume(1, 2)().records) == [2]
    world.kill(NodeId(1))
    world.change(leader=2, isr=(2,))  # unclean
    world.produce(2, batch=a_batch(2))
    world.produce(2, batch=a_batch(4))
    row = fetch(world, 2, 2, version=12, fetch_offset=5, last_fetched_epoch=1)
    assert (row.error_code, len(row.records)) == (E.NONE, 0)
    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 2)
    assert offsets_in(fetch(world, 2, 2, version=12, fetch_offset=2, last_fetched_epoch=0).records) == [2, 4]


def test_an_offset_before_the_log_start_is_out_of_range_even_where_epochs_diverge(world: World) -> None:
    world.create(replicas=(1,))
    world.produce(1, 2)
    world.change(leader=1)
    world.produce(1, 2)
    world.change(leader=1)
    world.produce(1, 2)
    (hosted,) = world.nodes[NodeId(1)].host.partitions.all()
    hosted.log.advance_log_start(4)
    row = fetch(world, 1, 2, version=12, fetch_offset=3, last_fetched_epoch=0)
    assert row.error_code == E.OFFSET_OUT_OF_RANGE
    row = fetch(world, 1, 2, version=12, fetch_offset=5, last_fetched_epoch=3)
    assert row.error_code == E.OFFSET_OUT_OF_RANGE  # an epoch that was never led here


@pytest.mark.parametrize(("epoch", "error"), [(0, E.UNKNOWN_LEADER_EPOCH), (-1, E.NOT_LEADER_OR_FOLLOWER)])
def test_a_replica_that_the_leader_has_not_heard_of_is_to_ask_again(world: World, epoch: int, error: ErrorCode) -> None:
    world.create(replicas=(1, 2))
    asked = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic_id=world.image.topic_ids["t"], partitions=(asked,)),)
    request = FetchRequest(replica_state=ReplicaState(replica_id=3, replica_epoch=103), session_epoch=0, topics=topics)
    row = ask(world, 1, "fetch", request, 15)().responses[0].partitions[0]
    assert row.error_code == error


@pytest.mark.parametrize(("epoch", "waits_ms"), [((1 << 63) - 1, 0), (1 << 40, 0), (1 << 10, 40_000)])
@pytest.mark.parametrize("offset", [0, 1 << 50])
def test_a_number_that_is_nobodys_broker_epoch_shuts_no_follower_out(epoch: int, waits_ms: int, offset: int) -> None:
    """One fetch in a follower's name. What cannot be an epoch has no effect; what metadata never names is forgotten."""
    world = World()
    world.create()
    world.run(2_000)
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=0)
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=epoch),
        session_epoch=-1,
        topics=(FetchTopic(topic_id=AT.topic_id, partitions=(asked,)),),
    )
    world.perform(NodeId(1), world.nodes[NodeId(1)].fetch(world.to(17), CALLER, request, world.now))
    world.produce(1, 5, acks=1)
    world.run(2_000 + waits_ms)
    assert world.ends() == [5, 5, 5]
    assert set(world.image.partition(AT).isr) == {1, 2, 3}
