"""What librdkafka makes of answers: why a broker must not take a batch that comes behind one that it refused."""

import time
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cluster.driving import quiet
from tests.unit.client.scripted import Session
from tests.unit.client.test_producing import Taker

from strandline.base.errors import ErrorCode as E
from strandline.wire.batch import read_header
from strandline.wire.messages.records.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

pytestmark = pytest.mark.cluster
FETCH = 1


class Judge(Taker):
    """It refuses the first batch once; then it takes any sequence, or only those that follow what it has."""

    def __init__(self, *, takes_any: bool) -> None:
        super().__init__(E.NOT_ENOUGH_REPLICAS)
        self.answers[FETCH] = lambda session, request: None  # librdkafka wants to see it before it is idempotent
        self.takes_any = takes_any

    def produce(self, session: Session, request: ProduceRequest) -> ProduceResponse | None:
        if self.fates:
            time.sleep(0.2)  # the client has sent the others, too, when it is refused
        elif self.takes_any:
            (topic,) = request.topic_data
            (data,) = topic.partition_data
            header = read_header(bytes(data.records))  # type: ignore[arg-type]
            self.written.append((data.index, header.producer_id, header.base_sequence))
            rows = (PartitionProduceResponse(index=data.index, base_offset=header.base_sequence),)
            return ProduceResponse(
                responses=(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows),)
            )
        return super().produce(session, request)


def sent(broker: Judge) -> dict[bytes, int | None]:
    """Three records, each a batch; the offset of each that was reported as delivered."""
    delivered: dict[bytes, int | None] = {}

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None
        delivered[message.value()] = message.offset()

    settings = quiet(f"127.0.0.1:{broker.port}", enable_idempotence=True, linger_ms=0, batch_num_messages=1)
    producer = Producer(settings)
    for value in (b"0", b"1", b"2"):
        producer.produce("t", value, partition=0, on_delivery=on_delivery)
    assert producer.flush(30) == 0
    return delivered


def test_librdkafka_takes_one_success_for_that_of_all_before_it() -> None:
    with Judge(takes_any=True) as broker:
        assert sent(broker) == {b"0": None, b"1": 1, b"2": 2}, "the first one is reported without an offset"
        assert [sequence for _, _, sequence in broker.written] == [1, 2], "and it was never written"


def test_librdkafka_sends_all_again_where_what_is_behind_a_refused_batch_is_refused() -> None:
    with Judge(takes_any=False) as broker:
        assert set(sent(broker).values()) == {7}
        assert [sequence for _, _, sequence in broker.written] == [0, 1, 2]
