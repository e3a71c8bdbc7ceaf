"""Answers on request: which requests a rule is for, and what an answer with an error says."""

import pytest
from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.testing.answers.captured import Captured, Request, heard
from strandline.testing.answers.refusals import refusal, with_error
from strandline.testing.answers.rules import Rule, Rules, known_error
from strandline.wire.api import APIS, response_of
from strandline.wire.batch import build
from strandline.wire.frame import decode_response, encode_request, encode_response
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest
from strandline.wire.schema import Message

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER
BATCH = build([(0, b"k", b"one", ()), (0, None, b"two", ())])
PRODUCE = ProduceRequest(
    acks=-1,
    topic_data=(
        TopicProduceData(name="t", partition_data=(PartitionProduceData(0, BATCH), PartitionProduceData(3, BATCH))),
        TopicProduceData(name="u", partition_data=(PartitionProduceData(1, BATCH),)),
    ),
)


def sent(message: Message, version: int, client_id: str = "app", node: int = 1) -> Request:
    frame = b"".join(encode_request(message, version, 7, client_id))[4:]
    found = heard(node, frame)
    assert found is not None
    return found


def refused(message: Message, version: int) -> Message:
    """As a client reads it."""
    answer = refusal(message, ERROR)
    frame = b"".join(encode_response(answer, version, 7))[4:]
    return decode_response(response_of(message.api_key), version, memoryview(frame))[1]


def test_a_refused_produce_names_every_partition_of_the_request() -> None:
    answer = refused(PRODUCE, 10)
    assert answer.node_endpoints == ()
    rows = [(t.name, p.index, p.error_code, p.base_offset) for t in answer.responses for p in t.partition_responses]
    assert rows == [("t", 0, ERROR, -1), ("t", 3, ERROR, -1), ("u", 1, ERROR, -1)]


def test_a_field_of_another_name_in_the_answer_is_filled_too() -> None:
    message = FetchRequest(topics=(FetchTopic(topic="t", partitions=(FetchPartition(partition=4),)),))
    answer = refused(message, 11)
    (topic,) = answer.responses
    assert (answer.error_code, topic.topic) == (ERROR, "t")
    assert [(p.partition_index, p.error_code, p.high_watermark) for p in topic.partitions] == [(4, ERROR, -1)]
    asked = ListOffsetsRequest(topics=(ListOffsetsTopic(name="t", partitions=(ListOffsetsPartition(5),)),))
    (topic,) = refused(asked, 5).topics
    assert [(p.partition_index, p.error_code, p.offset) for p in topic.partitions] == [(5, ERROR, -1)]


def test_what_a_request_gives_up_is_not_in_the_answer() -> None:
    message = FetchRequest(forgotten_topics_data=(ForgottenTopic(topic="t", partitions=(1,)),))
    assert refused(message, 11).responses == ()


def test_names_and_numbers_that_are_asked_for_plainly_are_named_in_the_answer() -> None:
    answer = refused(FindCoordinatorRequest(coordinator_keys=("g", "h")), 4)
    assert [(row.key, row.node_id, row.error_code) for row in answer.coordinators] == [
        ("g", -1, ERROR),
        ("h", -1, ERROR),
    ]
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(2, 5)),)
    answer = refused(OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),)), 8)
    (group,) = answer.groups
    rows = [(p.partition_index, p.error_code, p.committed_offset) for p in group.topics[0].partitions]
    assert (group.group_id, group.error_code, rows) == ("g", ERROR, [(2, ERROR, -1), (5, ERROR, -1)])
    answer = refused(DeleteTopicsRequest(topic_names=("t",)), 3)
    assert [(row.name, row.error_code) for row in answer.responses] == [("t", ERROR)]


def test_every_api_has_an_answer_with_an_error_in_its_first_and_last_version() -> None:
    lacking = []
    for api in APIS:
        if not api.is_own:
            for version in (api.request.versions[0], api.request.versions[-1]):
                answer = refused(api.request(), version)
                if "error_code" in answer.__struct_fields__ and answer.error_code not in (ERROR, 0):
                    lacking.append((api.name, version))
    assert lacking == []
    assert refused(HeartbeatRequest(), 4).error_code == ERROR


def test_an_answer_of_the_node_keeps_everything_but_its_errors() -> None:
    answer = with_error(replace(refusal(PRODUCE, 0), throttle_time_ms=9), ERROR)
    assert answer == replace(refusal(PRODUCE, ERROR), throttle_time_ms=9)


# --- rules


def test_a_rule_is_for_so_many_requests_of_its_api() -> None:
    rules = Rules()
    rule = rules.add(Rule("Produce", error=ERROR, times=2))
    assert rules.take(sent(HeartbeatRequest(), 4)) is None
    first, second, third = (sent(PRODUCE, 9) for _ in range(3))
    assert [rules.take(request) for request in (first, second, third)] == [rule, rule, None]
    assert rule.seen == [first, second]


def test_a_rule_is_for_a_client_and_a_node_if_it_names_them() -> None:
    rules = Rules()
    rule = rules.add(Rule("Produce", error=ERROR, times=None, client_id="app", node=2))
    assert rules.take(sent(PRODUCE, 9, "other", 2)) is None
    assert rules.take(sent(PRODUCE, 9, "app", 1)) is None
    assert rules.take(sent(PRODUCE, 9, "app", 2)) is rule


def test_of_several_rules_the_oldest_counts_and_one_that_has_ended_does_not() -> None:
    rules = Rules()
    first, second = rules.add(Rule("Produce", error=ERROR)), rules.add(Rule("Produce", closes=True, times=None))
    assert rules.take(sent(PRODUCE, 9)) is first
    with second:
        assert rules.take(sent(PRODUCE, 9)) is second
    assert rules.take(sent(PRODUCE, 9)) is None


def test_what_only_a_node_knows_is_asked_of_the_node() -> None:
    assert Rule("Metadata", error=ERROR).performed
    assert not Rule("Produce", error=ERROR).performed


@pytest.mark.parametrize(("name", "meant"), [("Producer", "Produce"), ("Heartbeet", "Heartbeat")])
def test_a_name_that_is_not_an_api_is_refused(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is not an API; is {meant} meant"):
        Rule(name)


def test_errors_are_known_by_name_and_number() -> None:
    assert known_error("NOT_LEADER_OR_FOLLOWER") is known_error(6) is ERROR
    with pytest.raises(ValueError, match="is NOT_LEADER_OR_FOLLOWER meant"):
        known_error("NOT_LEADER_FOR_PARTITION_OR_FOLLOWER")
    with pytest.raises(ValueError, match="9999"):
        known_error(9999)


# --- captured requests


def test_a_captured_request_has_its_records_and_says_whether_it_is_answered() -> None:
    request = sent(PRODUCE, 9)
    assert [record.value for record in request.records] == [b"one", b"two"] * 3
    assert (request.api, request.version, request.client_id, request.node) == ("Produce", 9, "app", 1)
    assert request.expects_answer
    assert not sent(replace(PRODUCE, acks=0), 9).expects_answer


def test_what_is_not_a_request_is_not_captured() -> None:
    assert heard(1, b"\x00\x01") is None
    assert heard(1, b"\x7f\x7f\x00\x00\x00\x00\x00\x01\xff\xff") is None


def test_the_last_requests_are_kept_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    captured, requests = Captured(), [sent(PRODUCE, 9) for _ in range(5)]
    for request in requests:
        captured.add(request)
    assert captured.since(0) == requests
    assert captured.since(3) == requests[3:]
    assert captured.since(5) == []
    monkeypatch.setattr("strandline.testing.answers.captured.KEPT_MAX", 4)
    captured.add(requests[0])
    assert captured.since(0) == [*requests[2:], requests[0]]
    monkeypatch.setattr("strandline.testing.answers.captured.KEPT_BYTES_MAX", 2 * requests[0].size)
    captured.add(requests[1])
    assert captured.since(0) == requests[:2]
    assert captured.since(6) == [requests[1]]
