"""A producer and a broker that is written down here: what is asked, and how often."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.client.scripted import ScriptedBroker, Session

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import KafkaError, ProduceFailed
from strandline.client.producing import Produced, Producer
from strandline.wire.batch import NO_SEQUENCE, build, read_header
from strandline.wire.messages.records.init_producer_id import InitProducerIdResponse
from strandline.wire.messages.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from strandline.wire.messages.topics.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Taker(ScriptedBroker):
    """It leads three partitions, and refuses batches as it is told: one entry each, None ends the connection."""

    def __init__(self, *fates: ErrorCode | None, produce_version: int = 11) -> None:
        super().__init__({3: self.town, 0: self.produce, 22: self.identify}, versions_max={0: produce_version})
        self.fates = list(fates)
        self.written: list[tuple[int, int, int]] = []  # partition, producer id, sequence
        self.requests: list[ProduceRequest] = []
        self.ids = 0

    def town(self, session: Session, request: Any) -> MetadataResponse:
        rows = [MetadataResponsePartition(partition_index=i, leader_id=1, leader_epoch=0) for i in range(3)]
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port),),
            topics=(MetadataResponseTopic(name="t", topic_id=b"1" * 16, partitions=tuple(rows)),),  # type: ignore[arg-type]
        )

    def identify(self, session: Session, request: Any) -> InitProducerIdResponse:
        self.ids += 1
        return InitProducerIdResponse(producer_id=100 * self.ids, producer_epoch=0)

    def produce(self, session: Session, request: ProduceRequest) -> ProduceResponse | None:
        self.requests.append(request)
        topics = []
        for topic in request.topic_data:
            rows = []
            for data in topic.partition_data:
                fate = self.fates.pop(0) if self.fates else ErrorCode.NONE
                if fate is None:
                    return None
                header = read_header(bytes(data.records))  # type: ignore[arg-type]
                before = [row[:2] for row in self.written].count((data.index, header.producer_id))
                if fate is ErrorCode.NONE and header.base_sequence not in (before, NO_SEQUENCE):
                    fate = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                if fate is ErrorCode.NONE:
                    self.written.append((data.index, header.producer_id, header.base_sequence))
                rows.append(PartitionProduceResponse(index=data.index, error_code=fate, base_offset=7))
            topics.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(rows))
            )
        return ProduceResponse(responses=tuple(topics))


def opened(broker: Taker, **options: str) -> Cluster:
    given = {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "kafka.retry.backoff.ms": "5"}
    return Cluster(ClientConfig.of({**servers, **given}))


def batch() -> bytearray:
    return bytearray(build([(0, None, b"v", ())]))


def sent(broker: Taker, count: int = 3, **options: str) -> list[Produced]:
    reported: list[Produced] = []
    with opened(broker, **options) as cluster, Producer(cluster, acknowledged=reported.append) as producer:
        for _ in range(count):
            producer.send("t", 0, batch())
        producer.flush()
        assert producer.queued_bytes == 0
    return reported


@pytest.mark.parametrize("version", [3, 8, 11, 13])
def test_batches_of_several_partitions_in_old_and_new_versions(version: int) -> None:
    reported: list[Produced] = []
    with Taker(produce_version=version) as broker, opened(broker) as cluster:
        with Producer(cluster, acknowledged=reported.append) as producer:
            for partition in (0, 1, 2, 0, 1, 2):
                producer.send("t", partition, batch(), tag=partition)
            producer.flush()
        assert sorted(broker.written) == [(p, 100, s) for p in range(3) for s in range(2)]
        assert {request.acks for request in broker.requests} == {-1}
    assert sorted(row.tag for row in reported) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("version", [11, 13])
def test_a_refusal_of_one_partition_says_nothing_of_others_in_the_same_answer(version: int) -> None:
    """Without idempotence, what the broker has and is sent again is there twice."""
    with (
        Taker(ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, produce_version=version) as broker,
        opened(broker, enable_idempotence="false", max_in_flight_requests_per_connection="1") as cluster,
        Producer(cluster) as producer,
    ):
        for partition in (0, 0, 1, 2):  # while the first is under way, the others gather
            producer.send("t", partition, batch())
        producer.flush()
        assert [len(topic.partition_data) for row in broker.requests for topic in row.topic_data] == [1, 3, 1]
        assert [row[0] for row in broker.written] == [0, 1, 2, 0]


@pytest.mark.parametrize(
    "fate", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS, None]
)
def test_what_passes_by_itself_is_sent_again_in_order(fate: ErrorCode | None) -> None:
    with Taker(fate, ErrorCode.NONE, fate) as broker:
        assert len(sent(broker)) == 3
        assert broker.written == [(0, 100, 0), (0, 100, 1), (0, 100, 2)]


def test_a_duplicate_is_an_acknowledgement() -> None:
    with Taker(ErrorCode.DUPLICATE_SEQUENCE_NUMBER) as broker:
        assert len(sent(broker, 1)) == 1


def test_a_duplicate_of_a_sequence_that_others_use_too_is_none() -> None:
    """Brokers that say so look at the first sequence alone: the rest of the batch is perhaps not there."""
    with (
        Taker(ErrorCode.DUPLICATE_SEQUENCE_NUMBER) as broker,
        opened(broker) as cluster,
        Producer(cluster, producer=(7, 0), renews=False) as producer,
        pytest.raises(ProduceFailed, match="DUPLICATE_SEQUENCE_NUMBER"),
    ):
        producer.send("t", 0, batch())
        producer.flush()


def test_what_comes_behind_a_failure_is_not_taken_for_a_lost_sequence() -> None:
    fates = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    with Taker(*fates) as broker:
        assert len(sent(broker)) == 3
        assert broker.written == [(0, 100, 0), (0, 100, 1), (0, 100, 2)]


def test_a_lost_sequence_is_gone_on_with_by_another_producer() -> None:
    with Taker(
        ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    ) as broker:
        assert len(sent(broker)) == 3
        assert broker.written == [(0, 100, 0), (0, 200, 0), (0, 200, 1)]


def test_what_is_refused_for_good_is_reported_with_its_partition() -> None:
    with Taker(ErrorCode.TOPIC_AUTHORIZATION_FAILED) as broker, pytest.raises(ProduceFailed) as caught:
        sent(broker)
    assert "cannot write to t-0: TOPIC_AUTHORIZATION_FAILED" in str(caught.value)
    assert not caught.value.maybe_written


def test_retries_and_time_have_an_end() -> None:
    with Taker(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 100) as broker:
        with pytest.raises(ProduceFailed, match=r"after retries=2; the last failure: NOT_ENOUGH_REPLICAS") as caught:
            sent(broker, retries="2")
        assert len(broker.requests) == 3
        assert caught.value.maybe_written
    with (
        Taker(*[ErrorCode.NOT_ENOUGH_REPLICAS] * 100) as broker,
        pytest.raises(KafkaError, match=r"within delivery\.timeout\.ms=200; the last failure: NOT_ENOUGH"),
    ):
        sent(broker, delivery_timeout_ms="200", request_timeout_ms="100")


@pytest.mark.parametrize("fate", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_caller_who_takes_his_time_is_not_a_broker_that_does(
    monkeypatch: pytest.MonkeyPatch, fate: ErrorCode
) -> None:
    """The second batch waits for the first one's answer, which nobody takes while Spark works on the next rows."""
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0], sleep=time.sleep)
    for name in ("producing", "lanes"):
        monkeypatch.setattr(f"strandline.client.{name}.time", clock)
    with Taker(fate) as broker, opened(broker) as cluster, Producer(cluster) as producer:
        for _ in range(2):
            producer.send("t", 0, batch())
        passed[0] += 600
        producer.send("t", 0, batch())
        passed[0] += 600
        producer.flush()
        assert broker.written == [(0, 100, 0), (0, 100, 1), (0, 100, 2)]


def test_a_producer_that_waits_for_room_does_not_spin() -> None:
    """A batch that waits behind others, and not for its time, is no reason to look at the clock."""
    with (
        Taker() as broker,
        opened(broker, max_in_flight_requests_per_connection="1") as cluster,
        Producer(cluster) as producer,
    ):
        turns = 0
        for partition in (0, 1, 2):
            producer.send("t", partition, batch())
        while any(lane.pending for lane in producer.lanes.values()):
            producer.turn()
            turns += 1
        assert turns <= 6
