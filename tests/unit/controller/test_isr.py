"""AlterPartition: one row per refusal, and what a proposal makes."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.metadata.image import RECOVERED, RECOVERING
from strandline.metadata.records import PartitionChangeRecord
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest, BrokerState

E = ErrorCode


def cluster() -> Cluster:
    """Broker 4 is fenced, and is a replica of nothing."""
    made = Cluster(brokers=4)
    made.fence(4)
    made.create("t", (1, 2, 3), (1, 2, 4))
    return made


REFUSED: list[tuple[str, tuple[int, ...], dict[str, Any], ErrorCode]] = [
    ("unknown topic id", (1,), {"at": TopicIdPartition(Uuid(b"x" * 16), 0)}, E.UNKNOWN_TOPIC_ID),
    ("a leader that is ahead", (1,), {"leader_epoch": 1}, E.NOT_CONTROLLER),
    ("a partition epoch that is ahead", (1,), {"partition_epoch": 1}, E.NOT_CONTROLLER),
    ("an old leader", (1,), {"leader_epoch": -1}, E.FENCED_LEADER_EPOCH),
    ("not the leader", (1, 2), {"broker_id": 2}, E.INVALID_REQUEST),
    ("an old partition epoch", (1,), {"partition_epoch": -1}, E.INVALID_UPDATE_VERSION),
    ("an empty ISR", (), {}, E.INVALID_REQUEST),
    ("without the leader", (2, 3), {}, E.INVALID_REQUEST),
    ("a broker twice", (1, 2, 2), {}, E.INVALID_REQUEST),
    ("not a replica", (1, 4), {}, E.INVALID_REQUEST),
    ("recovering again", (1,), {"leader_recovery_state": RECOVERING}, E.INVALID_REQUEST),
    ("an unknown recovery state", (1,), {"leader_recovery_state": 7}, E.INVALID_REQUEST),
    (
        "a follower of another incarnation (KIP-903)",
        (1, 2),
        {"new_isr_with_epochs": (BrokerState(broker_id=1), BrokerState(broker_id=2, broker_epoch=3))},
        E.INELIGIBLE_REPLICA,
    ),
]


@each(("title", "isr", "fields", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_proposal_is_refused(title: str, isr: tuple[int, ...], fields: dict[str, Any], error: ErrorCode) -> None:
    made = cluster()
    before = len(made.log.records)
    assert made.alter("t", isr, **fields).error_code == error
    assert len(made.log.records) == before


def test_an_unknown_partition() -> None:
    made = cluster()
    at = TopicIdPartition(made.image.topic_ids["t"], 9)
    assert made.alter("t", (1,), at=at).error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_stale_leader_is_refused_as_a_whole() -> None:
    made = cluster()
    answer = made.ask(made.proposal("t", (1,), broker_epoch=3), version=3)
    assert (answer.error_code, answer.topics) == (E.STALE_BROKER_EPOCH, ())
    assert made.ask(AlterPartitionRequest(broker_id=9, broker_epoch=1)).error_code == E.STALE_BROKER_EPOCH


@pytest.mark.parametrize("version", [2, 3])
def test_a_fenced_broker_may_not_enter_an_isr(version: int) -> None:
    made = cluster()
    assert made.alter("t", (1, 2, 4), index=1, version=version).error_code == E.INELIGIBLE_REPLICA


def test_a_broker_that_shuts_down_may_not_enter_an_isr() -> None:
    made = cluster()
    made.create("led", (2, 1))
    made.beat(2, want_shut_down=True)
    assert made.image.brokers[NodeId(2)].in_controlled_shutdown
    assert made.alter("t", (1, 2, 3)).error_code == E.INELIGIBLE_REPLICA


def test_a_follower_that_was_restarted_after_it_caught_up_is_not_admitted() -> None:
    """T14: the proposal was made before the restart, and names the old incarnation."""
    made = cluster()
    made.fence(3)
    old = made.epochs[3]
    made.join(3)
    states = tuple(BrokerState(broker_id=n, broker_epoch=e) for n, e in ((1, -1), (2, -1), (3, old)))
    assert made.alter("t", (1, 2, 3), new_isr_with_epochs=states).error_code == E.INELIGIBLE_REPLICA
    assert made.alter("t", (1, 2, 3)).error_code == E.NONE


@pytest.mark.parametrize("version", [2, 3])
def test_shrink_and_expand(version: int) -> None:
    made = cluster()
    shrunk = made.alter("t", (1, 3), version=version)
    assert (shrunk.error_code, shrunk.leader_id, shrunk.leader_epoch) == (E.NONE, 1, 0)
    assert (shrunk.isr, shrunk.partition_epoch, shrunk.leader_recovery_state) == ((1, 3), 1, RECOVERED)
    grown = made.alter("t", (1, 3, 2), version=version)
    assert (grown.isr, grown.partition_epoch, grown.leader_epoch) == ((1, 2, 3), 2, 0)


def test_the_isr_as_it_is_writes_nothing() -> None:
    made = cluster()
    before = len(made.log.records)
    answer = made.alter("t", (1, 2, 3))
    assert (answer.error_code, answer.partition_epoch) == (E.NONE, 0)
    assert len(made.log.records) == before


def test_a_partition_twice_in_a_request_is_judged_one_after_the_other() -> None:
    made = cluster()
    one = made.proposal("t", (1, 2))
    two = made.proposal("t", (1,))
    request = AlterPartitionRequest(broker_id=1, broker_epoch=made.epochs[1], topics=(one.topics[0], two.topics[0]))
    answer = made.ask(request, version=3)
    assert [t.partitions[0].error_code for t in answer.topics] == [E.NONE, E.INVALID_UPDATE_VERSION]
    assert made.partition("t").isr == (1, 2)


def test_a_reassignment_that_replaces_the_leader_ends_with_its_own_proposal() -> None:
    made = Cluster(brokers=3)
    made.create("t", (1, 2))
    at = made.at("t")
    made.controller.write(
        [
            PartitionChangeRecord(
                partition_id=at.partition,
                topic_id=at.topic_id,
                replicas=(1, 2, 3),
                adding_replicas=(3,),
                removing_replicas=(1,),
            )
        ],
        made.now,
    )
    assert made.alter("t", (1, 2, 3)).error_code == E.NEW_LEADER_ELECTED
    partition = made.partition("t")
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((2, 3), (2, 3), 2, 1)


def test_a_recovering_leader_stays_alone_until_it_says_recovered() -> None:
    made = Cluster(brokers=2, static={"unclean.leader.election.enable": True})
    made.create("t", (1, 2))
    made.alter("t", (1,))
    made.fence(1)
    partition = made.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), RECOVERING)
    made.join(1)
    assert made.alter("t", (1, 2), leader_recovery_state=RECOVERING).error_code == E.INVALID_REQUEST
    assert made.alter("t", (2,), leader_recovery_state=RECOVERED).leader_recovery_state == RECOVERED
    assert made.alter("t", (1, 2)).error_code == E.NONE
