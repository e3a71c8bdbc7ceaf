"""T18 (KAFKA-19996): while the high watermark is frozen under min ISR, passing it says nothing about closeness."""

from typing import Any

from tests.unit.replica.conftest import CALLER, World

from strandline.base.effects import ToController
from strandline.base.ids import NodeId
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

LAGGARD = NodeId(3)


def fetch_by_laggard(world: World, offset: int) -> None:
    """Broker 3 asks for `offset`, so it has what lies before. Its process is ours to play."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1, current_leader_epoch=0)
    request = FetchRequest(
        replica_id=LAGGARD, max_wait_ms=0, session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(asked,)),)
    )
    world.perform(NodeId(1), world.nodes[NodeId(1)].fetch(world.to(), CALLER, request, world.now))
    world.perform(NodeId(1), world.nodes[NodeId(1)].expire(world.now))


def proposals(world: World) -> int:
    return len([effect for _, effect in world.sent_by if isinstance(effect, ToController)])


def frozen(world: World, min_isr: str) -> None:
    """Broker 3 is dropped; 200 records follow, which under min ISR 3 are not committed."""
    world.create(min_insync_replicas=min_isr)
    world.run(1_000)
    world.kill(LAGGARD)
    world.produce(1, acks=1)
    world.run(60_000)
    assert world.row(1)[4] == (1, 2)
    world.sent_by.clear()
    for _ in range(20):
        world.produce(1, 10, acks=1)
    world.run(1_000)


def test_t18_a_laggard_that_crawls_through_a_frozen_partition_is_proposed_once_when_it_is_there(world: Any) -> None:
    frozen(world, "3")
    assert world.row(1)[2:4] == (0, 201)
    for offset in range(1, 201, 10):  # three lag times long
        fetch_by_laggard(world, offset)
        world.run(5_000)
    assert (proposals(world), world.row(1)[4]) == (0, (1, 2))
    fetch_by_laggard(world, 201)
    assert (proposals(world), world.row(1)[4]) == (1, (1, 2, 3))
    assert world.row(1)[2] == 201
    world.run(20_000)
    assert proposals(world) == 1


def test_t18_a_follower_that_trails_a_busy_log_by_one_fetch_may_still_join_under_min_isr(world: Any) -> None:
    """Hysteresis must not lock a partition: acks=1 writes go on, and nobody is ever at the very end."""
    frozen(world, "3")
    fetch_by_laggard(world, 190)
    end = 201
    for _ in range(3):
        world.produce(1, 5, acks=1)
        world.run(100)
        fetch_by_laggard(world, end)
        end += 5
    assert world.row(1)[4] == (1, 2, 3)
    assert proposals(world) == 1


def test_t18_with_a_high_watermark_that_moves_it_is_measure_enough(world: Any) -> None:
    frozen(world, "2")
    assert world.row(1)[2:4] == (201, 201)
    world.cut = {NodeId(2)}
    world.produce(1, 10, acks=1)
    fetch_by_laggard(world, 201)
    assert world.row(1)[4] == (1, 2, 3)
