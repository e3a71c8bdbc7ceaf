"""Traps T19, T40 and T45: partitions that are given other replicas. Each test is named by its trap."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.metadata.records import FeatureLevelRecord
from strandline.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def cluster(*assignment: int, min_isr: int = 2, elr: bool = False) -> Cluster:
    made = Cluster(brokers=6, static={"min.insync.replicas": min_isr})
    if elr:
        made.controller.write([ELR_ON], made.now)
    made.create("t", assignment)
    return made


def move(made: Cluster, *replicas: int) -> ErrorCode:
    """To these replicas; to none means cancel."""
    row = ReassignablePartition(partition_index=0, replicas=replicas or None)
    topic = ReassignableTopic(name="t", partitions=(row,))
    answer = made.ask(AlterPartitionReassignmentsRequest(topics=(topic,)), version=1)
    return E(answer.responses[0].partitions[0].error_code)


def is_moving(made: Cluster) -> bool:
    partition = made.partition("t")
    return bool(partition.adding_replicas or partition.removing_replicas)


def waits_for(made: Cluster) -> Any:
    answer = made.ask(ListPartitionReassignmentsRequest(topics=None))
    return [row.waits_for for topic in answer.topics for row in topic.partitions]


def test_t19_a_move_after_which_min_isr_counts_more_begins_a_leader_epoch() -> None:
    """Else the leader would hear of the end by the answer to its proposal, which names no replicas, and go on
    committing by the count of before."""
    made = cluster(1, 2, min_isr=3)
    assert move(made, 1, 2, 3) is E.NONE
    before = made.partition("t")
    made.alter("t", (1, 2, 3))
    assert not is_moving(made)
    assert made.partition("t").leader_epoch == before.leader_epoch + 1


def test_t40_a_move_does_not_end_with_an_isr_that_does_not_carry_its_target() -> None:
    """KAFKA-15665: of the ISR only the replicas that were added would stay, and they are too few."""
    made = cluster(1, 2, 3, 4, min_isr=3)
    for node in (3, 4):
        made.fence(node)
    assert move(made, 3, 4, 5, 6) is E.NONE
    made.alter("t", (1, 2, 5, 6))
    assert is_moving(made)
    made.join(3)
    made.alter("t", (1, 2, 3, 5, 6))
    assert not is_moving(made), "one of the target that was there before and is down is not waited for (KAFKA-19975)"
    assert made.partition("t").isr == (3, 5, 6)


def test_t40_all_that_are_added_must_be_in_sync() -> None:
    made = cluster(1, 2, 3)
    assert move(made, 3, 4, 5) is E.NONE
    made.alter("t", (1, 2, 3, 4))
    assert is_moving(made)
    made.alter("t", (1, 2, 3, 4, 5))
    assert not is_moving(made)


def test_t40_the_elr_holds_replicas_of_the_target_only() -> None:
    made = cluster(1, 2, 3, min_isr=3, elr=True)
    made.fence(1)
    assert made.partition("t").elr == (1,)
    assert move(made, 2, 3, 4) is E.NONE
    made.alter("t", (2, 3, 4))
    assert not is_moving(made)
    assert made.partition("t").elr == ()
    made.fence(4)
    assert made.partition("t").elr == (4,)


def test_t40_a_cancel_must_leave_an_isr_that_carries_the_replicas_of_before() -> None:
    made = cluster(1, 2, 3)
    assert move(made, 1, 4, 5) is E.NONE
    made.alter("t", (1, 4))
    assert move(made) is E.INVALID_REPLICA_ASSIGNMENT
    assert is_moving(made)
    made.alter("t", (1, 2, 4))
    assert move(made) is E.NONE
    assert (made.partition("t").replicas, made.partition("t").isr) == ((1, 2, 3), (1, 2))


@pytest.mark.parametrize("node", [2, 3])
def test_t45_a_move_that_waits_says_for_which_replica(node: int) -> None:
    """2 replicas become 1 while the one that stays is out of sync: without the reason, tools would ask for ever."""
    made = cluster(2, 3)
    made.fence(node)
    assert move(made, node) is E.NONE
    (why,) = waits_for(made)
    assert str(node) in why, why
    made.join(node)
    made.alter("t", (2, 3))
    assert waits_for(made) == []
    assert made.partition("t").replicas == (node,)
