"""What an answer does not show to who may not see it, and what happens to the rest of a request."""

from types import SimpleNamespace
from typing import Any

from tests.rows import each
from tests.unit.authorizing.one_node import (
    ANN,
    HOST,
    ROOT,
    OneNode,
    on_cluster,
    on_topic,
    produce_request,
)

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, ZERO_UUID, Uuid
from strandline.base.operations import UNKNOWN_OPERATIONS
from strandline.broker.authorizing.topics import delete_topics
from strandline.metadata.image import Image
from strandline.metadata.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.own.get_replica_log_info import GetReplicaLogInfoRequest, TopicPartitions
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

Op, E = AclOperation, ErrorCode
DENIED = E.TOPIC_AUTHORIZATION_FAILED
NOWHERE = Uuid(b"n" * 16)


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def world(*topics: str) -> OneNode:
    node = OneNode()
    node.create(*(topics or ("a", "b", "c")))
    return node


# --- Metadata


def named(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names), **more)


def test_metadata_of_all_topics_leaves_out_what_may_not_be_described() -> None:
    node = world()
    node.allow(on_topic(Op.READ, "a"), on_topic(Op.DESCRIBE, "b"), on_topic(Op.DESCRIBE_CONFIGS, "c"))
    for version, topics in ((0, ()), (1, None), (12, None)):
        answer = node.ask(MetadataRequest(topics=topics), version)
        assert [(t.name, t.error_code) for t in answer.topics] == [("a", 0), ("b", 0)], version
        assert answer.brokers, "a client could not begin without them"


def test_metadata_of_a_name_that_may_not_be_described_is_the_same_whether_there_is_such_a_topic_or_not() -> None:
    node = world()
    node.allow(on_topic(Op.DESCRIBE, "a"))
    for version in (0, 9, 13):
        answer = node.ask(named("a", "b", "nowhere", allow_auto_topic_creation=False), version)
        assert [(t.name, t.error_code, bool(t.partitions), t.topic_id != ZERO_UUID) for t in answer.topics] == [
            ("a", 0, True, version >= 10),
            ("b", DENIED, False, False),
            ("nowhere", DENIED, False, False),
        ]
    assert [t.error_code for t in node.ask(named("b"), 0).topics] == [DENIED], "an empty list would ask for all"


def test_metadata_by_id_does_not_tell_the_name() -> None:
    node = world()
    node.allow(on_topic(Op.DESCRIBE, "a"))
    ids = [node.topic_id("a"), node.topic_id("b"), NOWHERE]
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(topic_id=one, name=None) for one in ids))
    found = {t.topic_id: (t.name, t.error_code) for t in node.ask(request, 12).topics}
    assert found == dict(zip(ids, [("a", 0), (None, DENIED), (None, E.UNKNOWN_TOPIC_ID)], strict=True))


def test_a_topic_that_came_into_being_while_metadata_was_asked_for_is_hidden_too() -> None:
    """The answer is made a moment after the request, by the image of that moment."""
    node = world()
    at = node.send(MetadataRequest(topics=None), 12)
    node.create("d")
    while at not in node.answers:
        node.wait()
    assert node.answers[at].topics == ()


def test_a_topic_is_created_only_for_who_may_create_it() -> None:
    node = world()
    node.allow(on_topic(Op.DESCRIBE, "*"), on_topic(Op.CREATE, "mine-", pattern=PatternType.PREFIXED))
    answer = node.ask(named("a", "mine-1", "yours-1", OFFSETS_TOPIC, allow_auto_topic_creation=True), 9)
    found = {t.name: (t.error_code, t.is_internal) for t in answer.topics}
    assert found == {
        "a": (0, False),
        "mine-1": (E.NONE, False),
        "yours-1": (DENIED, False),
        OFFSETS_TOPIC: (DENIED, True),
    }
    assert set(node.node.image.topic_ids) == {"a", "b", "c", "mine-1"}


def test_a_topic_that_is_deleted_while_metadata_is_asked_for_is_not_created_anew() -> None:
    node = world()
    node.allow(on_topic(Op.DESCRIBE, "a"))
    at = node.send(named("a", allow_auto_topic_creation=True), 9)
    node.ask(DeleteTopicsRequest(topic_names=("a",)), 5, ROOT)
    node.wait(1_000)
    assert at in node.answers
    assert "a" not in node.node.image.topic_ids

    # Nor for the sake of another one, which may be created.
    node.allow(on_topic(Op.DESCRIBE, "*"), on_topic(Op.CREATE, "mine"))
    at = node.send(named("b", "mine", allow_auto_topic_creation=True), 9)
    node.ask(DeleteTopicsRequest(topic_names=("b",)), 5, ROOT)
    node.wait(1_000)
    assert at in node.answers
    assert set(node.node.image.topic_ids) == {"c", "mine"}


def test_operations_are_those_that_are_permitted() -> None:
    node = world()
    node.allow(on_topic(Op.WRITE, "a"), on_topic(Op.ALTER_CONFIGS, "a"), on_topic(Op.ALL, "b"))
    deny = on_topic(Op.DELETE, "b", permission=AclPermission.DENY)
    node.allow(deny)
    request = named("a", "b", "c", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
    node.allow(on_cluster(Op.CREATE))
    answer = node.ask(request, 10)
    on_a = bits(Op.WRITE, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
    all_but = bits(Op.READ, Op.WRITE, Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
    assert [t.topic_authorized_operations for t in answer.topics] == [on_a, all_but, UNKNOWN_OPERATIONS]
    assert answer.cluster_authorized_operations == 0, "who may not describe the cluster learns of none"
    pages = node.ask(DescribeTopicPartitionsRequest(topics=(TopicRequest(name="a"),)), 0)
    assert [t.topic_authorized_operations for t in pages.topics] == [on_a]

    node.allow(on_cluster(Op.DESCRIBE))
    assert node.ask(request, 10).cluster_authorized_operations == bits(Op.DESCRIBE, Op.CREATE)
    described = node.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)
    assert described.cluster_authorized_operations == bits(Op.DESCRIBE, Op.CREATE)
    plain = node.ask(named("a"), 10)
    assert [t.topic_authorized_operations for t in plain.topics] == [UNKNOWN_OPERATIONS]
    assert plain.cluster_authorized_operations == UNKNOWN_OPERATIONS


# --- other requests about topics


def page(node: OneNode, *names: str, cursor: Cursor | None = None, limit: int = 2000) -> tuple[list[Any], Any]:
    topics = tuple(TopicRequest(name=name) for name in names)
    request = DescribeTopicPartitionsRequest(topics=topics, cursor=cursor, response_partition_limit=limit)
    answer = node.ask(request, 0)
    return [(t.name, t.error_code, len(t.partitions)) for t in answer.topics], answer.next_cursor


def test_pages_are_made_of_what_may_be_described() -> None:
    node = world("a", "b", "c", "d")
    assert page(node) == ([], None)
    node.allow(*(on_topic(Op.DESCRIBE, name) for name in ("a", "c", "d")))
    assert page(node)[0] == [("a", 0, 2), ("c", 0, 2), ("d", 0, 2)]
    found, cursor = page(node, limit=3)
    assert found == [("a", 0, 2), ("c", 0, 1)]
    assert (cursor.topic_name, cursor.partition_index) == ("c", 1)
    assert page(node, cursor=Cursor("c", 1))[0] == [("c", 0, 1), ("d", 0, 2)]
    assert page(node, cursor=Cursor("b", 1))[0] == [("c", 0, 2), ("d", 0, 2)], "a cursor at what is hidden"
    assert page(node, "b", "c", "nowhere")[0] == [("c", 0, 2), ("b", DENIED, 0), ("nowhere", DENIED, 0)]


def test_deleting_by_id_tells_the_name_only_to_who_may_describe() -> None:
    node = world()
    node.allow(on_topic(Op.DELETE, "a"), on_topic(Op.DESCRIBE, "b"), on_topic(Op.DESCRIBE, "gone"))
    ids = [*(node.topic_id(name) for name in ("a", "b", "c")), NOWHERE]
    request = DeleteTopicsRequest(topics=tuple(DeleteTopicState(topic_id=one) for one in ids))
    found = {row.topic_id: (row.name, row.error_code) for row in node.ask(request, 6).responses}
    rows = [("a", 0), ("b", DENIED), (None, DENIED), (None, E.UNKNOWN_TOPIC_ID)]
    assert found == dict(zip(ids, rows, strict=True))
    assert set(node.node.image.topic_ids) == {"b", "c"}
    by_name = node.ask(DeleteTopicsRequest(topic_names=("b", "c", "gone", "lost")), 5)
    assert {row.name: row.error_code for row in by_name.responses} == {
        "b": DENIED,
        "c": DENIED,
        "gone": E.UNKNOWN_TOPIC_OR_PARTITION,
        "lost": DENIED,
    }


def test_what_this_node_does_not_know_yet_is_not_passed_on_to_be_deleted() -> None:
    """The controller may know it already, and it trusts this node."""
    node = world("a", "b")
    node.allow(on_topic(Op.DELETE, "a"), on_topic(Op.DESCRIBE, "b"))
    behind: Any = SimpleNamespace(image=Image())
    node.ask(MetadataRequest(topics=()), 12)  # by now the gate follows these ACLs
    rights = node.node.gate.authorizer.rights(ANN, HOST)
    states = (DeleteTopicState(topic_id=node.topic_id("a")), DeleteTopicState(name="b"))
    to = ReplyTo(1, 0, 0, DeleteTopicsRequest.api_key, 6)
    asked = Received(to, Caller("test", HOST, "PLAINTEXT"), DeleteTopicsRequest(topics=states))
    refused: Any = delete_topics(behind, asked, rights)
    assert [row.error_code for row in refused[0].message.responses] == [
        E.UNKNOWN_TOPIC_ID,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_logs_are_shown_of_topics_that_may_be_described() -> None:
    node = world("a", "b")
    a, b = node.topic_id("a"), node.topic_id("b")
    node.allow(on_topic(Op.DESCRIBE, "a"))

    def seen(asked: tuple[TopicPartitions, ...] | None) -> list[tuple[Uuid, list[int]]]:
        answer = node.ask(GetReplicaLogInfoRequest(broker_id=1, topic_partitions=asked), 0)
        return [
            (t.topic_id, [row.error_code for row in t.partition_log_info]) for t in answer.topic_partition_log_info_list
        ]

    asked = tuple(TopicPartitions(topic_id=one, partitions=(0,)) for one in (a, b))
    assert seen(asked) == [(a, [0]), (b, [DENIED])]
    assert seen(None) == [(a, [0, 0])]
    for operation in (Op.DESCRIBE, Op.CLUSTER_ACTION):
        node.revoke_all()
        assert seen(None) == []
        node.allow(on_cluster(operation))
        assert seen(None) == [(a, [0, 0]), (b, [0, 0])]


# --- Produce


def codes(answer: Any) -> list[int]:
    return [topic.partition_responses[0].error_code for topic in answer.responses]


def test_a_produce_is_written_where_that_is_permitted_and_by_id_as_by_name() -> None:
    node = world()
    node.allow(on_topic(Op.WRITE, "a"))
    assert codes(node.ask(produce_request("b", "a", "nowhere"), 9)) == [0, DENIED, DENIED]
    by_name = produce_request("a", "b").topic_data
    ids = (node.topic_id("a"), node.topic_id("b"))
    rows = tuple(
        type(row)(topic_id=one, partition_data=row.partition_data) for row, one in zip(by_name, ids, strict=True)
    )
    lost = type(rows[0])(topic_id=NOWHERE, partition_data=rows[0].partition_data)
    answer = node.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(*rows, lost)), 13)
    assert {row.topic_id: row.partition_responses[0].error_code for row in answer.responses} == {
        ids[0]: 0,
        ids[1]: DENIED,
        NOWHERE: E.UNKNOWN_TOPIC_ID,
    }


@each("topics, refused, written", [(("a",), False, 1), (("a", "b"), True, 1), (("b",), True, 0)])
def test_without_an_answer_a_refused_produce_costs_its_connection(
    topics: tuple[str, ...], refused: bool, written: int
) -> None:
    node = world()
    node.allow(on_topic(Op.WRITE, "a"))
    assert node.ask(produce_request(*topics, acks=0), 9, connection=5) is None
    assert node.closed == ([5] if refused else [])
    assert codes(node.produce("a", principal=ROOT)) == [0]
    (partition,) = [p for p in node.node.broker.replicas.host.partitions.all() if tuple(p.name) == ("a", 0)]  # type: ignore[union-attr]  # it is a broker
    assert partition.log.log_end_offset == written + 1


def test_a_batch_is_of_a_transaction_if_it_says_so_itself() -> None:
    """A request that names no transactional id must not write into somebody's open transaction."""
    node = world()
    node.allow(on_topic(Op.WRITE, "a"))
    (topic,) = produce_request("a").topic_data
    batch = bytearray(topic.partition_data[0].records)  # type: ignore[arg-type]  # one buffer
    batch[22] |= 0x10
    data = type(topic.partition_data[0])(index=0, records=bytes(batch))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(type(topic)(name="a", partition_data=(data,)),))
    denied = [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert codes(node.ask(request, 9)) == denied
    assert codes(node.produce("a")) == [0]
    assert codes(node.ask(request, 9)) == denied, "nor when the topic is known to be permitted"
    assert codes(node.ask(produce_request("a", transactional_id="x"), 9)) == denied


# --- who, and from where


def test_super_users_and_nodes_are_not_judged_and_hosts_and_prefixes_count() -> None:
    node = world("team-a", "other")
    assert codes(node.produce("other", principal=ROOT)) == [0]
    mine = on_topic(Op.WRITE, "team-", pattern=PatternType.PREFIXED, host="10.0.0.2", who="User:*")
    node.allow(mine)
    assert codes(node.produce("team-a", host="10.0.0.2")) == [0]
    assert codes(node.produce("team-a", host="10.0.0.1")) == [DENIED]
    assert codes(node.produce("other", host="10.0.0.2")) == [DENIED]
    assert mine.resource_type == ResourceType.TOPIC


def test_without_an_acl_about_it_a_resource_is_everybodys_if_so_configured() -> None:
    node = OneNode(allow_everyone_if_no_acl_found="true")
    node.create("a", "b")
    node.allow(on_topic(Op.READ, "b", who="User:bob"))
    assert codes(node.ask(produce_request("a", "b"), 9)) == [0, DENIED]
