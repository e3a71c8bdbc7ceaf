"""Answers on request reach real clients, the node's own come again afterwards, and requests can be looked at."""

import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.cluster.driving import until

from strandline.testing import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("single"), pytest.mark.timeout(120)]
QUICK = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 50, "reconnect.backoff.ms": 20, "log_level": 0}


@pytest.fixture
def topic(one: Cluster) -> str:
    return one.create_topic(f"t-{uuid.uuid4().hex[:8]}")


class Writer:
    def __init__(self, strandline: Cluster, topic: str, **settings: Any) -> None:
        self.producer = Producer(strandline.client_config(client_id="app", **QUICK, **settings))
        self.topic = topic

    def write(self) -> str:
        """Empty, or the error."""
        found: list[str] = []
        self.producer.produce(
            self.topic, b"x", on_delivery=lambda error, _: found.append(error.name() if error else "")
        )
        assert self.producer.flush(30) == 0
        return found[0]


def values_in(strandline: Cluster, topic: str) -> int:
    """How many records the log has."""
    reader = Consumer(strandline.client_config(group_id="unused", **QUICK))
    try:
        return int(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        reader.close()


def test_a_retriable_error_is_tried_again_and_a_final_one_is_reported(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic)
    rule = one.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    assert writer.write() == ""
    assert (len(rule.seen), rule.left) == (2, 0)
    one.fail_next("Produce", "INVALID_RECORD")
    assert writer.write() == "INVALID_RECORD"
    assert writer.write() == ""
    assert values_in(one, topic) == 2, "the node was not asked where an error was due"


def test_an_error_after_the_node_has_acted_makes_a_duplicate(one: Cluster, topic: str) -> None:
    one.fail_next("Produce", "REQUEST_TIMED_OUT", performed=True)
    assert Writer(one, topic).write() == ""
    assert values_in(one, topic) == 2


@pytest.mark.parametrize("is_idempotent", [True, False])
@pytest.mark.parametrize("name", ["close_next", "lose_next"])
def test_a_lost_acknowledgement_makes_a_duplicate_unless_the_producer_is_idempotent(
    one: Cluster, topic: str, name: str, is_idempotent: bool
) -> None:
    writer = Writer(one, topic, enable_idempotence=is_idempotent, socket_timeout_ms=1000)
    assert writer.write() == ""
    getattr(one, name)("Produce")
    assert writer.write() == ""
    assert values_in(one, topic) == (2 if is_idempotent else 3)


def test_a_request_that_is_not_performed_leaves_nothing(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic)
    one.close_next("Produce", performed=False)
    assert writer.write() == ""
    assert values_in(one, topic) == 1


def test_an_answer_comes_late(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic)
    assert writer.write() == ""
    one.delay_next("Produce", 0.5)
    began = time.monotonic()
    assert writer.write() == ""
    assert time.monotonic() - began >= 0.5


def test_a_rule_ends_with_its_block_and_counts_for_its_client_alone(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic, message_timeout_ms=1000)
    with one.fail_next("Produce", "INVALID_RECORD", times=None, client_id="somebody else"):
        assert writer.write() == ""
    with one.fail_next("Produce", "INVALID_RECORD", times=None, client_id="app"):
        assert [writer.write() for _ in range(3)] == ["INVALID_RECORD"] * 3
    assert writer.write() == ""


def test_a_group_gets_through_errors_of_everything_that_it_asks_for(one: Cluster, topic: str) -> None:
    assert Writer(one, topic).write() == ""
    rules = [
        one.fail_next("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        one.fail_next("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        one.fail_next("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"),
    ]
    reader = Consumer(one.client_config(group_id=topic, auto_offset_reset="earliest", **QUICK))
    reader.subscribe([topic])
    message = reader.poll(30)
    assert message is not None
    assert message.value() == b"x"
    assert [len(rule.seen) for rule in rules] == [1, 1, 1]
    one.fail_next("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        reader.commit(asynchronous=False)
    assert reader.commit(asynchronous=False)
    reader.close()


def test_an_error_of_what_only_a_node_knows_keeps_the_rest_of_its_answer(one: Cluster, topic: str) -> None:
    rule = one.fail_next("Metadata", "LEADER_NOT_AVAILABLE")
    assert Writer(one, topic).write() == ""
    assert len(rule.seen) == 1
    assert len(one.requests("Metadata", client_id="app")) > 1


def test_a_member_whose_heartbeats_are_held_is_out_of_its_group(one: Cluster, topic: str) -> None:
    settings = {"group_id": topic, "session_timeout_ms": 1000, "heartbeat_interval_ms": 100, "log_level": 0}
    silent = Consumer(one.client_config(client_id="silent", **settings))
    other = Consumer(one.client_config(client_id="other", **settings))
    silent.subscribe([topic])
    until(lambda: silent.poll(0.05) or silent.assignment())
    one.hold_heartbeats("silent")
    other.subscribe([topic])
    until(lambda: other.poll(0.05) or other.assignment())
    assert one.requests("Heartbeat", client_id="silent")
    one.end_rules()
    for consumer in (silent, other):
        consumer.close()


def test_requests_are_captured_with_their_records_for_each_client(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic, acks=1)
    writer.write()
    Producer(one.client_config(client_id="other", **QUICK)).list_topics(timeout=10)
    (request,) = one.requests("Produce", client_id="app")
    assert request.message.acks == 1
    assert [record.value for record in request.records] == [b"x"]
    assert one.requests("Produce", client_id="other") == one.requests("Produce", node=2) == []
    assert {request.api for request in one.requests(client_id="other")} >= {"ApiVersions", "Metadata"}
    one.forget_requests()
    assert one.requests() == []
    with pytest.raises(ValueError, match="is Produce meant"):
        one.requests("Producer")


def test_a_producer_that_wants_no_answer_is_captured_too(one: Cluster, topic: str) -> None:
    writer = Writer(one, topic, acks=0)
    assert [writer.write() for _ in range(3)] == ["", "", ""]
    writer.producer.list_topics(timeout=10)
    assert len(one.requests("Produce", client_id="app")) >= 1
    assert all(not request.expects_answer for request in one.requests("Produce"))
