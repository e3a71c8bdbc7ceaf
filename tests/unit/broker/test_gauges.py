"""What a node's gauges say, computed from the state of machines that really run."""

from typing import Any

import pytest
from tests.sim.play import Play
from tests.unit.replica.conftest import AT, World

from strandline.base.errors import ErrorCode
from strandline.base.metrics import Family
from strandline.broker.gauges import families, of_replicas, partition_readings
from strandline.metadata import records as r

ABOVE = "strandline_partition_records_above_high_watermark_under_min_isr"


def told(found: Any) -> dict[str, Any]:
    """The value of each metric without labels or with one partition's, by the last part of its name."""
    values = {}
    for family in found:
        assert isinstance(family, Family)
        if len(family.samples) == 1:
            values[family.metric.name.removesuffix("_total").split("_")[-1]] = family.samples[0][1]
            values[family.metric.name] = family.samples[0][1]
    return values


def gauges(world: World, node: int) -> dict[str, Any]:
    replicas = world.nodes[node]
    return told(of_replicas(replicas, list(partition_readings(replicas))))


@pytest.fixture
def world() -> World:
    return World()


def test_a_healthy_partition_counts_where_it_is_led(world: World) -> None:
    world.create(min_insync_replicas="2")
    world.produce(1, 5)
    leader, follower = gauges(world, 1), gauges(world, 2)
    for name, of_leader, of_follower in (
        ("PartitionCount", 1, 1),
        ("LeaderCount", 1, 0),
        ("UnderReplicatedPartitions", 0, 0),
        ("UnderMinIsrPartitionCount", 0, 0),
        ("AtMinIsrPartitionCount", 0, 0),
        ("OfflineReplicaCount", 0, 0),
        ("InSyncReplicasCount", 3, 0),
        ("ReplicasCount", 3, 0),
        ("LastStableOffsetLag", 0, 0),
        ("LogEndOffset", 5, 5),
        ("LogStartOffset", 0, 0),
        ("NumLogSegments", 1, 1),
        ("Size", leader["Size"], leader["Size"]),
    ):
        assert (leader[name], follower[name]) == (of_leader, of_follower), name
    assert leader["Size"] > 0


def test_a_lost_follower_makes_a_partition_under_replicated_and_at_its_min_isr(world: World) -> None:
    world.create(min_insync_replicas="2")
    world.produce(1, 5)
    world.change(isr=(1, 2))
    now = gauges(world, 1)
    assert (now["UnderReplicated"], now["UnderReplicatedPartitions"]) == (1, 1)
    assert (now["AtMinIsr"], now["AtMinIsrPartitionCount"]) == (1, 1)
    assert (now["UnderMinIsr"], now["UnderMinIsrPartitionCount"]) == (0, 0)
    assert (now["InSyncReplicasCount"], now["ReplicasCount"]) == (2, 3)


def test_t24_records_that_cannot_be_read_are_told_while_too_few_are_in_sync(world: World) -> None:
    """T24: acks=1 writes go on below min ISR, and are not to be read; an operator sees how many."""
    world.create(min_insync_replicas="2")
    world.run(1_000)
    world.produce(1, 4)
    for node in (2, 3):
        world.kill(node)
    world.change(isr=(1,))
    world.produce(1, 7, acks=1)
    now = gauges(world, 1)
    assert (now["UnderMinIsr"], now["UnderMinIsrPartitionCount"], now["AtMinIsr"]) == (1, 1, 0)
    assert (now["strandline_partition_high_watermark"], now["LogEndOffset"], now[ABOVE]) == (4, 11, 7)


def test_records_on_their_way_to_healthy_followers_are_not_held_back(world: World) -> None:
    world.create(min_insync_replicas="2")
    for node in (2, 3):
        world.kill(node)
    world.produce(1, 7)
    assert (gauges(world, 1)["LogEndOffset"], gauges(world, 1)["strandline_partition_high_watermark"]) == (7, 0)
    assert gauges(world, 1)[ABOVE] == 0


def test_replicas_that_a_reassignment_adds_are_not_missing(world: World) -> None:
    world.create(replicas=(1, 2), min_insync_replicas="2")
    world.change(replicas=(1, 2, 3), adding_replicas=(3,), directories=(bytes(16),) * 3)
    now = gauges(world, 1)
    assert (now["UnderReplicated"], now["ReplicasCount"], now["ReassigningPartitions"]) == (0, 2, 1)


def test_shrinks_and_expansions_are_counted_when_the_controller_has_agreed(world: World) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, timeout_ms=500_000)
    world.controller_answers = False
    world.run(60_000)
    assert [gauges(world, 1)[name] for name in ("IsrShrinks", "IsrExpands", "FailedIsrUpdates")] == [0, 0, 0]
    world.controller_answers = True
    world.answer_controller()
    assert gauges(world, 1)["IsrShrinks"] == 1
    world.start(3)
    world.run(5_000)
    assert world.row(1)[-1] == (1, 2, 3)
    assert [gauges(world, 1)[name] for name in ("IsrShrinks", "IsrExpands", "FailedIsrUpdates")] == [1, 1, 0]


def test_a_refused_change_is_a_failed_update(world: World) -> None:
    world.create()
    world.run(1_000)
    world.kill(3)
    world.produce(1, timeout_ms=500_000)
    world.refuse_with = ErrorCode.INELIGIBLE_REPLICA
    world.run(45_000)
    now = gauges(world, 1)
    assert now["FailedIsrUpdates"] >= 1
    assert (now["IsrShrinks"], now["IsrExpands"]) == (0, 0)


def test_a_replica_that_is_assigned_and_not_served_is_offline(world: World) -> None:
    world.create()
    replicas = world.nodes[2]
    readings = list(partition_readings(replicas))
    assert told(of_replicas(replicas, readings))["OfflineReplicaCount"] == 0
    assert told(of_replicas(replicas, []))["OfflineReplicaCount"] == 1


def test_a_partition_that_goes_while_readings_are_taken_is_left_out(world: World) -> None:
    world.create()
    taking = partition_readings(world.nodes[1])
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    assert list(taking) == []


def test_the_nodes_of_a_cluster_tell_one_story() -> None:
    """Quorum and controller, on nodes that run as they do in a process."""
    play = Play()
    now = [told(families(node, list(partition_readings(node.broker.replicas)))) for node in live(play)]
    leaders = {values["kafka_server_raftmetrics_current_leader"] for values in now}
    assert len(leaders) == 1
    assert sorted(values["ActiveControllerCount"] for values in now) == [0, 0, 1]
    for values in now:
        assert (values["ActiveBrokerCount"], values["FencedBrokerCount"], values["OfflinePartitionsCount"]) == (3, 0, 0)
        assert values["GlobalTopicCount"] >= 1
        assert values["GlobalPartitionCount"] >= values["GlobalTopicCount"]
        assert values["LastAppliedRecordOffset"] == values["LastCommittedRecordOffset"]
        assert values["kafka_server_raftmetrics_high_watermark"] <= values["kafka_server_raftmetrics_log_end_offset"]
        assert values["strandline_broker_unfenced"] == 1
    victim = next(machine for machine in play.machines if machine.node.me not in leaders)
    victim.kill()
    play.until("it is fenced", lambda: told(families(live(play)[0], []))["FencedBrokerCount"] == 1)
    play.until("its partitions are led", lambda: told(families(live(play)[0], []))["OfflinePartitionsCount"] == 0)


def live(play: Play) -> list[Any]:
    return [machine.node for machine in play.machines if machine.is_running and machine.node is not None]
