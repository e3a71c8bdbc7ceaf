"""Client quotas as a machine: what is counted for whom, how long clients wait, and what strict mutations refuse."""

from typing import Any

import pytest
from tests.rows import each
from tests.unit.metadata.test_image import partition as partition_record
from tests.unit.metadata.test_image import quota, topic

from strandline.base.effects import Caller, Effect, Received, Reply, ReplyTo, Throttle
from strandline.base.errors import ErrorCode as E
from strandline.base.time import Instant
from strandline.broker.quotas.metrics import families
from strandline.broker.quotas.throttling import ClientQuotas, QuotaConfig
from strandline.metadata.image import Image
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.records.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from strandline.wire.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from strandline.wire.messages.topics.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T0 = Instant(1_000_000)
CONFIG = QuotaConfig(window_count=3, window_ms=1000, mutation_window_count=2, mutation_window_ms=1000)
ALICE, ANYBODY, APP = ("user", "alice"), ("user", None), ("client-id", "app")


class World:
    def __init__(self, *records: Any) -> None:
        self.image = Image()
        for record in records:
            self.image.apply(record)
        self.ns = 0
        self.now = T0
        self.quotas = ClientQuotas(CONFIG, lambda: self.ns)
        self.sequence = 0
        self.quotas.follow(self.image)

    def to(self, message: Any, version: int, connection: int) -> ReplyTo:
        self.sequence += 1
        return ReplyTo(connection, self.sequence, 0, message.api_key, version)

    def ask(
        self,
        message: Any,
        response: Any,
        version: int = 9,
        *,
        user: str = "alice",
        client_id: str = "app",
        is_node: bool = False,
        takes_ns: int = 0,
    ) -> tuple[Any, int, Any]:
        """(the answer, the time of the throttle, what of the request went on). `response`: what the node would say."""
        caller = Caller(client_id, "h", "PLAINTEXT", f"User:{user}", is_node)
        event = Received(self.to(message, version, 5), caller, message)
        taken: Any = self.quotas.allow(self.quotas.take(event, self.now), self.image, self.now)
        effects: list[Effect] = taken if isinstance(taken, list) else [Reply(event.to, response)]
        self.ns += takes_ns
        done = self.quotas.throttle(effects, self.now)
        self.quotas.check()
        waits = [effect for effect in done if isinstance(effect, Throttle)]
        (reply,) = [effect for effect in done if isinstance(effect, Reply)]
        assert all(effect.connection == 5 for effect in waits)
        assert done == [reply, *waits], "it is told before it is made to wait"
        if waits and reply.message is not None:
            assert reply.message.throttle_time_ms == waits[0].ms
        passed = None if isinstance(taken, list) else taken.message
        return reply.message, waits[0].ms if waits else 0, passed


def produce(size: int) -> ProduceRequest:
    halves = (PartitionProduceData(0, memoryview(bytes(size // 2))), PartitionProduceData(1, bytes(size - size // 2)))
    return ProduceRequest(topic_data=(TopicProduceData("t", partition_data=(*halves, PartitionProduceData(2, None))),))


def fetched(size: int) -> FetchResponse:
    rows = (PartitionData(0, records=(bytes(size // 2), bytes(size - size // 2))), PartitionData(1))
    return FetchResponse(responses=(FetchableTopicResponse("t", partitions=rows),))


def test_without_a_quota_nothing_is_to_be_done_and_with_one_for_addresses_neither() -> None:
    assert not World().quotas.is_needed
    assert not World(quota(5.0, ("ip", None), key="connection_creation_rate")).quotas.is_needed
    world = World(quota(5.0, ALICE))
    assert world.quotas.is_needed
    world.image.apply(quota(None, ALICE))
    world.quotas.follow(world.image)
    assert not world.quotas.is_needed


def test_another_image_with_the_same_version_has_its_own_quotas() -> None:
    world = World(quota(5.0, ALICE))
    other = World(quota(7.0, ANYBODY)).image
    assert other.quotas_version == world.image.quotas_version
    world.quotas.follow(other)
    assert world.quotas.limits.by_kind == {"producer_byte_rate": {(None, ""): 7.0}}


def test_a_client_that_invents_ids_neither_fills_memory_nor_escapes_its_quota(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("strandline.broker.quotas.throttling.RATES_MAX", 4)
    world = World(quota(1000.0, ("user", None), ("client-id", None)))
    waits = [world.ask(produce(1500), ProduceResponse(), client_id=f"id-{n}")[1] for n in range(8)]
    assert len(world.quotas.rates) == 5
    assert waits[:5] == [0] * 5 and waits[5:] == [1000, 2500, 4000], "those that came late share a rate"
    assert world.ask(produce(1000), ProduceResponse(), client_id="id-0")[1] == 500
    assert world.ask(produce(1500), ProduceResponse(), user="bob", client_id="id-9")[1] == 0, "another user's is apart"


def test_who_produces_more_than_the_quota_waits_as_long_as_its_windows_are_too_full() -> None:
    world = World(quota(1000.0, ALICE))
    assert world.ask(produce(2000), ProduceResponse())[1] == 0
    assert world.ask(produce(500), ProduceResponse())[1] == 500
    assert world.ask(produce(0), ProduceResponse(), user="bob")[1] == 0
    assert world.ask(produce(500), None)[1] == 1000, "without an answer too"
    world.now = Instant(T0 + 2999)
    assert world.ask(produce(0), ProduceResponse())[1] == 1
    world.now = Instant(T0 + 3000)
    assert world.ask(produce(0), ProduceResponse())[1] == 0
    assert world.ask(HeartbeatRequest(), HeartbeatResponse())[1] == 0
    found = {row.metric.name: dict(row.samples)[("producer_byte_rate",)] for row in families(world.quotas)}
    assert found == {"strandline_client_throttled_total": 3, "strandline_client_throttle_time_ms_total": 1501}


def test_an_answer_to_a_fetch_counts_when_it_goes_and_a_fetch_is_cut_to_all_windows() -> None:
    world = World(quota(1000.0, ANYBODY, APP, key="consumer_byte_rate"))
    request = FetchRequest(max_bytes=1 << 20, min_bytes=5000)
    answer, ms, passed = world.ask(request, fetched(2500))
    assert (passed.max_bytes, passed.min_bytes) == (2000, 2000)
    assert ms == 500
    assert len(answer.responses[0].partitions) == 2, "what was read is not thrown away"
    small = FetchRequest(max_bytes=10, min_bytes=1)
    assert world.ask(small, fetched(0))[2] is small
    assert world.ask(request, fetched(2500), client_id="other")[1:] == (0, request)
    assert world.ask(request, fetched(2500), user="bob")[1] == 500, "each user for itself"


def test_time_counts_for_every_request_and_one_wait_is_a_window_at_most() -> None:
    world = World(quota(10.0, APP, key="request_percentage"))  # 100 ms of a second
    assert world.ask(HeartbeatRequest(), HeartbeatResponse(), takes_ns=200_000_000)[1] == 0
    assert world.ask(HeartbeatRequest(), HeartbeatResponse(), takes_ns=50_000_000)[1] == 500
    assert world.ask(HeartbeatRequest(), HeartbeatResponse(), takes_ns=900_000_000)[1] == 1000
    assert world.ask(HeartbeatRequest(), HeartbeatResponse(), takes_ns=900_000_000, client_id="other")[1] == 0


def test_what_a_request_takes_later_is_its_own_time_too() -> None:
    world = World(quota(10.0, APP, key="request_percentage"))
    asked = [world.to(HeartbeatRequest(), 4, connection) for connection in (5, 6)]
    for to, client_id in zip(asked, ("app", "other"), strict=True):
        caller = Caller(client_id, "h", "PLAINTEXT", "User:alice")
        world.quotas.take(Received(to, caller, HeartbeatRequest()), world.now)
    world.quotas.throttle([], world.now)
    world.ns += 10**9  # of nobody
    for to, takes_ns in zip(asked, (250_000_000, 10**9), strict=True):
        world.quotas.go_on(to, world.now)
        world.ns += takes_ns
    done = world.quotas.throttle([Reply(to, HeartbeatResponse()) for to in asked], world.now)
    assert [effect for effect in done if isinstance(effect, Throttle)] == [Throttle(5, 500)]


def test_an_answer_that_comes_later_waits_by_what_was_used_by_then() -> None:
    world = World(quota(1000.0, ALICE))
    event = Received(world.to(produce(0), 9, 5), Caller("app", "h", "PLAINTEXT", "User:alice"), produce(2500))
    world.quotas.take(event, world.now)
    assert world.quotas.throttle([], world.now) == []
    assert world.ask(produce(500), ProduceResponse())[1] == 1000
    other = Reply(ReplyTo(6, event.to.sequence, 0, 0, 9), ProduceResponse())
    assert world.quotas.throttle([other], world.now) == [other]
    (reply, wait) = world.quotas.throttle([Reply(event.to, ProduceResponse())], world.now)
    assert isinstance(reply, Reply) and reply.message is not None
    assert (reply.message.throttle_time_ms, wait) == (1000, Throttle(5, 1000))
    assert not world.quotas.pending


def test_a_connection_that_closes_is_forgotten_and_nodes_are_never_throttled() -> None:
    world = World(quota(1.0, ALICE), quota(1.0, ALICE, key="request_percentage"))
    event = Received(world.to(produce(0), 9, 5), Caller("app", "h", "PLAINTEXT", "User:alice"), produce(2500))
    world.quotas.take(event, world.now)
    world.quotas.throttle([], world.now)
    world.quotas.forget(5)
    assert not world.quotas.pending
    assert world.ask(produce(9999), ProduceResponse(), is_node=True, takes_ns=10**9)[1] == 0


def test_what_is_as_good_as_new_is_not_kept() -> None:
    world = World(quota(1.0, ("client-id", None)), quota(1.0, ("client-id", None), key="controller_mutation_rate"))
    for number in range(50):
        world.ask(produce(1), ProduceResponse(), client_id=f"c{number}")
        world.ask(create("x"), CreateTopicsResponse(), 7, client_id=f"c{number}")
    assert len(world.quotas.rates) == len(world.quotas.buckets) == 50
    world.now = Instant(T0 + 3000)
    world.ask(produce(1), ProduceResponse())
    assert (len(world.quotas.rates), len(world.quotas.buckets)) == (1, 0)


# --- mutations


def create(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=tuple(CreatableTopic(name=name, num_partitions=partitions) for name in names))


def created(*names: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=tuple(CreatableTopicResult(name=name) for name in names))


def limited(rate: float) -> World:
    """A user with this quota of mutations, in two windows of a second; topic t has two partitions."""
    parts = (partition_record(), partition_record(partition_id=1))
    return World(topic(), *parts, quota(rate, ALICE, key="controller_mutation_rate"))


def test_a_strict_request_does_what_the_quota_allows_and_names_what_it_refuses() -> None:
    world = limited(1.0)
    answer, ms, passed = world.ask(create("a", "b", "c", partitions=2), created("a", "b"), 7)
    # Two are in the bucket: a takes both, and b one more than there are at once.
    assert [row.name for row in passed.topics] == ["a", "b"]
    assert [(row.name, row.error_code) for row in answer.topics] == [
        ("a", E.NONE),
        ("b", E.NONE),
        ("c", E.THROTTLING_QUOTA_EXCEEDED),
    ]
    assert ms == 2000
    answer, ms, passed = world.ask(create("d"), created("d"), 7)
    assert passed is None, "nothing is left to ask the controller for"
    assert [(row.name, row.error_code) for row in answer.topics] == [("d", E.THROTTLING_QUOTA_EXCEEDED)]
    world.now = Instant(T0 + 2000)
    assert world.ask(create("d"), created("d"), 7)[1] == 0


def test_for_older_clients_all_is_done_and_they_wait() -> None:
    world = limited(1.0)
    answer, ms, passed = world.ask(create("a", "b", partitions=2), created("a", "b"), 5)
    assert passed == create("a", "b", partitions=2)
    assert ms == 2000
    assert answer.topics == created("a", "b").topics


COSTS = [
    (create("a"), 7, 1),
    (create("a", partitions=5), 7, 5),
    (create("a", partitions=-1), 7, 1),
    (create("a", partitions=10_001), 7, 0),
    (create("a", partitions=0), 7, 0),
    (create("t", partitions=5), 7, 0),
    (DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),)), 6, 2),
    (DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic().topic_id),)), 6, 2),
    (DeleteTopicsRequest(topics=(DeleteTopicState(name="x"),)), 6, 0),
    (DeleteTopicsRequest(topic_names=("t", "x")), 5, 2),
    (CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=6),)), 3, 4),
    (CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=1),)), 3, 0),
    (CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="x", count=6),)), 3, 0),
]


@each(("message", "version", "cost"), COSTS)
def test_a_mutation_is_a_partition_that_is_created_or_deleted(message: Any, version: int, cost: int) -> None:
    world = limited(1.0)
    world.ask(message, None, version)
    bucket = world.quotas.buckets.get(("alice", ""))
    assert (2.0 if bucket is None else bucket.refilled(1.0, world.now)) == 2.0 - cost


def test_topics_that_are_created_since_they_are_asked_for_count_and_the_answer_does_not_wait() -> None:
    world = limited(1.0)

    def creatable(*names: str, user: str = "alice") -> list[str]:
        request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))
        event = Received(world.to(request, 9, 5), Caller("app", "h", "PLAINTEXT", f"User:{user}"), request)
        world.quotas.take(event, world.now)
        found = world.quotas.creatable(event, create(*names, partitions=2), world.image, world.now)
        effects = [Reply(event.to, MetadataResponse())]
        assert world.quotas.throttle(effects, world.now) == effects
        return [topic.name for topic in found.topics]

    assert creatable("a", "b", "c") == ["a", "b"]
    assert creatable("c") == []
    assert creatable("c", user="bob") == ["c"], "he has no quota"
    assert world.ask(create("d"), None, 7)[2] is None
    world.now = Instant(T0 + 2000)
    assert creatable("c") == ["c"]


REFUSED = [
    (DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic().topic_id),)), 6, "responses"),
    (DeleteTopicsRequest(topic_names=("t",)), 5, "responses"),
    (CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=6),)), 3, "results"),
    (create("a"), 6, "topics"),
]


@each(("message", "version", "rows"), REFUSED)
def test_every_strict_request_is_refused_in_its_own_form(message: Any, version: int, rows: str) -> None:
    world = limited(1.0)
    world.ask(create("a", partitions=5), created("a"), 5)
    answer, ms, passed = world.ask(message, None, version)
    assert (ms, passed) == (3000, None)
    (row,) = getattr(answer, rows)
    assert row.error_code == E.THROTTLING_QUOTA_EXCEEDED
    assert row.name in ("a", "t") or row.topic_id == topic().topic_id


@pytest.mark.parametrize("version", [4, 2])
def test_the_version_before_a_strict_one_is_not_strict(version: int) -> None:
    world = limited(1.0)
    world.ask(create("a", partitions=5), created("a"), 5)
    message = {
        4: DeleteTopicsRequest(topic_names=("t",)),
        2: CreatePartitionsRequest(topics=(CreatePartitionsTopic(name="t", count=6),)),
    }[version]
    _, ms, passed = world.ask(message, None, version)
    assert passed == message
    assert ms == {4: 5000, 2: 7000}[version]
