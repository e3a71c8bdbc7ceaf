"""KIP-966, "Public interfaces", "Config changes" and "Compatibility": what can be asked, set, and gone back on.

The bytes of messages and records are held against those of others in `wire/`.
"""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.kip.traps.test_eligible import MIN_ISR, with_elr
from tests.unit.broker.handlers.fake_node import A, B, FakeNode, ask
from tests.unit.broker.handlers.test_handlers import pages
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.configs.test_features import SAFE_DOWNGRADE, update

from strandline.base.errors import RETRIABLE, ErrorCode
from strandline.base.ids import NOBODY, NodeId
from strandline.broker.handlers import describe_topic_partitions
from strandline.metadata import records as r
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.topic_configs import TOPIC_CONFIGS
from strandline.metadata.features import ELR_FEATURE
from strandline.wire.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest, TopicPartitions

E = ErrorCode


# --- DescribeTopicPartitions


def described(node: FakeNode, *names: str, **fields: Any) -> Any:
    request = DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in names), **fields)
    return ask(describe_topic_partitions, node, request, 0)


def test_it_reports_isr_elr_and_last_known_elr() -> None:
    """Also of a partition without a leader."""
    node = FakeNode()
    node.topic("t", A, 1)
    old = node.image.topics[A].partitions[0]
    found = replace(
        old,
        replicas=tuple(map(NodeId, (1, 2, 3))),
        directories=(A,) * 3,
        isr=(),
        leader=NOBODY,
        elr=(NodeId(2),),
        last_known_elr=(NodeId(1),),
    )
    node.image.topics[A].partitions[0] = found
    (topic,) = described(node, "t").topics
    (row,) = topic.partitions
    assert (row.leader_id, row.leader_epoch, row.replica_nodes) == (NOBODY, found.leader_epoch, (1, 2, 3))
    assert (row.isr_nodes, row.eligible_leader_replicas, row.last_known_elr) == ((), (2,), (1,))
    assert (row.error_code, row.offline_replicas) == (E.NONE, (3,)), "as in Kafka: it is described all the same"
    assert (topic.name, topic.topic_id, topic.error_code) == ("t", A, E.NONE)


def test_no_topics_named_means_all_of_them() -> None:
    node = FakeNode()
    node.topic("a", A, 1)
    node.topic("b", B, 1)
    assert [topic.name for topic in described(node).topics] == ["a", "b"]
    assert [topic.name for topic in described(node, "b").topics] == ["b"]


def test_partitions_over_the_callers_limit_and_their_topics_are_not_sent_and_the_cursor_says_where_to_go_on() -> None:
    node = FakeNode()
    node.topic("a", A, 3)
    node.topic("b", B, 2)
    answer = described(node, response_partition_limit=3)
    assert [topic.name for topic in answer.topics] == ["a"]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("b", 0)
    rest = described(node, response_partition_limit=3, cursor=Cursor(topic_name="b", partition_index=0))
    assert ([topic.name for topic in rest.topics], rest.next_cursor) == (["b"], None)


def test_the_servers_limit_counts_too() -> None:
    """max.request.partition.size.limit; and one partition is sent in any case."""
    node = FakeNode()
    node.topic("a", A, 3)
    node.config.explicit["max.request.partition.size.limit"] = 2
    assert pages(node, (), 2000) == [[("a", [0, 1])], [("a", [2])]]
    assert pages(node, (), 0) == [[("a", [0])], [("a", [1])], [("a", [2])]]


def test_requests_after_one_another_need_not_agree() -> None:
    """There is no consistency guarantee between requests: what has changed meanwhile is told as it is now."""
    node = FakeNode()
    node.topic("b", B, 2)
    answer = described(node, response_partition_limit=1)
    node.topic("a", A, 1)
    node.topic("b", B, 3)
    cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
    rest = described(node, cursor=cursor)
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in rest.topics] == [("b", [1, 2])]


@pytest.mark.parametrize("cursor", [("a", -1), ("b", 0)], ids=["no partition", "a topic that is not asked for"])
def test_a_cursor_that_is_invalid_is_refused(cursor: tuple[str, int]) -> None:
    node = FakeNode()
    node.topic("a", A, 1)
    (topic,) = described(node, "a", cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1])).topics
    assert topic.error_code == E.INVALID_REQUEST


# --- configuration, errors


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("max.request.partition.size.limit", 2000),
        ("unclean.recovery.strategy", "Balanced"),
        ("unclean.recovery.manager.enabled", False),
        ("unclean.recovery.timeout.ms", 300_000),
    ],
)
def test_the_new_keys_have_the_defaults_of_the_kip(key: str, default: object) -> None:
    assert NODE_CONFIGS[key].default == default


def test_the_strategy_can_be_set_for_a_topic() -> None:
    assert TOPIC_CONFIGS["unclean.recovery.strategy"].default == "Balanced"


def test_what_is_over_a_limit_may_be_asked_for_again() -> None:
    assert E.REQUEST_LIMIT_REACHED in RETRIABLE


# --- ElectLeaders


@pytest.mark.parametrize("kind", [2, 3, 4], ids=["designation", "longest_log_balanced", "longest_log_aggressive"])
def test_an_election_by_designation_or_by_the_longest_log_is_only_for_partitions_without_a_leader(kind: int) -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2, 3))
    row = TopicPartitions(topic="t", partitions=(0,), designated_leaders=(2,))
    answer = cluster.ask(ElectLeadersRequest(election_type=kind, topic_partitions=(row,)), version=3)
    assert answer.replica_election_results[0].partition_result[0].error_code == E.ELECTION_NOT_NEEDED
    assert cluster.partition("t").leader == 1


def test_the_designated_leaders_match_the_partitions_by_index() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2, 3), (1, 2, 3))
    row = TopicPartitions(topic="t", partitions=(1, 0), designated_leaders=(9, 2))
    answer = cluster.ask(ElectLeadersRequest(election_type=2, topic_partitions=(row,)), version=3)
    assert answer is not None, "both are led"
    for node in (1, 2, 3):
        cluster.fence(node)
    answer = cluster.ask(ElectLeadersRequest(election_type=2, topic_partitions=(row,)), version=3)
    found = {p.partition_id: p.error_code for p in answer.replica_election_results[0].partition_result}
    assert found == {1: E.INVALID_REQUEST, 0: E.ELIGIBLE_LEADERS_NOT_AVAILABLE}, "9 has no replica; 2 is fenced"


# --- compatibility


def test_partitions_of_before_have_an_empty_elr_and_the_next_change_records_one() -> None:
    cluster = Cluster(brokers=3, static={MIN_ISR: 3}, elr=False)
    cluster.create("t", (1, 2, 3))
    cluster.alter("t", (1, 2))
    assert update(cluster, (ELR_FEATURE, 1)) == (E.NONE, "")
    assert cluster.partition("t").elr == ()
    cluster.alter("t", (1,))
    assert cluster.partition("t").elr == (2,), "3 left while nobody kept count"


def test_until_it_is_switched_on_no_record_has_a_field_of_it() -> None:
    """So that a rolling upgrade writes nothing that the old software cannot read."""
    cluster = Cluster(brokers=3, static={MIN_ISR: 3}, elr=False)
    cluster.create("t", (1, 2, 3))
    for node in (3, 2, 1):
        cluster.fence(node)
    for node in (2, 1):
        cluster.register(node)
        cluster.beat(node)
    for record in cluster.log.records:
        if isinstance(record, r.PartitionChangeRecord | r.PartitionRecord):
            assert (record.eligible_leader_replicas, record.last_known_elr) == (None, None)
    assert cluster.partition("t").leader == 1


def test_after_a_downgrade_the_next_change_of_a_partition_drops_all_fields_of_it() -> None:
    cluster = with_elr(3, **{MIN_ISR: 3})
    cluster.create("t", (1, 2, 3))
    cluster.fence(3)
    cluster.register(3)
    cluster.fence(2)
    partition = cluster.partition("t")
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((1,), (2,), (3,))
    assert update(cluster, (ELR_FEATURE, 0), kind=SAFE_DOWNGRADE) == (E.NONE, "")
    assert cluster.partition("t") == partition
    cluster.beat(2)
    cluster.alter("t", (1, 2))
    partition = cluster.partition("t")
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((1, 2), (), ())


def test_after_a_downgrade_the_isr_is_not_emptied_any_more() -> None:
    cluster = with_elr()
    cluster.create("t", (1, 2, 3))
    assert update(cluster, (ELR_FEATURE, 0), kind=SAFE_DOWNGRADE) == (E.NONE, "")
    for node in (3, 2, 1):
        cluster.fence(node)
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (NOBODY, (1,), ())
