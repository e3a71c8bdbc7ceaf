"""CreateTopics, DeleteTopics, CreatePartitions: what they make, and one row per refusal."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, Uuid
from strandline.metadata.image import TOPIC_RESOURCE
from strandline.wire.messages.topics.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from strandline.wire.messages.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState

E = ErrorCode


def creatable(name: str, partitions: int = -1, factor: int = -1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


def create(cluster: Cluster, *topics: CreatableTopic, validate_only: bool = False) -> Any:
    return cluster.ask(CreateTopicsRequest(topics=topics, validate_only=validate_only), version=7).topics


def assigned(*lists: tuple[int, ...], start: int = 0) -> tuple[CreatableReplicaAssignment, ...]:
    return tuple(CreatableReplicaAssignment(partition_index=i, broker_ids=b) for i, b in enumerate(lists, start))


def config(name: str, value: str | None) -> tuple[CreatableTopicConfig, ...]:
    return (CreatableTopicConfig(name=name, value=value),)


MANUAL = "The manual partition assignment includes"
CREATE_REFUSED = [
    ("it exists", creatable("old"), E.TOPIC_ALREADY_EXISTS, "Topic 'old' already exists."),
    (
        "more replicas than brokers",
        creatable("t", 1, 4),
        E.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
        "only 3 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    (
        "no replicas",
        creatable("t", 1, 0),
        E.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        "no partitions",
        creatable("t", 0, 1),
        E.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    ("fewer than the default", creatable("t", -2, 1), E.INVALID_PARTITIONS, None),
    ("too many partitions", creatable("t", 10_001, 1), E.POLICY_VIOLATION, None),
    ("no name", creatable(""), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    ("a dot", creatable("."), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' is not allowed"),
    ("two dots", creatable(".."), E.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
    ("250 letters", creatable("a" * 250), E.INVALID_TOPIC_EXCEPTION, None),
    ("an illegal letter", creatable("a/b"), E.INVALID_TOPIC_EXCEPTION, None),
    ("a letter beyond ASCII", creatable("ä"), E.INVALID_TOPIC_EXCEPTION, None),
    ("the metadata log", creatable("__cluster_metadata"), E.INVALID_TOPIC_EXCEPTION, None),
    (
        "a name that its metric shares",
        creatable("a_b"),
        E.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topic: a.b",
    ),
    ("an unknown configuration", creatable("t", configs=config("no.such", "1")), E.INVALID_CONFIG, None),
    ("a bad value", creatable("t", configs=config("retention.ms", "soon")), E.INVALID_CONFIG, None),
    (
        "a null value",
        creatable("t", configs=config("retention.ms", None)),
        E.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms",
    ),
    ("a configuration twice", creatable("t", configs=config("retention.ms", "1") * 2), E.INVALID_REQUEST, None),
    ("assignment and factor", creatable("t", factor=1, assignments=assigned((1,))), E.INVALID_REQUEST, None),
    ("assignment and count", creatable("t", partitions=1, assignments=assigned((1,))), E.INVALID_REQUEST, None),
    ("a gap", creatable("t", assignments=assigned((1,), start=1)), E.INVALID_REPLICA_ASSIGNMENT, None),
    ("a partition twice", creatable("t", assignments=assigned((1,)) * 2), E.INVALID_REPLICA_ASSIGNMENT, None),
    (
        "an empty assignment",
        creatable("t", assignments=assigned(())),
        E.INVALID_REPLICA_ASSIGNMENT,
        f"{MANUAL} an empty replica list.",
    ),
    (
        "an unknown broker",
        creatable("t", assignments=assigned((1, 9))),
        E.INVALID_REPLICA_ASSIGNMENT,
        f"{MANUAL} broker 9, but no such broker is registered.",
    ),
    (
        "a broker twice",
        creatable("t", assignments=assigned((1, 1))),
        E.INVALID_REPLICA_ASSIGNMENT,
        f"{MANUAL} the broker 1 more than once.",
    ),
    (
        "factors that differ",
        creatable("t", assignments=assigned((1,), (1, 2))),
        E.INVALID_REPLICA_ASSIGNMENT,
        f"{MANUAL} a partition with 2 replica(s), but this is not consistent with previous partitions, "
        "which have 1 replica(s).",
    ),
    (
        "nobody alive",
        creatable("t", assignments=assigned((3,))),
        E.INVALID_REPLICA_ASSIGNMENT,
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
        "shutdown.",
    ),
]


@each(("title", "topic", "error", "message"), CREATE_REFUSED, ids=[r[0] for r in CREATE_REFUSED])
@each("validate_only", [False, True])
def test_creation_is_refused(
    title: str, topic: CreatableTopic, error: ErrorCode, message: str | None, validate_only: bool
) -> None:
    cluster = Cluster(brokers=3)
    cluster.fence(3)
    cluster.create("old", (1,))
    cluster.create("a.b", (1,))
    before = len(cluster.log.records)
    (result,) = create(cluster, topic, validate_only=validate_only)
    assert result.error_code == error, result
    assert message is None or result.error_message == message
    assert result.error_message
    assert len(cluster.log.records) == before


def test_all_brokers_fenced() -> None:
    cluster = Cluster(brokers=1)
    cluster.fence(1)
    (result,) = create(cluster, creatable("t"))
    assert (result.error_code, result.error_message) == (
        E.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log "
        "directories cordoned.",
    )


def test_a_topic_is_created_with_defaults_and_says_what_it_is() -> None:
    cluster = Cluster(brokers=1, static={"log.retention.hours": 2})
    (result,) = create(cluster, creatable("t", configs=config("cleanup.policy", "compact")))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (E.NONE, 1, 1)
    assert result.topic_id == cluster.image.topic_ids["t"]
    shown = {c.name: (c.value, c.config_source) for c in result.configs}
    assert shown["cleanup.policy"] == ("compact", 1)
    assert shown["retention.ms"] == ("7200000", 4)
    assert shown["min.insync.replicas"] == ("1", 3)  # the cluster has one, in its metadata
    assert cluster.image.topic_config("t", "cleanup.policy", {}) == ("compact",)
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((1,), (1,), 1, 0)
    assert partition.directories == (cluster.image.brokers[1].log_dirs[0],)


def test_fenced_replicas_are_not_in_the_first_isr() -> None:
    cluster = Cluster(brokers=3)
    cluster.fence(1)
    cluster.create("t", (1, 2, 3))
    assert (cluster.partition("t").isr, cluster.partition("t").leader) == ((2, 3), 2)


def test_validate_only_creates_nothing() -> None:
    cluster = Cluster(brokers=1)
    before = len(cluster.log.records)
    (result,) = create(cluster, creatable("t", 3, 1), validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id) == (E.NONE, 3, ZERO_UUID)
    assert len(cluster.log.records) == before


def test_topics_of_one_request_fail_alone() -> None:
    cluster = Cluster(brokers=1)
    results = create(
        cluster, creatable("twice"), creatable("good"), creatable("twice"), creatable("a.b"), creatable("a_b")
    )
    assert [(r.name, r.error_code) for r in results] == [
        ("twice", E.INVALID_REQUEST),
        ("good", E.NONE),
        ("twice", E.INVALID_REQUEST),
        ("a.b", E.NONE),
        ("a_b", E.INVALID_TOPIC_EXCEPTION),
    ]
    assert sorted(cluster.image.topic_ids) == ["a.b", "good"]


def test_the_partitions_of_all_topics_of_a_request_are_counted() -> None:
    results = create(Cluster(brokers=1), creatable("a", 6_000, 1), creatable("b", 6_000, 1), creatable("c", 4_000, 1))
    assert [r.error_code for r in results] == [E.NONE, E.POLICY_VIOLATION, E.NONE]


# --- delete


def delete(cluster: Cluster, *states: DeleteTopicState) -> Any:
    return cluster.ask(DeleteTopicsRequest(topics=states), version=6).responses


def test_a_topic_is_deleted_by_name_or_by_id_with_its_configuration() -> None:
    cluster = Cluster(brokers=1)
    create(cluster, creatable("a", configs=config("retention.ms", "1")), creatable("b"))
    a, b = cluster.image.topic_ids["a"], cluster.image.topic_ids["b"]
    results = delete(cluster, DeleteTopicState(name="a"), DeleteTopicState(topic_id=b))
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [("a", a, E.NONE), ("b", b, E.NONE)]
    assert not cluster.image.topics and not [name for kind, name in cluster.image.configs if kind == TOPIC_RESOURCE]
    cluster.create("a", (1,))
    assert cluster.image.topic_ids["a"] != a


def test_old_versions_delete_by_name() -> None:
    cluster = Cluster(brokers=1)
    cluster.create("a", (1,))
    results = cluster.ask(DeleteTopicsRequest(topic_names=("a", "b")), version=5).responses
    assert [(r.name, r.error_code) for r in results] == [("a", E.NONE), ("b", E.UNKNOWN_TOPIC_OR_PARTITION)]


def test_deletion_is_refused() -> None:
    cluster = Cluster(brokers=1)
    cluster.create("t", (1,))
    topic_id = cluster.image.topic_ids["t"]
    rows = [
        ((DeleteTopicState(name="x"),), E.UNKNOWN_TOPIC_OR_PARTITION),
        ((DeleteTopicState(topic_id=Uuid(b"x" * 16)),), E.UNKNOWN_TOPIC_ID),
        ((DeleteTopicState(),), E.INVALID_REQUEST),
        ((DeleteTopicState(name="t", topic_id=topic_id),), E.INVALID_REQUEST),
        ((DeleteTopicState(name="t"),) * 2, E.INVALID_REQUEST),
        ((DeleteTopicState(topic_id=topic_id),) * 2, E.INVALID_REQUEST),
    ]
    for states, error in rows:
        assert {r.error_code for r in delete(cluster, *states)} == {error}, states
        assert "t" in cluster.image.topic_ids
    by_both = delete(cluster, DeleteTopicState(name="t"), DeleteTopicState(topic_id=topic_id))
    assert [r.error_code for r in by_both] == [E.NONE, E.INVALID_REQUEST]


# --- more partitions


def widen(cluster: Cluster, *topics: CreatePartitionsTopic, validate_only: bool = False) -> Any:
    return cluster.ask(CreatePartitionsRequest(topics=topics, validate_only=validate_only), version=3).results


def more(name: str, count: int, *lists: tuple[int, ...]) -> CreatePartitionsTopic:
    assignments = tuple(CreatePartitionsAssignment(broker_ids=b) for b in lists) if lists else None
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


WIDEN_REFUSED = [
    (more("x", 2), E.UNKNOWN_TOPIC_OR_PARTITION, None),
    (more("t", 1), E.INVALID_PARTITIONS, "Topic already has 1 partition(s)."),
    (
        more("t", 0),
        E.INVALID_PARTITIONS,
        "The topic t currently has 1 partition(s); 0 would not be an increase.",
    ),
    (
        more("t", 3, (1, 2)),
        E.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    (more("t", 2, (1,)), E.INVALID_REPLICA_ASSIGNMENT, None),
    (more("t", 2, (1, 9)), E.INVALID_REPLICA_ASSIGNMENT, None),
    (more("t", 20_000), E.POLICY_VIOLATION, None),
]


@pytest.mark.parametrize(("topic", "error", "message"), WIDEN_REFUSED)
def test_more_partitions_are_refused(topic: CreatePartitionsTopic, error: ErrorCode, message: str | None) -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    (result,) = widen(cluster, topic)
    assert result.error_code == error
    assert message is None or result.error_message == message
    assert len(cluster.image.topics[cluster.image.topic_ids["t"]].partitions) == 1


def test_partitions_are_added_behind_the_old_ones() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    old = cluster.partition("t")
    assert [r.error_code for r in widen(cluster, more("t", 3), validate_only=True)] == [E.NONE]
    assert widen(cluster, more("t", 2, (2, 1)))[0].error_code == E.NONE
    assert widen(cluster, more("t", 4))[0].error_code == E.NONE
    assert cluster.partition("t") == old
    assert cluster.partition("t", 1).replicas == (2, 1)
    assert {cluster.partition("t", i).leader for i in (2, 3)} == {1, 2}
    twice = widen(cluster, more("t", 5), more("t", 6))
    assert [r.error_code for r in twice] == [E.INVALID_REQUEST] * 2


def test_a_request_that_no_batch_of_the_metadata_log_can_hold_changes_nothing() -> None:
    """Kafka: "Unable to perform excessively large batch operation." """
    cluster = Cluster(2)
    long = config("leader.replication.throttled.replicas", ",".join(["0:1"] * 8_000))
    before = list(cluster.log.records)
    answer = create(cluster, *(creatable(f"t{number}", 1, 1, configs=long) for number in range(300)))
    assert {row.error_code for row in answer} == {ErrorCode.POLICY_VIOLATION}
    assert cluster.log.records == before
    assert not create(cluster, creatable("t", 1, 1, configs=long))[0].error_code
