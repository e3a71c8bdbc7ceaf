"""Brokers whose log directories are cordoned (KIP-1066): they keep what they have, and get nothing new."""

from typing import Any

import pytest
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, Uuid
from strandline.metadata.image import Image
from strandline.metadata.records import BrokerRegistrationChangeRecord
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
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
from strandline.wire.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

E = ErrorCode
DIRECTORY = {node: Uuid(bytes([node]) * 16) for node in range(1, 5)}


def cordon(made: Cluster, node: int, *directories: Uuid, known: bool = True) -> None:
    request = BrokerHeartbeatRequest(
        broker_id=node,
        broker_epoch=made.epochs[node],
        current_metadata_offset=made.log.next_offset - 1,
        cordoned_log_dirs=directories if known else None,
    )
    assert made.ask(request, version=2, connection=made.connection(node)).error_code == E.NONE


def create(made: Cluster, count: int, factor: int) -> Any:
    topic = CreatableTopic(name="t", num_partitions=count, replication_factor=factor)
    (result,) = made.ask(CreateTopicsRequest(topics=(topic,)), version=7).topics
    return result


def used(made: Cluster) -> set[int]:
    found = made.image.topic_named("t")
    assert found is not None
    return {node for partition in found.partitions.values() for node in partition.replicas}


def test_no_new_partition_goes_where_all_directories_are_cordoned() -> None:
    made = Cluster(brokers=4)
    cordon(made, 2, DIRECTORY[2])
    assert create(made, 20, 3).error_code == E.NONE
    assert used(made) == {1, 3, 4}


def test_with_one_directory_left_a_broker_gets_replicas() -> None:
    made = Cluster(brokers=2)
    made.register(3)
    other = Uuid(b"another director")
    made.lives[4] = 1
    answer = made.ask(made.registration(4, log_dirs=(DIRECTORY[4], other)), version=4)
    made.epochs[4] = answer.broker_epoch
    made.beat(4)
    cordon(made, 4, other)
    assert create(made, 20, 2).error_code == E.NONE
    assert 4 in used(made)


def test_too_few_brokers_that_take_replicas_are_said_to_be_cordoned() -> None:
    made = Cluster(brokers=2)
    cordon(made, 2, DIRECTORY[2])
    refused = create(made, 1, 2)
    assert refused.error_code == E.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s) are registered or some brokers have all their log directories cordoned" in (
        refused.error_message
    )
    cordon(made, 1, DIRECTORY[1])
    assert create(made, 1, 1).error_code == E.INVALID_REPLICATION_FACTOR


MESSAGE = "The manual partition assignment includes broker 2, but all its log directories are cordoned."


def test_neither_by_hand_nor_by_a_reassignment() -> None:
    made = Cluster(brokers=4)
    made.create("old", (1, 3))
    cordon(made, 2, DIRECTORY[2])
    rows = (CreatableReplicaAssignment(partition_index=0, broker_ids=(1, 2)),)
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=rows)
    (result,) = made.ask(CreateTopicsRequest(topics=(topic,)), version=7).topics
    assert (result.error_code, result.error_message) == (E.INVALID_REPLICA_ASSIGNMENT, MESSAGE)
    row = ReassignablePartition(partition_index=0, replicas=(1, 2))
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="old", partitions=(row,)),))
    moved = made.ask(request, version=1).responses[0].partitions[0]
    assert (moved.error_code, moved.error_message) == (E.INVALID_REPLICA_ASSIGNMENT, MESSAGE)


def test_what_is_there_goes_on_as_before() -> None:
    made = Cluster(brokers=2)
    made.create("t", (2, 1))
    cordon(made, 2, DIRECTORY[2])
    assert (made.partition("t").leader, made.partition("t").isr) == (2, (2, 1))


def test_only_a_change_is_written_and_it_can_be_taken_back() -> None:
    made = Cluster(brokers=2)

    def changes() -> int:
        return sum(
            isinstance(record, BrokerRegistrationChangeRecord) and record.cordoned_log_dirs is not None
            for record in made.log.records
        )

    cordon(made, 2)
    assert changes() == 0
    cordon(made, 2, DIRECTORY[2])
    cordon(made, 2, DIRECTORY[2])
    cordon(made, 2, known=False)  # a broker that has not read the metadata yet
    assert changes() == 1
    assert not made.image.brokers[NodeId(2)].takes_replicas
    cordon(made, 2)
    assert changes() == 2
    assert made.image.brokers[NodeId(2)].takes_replicas


def test_it_is_in_a_snapshot_and_a_new_incarnation_says_it_anew() -> None:
    made = Cluster(brokers=2)
    cordon(made, 2, DIRECTORY[2])
    restored = Image()
    restored.apply_all(made.image.records())
    assert restored.brokers == made.image.brokers
    made.fence(2)
    made.join(2)
    assert made.image.brokers[NodeId(2)].cordoned == ()


@pytest.mark.parametrize(
    ("broker", "value", "message"),
    [
        ("", "/d", "Cannot update these configs at default cluster level, broker id must be specified"),
        ("1", "*,/d", "when it is *, it must not contain other values"),
        ("1", "/d,/d", "values must not be duplicated."),
        ("1", "*", ""),
        ("1", "", ""),
    ],
)
def test_it_is_set_for_one_broker_while_that_runs(broker: str, value: str, message: str) -> None:
    made = Cluster(brokers=1)
    config = AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name=broker, configs=(config,))
    (row,) = made.ask(IncrementalAlterConfigsRequest(resources=(resource,)), version=1).responses
    assert row.error_code == (E.INVALID_REQUEST if message else E.NONE)
    assert message in (row.error_message or "")
