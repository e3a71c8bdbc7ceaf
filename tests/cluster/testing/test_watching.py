"""Applications' clients of three libraries are recorded against a real node, and what goes wrong is named."""

import asyncio
import uuid
import warnings
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from strandline.testing import Cluster
from strandline.testing.watching.history import HistoryIsWrong

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("single"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.timeout(120),
]
COUNT = 30


@pytest.fixture
def topic(one: Cluster) -> str:
    return one.create_topic(f"t-{uuid.uuid4().hex[:8]}")


def taken(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        found += consumer.consume(count, 1.0)
    return found


def test_confluent_kafka(one: Cluster, topic: str) -> None:
    history = one.watch(
        Producer(one.client_config(enable_idempotence=True)),
        Consumer(one.client_config(group_id=topic, auto_offset_reset="earliest")),
    )
    producer, consumer = history.clients
    consumer.subscribe([topic])
    for _ in range(COUNT):
        producer.produce(topic, b"same")
    assert producer.flush(10) == 0
    assert {message.value() for message in taken(consumer, COUNT)} == {b"same"}
    consumer.close()
    verdict = history.check()
    assert (verdict.acknowledged, verdict.read, verdict.tolerated) == (COUNT, COUNT, ())
    assert history.traits()["client 1"].is_idempotent
    assert history.traits()["client 2"].is_read_committed


def test_aiokafka(one: Cluster, topic: str) -> None:
    async def run() -> Any:
        config = one.client_config("aiokafka")
        history = one.watch(
            AIOKafkaProducer(**config, enable_idempotence=True),
            AIOKafkaConsumer(topic, **config, group_id=topic, auto_offset_reset="earliest"),
        )
        producer, consumer = history.clients
        async with producer, consumer:
            for _ in range(COUNT):
                await producer.send_and_wait(topic, b"same")
            await consumer.getone()
            async for _ in consumer:
                break
            found = 2
            while found < COUNT:
                found += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
            await consumer.seek_to_beginning()
            await consumer.getone()
        return await asyncio.to_thread(history.check)

    verdict = asyncio.run(run())
    assert (verdict.acknowledged, verdict.tolerated) == (COUNT, ())
    assert verdict.read > COUNT


def test_kafka_python(one: Cluster, topic: str) -> None:
    config = one.client_config("kafka-python")
    reading = {"group_id": topic, "auto_offset_reset": "earliest", "consumer_timeout_ms": 10_000}
    history = one.watch(KafkaProducer(**config, value_serializer=str.encode), KafkaConsumer(topic, **config, **reading))
    producer, consumer = history.clients
    for _ in range(COUNT):
        producer.send(topic, "same")
    producer.flush()
    found = [next(consumer)]
    while len(found) < COUNT:
        found += [record for records in consumer.poll(timeout_ms=500).values() for record in records]
    producer.close()
    consumer.close()
    verdict = history.check()
    assert (verdict.acknowledged, verdict.read) == (COUNT, COUNT)


def test_lost_duplicated_and_uncommitted_records_are_named_with_evidence(one: Cluster, topic: str) -> None:
    history = one.watch(
        Producer(one.client_config(transactional_id=topic)),
        Producer(one.client_config(log_level=0)),
        Consumer(
            one.client_config(
                group_id=topic, auto_offset_reset="earliest", isolation_level="read_uncommitted", log_level=0
            )
        ),
        idempotent=True,
        read_committed=True,
    )
    transactional, producer, consumer = history.clients
    one.close_next("Produce")
    producer.produce(topic, b"twice")
    assert producer.flush(10) == 0
    transactional.init_transactions(10)
    transactional.begin_transaction()
    transactional.produce(topic, b"aborted")
    transactional.flush(10)
    transactional.abort_transaction(10)
    consumer.subscribe([topic])
    taken(consumer, 3)
    consumer.close()
    with pytest.raises(HistoryIsWrong, match="1 duplicated, 1 read uncommitted") as raised:
        history.check()
    assert "b'twice #0' stands at the offsets 0, 1" in str(raised.value)
    assert "G1a in" in str(raised.value)
    one.delete_topics(topic)
    one.create_topic(topic)
    (lost, *_) = history.judge().lost
    assert lost.values == (b"twice #0",)


def test_a_history_in_which_nothing_was_acknowledged_proves_nothing(one: Cluster) -> None:
    with pytest.raises(HistoryIsWrong, match="nothing is proved"):
        one.watch(Producer(one.client_config())).check()
