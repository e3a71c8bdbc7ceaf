"""L1–L10: what is wrong with Eligible Leader Replicas in Kafka by a reading of its code, though nobody has reported it.

Each test is named by its number; L5 is in `test_directories`, L8 and L9 are in `test_eligible`.
"""

from random import Random
from typing import Any

import pytest
from tests.kip.scenes import Governed, leading
from tests.kip.traps.test_eligible import ALL_BROKERS, MIN_ISR, TOPIC, set_config, with_elr
from tests.kip.traps.test_moves import move
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.test_directories import Jbod as Controlled
from tests.unit.controller.test_directories import directory

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.controller.configs import plan_alter_configs
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, Image
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest

E = ErrorCode
ELR_ON = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def delete(cluster: Cluster, name: str) -> None:
    answer = cluster.ask(DeleteTopicsRequest(topic_names=(name,)), version=5)
    assert answer.responses[0].error_code == E.NONE


# --- L1: what is derived from partitions


def recomputed(image: Image) -> dict[NodeId, list[TopicIdPartition]]:
    """Where each broker is in the ISR or the ELR."""
    found: dict[NodeId, list[TopicIdPartition]] = {}
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            for node in partition.isr + partition.elr:
                found.setdefault(node, []).append(TopicIdPartition(topic.topic_id, index))
    return {node: sorted(where) for node, where in found.items()}


def indexed(image: Image) -> dict[NodeId, list[TopicIdPartition]]:
    return {node: sorted(where) for node, where in image.eligible.items() if where}


def something_happens(cluster: Cluster, rng: Random, names: list[str]) -> str:
    """To brokers, ISRs, min ISRs (which clears ELRs) and topics."""
    node, name = rng.randrange(1, 5), rng.choice(names)
    what = rng.choice(("fence", "back", "crash", "isr", "clear", "clear all", "anew"))
    match what:
        case "fence":
            cluster.beat(node, want_fence=True)
        case "back":
            cluster.beat(node)
        case "crash":
            cluster.beat(node, want_fence=True)
            cluster.register(node)
        case "isr":
            partition = cluster.partition(name)
            if partition.leader != NOBODY:
                others = [n for n in partition.replicas if n != partition.leader and rng.random() < 0.5]
                cluster.alter(name, (partition.leader, *others))
        case "clear":
            set_config(cluster, (TOPIC_RESOURCE, name), str(rng.randrange(1, 4)))
        case "clear all":
            set_config(cluster, (4, ""), str(rng.randrange(1, 4)))
        case "anew":
            delete(cluster, name)
            cluster.beat(node)
            others = rng.sample([n for n in range(1, 5) if n != node], 2)
            cluster.create(name, (node, *others))
    return what


@pytest.mark.parametrize("seed", range(10))
def test_l1_the_index_of_eligible_replicas_equals_a_new_computation(seed: int) -> None:
    """Kafka keeps an index of its own, and a cleared ELR stays in it."""
    rng, cluster, names = Random(seed), with_elr(4), ["a", "b"]
    for name in names:
        cluster.create(name, (1, 2, 3))
    has_cleared = False
    for _ in range(80):
        was_eligible = any(cluster.partition(name).elr for name in names)
        what = something_happens(cluster, rng, names)
        has_cleared |= was_eligible and what.startswith("clear")
        assert indexed(cluster.image) == recomputed(cluster.image)
    assert has_cleared


def test_l1_a_cleared_elr_does_not_come_back_when_its_topic_is_gone_and_its_broker_crashes() -> None:
    """In Kafka: an exception in the controller, for a topic that is not in the topics map."""
    cluster = with_elr()
    cluster.create("t", (1, 2))
    for _ in range(2):
        cluster.fence(2)
        assert cluster.partition("t").elr == (2,)
        assert set_config(cluster, TOPIC, "2").error_code == E.NONE
        cluster.beat(2)
        cluster.alter("t", (1, 2))
    delete(cluster, "t")
    cluster.fence(2)
    before = len(cluster.log.records)
    assert cluster.register(2).error_code == E.NONE
    (record,) = cluster.log.records[before:]
    assert isinstance(record, r.RegisterBrokerRecord)


# --- L2, L3: replicas


def test_l2_min_isr_counts_by_the_replicas_of_each_partition_and_not_of_the_first() -> None:
    """Partition 0 has one replica, and partition 1 has three: of 2, 1 counts there and 2 here."""
    cluster = with_elr()
    cluster.create("t", (1, 2, 3), (1, 2, 3))
    assert move(cluster, 1) is E.NONE
    assert cluster.partition("t", 0).replicas == (1,)
    cluster.alter("t", (1,), index=1)
    assert cluster.partition("t", 1).elr == (2, 3)


def test_l2_replicas_that_are_only_being_added_do_not_count() -> None:
    """2 replicas become 3, and min ISR is 3: 2 count until the move ends, for the leader and the controller alike."""
    cluster = with_elr(4, **{MIN_ISR: 3})
    cluster.create("t", (1, 2))
    assert move(cluster, 1, 2, 3) is E.NONE
    assert cluster.image.effective_min_isr(cluster.image.topics[cluster.at("t").topic_id], cluster.partition("t")) == 2
    cluster.alter("t", (1,))
    cluster.alter("t", (1, 2))
    assert cluster.partition("t").elr == (), "2 of 2 are in sync"


def test_l3_a_removed_replica_is_not_eligible() -> None:
    """4 is being added and has been in sync, as 2 and 3 have; then the move is cancelled."""
    cluster = with_elr(5, **{MIN_ISR: 3})
    cluster.create("t", (1, 2, 3))
    assert move(cluster, 1, 4, 5) is E.NONE
    cluster.alter("t", (1, 2, 3, 4))
    cluster.alter("t", (1, 4))
    cluster.fence(4)
    assert set(cluster.partition("t").elr) == {2, 3, 4}
    assert move(cluster) is E.NONE
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, set(partition.elr)) == ((1, 2, 3), (1,), {2, 3})


def test_l3_a_cancelled_move_keeps_the_empty_isr_and_the_elr() -> None:
    """Kafka puts the first replica into the ISR, if losses are allowed, and forgets the ELR."""
    cluster = with_elr(4)
    cluster.create("t", (1, 2))
    assert move(cluster, 1, 2, 3) is E.NONE
    cluster.fence(2)
    cluster.fence(1)
    before = cluster.partition("t")
    assert (before.leader, before.isr, set(before.elr)) == (NOBODY, (), {1, 2})
    assert move(cluster) is E.NONE
    after = cluster.partition("t")
    assert (after.leader, after.isr, set(after.elr), after.replicas) == (NOBODY, (), {1, 2}, (1, 2))
    cluster.beat(2)
    assert cluster.partition("t").leader == 2


# --- L4: brokers that are given up


@pytest.mark.parametrize("is_in_sync", [True, False], ids=["in the ISR", "in the ELR"])
def test_l4_an_unregistered_broker_is_neither_in_sync_nor_eligible(is_in_sync: bool) -> None:
    """In Kafka it stays in the ELR, or even moves there; and as it never comes back, it would be waited for."""
    cluster = with_elr()
    cluster.create("t", (1, 2))
    if not is_in_sync:
        cluster.fence(2)
    assert cluster.ask(UnregisterBrokerRequest(broker_id=2)).error_code == E.NONE
    partition = cluster.partition("t")
    assert (partition.isr, partition.elr, partition.leader) == ((1,), (), 1)


# --- L6, L7: another min ISR


def test_l6_a_new_min_isr_keeps_the_last_leader_and_the_eligible_replicas_of_a_partition_without_a_leader() -> None:
    """Nobody commits while nobody leads: whoever was eligible is so by any min ISR."""
    cluster = with_elr()
    cluster.create("t", (1, 2))
    set_config(cluster, TOPIC, "None", key="unclean.recovery.strategy")
    cluster.fence(2)
    cluster.fence(1)
    assert set(cluster.partition("t").elr) == {1, 2}
    assert set_config(cluster, TOPIC, "1").error_code == E.NONE
    partition = cluster.partition("t")
    assert (partition.isr, set(partition.elr), partition.last_known_elr) == ((), {1, 2}, ())
    assert partition.last_known_leader == 1
    assert set_config(cluster, ALL_BROKERS, "2").error_code == E.NONE
    assert set(cluster.partition("t").elr) == {1, 2}
    cluster.beat(2)
    assert (cluster.partition("t").leader, cluster.partition("t").losses) == (2, ())


def governed_config(world: Governed, value: str) -> None:
    """min.insync.replicas of the topic, as the controller decides."""
    config = AlterableConfig(name=MIN_ISR, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="t", configs=(config,))
    plan: Any = plan_alter_configs(IncrementalAlterConfigsRequest(resources=(resource,)), world.basis)
    assert plan.response.responses[0].error_code == E.NONE
    world.decide(plan.records)


def test_l7_a_leader_that_counts_by_an_older_min_isr_shrinks_no_isr_and_commits_nothing_alone() -> None:
    """The answer to its proposal would reach it before the log does. It leads alone by the old number, and would commit
    what the controller believes an eligible replica to have."""
    world = Governed(elr=True)
    world.create(min_insync_replicas="1")
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.deaf = (1,)
    governed_config(world, "2")
    for node in (2, 3):
        world.kill(NodeId(node))
    world.produce(1, 3)
    world.run(90_000)
    assert leading(world, 1).min_isr == 1, "it has not heard"
    assert (world.partition.isr, world.partition.elr) == ((1, 2, 3), ())
    assert world.row(1)[2] == 2, "its high watermark waits for the log"
    world.deaf = ()
    world.catch_up(1)
    world.run(90_000)
    assert leading(world, 1).min_isr == 2
    assert world.partition.isr == (1,) and len(world.partition.elr) > 0
    assert world.row(1)[2] == 2


# --- L10: topics that are gone


def test_l10_a_topic_that_is_deleted_while_its_isr_is_empty_leaves_nothing_in_any_index() -> None:
    """In Kafka the index of directories is cleaned for each member of the ISR, and a directory that fails later finds a
    partition that is in no topic: an exception in the answer to a heartbeat."""
    cluster = Controlled(brokers=2, static={MIN_ISR: 2})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    cluster.assign(1, directory(1, 0), cluster.at("t"))
    cluster.fence(2)
    cluster.fence(1)
    assert (cluster.partition("t").isr, set(cluster.partition("t").elr)) == ((), {1, 2})
    delete(cluster, "t")
    assert not any(cluster.image.hosted.values()) and not any(cluster.image.eligible.values())
    for node in (1, 2):
        cluster.beat(node)
    cluster.lose(1, directory(1, 0))
    assert cluster.image.brokers[NodeId(1)].log_dirs == (directory(1, 1),)
