"""What a node's gauges say, computed from the state of machines that really run."""

from typing import Any

import pytest
from tests.sim.play import Play
from tests.unit.broker.test_lifecycle import IDENTITY
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.elections.recovered import Recovered, elect
from tests.unit.controller.test_brokers import with_elr
from tests.unit.replica.conftest import AT, CALLER, START, World, a_batch
from tests.unit.replica.serving.test_throttle import a_world, fall_behind
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicPartition
from strandline.base.metrics import Family
from strandline.base.ports import DiskError
from strandline.broker.lifecycle import Lifecycle, LifecycleConfig, Registered, ShutDown, ShuttingDown
from strandline.broker.metrics.gauges import (
    families,
    of_directories,
    of_leaderless,
    of_replicas,
    partition_readings,
    state_of,
    under_min_isr,
)
from strandline.broker.metrics.table import MANUAL_ELECTIONS, RECOVERIES_FINISHED, RECOVERING_PARTITIONS
from strandline.metadata import records as r
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.topics.elect_leaders import LONGEST_LOG_AGGRESSIVE

ABOVE = "strandline_partition_records_above_high_watermark_under_min_isr"


def values_of(found: Any) -> dict[str, Any]:
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
    return values_of(of_replicas(replicas, list(partition_readings(replicas))))


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


def test_t24_records_that_cannot_be_read_are_reported_while_too_few_are_in_sync(world: World) -> None:
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
    assert values_of(of_replicas(replicas, readings))["OfflineReplicaCount"] == 0
    assert values_of(of_replicas(replicas, []))["OfflineReplicaCount"] == 1


def test_a_partition_that_goes_while_readings_are_taken_is_left_out(world: World) -> None:
    world.create()
    taking = partition_readings(world.nodes[1])
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    assert list(taking) == []


def fetch(world: World, node: int, offset: int = 0) -> None:
    """As a consumer."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=(FetchTopic(topic="t", partitions=(asked,)),))
    replicas = world.nodes[NodeId(node)]
    world.perform(NodeId(node), replicas.fetch(world.to(12), CALLER, request, world.now))


def test_records_are_counted_where_they_are_led_copied_and_read(world: World) -> None:
    world.create()
    batch = a_batch(7)
    for _ in range(3):
        world.produce(1, batch=batch)
    fetch(world, 1)
    leader, follower = gauges(world, 1), gauges(world, 2)
    size = len(batch)
    for name, of_leader, of_follower in (
        ("MessagesIn", 21, 0),
        ("BytesIn", 3 * size, 0),
        ("BytesOut", 3 * size, 0),
        ("TotalProduceRequests", 3, 0),
        ("FailedProduceRequests", 0, 0),
        ("ReplicationBytesIn", 0, 3 * size),
        ("ReplicationBytesOut", 2 * 3 * size, 0),
    ):
        assert (leader[name], follower[name]) == (of_leader, of_follower), name
    assert leader["BytesIn"] == leader["Size"]


def test_a_batch_that_is_sent_again_is_one(world: World) -> None:
    world.create()
    again = build([(START, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=0)
    world.produce(1, batch=again)
    world.produce(1, batch=again)
    now = gauges(world, 1)
    assert (now["MessagesIn"], now["BytesIn"], now["TotalProduceRequests"]) == (1, len(again), 2)


def test_what_is_refused_is_counted_by_why(world: World) -> None:
    world.create(max_message_bytes="100", min_insync_replicas="2")
    large, small = a_batch(50), a_batch(1)
    assert world.produce(1, batch=large)().error_code == ErrorCode.MESSAGE_TOO_LARGE
    now = gauges(world, 1)
    assert (now["BytesRejected"], now["FailedProduceRequests"], now["MessagesIn"]) == (len(large), 0, 0)
    world.change(isr=(1,))
    assert world.produce(1, batch=small)().error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    now = gauges(world, 1)
    assert (now["BytesRejected"], now["FailedProduceRequests"], now["MessagesIn"]) == (len(large), 1, 0)


def test_the_counters_of_a_topic_go_with_it(world: World) -> None:
    world.create()
    world.produce(1, 5)
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    now = gauges(world, 1)
    assert "MessagesIn" not in now
    assert now["ReplicationBytesOut"] > 0


def test_a_follower_reports_how_far_it_is_behind_what_is_committed() -> None:
    world = a_world("follower")  # slowed down, so that it can be watched
    fall_behind(world, 200)
    assert gauges(world, 3)["MaxLag"] == 0, "it was not told yet"
    lags = []
    for _ in range(200):
        world.run(100)
        now = gauges(world, 3)
        assert now["ConsumerLag"] == now["MaxLag"]
        lags.append(now["MaxLag"])
    assert max(lags) > 1_000
    last = [lag for lag in lags if lag > 0]
    assert last == sorted(last, reverse=True)
    leader = gauges(world, 1)
    assert now["MaxLag"] == leader["strandline_partition_high_watermark"] - now["LogEndOffset"]
    assert "ConsumerLag" not in leader
    assert leader["MaxLag"] == 0


def by_label(world: World, node: int, name: str) -> dict[str, Any]:
    replicas = world.nodes[NodeId(node)]
    (family,) = (f for f in of_replicas(replicas, list(partition_readings(replicas))) if f.metric.name == name)
    return {labels[0]: value for labels, value in family.samples}


def test_what_counted_for_a_quota_is_reported_beside_what_it_allows() -> None:
    world = a_world("follower", rate=2_000)
    fall_behind(world, 20)
    world.run(30_000)
    taken = by_label(world, 3, "strandline_throttled_bytes_total")
    assert taken == {
        "LeaderReplication": 0,
        "FollowerReplication": gauges(world, 3)["Size"],
        "AlterLogDirsReplication": 0,
    }
    allowed = by_label(world, 3, "strandline_throttled_rate")
    assert allowed == dict.fromkeys(allowed, (1 << 63) - 1) | {"FollowerReplication": 2_000}


def test_requests_that_wait_for_followers_or_records_are_counted(world: World) -> None:
    world.create()
    world.run(1_000)
    purgatory = "kafka_server_DelayedOperationPurgatory_NumDelayedOperations"
    assert by_label(world, 1, purgatory) == {"Produce": 0, "Fetch": 2}, "two followers wait for records"
    assert by_label(world, 2, purgatory) == {"Produce": 0, "Fetch": 0}
    world.cut = {NodeId(2)}
    world.produce(1, 1)
    world.produce(1, 1)
    assert by_label(world, 1, purgatory)["Produce"] == 2
    world.cut = set()
    world.run(3_000)
    assert by_label(world, 1, purgatory) == {"Produce": 0, "Fetch": 2}
    world.cut = {NodeId(2), NodeId(3)}
    world.run(1_000)
    world.produce(1, 1, timeout_ms=100)
    assert by_label(world, 1, purgatory) == {"Produce": 1, "Fetch": 0}
    world.run(200)
    assert by_label(world, 1, purgatory)["Produce"] == 0, "it was told that its time is over"


def test_idempotent_producers_are_counted_where_they_are_known(world: World) -> None:
    world.create()
    for producer in (7, 8):
        batch = build([(START, None, b"v", ())], producer_id=producer, producer_epoch=0, base_sequence=0)
        world.produce(1, batch=batch)
    assert [gauges(world, node)["ProducerIdCount"] for node in (1, 2, 3)] == [2, 2, 2]


def test_a_replica_on_its_way_to_another_directory_is_counted() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.produce(1, 3)
    jbod.nodes[NodeId(1)].futures.alter(TopicPartition("t", 0), "/d1", jbod.now)
    assert gauges(jbod, 1)["moves"] == 1
    jbod.run(1_000)
    assert gauges(jbod, 1)["moves"] == 0
    assert by_label(jbod, 1, "strandline_throttled_bytes_total")["AlterLogDirsReplication"] == gauges(jbod, 1)["Size"]


def test_partitions_under_min_isr_are_counted_with_what_counts_of_min_isr(world: World) -> None:
    world.create(min_insync_replicas="2")
    assert under_min_isr(world.image) == 0
    world.change(isr=(1,))
    assert under_min_isr(world.image) == 1
    world.change(isr=(), leader=-1)
    assert under_min_isr(world.image) == 1
    alone = World(1)
    alone.create(replicas=(1,), min_insync_replicas="2")
    assert under_min_isr(alone.image) == 0, "one replica cannot be two"


def test_all_replicas_count_the_replicas_that_may_lead_without_loss(world: World) -> None:
    """KIP-966: electable leaders. Nobody leads in the end, and who is left tells it still."""
    world.create(min_insync_replicas="3")
    electable = "strandline_partition_electable_leaders"
    seen = []
    for change in (
        {},
        {"isr": (1, 2), "eligible_leader_replicas": (3,)},
        {"isr": (1,), "eligible_leader_replicas": (2,)},
        {"isr": (), "eligible_leader_replicas": (1, 2), "leader": -1},
        {"eligible_leader_replicas": ()},
    ):
        world.change(**change)
        seen.append([gauges(world, node)[electable] for node in (1, 2, 3)])
    assert seen == [[3] * 3, [3] * 3, [2] * 3, [2] * 3, [0] * 3]


def leaderless(cluster: Cluster) -> tuple[int, int]:
    """Partitions under recovery, and those that wait for an operator."""
    recovering, manual, _ = of_leaderless(cluster.image, cluster.controller)
    assert recovering.metric is RECOVERING_PARTITIONS and manual.metric is MANUAL_ELECTIONS
    return recovering.samples[0][1], manual.samples[0][1]


def test_a_recovery_that_waits_for_last_known_elr_counts_as_one_and_only_on_the_active_controller() -> None:
    cluster = with_elr(is_recovery_managed=True)
    cluster.register(2)
    cluster.fence(1)
    cluster.register(1)
    assert leaderless(cluster) == (1, 0)
    image = cluster.image.copy()
    cluster.controller.deactivate(cluster.now)
    cluster.controller.image = image
    assert leaderless(cluster) == (0, 0)


def test_a_partition_for_which_only_an_operator_can_find_a_leader_is_counted() -> None:
    cluster = with_elr(static={"unclean.recovery.strategy": "None"})
    cluster.fence(1)
    assert leaderless(cluster) == (0, 0), "who is eligible is waited for"
    cluster.register(2)
    assert leaderless(cluster) == (0, 0)
    cluster.register(1)
    assert leaderless(cluster) == (0, 1)


def test_recoveries_are_counted_until_there_is_another_controller() -> None:
    cluster = Recovered()

    def finished() -> Any:
        *_, found = of_leaderless(cluster.image, cluster.controller)
        assert found.metric is RECOVERIES_FINISHED
        return found.samples[0][1]

    cluster.lose(1, 2, 3)
    for node in (1, 2, 3):
        cluster.beat(node)
    assert (finished(), leaderless(cluster)) == (0, (1, 0))
    for node in (1, 2, 3):
        cluster.say(node, (0, 10))
    assert (finished(), leaderless(cluster)) == (1, (0, 0))
    for count in (2, 3):
        cluster.lose(*cluster.partition("t").isr)
        for node in (1, 2, 3):
            cluster.beat(node)
        cluster.pause(2_000)
        for node in cluster.asked():
            cluster.say(node, (0, 10))
        assert (finished(), leaderless(cluster)) == (count, (0, 0))
    image = cluster.image.copy()
    cluster.controller.deactivate(cluster.now)
    cluster.controller.activate(image, 2, cluster.now)
    assert finished() == 0


def test_what_an_operator_has_asked_for_is_a_recovery_and_waits_for_no_operator() -> None:
    cluster = Recovered(strategy="None", is_managed=False)
    cluster.alter("t", (1, 2))
    cluster.lose(1, 2)
    cluster.beat(2)
    assert leaderless(cluster) == (0, 1)
    assert cluster.ask(elect(LONGEST_LOG_AGGRESSIVE), 3) is None
    assert leaderless(cluster) == (1, 0)


def test_a_failed_log_directory_is_named() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    directories = jbod.nodes[NodeId(1)].host.directories

    def now() -> tuple[Any, dict[str, Any]]:
        count, by_path = of_directories(directories)
        return count.samples[0][1], {path: value for (path,), value in by_path.samples}

    assert now() == (0, {"/d0": 0, "/d1": 0})
    directories.fail(directories.live[1], DiskError("gone"))
    assert now() == (1, {"/d0": 0, "/d1": 1})


def test_a_brokers_state_has_kafkas_number() -> None:
    lifecycle = Lifecycle(IDENTITY, LifecycleConfig())
    assert state_of(lifecycle) == 1
    for role, number in (
        (Registered(5, fenced=True), 2),
        (Registered(5, fenced=False), 3),
        (ShuttingDown(5, START), 6),
        (ShutDown(clean=True), 7),
    ):
        lifecycle.role = role
        assert state_of(lifecycle) == number


def test_the_nodes_of_a_cluster_tell_one_story() -> None:
    """Quorum and controller, on nodes that run as they do in a process."""
    play = Play()
    now = [values_of(families(node, list(partition_readings(node.broker.replicas)), START)) for node in live(play)]
    leaders = {values["kafka_server_raftmetrics_current_leader"] for values in now}
    assert len(leaders) == 1
    assert sorted(values["ActiveControllerCount"] for values in now) == [0, 0, 1]
    assert sum(values["strandline_controller_leader_elections_total"] for values in now) == 0
    for values in now:
        assert values["BrokerState"] == 3
        assert (values["ActiveBrokerCount"], values["FencedBrokerCount"], values["OfflinePartitionsCount"]) == (3, 0, 0)
        assert values["GlobalTopicCount"] >= 1
        assert values["GlobalPartitionCount"] >= values["GlobalTopicCount"]
        assert values["LastAppliedRecordOffset"] == values["LastCommittedRecordOffset"]
        assert values["MetadataErrorCount"] == 0
        assert values["kafka_server_raftmetrics_high_watermark"] <= values["kafka_server_raftmetrics_log_end_offset"]
        assert values["strandline_broker_unfenced"] == 1
    victim = next(machine for machine in play.machines if machine.node.me not in leaders)
    victim.kill()
    play.until("it is fenced", lambda: values_of(families(live(play)[0], [], START))["FencedBrokerCount"] == 1)
    assert sum(values_of(families(node, [], START))["NewActiveControllersCount"] for node in live(play)) >= 2
    states = {
        labels[0]: value
        for family in families(live(play)[0], [], START)
        if family.metric.name.endswith("BrokerRegistrationState")
        for labels, value in family.samples
    }
    assert states[str(victim.node_id)] == 10
    assert sorted(states.values()) == [10, 30, 30]
    play.until(
        "its partitions are led", lambda: values_of(families(live(play)[0], [], START))["OfflinePartitionsCount"] == 0
    )


def live(play: Play) -> list[Any]:
    return [machine.node for machine in play.machines if machine.is_running and machine.node is not None]
