"""AlterPartitionReassignments: how a move begins, ends, is replaced and cancelled, and what is refused (KIP-455)."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.metadata.framing import decode_record, encode_record
from strandline.metadata.image import Image, Partition
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

E = ErrorCode


def cluster(*assignment: tuple[int, ...], min_isr: int = 2, elr: bool = True) -> Cluster:
    made = Cluster(brokers=5, static={"min.insync.replicas": min_isr}, elr=elr)
    made.create("t", *(assignment or ((1, 2, 3),)))
    return made


def request(replicas: tuple[int, ...] | None, topic: str = "t", index: int = 0, **fields: Any) -> Any:
    row = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=topic, partitions=(row,)),), **fields)


def move(made: Cluster, replicas: tuple[int, ...] | None, **more: Any) -> tuple[ErrorCode, str | None]:
    answer = made.ask(request(replicas, **more), version=1)
    assert answer.error_code == E.NONE
    result = answer.responses[0].partitions[0]
    return E(result.error_code), result.error_message


def sets(partition: Partition) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def test_a_move_begins_with_all_replicas_and_the_leader_stays_in_its_epoch() -> None:
    made = cluster()
    assert move(made, (4, 2, 3)) == (E.NONE, None)
    new = made.partition("t")
    assert sets(new) == ((4, 2, 3, 1), (4,), (1,))
    assert (new.leader, new.leader_epoch, new.isr) == (1, 0, (1, 2, 3))
    assert new.directories[0] == made.image.brokers[4].log_dirs[0]  # type: ignore[index]


def test_a_move_ends_when_all_that_are_added_are_in_sync() -> None:
    made = cluster()
    move(made, (4, 5, 3))
    made.alter("t", (1, 2, 3, 4))
    assert sets(made.partition("t")) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))
    made.alter("t", (1, 2, 3, 4, 5))
    new = made.partition("t")
    assert sets(new) == ((4, 5, 3), (), ())
    assert (set(new.isr), new.leader, new.leader_epoch) == ({3, 4, 5}, 4, 1)


def test_a_mere_change_of_order_happens_at_once() -> None:
    made = cluster()
    move(made, (2, 1, 3))
    new = made.partition("t")
    assert sets(new) == ((2, 1, 3), (), ())
    assert (new.leader, new.leader_epoch) == (1, 0)


def test_fewer_replicas_at_once_if_all_that_stay_are_in_sync() -> None:
    made = cluster()
    move(made, (2, 3))
    assert sets(made.partition("t")) == ((2, 3), (), ())
    assert made.partition("t").leader == 2


def test_fewer_replicas_wait_until_all_that_stay_are_in_sync() -> None:
    """KAFKA-14099's case: by the end of the move alone the ISR would shrink."""
    made = cluster((1, 2, 3, 4), min_isr=1)
    made.fence(4)
    move(made, (3, 4))
    assert sets(made.partition("t")) == ((3, 4, 1, 2), (), (1, 2))


def test_the_replicas_that_there_are_change_nothing() -> None:
    made = cluster()
    before = len(made.log.records)
    assert move(made, (1, 2, 3)) == (E.NONE, None)
    assert len(made.log.records) == before


def test_another_move_in_the_middle_starts_from_what_there_was_before_the_first() -> None:
    made = cluster()
    move(made, (4, 2, 3))
    move(made, (5, 2, 3))
    assert sets(made.partition("t")) == ((5, 2, 3, 1), (5,), (1,))


def test_a_replica_that_both_moves_add_is_still_waited_for() -> None:
    made = cluster()
    move(made, (4, 2, 3))
    move(made, (4, 5, 3))
    assert sets(made.partition("t")) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))


def test_cancelled_the_partition_is_as_it_was() -> None:
    made = cluster()
    move(made, (4, 2, 3))
    assert move(made, None) == (E.NONE, None)
    new = made.partition("t")
    assert sets(new) == ((1, 2, 3), (), ())
    assert new.original_replicas == ()
    assert (new.leader, new.leader_epoch) == (1, 1)  # replica 4 must not go on under the epoch in which it was one


def test_cancelled_the_order_is_that_of_before_the_first_of_several_moves() -> None:
    """The first replica is the preferred leader. Who starts from a snapshot knows the order too."""
    made = cluster((3, 1, 2))
    made.alter("t", (3, 1))
    move(made, (4, 2, 1))
    move(made, (5, 1, 4))
    assert made.partition("t").original_replicas == (3, 1, 2)
    restored = Image()
    restored.apply_all([decode_record(encode_record(record)) for record in made.image.records()])
    assert restored.topics == made.image.topics
    assert move(made, None) == (E.NONE, None)
    assert sets(made.partition("t")) == ((3, 1, 2), (), ())


def test_a_move_that_ends_forgets_what_there_was_before() -> None:
    made = cluster()
    move(made, (4, 2, 3))
    made.alter("t", (1, 2, 3, 4))
    assert sets(made.partition("t")) == ((4, 2, 3), (), ())
    assert made.partition("t").original_replicas == ()


def test_a_leader_that_was_added_hands_over_when_it_goes() -> None:
    made = cluster()
    move(made, (4, 5, 3))
    made.alter("t", (1, 2, 3, 4))
    for node in (1, 2):
        made.fence(node)
    assert made.partition("t").leader == 4
    made.join(1)
    assert made.alter("t", (4, 3, 1)).error_code == E.NONE
    assert move(made, None) == (E.NONE, None)
    assert made.partition("t").leader in (1, 3)
    assert set(made.partition("t").isr) == {1, 3}


def test_a_cancel_that_would_leave_too_few_in_sync_is_refused() -> None:
    """KIP-966; T40: also on cancel what stays must carry min ISR."""
    made = cluster()
    move(made, (4, 5, 3))
    made.alter("t", (1, 4))
    error, message = move(made, None)
    assert error is E.INVALID_REPLICA_ASSIGNMENT
    assert message is not None and "only [1] would be left, and min.insync.replicas is 2" in message
    assert made.partition("t").adding_replicas == (4, 5)


@pytest.mark.parametrize("elr", [True, False], ids=["others are eligible", "nobody else is"])
def test_a_cancel_that_costs_the_isr_nothing_is_always_possible(elr: bool) -> None:
    """T30: the way out of a move that is stuck, also under min ISR."""
    made = cluster(elr=elr)
    move(made, (4, 5, 3))
    made.alter("t", (1,))
    assert move(made, None) == (E.NONE, None)
    assert made.partition("t").isr == (1,)


def test_a_cancel_that_would_leave_nobody_in_sync_is_refused() -> None:
    made = cluster(min_isr=1)
    move(made, (4, 5))
    made.alter("t", (1, 4))
    made.fence(1)
    assert made.partition("t").isr == (4,)
    error, message = move(made, None)
    assert error is E.INVALID_REPLICA_ASSIGNMENT
    assert message == (
        "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    )


REFUSED: list[tuple[str, Any, ErrorCode, str]] = [
    ("no such topic", request((1,), topic="x"), E.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named x."),
    ("no such partition", request((1,), index=7), E.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:7."),
    (
        "no replicas",
        request(()),
        E.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    (
        "a broker that does not exist",
        request((1, 9)),
        E.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    (
        "a broker twice",
        request((1, 1)),
        E.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes the broker 1 more than once.",
    ),
    (
        "another number of replicas, where that is not wanted (KIP-860)",
        request((1, 2), allow_replication_factor_change=False),
        E.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 3 to 2",
    ),
    (
        "nothing to cancel",
        request(None),
        E.NO_REASSIGNMENT_IN_PROGRESS,
        "No partition reassignment is in progress.",
    ),
]


@pytest.mark.parametrize(("title", "asked", "error", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused_changes_nothing(title: str, asked: Any, error: ErrorCode, message: str) -> None:
    made = cluster()
    before = len(made.log.records)
    answer = made.ask(asked, version=1)
    result = answer.responses[0].partitions[0]
    assert (E(result.error_code), result.error_message) == (error, message)
    assert len(made.log.records) == before


def test_each_partition_of_a_request_succeeds_or_fails_alone() -> None:
    made = cluster((1, 2, 3), (2, 3, 4))
    rows = (
        ReassignablePartition(partition_index=0, replicas=(9,)),
        ReassignablePartition(partition_index=1, replicas=(5, 3, 4)),
        ReassignablePartition(partition_index=1, replicas=(1, 3, 4)),
    )
    answer = made.ask(
        AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=rows),)), version=1
    )
    codes = [E(row.error_code) for row in answer.responses[0].partitions]
    assert codes == [E.INVALID_REPLICA_ASSIGNMENT, E.NONE, E.INVALID_REQUEST]
    assert made.partition("t", 1).adding_replicas == (5,)


def test_a_lower_min_isr_ends_what_waited_for_it() -> None:
    made = cluster(min_isr=3)
    move(made, (4, 2, 3))
    made.alter("t", (1, 2, 4))
    assert made.partition("t").adding_replicas == (4,)
    row = AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(row,))
    made.ask(IncrementalAlterConfigsRequest(resources=(resource,)), version=1)
    assert sets(made.partition("t")) == ((4, 2, 3), (), ())


# --- what goes on


def listed(made: Cluster, *topics: tuple[str, tuple[int, ...]]) -> list[Any]:
    rows = tuple(ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics)
    answer = made.ask(ListPartitionReassignmentsRequest(topics=rows or None))
    return [(topic.name, *topic.partitions) for topic in answer.topics]


def test_moves_are_listed_with_what_they_wait_for() -> None:
    """T45."""
    made = cluster((1, 2, 3), (2, 3, 4))
    assert listed(made) == []
    move(made, (4, 5, 3))
    made.fence(5)
    [(name, row)] = listed(made)
    assert (name, row.partition_index, row.replicas) == ("t", 0, (4, 5, 3, 1, 2))
    assert (row.adding_replicas, row.removing_replicas) == ((4, 5), (1, 2))
    assert row.waits_for == (
        "replica 4 is not in sync; replica 5 is not in sync, and its broker is fenced or shuts down; of the replicas"
        " that stay [3] are in sync, and min.insync.replicas is 2"
    )


def test_only_those_that_are_asked_for() -> None:
    made = cluster((1, 2, 3), (2, 3, 4))
    move(made, (4, 2, 3))
    move(made, (5, 3, 4), index=1)
    assert [row.partition_index for row in listed(made, ("t", (1, 9)), ("x", (0,)))[0][1:]] == [1]
    assert len(listed(made)[0]) == 3
