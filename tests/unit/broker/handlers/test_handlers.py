"""What the broker answers from its image: coordinators, pages of topics, ACLs, the cluster."""

from typing import Any

import pytest
from tests.unit.broker.handlers.fake_node import LATER, NOW, ONE, THREE, TWO, A, B, FakeNode, Parts, ask

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.errors import ErrorCode as E
from strandline.base.ids import (
    NOBODY,
    OFFSETS_TOPIC,
    TRANSACTION_TOPIC,
    LeaderEpoch,
    PartitionEpoch,
    Uuid,
)
from strandline.broker.handlers import (
    api_versions,
    describe_acls,
    describe_cluster,
    describe_topic_partitions,
    find_coordinator,
    metadata,
)
from strandline.broker.route import BROKER_ROUTES
from strandline.coordination.partitioning import partition_for
from strandline.metadata.features import ELR_FEATURE, GROUP_FEATURE, METADATA_LEVEL, METADATA_VERSION, TXN_FEATURE
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    Broker,
    Partition,
    Topic,
)
from strandline.metadata.security.acls import Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.security.describe_acls import DescribeAclsRequest
from strandline.wire.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

# --- Metadata


def test_brokers_that_are_fenced_are_not_shown_and_their_replicas_are_offline() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    answer = ask(metadata, node, MetadataRequest(topics=None), 12)
    assert [b.node_id for b in answer.brokers] == [1, 2]
    assert answer.topics[0].partitions[0].offline_replicas == (3,)


def test_replicas_in_a_directory_that_their_broker_has_lost_are_offline() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    where = (Uuid(b"one's directory."), Uuid(b"two's directory."), Uuid(b"three's direct.."))
    found = Partition((ONE, TWO), where[:2], (TWO,), TWO)
    node.image.topics[A] = Topic("t", A, {0: found})
    old = node.image.brokers[ONE]
    node.image.put_broker(Broker(ONE, old.incarnation_id, old.epoch, old.endpoints, fenced=False, log_dirs=where[2:]))
    answer = ask(metadata, node, MetadataRequest(topics=None), 13)
    assert answer.topics[0].partitions[0].offline_replicas == (1,)


def test_null_asks_for_all_topics_and_empty_does_so_in_version_0_only() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    for version, request, shown in ((0, (), 1), (1, None, 1), (1, (), 0), (12, None, 1), (12, (), 0)):
        assert len(ask(metadata, node, MetadataRequest(topics=request), version).topics) == shown, version


@pytest.mark.parametrize(
    ("version", "topics", "at_once"),
    [(1, (), True), (12, (), True), (0, (), False), (12, None, False), (12, (MetadataRequestTopic(name="t"),), False)],
)
def test_a_metadata_request_without_topics_is_answered_at_once_and_one_about_leaders_a_moment_later(
    version: int, topics: Any, at_once: bool
) -> None:
    """kafka-python forgets a subscription that is made while such a question is under way: it shall not take long."""
    node: Any = FakeNode()
    node.broker = Parts()
    received = Received(ReplyTo(1, 0, 0, 3, version), Caller("app", "10.0.0.1", "PLAINTEXT"), MetadataRequest(topics))
    answered = BROKER_ROUTES[MetadataRequest](node, received, NOW)
    assert bool(answered) is at_once
    assert node.broker.suspects.due(LATER, moved=False) == ([] if at_once else [received])


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
def test_missing_topics_are_created_if_the_client_wants_that_and_the_name_is_valid(version: int) -> None:
    for wanted in (True, False):
        node: Any = FakeNode()
        node.broker = Parts()
        topics = (MetadataRequestTopic(name="new"), MetadataRequestTopic(name="not valid"))
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=wanted)
        to = ReplyTo(1, 0, 0, 3, version)
        BROKER_ROUTES[MetadataRequest](node, Received(to, Caller("app", "10.0.0.1", "PLAINTEXT"), request), NOW)
        answer = ask(metadata, node, request, version)
        assert [t.error_code for t in answer.topics] == [E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION]
        assert node.created == (["new"] if wanted else [])


def test_topics_by_id_from_version_12_on() -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    topics = (MetadataRequestTopic(topic_id=A, name=None), MetadataRequestTopic(topic_id=B, name=None))
    answer = ask(metadata, node, MetadataRequest(topics=topics), 12)
    assert [(t.name, t.error_code) for t in answer.topics] == [("t", E.NONE), (None, E.UNKNOWN_TOPIC_ID)]
    assert node.created == []


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_version_12_are_refused_because_the_answer_needs_a_name(version: int) -> None:
    node = FakeNode()
    node.topic("t", A, 1)
    topics = (MetadataRequestTopic(topic_id=B, name=None), MetadataRequestTopic(name="t"))
    answer = ask(metadata, node, MetadataRequest(topics=topics), version)
    assert [t.error_code for t in answer.topics] == [E.INVALID_REQUEST, E.INVALID_REQUEST]
    assert len(ask(metadata, node, MetadataRequest(topics=topics[1:]), version).topics[0].partitions) == 1


def test_a_partition_without_a_leader_says_so() -> None:
    node = FakeNode()
    node.topic("t", A, 1, NOBODY)
    answer = ask(metadata, node, MetadataRequest(topics=None), 12)
    assert answer.topics[0].partitions[0].error_code == E.LEADER_NOT_AVAILABLE


# --- DescribeAcls


def test_acls_are_described_by_resource_and_in_one_order() -> None:
    node = FakeNode()
    prefixed, literal = PatternType.PREFIXED, PatternType.LITERAL
    rows = [("b", literal, "User:b"), ("a", prefixed, "User:b"), ("b", literal, "User:a"), ("a", literal, "User:b")]
    for at, (name, pattern, principal) in enumerate(rows):
        acl = Acl(ResourceType.TOPIC, name, pattern, principal, "*", AclOperation.READ, AclPermission.ALLOW)
        node.image.add_acl(Uuid(bytes([at] * 16)), acl)
    acl = Acl(ResourceType.GROUP, "g", literal, "User:b", "::1", AclOperation.DELETE, AclPermission.DENY)
    node.image.add_acl(Uuid(b"g" * 16), acl)

    def described(**wanted: Any) -> list[Any]:
        anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        answer = ask(describe_acls, node, DescribeAclsRequest(**{**anything, **wanted}), 3)
        assert answer.error_code == E.NONE
        found = [[(a.principal, a.host, a.operation, a.permission_type) for a in row.acls] for row in answer.resources]
        return [(row.resource_name, row.pattern_type, one) for row, one in zip(answer.resources, found, strict=True)]

    a, b = ("User:a", "*", 3, 3), ("User:b", "*", 3, 3)
    topics = [("a", 3, [b]), ("a", 4, [b]), ("b", 3, [a, b])]
    assert described() == [*topics, ("g", 3, [("User:b", "::1", 6, 2)])]
    assert described(resource_type_filter=2) == topics
    assert described(resource_name_filter="ab", pattern_type_filter=2) == [("a", 4, [b])]
    assert described(principal_filter="User:a") == [("b", 3, [a])]
    assert described(host_filter="::2") == []


def test_without_an_authorizer_or_a_meaning_no_acl_is_described() -> None:
    node = FakeNode()
    answer = ask(describe_acls, node, DescribeAclsRequest(resource_type_filter=2, operation=99, permission_type=1), 1)
    assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, "Unknown entryFilter.")
    node.config.has_authorizer = False
    answer = ask(describe_acls, node, DescribeAclsRequest(resource_type_filter=2, operation=1, permission_type=1), 1)
    refused = (E.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    assert (answer.error_code, answer.error_message) == refused


# --- FindCoordinator


def test_a_groups_coordinator_leads_its_partition() -> None:
    node = FakeNode()
    node.topic(OFFSETS_TOPIC, A, 50, TWO)
    old = ask(find_coordinator, node, FindCoordinatorRequest(key="g", key_type=0), 3)
    assert (old.error_code, old.node_id, old.host, old.port) == (E.NONE, 2, "b2", 9092)
    new = ask(find_coordinator, node, FindCoordinatorRequest(coordinator_keys=("g", "h"), key_type=0), 4)
    assert [(c.key, c.node_id, c.error_code) for c in new.coordinators] == [("g", 2, E.NONE), ("h", 2, E.NONE)]


def test_each_group_has_the_leader_of_its_own_partition() -> None:
    node = FakeNode()
    node.topic(OFFSETS_TOPIC, A, 2, TWO)
    mine = partition_for("g", 2)
    topic = node.image.topics[A]
    topic.partitions[mine] = Partition((ONE,), (A,), (ONE,), ONE)
    other = next(name for name in "abcdef" if partition_for(name, 2) != mine)
    answer = ask(find_coordinator, node, FindCoordinatorRequest(coordinator_keys=("g", other), key_type=0), 4)
    assert [c.node_id for c in answer.coordinators] == [1, 2]


def test_the_offsets_topic_is_made_when_first_needed_and_a_fenced_leader_coordinates_nothing() -> None:
    node = FakeNode()
    request = FindCoordinatorRequest(key="g", key_type=0)
    assert ask(find_coordinator, node, request, 3).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert node.created == [OFFSETS_TOPIC]
    node.topic(OFFSETS_TOPIC, A, 1, THREE)
    assert ask(find_coordinator, node, request, 3).error_code == E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(1, 7))
def test_the_leader_of_its_partition_of_the_transaction_topic_coordinates_a_transactional_id(version: int) -> None:
    node = FakeNode()
    request = FindCoordinatorRequest(key="x", coordinator_keys=("x",), key_type=1)

    def found() -> tuple[int, int]:
        answer = ask(find_coordinator, node, request, version)
        one = answer.coordinators[0] if version >= 4 else answer
        return one.error_code, one.node_id

    node.topic(OFFSETS_TOPIC, B, 50, ONE)
    assert found() == (E.COORDINATOR_NOT_AVAILABLE, -1)
    assert node.created == [TRANSACTION_TOPIC]
    node.topic(TRANSACTION_TOPIC, A, 50, ONE)
    node.image.topics[A].partitions[partition_for("x", 50)] = Partition((TWO,), (A,), (TWO,), TWO)
    assert found() == (E.NONE, 2)


def test_there_is_no_other_kind_of_coordinator() -> None:
    node = FakeNode()
    answer = ask(find_coordinator, node, FindCoordinatorRequest(coordinator_keys=("g:t:0",), key_type=2), 6)
    assert [(row.error_code, row.node_id) for row in answer.coordinators] == [(E.INVALID_REQUEST, -1)]
    assert node.created == []


# --- ApiVersions


@pytest.mark.parametrize(("finalized", "low"), [(METADATA_LEVEL, METADATA_LEVEL), (25, 25)])
def test_of_metadata_version_that_level_is_told_to_which_a_cluster_can_be_set(finalized: int, low: int) -> None:
    """Or from that on which it has: another program may have begun the metadata log."""
    node = FakeNode()
    node.image.features[METADATA_VERSION] = finalized
    answer = ask(api_versions, node, ApiVersionsRequest(), 4)
    reported = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    others = {ELR_FEATURE: (0, 1), TXN_FEATURE: (0, 2), GROUP_FEATURE: (0, 1)}
    assert reported == {METADATA_VERSION: (low, METADATA_LEVEL), **others}


# --- what a client may do

# As bits, by AclEntry.supportedOperations and AclOperation of Kafka.
CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
NOT_ASKED = -(1 << 31)


@pytest.mark.parametrize("is_asked", [False, True])
def test_without_an_authorizer_every_client_may_do_all(is_asked: bool) -> None:
    node = FakeNode()
    node.topic("t", A, 1, THREE)
    cluster, topics = (CLUSTER_OPERATIONS, TOPIC_OPERATIONS) if is_asked else (NOT_ASKED, NOT_ASKED)
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name="t"),),
        include_cluster_authorized_operations=is_asked,
        include_topic_authorized_operations=is_asked,
    )
    for version in (8, 10, 13):
        answer = ask(metadata, node, request, version)
        assert answer.topics[0].topic_authorized_operations == topics
        assert answer.cluster_authorized_operations == (cluster if version <= 10 else NOT_ASKED)
    of_cluster = DescribeClusterRequest(include_cluster_authorized_operations=is_asked)
    assert ask(describe_cluster, node, of_cluster, 1).cluster_authorized_operations == cluster
    pages = ask(describe_topic_partitions, node, DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),)), 0)
    assert pages.topics[0].topic_authorized_operations == TOPIC_OPERATIONS, "it has no field to ask with"


# --- DescribeTopicPartitions


def pages(node: FakeNode, names: tuple[str, ...], limit: int) -> list[list[tuple[str, list[int]]]]:
    seen, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=n) for n in names), response_partition_limit=limit, cursor=cursor
        )
        answer = ask(describe_topic_partitions, node, request, 0)
        seen.append([(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics])
        if answer.next_cursor is None:
            return seen
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)


@pytest.mark.parametrize("named", [("b", "a"), ()])
def test_pages_follow_each_other_by_name_without_gap_or_repetition(named: tuple[str, ...]) -> None:
    node = FakeNode()
    node.topic("a", A, 3)
    node.topic("b", B, 2)
    assert pages(node, named, 2) == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1])]]
    assert pages(node, named, 3) == [[("a", [0, 1, 2])], [("b", [0, 1])]]
    assert pages(node, named, 100) == [[("a", [0, 1, 2]), ("b", [0, 1])]]


def test_a_cursor_whose_topic_was_deleted_hides_nothing_of_the_next_one() -> None:
    node = FakeNode()
    node.topic("b", B, 3)
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="a"), TopicRequest(name="b")),
        response_partition_limit=10,
        cursor=Cursor(topic_name="a", partition_index=2),
    )
    answer = ask(describe_topic_partitions, node, request, 0)
    assert [t.error_code for t in answer.topics] == [E.UNKNOWN_TOPIC_OR_PARTITION, E.NONE]
    assert [p.partition_index for p in answer.topics[1].partitions] == [0, 1, 2]


def test_t44_what_counts_of_min_isr_is_reported_and_clients_that_do_not_know_the_field_skip_it() -> None:
    """T44: a tool that goes by the raw setting would call a partition short that never has so many replicas."""
    node = FakeNode()
    node.topic("t", A, 1)  # two replicas
    seen = []
    for value in ("1", "2", "3"):
        node.image.configs[(BROKER_RESOURCE, CLUSTER_DEFAULT)] = {"min.insync.replicas": value}
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))
        seen.append(ask(describe_topic_partitions, node, request, 0).topics[0].partitions[0].effective_min_isr)
    assert seen == [1, 2, 2]


def test_partitions_without_a_leader_are_described_like_others_with_empty_arrays_and_no_error() -> None:
    """Kafka's Java client shows what it finds in these fields, and fails on an array that is null."""
    node = FakeNode()
    lost = Partition((ONE, TWO, THREE), (A, A, A), (), NOBODY, LeaderEpoch(3), last_known_elr=(TWO,))
    node.image.topics[A] = Topic("t", A, {0: lost})
    node.image.topic_ids["t"] = A
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))
    (row,) = ask(describe_topic_partitions, node, request, 0).topics[0].partitions
    assert (row.error_code, row.leader_id, row.leader_epoch) == (E.NONE, -1, 3)
    assert (row.isr_nodes, row.eligible_leader_replicas, row.last_known_elr) == ((), (), (2,))


def test_what_operators_need_for_a_recovery_is_reported_in_fields_of_our_own() -> None:
    node = FakeNode()
    node.image.topics[A] = Topic(
        "t",
        A,
        {
            0: Partition((ONE, TWO), (A, A), (), NOBODY, partition_epoch=PartitionEpoch(7), last_known_leader=TWO),
            1: Partition((ONE, TWO), (A, A), (ONE,), ONE, leader_recovery_state=1, adding_replicas=(TWO,)),
            2: Partition((ONE, TWO), (A, A), (ONE,), ONE, removing_replicas=(TWO,)),
        },
    )
    node.image.topic_ids["t"] = A
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))

    def rows() -> Any:
        return ask(describe_topic_partitions, node, request, 0).topics[0].partitions

    first, second, third = rows()
    assert (first.partition_epoch, first.last_known_leader, first.leader_recovery_state) == (7, 2, 0)
    assert (second.last_known_leader, second.leader_recovery_state, second.adding_replicas) == (-1, 1, (2,))
    assert (third.adding_replicas, third.removing_replicas) == ((), (2,))
    assert {(row.recovery_strategy, row.is_recovery_managed) for row in rows()} == {("Balanced", False)}
    node.image.configs[(TOPIC_RESOURCE, "t")] = {"unclean.leader.election.enable": "true"}
    node.config.explicit["unclean.recovery.manager.enabled"] = True
    assert {(row.recovery_strategy, row.is_recovery_managed) for row in rows()} == {("Aggressive", True)}


# --- DescribeCluster


def test_each_listener_describes_its_own_kind_of_node() -> None:
    node = FakeNode()
    rows = [
        ("PLAINTEXT", 1, E.NONE, [1, 2]),
        ("CONTROLLER", 2, E.NONE, [9]),
        ("PLAINTEXT", 2, E.MISMATCHED_ENDPOINT_TYPE, []),
        ("CONTROLLER", 1, E.MISMATCHED_ENDPOINT_TYPE, []),
        ("PLAINTEXT", 7, E.UNSUPPORTED_ENDPOINT_TYPE, []),
    ]
    for listener, kind, error, shown in rows:
        answer = ask(describe_cluster, node, DescribeClusterRequest(endpoint_type=kind), 1, listener)
        assert (answer.error_code, [b.broker_id for b in answer.brokers]) == (error, shown)
    everyone = DescribeClusterRequest(endpoint_type=1, include_fenced_brokers=True)
    answer = ask(describe_cluster, node, everyone, 2)
    assert [(b.broker_id, b.is_fenced) for b in answer.brokers] == [(1, False), (2, False), (3, True)]
