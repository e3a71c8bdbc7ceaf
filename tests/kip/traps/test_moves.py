"""Traps T19, T40 and T45: partitions that are given other replicas. Each test is named by its trap."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.metadata.image import RECOVERING, TOPIC_RESOURCE
from strandline.metadata.records import ConfigRecord, FeatureLevelRecord
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)

UNCLEAN_ALLOWED = ConfigRecord(
    resource_type=TOPIC_RESOURCE, resource_name="t", name="unclean.leader.election.enable", value="true"
)


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


def test_t40_a_replica_that_a_cancel_removes_is_not_eligible() -> None:
    """The end of a move that is not cancelled leaves nobody eligible: its ISR is large enough."""
    made = cluster(1, 2, 3, min_isr=3, elr=True)
    assert move(made, 1, 4, 5) is E.NONE
    made.alter("t", (1, 2, 3, 4))
    for node in (4, 3, 2):
        made.fence(node)
    made.join(4)
    made.alter("t", (1, 4))
    made.fence(4)
    assert (made.partition("t").isr, set(made.partition("t").elr)) == ((1,), {2, 3, 4})
    assert move(made) is E.NONE
    assert (made.partition("t").replicas, set(made.partition("t").elr)) == ((1, 2, 3), {2, 3})


def test_t40_a_cancel_must_leave_an_isr_that_carries_the_replicas_of_before() -> None:
    made = cluster(1, 2, 3)
    assert move(made, 1, 4, 5) is E.NONE
    made.alter("t", (1, 4))
    assert move(made) is E.INVALID_REPLICA_ASSIGNMENT
    assert is_moving(made)
    made.alter("t", (1, 2, 4))
    assert move(made) is E.NONE
    assert (made.partition("t").replicas, made.partition("t").isr) == ((1, 2, 3), (1, 2))


def test_t40_a_cancel_takes_no_eligible_replica_away_that_min_isr_needs() -> None:
    """What was committed lies on 1 and 4 alone. If 4 were a replica no more, it would lie on one."""
    made = cluster(1, 2, 3, elr=True)
    assert move(made, 4, 2, 3) is E.NONE
    made.alter("t", (1, 4))
    made.fence(4)
    assert (made.partition("t").isr, made.partition("t").elr) == ((1,), (4,))
    assert move(made) is E.INVALID_REPLICA_ASSIGNMENT
    made.alter("t", (1, 2))
    assert move(made) is E.NONE
    assert (set(made.partition("t").replicas), made.partition("t").elr) == ({1, 2, 3}, ())


def test_t40_a_cancel_leaves_a_replica_that_can_lead_without_loss() -> None:
    """The only one that is eligible is being added: to cancel is to lose all."""
    made = cluster(1, 2, 3, elr=True, min_isr=1)
    assert move(made, 4, 5, 6) is E.NONE
    made.alter("t", (1, 4))
    made.fence(1)
    made.fence(4)
    assert (made.partition("t").isr, made.partition("t").elr) == ((), (4,))
    assert move(made) is E.INVALID_REPLICA_ASSIGNMENT
    made.beat(4)  # it is back, with all that it had
    made.alter("t", (2, 4))
    assert move(made) is E.NONE
    assert made.partition("t").leader == 2


@pytest.mark.parametrize("elr", [False, True])
def test_t40_where_loss_is_allowed_a_cancel_waits_for_somebody_to_lead(elr: bool) -> None:
    """Without a leader the ISR would be empty, and nothing would say that records were lost."""
    made = cluster(1, 2, 3, min_isr=1, elr=elr)
    made.controller.write([UNCLEAN_ALLOWED], made.now)
    assert move(made, 4, 5, 3) is E.NONE
    made.alter("t", (1, 4))
    for node in (1, 2, 3):
        made.fence(node)
    assert (made.partition("t").leader, made.partition("t").isr) == (4, (4,))
    assert move(made) is E.INVALID_REPLICA_ASSIGNMENT
    made.join(2)
    assert move(made) is E.NONE
    new = made.partition("t")
    assert (new.leader, new.isr, new.leader_recovery_state) == (2, (2,), RECOVERING)


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
