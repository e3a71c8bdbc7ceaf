"""Fetch sessions of clients: judged when they name partitions, and begun anew when permissions have changed."""

from typing import Any

import pytest
from tests.unit.authorizing.one_node import (
    ANN,
    HOST,
    ROOT,
    OneNode,
    fetch_request,
    on_cluster,
    on_topic,
    produce_request,
)

from strandline.base.effects import Caller, Disconnected, Received, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.controller.topics import topics
from strandline.metadata.security.acls import AclOperation
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest

Op, E = AclOperation, ErrorCode
DENIED = E.TOPIC_AUTHORIZATION_FAILED


def begun() -> OneNode:
    node = OneNode()
    node.create("a", "b")
    for _ in range(2):
        node.ask(produce_request("a", "b"), 9, ROOT)
    node.allow(on_topic(Op.READ, "a"))
    return node


def fetch(node: OneNode, *topics: str, session: tuple[int, int] = (0, 0), **more: Any) -> Any:
    return node.ask(fetch_request(*topics, session=session), 11, **more)


def codes(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


def test_a_session_goes_on_while_its_permissions_are_the_same() -> None:
    node = begun()
    first = fetch(node, "a")
    assert (first.error_code, codes(first)) == (0, {"a": 0})
    assert first.session_id
    judged = node.node.gate.authorizer
    before = judged.kept
    for epoch in (1, 2, 3):
        assert fetch(node, session=(first.session_id, epoch)).error_code == 0
    assert judged.kept == before, "what it does not name is not judged again"


def test_a_partition_that_is_not_permitted_is_an_error_in_each_answer_so_there_is_no_session() -> None:
    node = begun()
    for _ in range(2):
        answer = fetch(node, "b", "a")
        assert (answer.error_code, answer.session_id) == (0, 0)
        assert codes(answer) == {"a": 0, "b": DENIED}
        assert answer.responses[0].partitions[0].records
        assert not answer.responses[1].partitions[0].records
    assert codes(fetch(node, "b", "nowhere")) == {"b": DENIED, "nowhere": DENIED}


def test_a_session_is_begun_anew_to_name_what_is_not_permitted() -> None:
    node = begun()
    session = fetch(node, "a").session_id
    answer = fetch(node, "b", session=(session, 1))
    assert (answer.error_code, answer.responses) == (E.FETCH_SESSION_ID_NOT_FOUND, ())
    assert not node.node.broker.replicas.fetching.sessions.sessions, "its slot is free"  # type: ignore[union-attr]  # it is a broker
    assert codes(fetch(node, "a", "b")) == {"a": 0, "b": DENIED}


def test_a_right_that_is_taken_away_ends_the_session_and_the_next_fetch_says_so() -> None:
    node = begun()
    session = fetch(node, "a").session_id
    at = node.send(fetch_request(session=(session, 1), wait_ms=500), 11)
    node.revoke_all()
    node.ask(produce_request("a"), 9, ROOT)
    node.wait(600)
    assert node.answers[at].error_code == 0, "that one was permitted when it came"
    refused = fetch(node, session=(session, 2))
    assert (refused.error_code, refused.session_id) == (E.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert codes(fetch(node, "a")) == {"a": DENIED}


def test_nobody_else_may_use_a_session_nor_does_the_attempt_end_it() -> None:
    node = begun()
    node.allow(on_topic(Op.READ, "a", who="User:bob"))
    session = fetch(node, "a").session_id
    for other in ({"principal": "User:bob"}, {"host": "10.9.9.9"}):
        assert fetch(node, session=(session, 1), **other).error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(node, session=(session, 1)).error_code == 0
    assert ANN != "User:bob"


def test_what_is_remembered_of_sessions_is_bounded_and_those_that_are_alive_are_kept() -> None:
    node = begun()
    alive = fetch(node, "a").session_id
    sessions, rights = node.node.gate.sessions, node.node.gate.authorizer.rights(ANN, HOST)
    slots = node.node.config.integer("max.incremental.fetch.session.cache.slots")
    for number in range(1, 3 * slots):
        sessions.remember(node.node, FetchResponse(session_id=-number), rights)
    assert len(sessions.permitted) <= 2 * slots
    assert fetch(node, session=(alive, 1)).error_code == 0


def by_id(*ids: Uuid, session: tuple[int, int] = (0, 0)) -> FetchRequest:
    rows = tuple(
        FetchTopic(topic_id=one, partitions=(FetchPartition(partition=0, partition_max_bytes=1000),)) for one in ids
    )
    return FetchRequest(session_id=session[0], session_epoch=session[1], topics=rows)


def test_an_id_that_is_not_known_yet_is_in_no_session() -> None:
    """It would be served as soon as it is known, and nobody would judge it."""
    node = begun()
    unknown = Uuid(b"u" * 16)
    answer = node.ask(by_id(node.topic_id("a"), node.topic_id("b"), unknown), 13)
    assert answer.session_id == 0
    assert {t.topic_id: t.partitions[0].error_code for t in answer.responses} == {
        node.topic_id("a"): 0,
        node.topic_id("b"): DENIED,
        unknown: E.UNKNOWN_TOPIC_ID,
    }
    session = node.ask(by_id(node.topic_id("a")), 13).session_id
    assert session
    assert node.ask(by_id(unknown, session=(session, 1)), 13).error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_answers_to_a_connection_that_is_gone_are_forgotten() -> None:
    node = begun()
    node.send(fetch_request("a", session=(0, 0), wait_ms=30_000), 11, connection=8)
    node.wait(10)
    waiting = FetchTopic("a", partitions=(FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1000),))
    node.send(FetchRequest(topics=(waiting,), session_epoch=0, max_wait_ms=30_000, min_bytes=1), 11, connection=9)
    assert list(node.node.gate.pending) == [9]
    node.disconnect(9)
    assert node.node.gate.pending == {}


def test_who_has_come_before_the_broker_has_joined_is_judged_when_it_is_let_in() -> None:
    node = begun()
    node.node.early = []
    to = ReplyTo(1, 1_000, 0, ProduceRequest.api_key, 9)
    asked = Received(to, Caller("test", HOST, "PLAINTEXT", ANN), produce_request("b"))
    assert node.node.received(asked, node.now) == []
    image = node.node.image
    image.add_acl(Uuid(b"i" * 16), on_topic(Op.WRITE, "b"))
    node.node.gate.authorizer.follow(image.acls, image.acls_version)
    node.perform(node.node.let_clients_in(node.now))
    assert node.answers[1, 1_000].responses[0].partition_responses[0].error_code == 0


def test_who_comes_and_goes_before_the_broker_has_joined_takes_no_place_of_others() -> None:
    node = begun()
    node.node.early = []
    for connection in (1, 2):
        to = ReplyTo(connection, 1_000, 0, ProduceRequest.api_key, 9)
        node.node.received(Received(to, Caller("test", HOST, "PLAINTEXT", ANN), produce_request("b")), node.now)
    node.node.disconnected(Disconnected(1), node.now)
    assert [held.to.connection for held in node.node.early] == [2]


def test_a_request_that_raises_behind_the_gate_fails_wholly_and_the_node_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answer has a row for each topic, once: also for those that were taken away."""
    node = begun()
    node.allow(on_topic(Op.ALTER, "a"))
    request = CreatePartitionsRequest(topics=tuple(CreatePartitionsTopic(name=name, count=3) for name in ("a", "b")))

    def raising(*_: Any) -> None:
        raise RecursionError("planted")

    with monkeypatch.context() as planted:
        planted.setattr(topics, "plan_more", raising)
        failed = node.ask(request, listener="CONTROLLER")
    assert [(row.name, row.error_code) for row in failed.results] == [
        ("a", E.UNKNOWN_SERVER_ERROR),
        ("b", E.UNKNOWN_SERVER_ERROR),
    ]
    assert node.closed == [1]
    assert not node.node.gate.pending
    again = node.ask(request, listener="CONTROLLER", connection=2)
    assert [(row.name, row.error_code) for row in again.results] == [("a", E.NONE), ("b", DENIED)]


def test_a_controller_judges_clients_of_its_own_listener() -> None:
    node = begun()
    request = CreateTopicsRequest(topics=(CreatableTopic(name="c", num_partitions=1, replication_factor=1),))
    assert node.ask(request, 7, listener="CONTROLLER").topics[0].error_code == DENIED
    node.allow(on_cluster(Op.CREATE))
    assert node.ask(request, 7, listener="CONTROLLER").topics[0].error_code == 0
