"""What nobody may describe is not there for him: groups, offsets and transactions."""

from typing import Any

from tests.rows import each
from tests.unit.authorizing.one_node import (
    ANN,
    ROOT,
    OneNode,
    on_cluster,
    on_group,
    on_topic,
    on_transaction,
)
from tests.unit.authorizing.test_hiding import DENIED, NOWHERE, E, Op, bits, world

from strandline.base.ids import OFFSETS_TOPIC
from strandline.base.operations import UNKNOWN_OPERATIONS
from strandline.wire.messages.consumer_groups.consumer_group_describe import ConsumerGroupDescribeRequest
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.list_groups import ListGroupsRequest
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest

# --- groups


def commit(node: OneNode, *topics: str, who: str = ANN, group: str = "g") -> dict[str, int]:
    rows = tuple(
        OffsetCommitRequestTopic(name=name, partitions=(OffsetCommitRequestPartition(committed_offset=7),))
        for name in topics
    )
    answer = node.ask(OffsetCommitRequest(group_id=group, topics=rows), 9, who)
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def with_coordinators(*topics: str) -> OneNode:
    node = world(*topics)
    for key_type in (0, 1):
        node.ask(FindCoordinatorRequest(key="g", key_type=key_type), 3, ROOT)
    return node


def test_offsets_are_committed_and_shown_where_that_is_permitted() -> None:
    node = with_coordinators()
    node.allow(on_group(Op.READ, "g"), on_topic(Op.READ, "a"))
    assert commit(node, "a", "b") == {"a": 0, "b": DENIED}
    assert commit(node, "b", who=ROOT) == {"b": 0}

    def fetched(topics: tuple[str, ...] | None) -> list[Any]:
        wanted = None
        if topics is not None:
            wanted = tuple(OffsetFetchRequestTopics(name=name, partition_indexes=(0,)) for name in topics)
        groups = tuple(OffsetFetchRequestGroup(group_id=group, topics=wanted) for group in ("h", "g"))
        answer = node.ask(OffsetFetchRequest(groups=groups), 9)
        return [
            (g.group_id, g.error_code, [(t.name, t.partitions[0].committed_offset) for t in g.topics])
            for g in answer.groups
        ]

    other: Any = ("h", E.GROUP_AUTHORIZATION_FAILED, [])
    assert fetched(None) == [other, ("g", 0, [("a", 7)])]
    assert fetched(("a", "b")) == [other, ("g", 0, [("a", 7), ("b", -1)])]
    everything = node.ask(OffsetFetchRequest(group_id="g", topics=None), 7)
    assert [(t.name, t.partitions[0].committed_offset) for t in everything.topics] == [("a", 7)]


def test_by_topic_id_the_same_is_permitted_and_an_id_that_no_topic_has_is_named_as_such() -> None:
    node = with_coordinators()
    node.allow(on_group(Op.READ, "g"), on_topic(Op.READ, "a"))
    a, b = node.topic_id("a"), node.topic_id("b")
    part = OffsetCommitRequestPartition(committed_offset=7)
    rows = tuple(OffsetCommitRequestTopic(topic_id=one, partitions=(part,)) for one in (a, b, NOWHERE))
    answer = node.ask(OffsetCommitRequest(group_id="g", topics=rows), 10)
    expected = {a: 0, b: DENIED, NOWHERE: E.UNKNOWN_TOPIC_ID}
    assert {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics} == expected
    wanted = tuple(OffsetFetchRequestTopics(topic_id=one, partition_indexes=(0,)) for one in (a, b, NOWHERE))
    (group,) = node.ask(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=wanted),)), 10).groups
    assert {topic.topic_id: topic.partitions[0].error_code for topic in group.topics} == expected
    assert {topic.topic_id: topic.partitions[0].committed_offset for topic in group.topics} == {
        a: 7,
        b: -1,
        NOWHERE: -1,
    }


def test_offsets_are_deleted_of_topics_that_may_be_read() -> None:
    node = with_coordinators()
    assert commit(node, "a", "b", who=ROOT) == {"a": 0, "b": 0}
    rows = tuple(
        OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(),)) for name in ("a", "b")
    )
    request = OffsetDeleteRequest(group_id="g", topics=rows)
    node.allow(on_group(Op.DELETE, "g"), on_topic(Op.READ, "a"), on_topic(Op.DELETE, "b"))
    answer = node.ask(request, 0)
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"a": 0, "b": DENIED}
    left = node.ask(OffsetFetchRequest(group_id="g", topics=None), 7, ROOT)
    assert [topic.name for topic in left.topics] == ["b"]


@each(
    ("group_id", "topics", "expected"),
    [
        ("g", ("b", "c"), {"b": DENIED, "c": DENIED}),
        ("g", ("b", "nowhere", "a"), {"b": DENIED, "nowhere": DENIED, "a": 0}),
        ("g", (), {}),
        ("none", ("b",), E.GROUP_ID_NOT_FOUND),
        ("none", ("a", "b"), E.GROUP_ID_NOT_FOUND),
        ("", ("b",), E.INVALID_GROUP_ID),
    ],
)
def test_a_deletion_that_the_coordinator_rejects_as_a_whole_has_no_rows(
    group_id: str, topics: tuple[str, ...], expected: Any
) -> None:
    """As Kafka: the coordinator is asked about the group even if no topic may be read."""
    node = with_coordinators()
    assert commit(node, "a", "b", who=ROOT) == {"a": 0, "b": 0}
    node.allow(on_group(Op.DELETE, "*"), on_topic(Op.READ, "a"))
    rows = tuple(OffsetDeleteRequestTopic(name=name, partitions=(OffsetDeleteRequestPartition(),)) for name in topics)
    answer = node.ask(OffsetDeleteRequest(group_id=group_id, topics=rows), 0)
    found = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert ((answer.error_code, found) if answer.error_code else found) == (
        (expected, {}) if isinstance(expected, E) else expected
    )


def test_offsets_that_the_coordinator_does_not_know_have_no_rows_beside_its_error() -> None:
    """It is asked even if no topic may be described: as Kafka, and nobody coordinates it yet."""
    node = OneNode()
    node.allow(on_group(Op.DESCRIBE, "*"))
    topics = (OffsetFetchRequestTopic(name="a", partition_indexes=(0,)),)
    answer = node.ask(OffsetFetchRequest(group_id="g", topics=topics), 7)
    assert (answer.error_code, answer.topics) == (E.COORDINATOR_NOT_AVAILABLE, ())


def test_groups_that_may_not_be_described_are_not_listed() -> None:
    node = with_coordinators()
    for group in ("g", "h"):
        commit(node, "a", who=ROOT, group=group)
    assert node.ask(ListGroupsRequest(), 5).groups == ()
    node.allow(on_group(Op.DELETE, "h"))
    assert [row.group_id for row in node.ask(ListGroupsRequest(), 5).groups] == ["h"]
    request = DescribeGroupsRequest(groups=("g", "h"), include_authorized_operations=True)
    assert {g.group_id: (g.error_code, g.authorized_operations) for g in node.ask(request, 5).groups} == {
        "g": (E.GROUP_AUTHORIZATION_FAILED, UNKNOWN_OPERATIONS),
        "h": (0, bits(Op.DELETE, Op.DESCRIBE)),
    }
    node.allow(on_cluster(Op.DESCRIBE))
    assert sorted(row.group_id for row in node.ask(ListGroupsRequest(), 5).groups) == ["g", "h"]


def test_a_consumer_groups_topics_are_shown_to_those_who_may_describe_them_all() -> None:
    node = with_coordinators("a", "b")

    def joined(member_id: str, who: str = ANN, **subscription: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, rebalance_timeout_ms=1000, topic_partitions=(), **subscription
        )
        return node.ask(request, 1, who)

    def described(who: str = ANN, group: str = "g") -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=True)
        return node.ask(request, 1, who).groups[0]

    assert joined("m", ROOT, subscribed_topic_names=("a", "b")).error_code == 0
    assert described().error_code == E.GROUP_AUTHORIZATION_FAILED
    node.allow(on_group(Op.READ, "g"), on_topic(Op.DESCRIBE, "a"))
    assert joined("n", subscribed_topic_names=("a", "b")).error_code == E.TOPIC_AUTHORIZATION_FAILED
    hidden = described()
    assert (hidden.error_code, hidden.members) == (E.TOPIC_AUTHORIZATION_FAILED, ())
    assert hidden.error_message == "The group has described topic(s) that the client is not authorized to describe."
    assert joined("n", subscribed_topic_regex=".*").error_code == 0
    shown = next(member for member in described(ROOT).members if member.member_id == "n")
    assert {topic.topic_name for topic in shown.target_assignment.topic_partitions} == {"a"}, "b is no match for ANN"
    node.allow(on_topic(Op.DESCRIBE, "b"))
    assert (described().error_code, described().authorized_operations) == (0, bits(Op.READ, Op.DESCRIBE))


# --- transactions


def test_transactions_that_may_not_be_described_are_not_listed_and_their_topics_are_shown_one_by_one() -> None:
    node = with_coordinators()
    for name in ("x", "y"):
        ids = node.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000), 4, ROOT)
        assert ids.error_code == 0
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=ids.producer_id,
            v3_and_below_producer_epoch=ids.producer_epoch,
            v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=topic, partitions=(0,)) for topic in ("a", "b")),
        )
        rows = node.ask(request, 3, ROOT).results_by_topic_v3_and_below
        assert [row.results_by_partition[0].partition_error_code for row in rows] == [0, 0]
    node.allow(on_transaction(Op.DESCRIBE, "x"), on_topic(Op.DESCRIBE, "a"))
    assert [row.transactional_id for row in node.ask(ListTransactionsRequest(), 1).transaction_states] == ["x"]
    found = node.ask(DescribeTransactionsRequest(transactional_ids=("x", "y")), 0).transaction_states
    assert [(row.transactional_id, row.error_code, [t.topic for t in row.topics]) for row in found] == [
        ("x", 0, ["a"]),
        ("y", E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, []),
    ]


def test_nothing_is_added_to_a_transaction_if_one_topic_is_not_permitted() -> None:
    node = with_coordinators()
    node.allow(on_transaction(Op.WRITE, "x"), on_topic(Op.WRITE, "a"), on_topic(Op.WRITE, "nowhere"))
    node.allow(on_topic(Op.WRITE, OFFSETS_TOPIC))
    names = ("a", "b", "nowhere", OFFSETS_TOPIC)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in names),
    )
    rows = node.ask(request, 3).results_by_topic_v3_and_below
    assert [row.results_by_partition[0].partition_error_code for row in rows] == [
        E.OPERATION_NOT_ATTEMPTED,
        DENIED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        DENIED,
    ]
