"""Throttled replication: who is held back, who is not, and that nobody spins meanwhile (KIP-73)."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World, a_batch

from strandline.base.effects import Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from strandline.replica.config import ReplicaConfig

RATE = 2_000
SIDES = ("leader", "follower")
KEYS = {side: f"{side}.replication.throttled.replicas" for side in SIDES}


def a_world(side: str, value: str = "*", rate: int = RATE) -> World:
    """One side's quota is `rate`, and the topic's replicas are throttled as `value` says."""
    limits: dict[str, Any] = {f"{side}_throttled_rate": rate}
    world = World(config=ReplicaConfig(fetch_max_bytes=RATE, lag_time_max_ms=5_000, **limits))
    world.create()
    throttle(world, side, value)
    world.run(1_000)
    return world


def throttle(world: World, side: str, value: str | None) -> None:
    world.commit(r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=KEYS[side], value=value))


def set_rate(world: World, side: str, value: str | None) -> None:
    key = f"{side}.replication.throttled.rate"
    world.commit(r.ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=key, value=value))


def fall_behind(world: World, batches: int, size: int = 10) -> int:
    """Broker 3 leaves the ISR and misses that much. Returns how many bytes."""
    world.cut = {3}
    world.produce(1, acks=1)
    world.run(20_000)
    assert world.row(1)[4] == (1, 2)
    batch = a_batch(size)
    for _ in range(batches):
        assert world.produce(1, batch=batch, acks=1)().error_code == ErrorCode.NONE
        world.run(20)
    world.run(30_000)  # the windows in which broker 2 copied this are over
    world.cut = set()
    return batches * len(batch)


def fetches(world: World, node: int) -> int:
    return sum(1 for sender, effect in world.sent_by if sender == node and isinstance(effect, Send))


@pytest.mark.parametrize("side", SIDES)
def test_a_replica_out_of_sync_catches_up_no_faster_than_its_quota(side: str) -> None:
    world = a_world(side)
    size = fall_behind(world, 200)
    world.run(5_000)
    hosted = world.nodes[NodeId(3)].host.partitions.named("t", 0)
    assert hosted is not None
    # One window at full speed may pass before the rate is known to be exceeded.
    assert 0 < hosted.log.size_bytes < 5 * RATE + 2 * RATE < size
    world.run(1000 * size // RATE + 15_000)
    assert world.ends() == [2_001] * 3
    assert world.row(1)[4] == (1, 2, 3)


@pytest.mark.parametrize("side", SIDES)
def test_without_a_throttle_the_same_takes_no_time(side: str) -> None:
    world = a_world(side, "")
    fall_behind(world, 200)
    world.run(2_000)
    assert world.row(3)[3] == 2_001


@pytest.mark.parametrize("side", SIDES)
def test_a_replica_in_sync_is_never_held_back_though_its_bytes_count(side: str) -> None:
    world = a_world(side, rate=10)
    quotas = {"leader": world.nodes[NodeId(1)].fetching.quota, "follower": world.nodes[NodeId(2)].fetchers.quota}
    for _ in range(100):
        answer = world.produce(1, 10)
        world.run(50)
        assert answer().error_code == ErrorCode.NONE
    assert world.row(1)[4] == (1, 2, 3)
    assert quotas[side].is_exceeded(world.now)
    copies = 2 if side == "leader" else 1
    assert quotas[side].rate.size == copies * 100 * len(a_batch(10))


@pytest.mark.parametrize("side", SIDES)
def test_a_throttle_taken_back_ends_at_once(side: str) -> None:
    world = a_world(side, rate=1)
    fall_behind(world, 50)
    world.run(10_000)
    assert world.row(3)[3] < 500
    throttle(world, side, None)
    world.run(2_000)
    assert world.row(3)[3] == 501


@pytest.mark.parametrize(("side", "value", "throttled"), [("leader", "0:1", True), ("follower", "0:3", True)])
def test_a_replica_is_throttled_on_the_broker_that_the_list_names(side: str, value: str, throttled: bool) -> None:
    for entries, expected in ((value, throttled), ("0:2,1:1,1:3", False)):
        world = a_world(side, entries, rate=1)
        fall_behind(world, 50)
        world.run(5_000)
        assert (world.row(3)[3] < 500) == expected


@pytest.mark.parametrize("side", SIDES)
def test_a_partition_that_is_not_throttled_goes_on_beside_one_that_is(side: str) -> None:
    world = a_world(side, "0:1,0:3", rate=1)
    world.commit(
        r.PartitionRecord(
            partition_id=1,
            topic_id=AT.topic_id,
            replicas=(1, 3),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(bytes([1]) * 16, bytes([3]) * 16),
        )
    )
    fall_behind_in_the_first(world)
    for _ in range(20):
        effects = world.nodes[NodeId(1)].append_internal("t", 1, bytearray(a_batch(1)), world.now, lambda *_: [])
        world.perform(NodeId(1), effects)
    world.run(1_000)
    first, second = (world.nodes[NodeId(3)].host.partitions.named("t", index) for index in (0, 1))
    assert first is not None
    assert second is not None
    assert first.log.log_end_offset < 500
    assert second.log.log_end_offset == 20


def fall_behind_in_the_first(world: World) -> None:
    """As `fall_behind`, in a world with two partitions."""
    world.cut = {3}
    world.produce(1, acks=1)
    world.run(20_000)
    for _ in range(50):
        world.produce(1, batch=a_batch(10), acks=1)
        world.run(20)
    world.run(30_000)
    world.cut = set()
    world.run(2_000)


@pytest.mark.parametrize("side", SIDES)
def test_a_replica_that_is_held_back_does_not_ask_in_turn(side: str) -> None:
    """Neither when nothing happens, nor whenever the leader appends."""
    world = a_world(side, rate=1)
    fall_behind(world, 50)
    world.run(2_000)
    world.sent_by.clear()
    for _ in range(100):
        world.produce(1, 1, acks=1)
        world.run(100)
    assert fetches(world, 2) >= 100
    assert fetches(world, 3) <= 30  # two a second, or once when a window is over


def test_a_replica_that_is_held_back_is_still_told_of_a_divergence() -> None:
    world = a_world("leader", rate=0)
    world.produce(1, 1)
    world.run(1_000)
    world.change(leader=3)
    world.cut = {3}
    world.produce(3, 2, acks=1)
    world.change(leader=1, isr=(1, 2))
    world.produce(1, 1)
    world.run(20_000)
    assert world.ends() == [2, 2, 3]
    world.cut = set()
    world.produce(1, 1)
    world.run(2_000)
    assert world.ends() == [3, 3, 1]


@pytest.mark.parametrize("side", SIDES)
def test_the_rate_is_changed_both_ways_while_a_replica_catches_up(side: str) -> None:
    world = a_world(side)
    size = fall_behind(world, 200)
    hosted = world.nodes[NodeId(3)].host.partitions.named("t", 0)
    assert hosted is not None
    missing = hosted.log.size_bytes
    world.run(3_000)
    early = hosted.log.size_bytes
    assert missing < early < missing + size // 2
    set_rate(world, side, "0")
    world.run(1_000)  # what was asked for before may still come
    held = hosted.log.size_bytes
    world.run(5_000)
    assert hosted.log.size_bytes == held, "lowered: it stands still"
    set_rate(world, side, str(100 * size))
    # A leader answers the follower's fetch that is with it when its time is up.
    world.run(1 if side == "follower" else world.config.fetch_wait_max_ms)
    assert hosted.log.size_bytes >= missing + size, "raised: it goes on at once"
