"""Transactions of librdkafka on real processes: committed records are read, aborted ones are not, zombies fenced."""

import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.cluster.driving import create, leads, partition_of, quiet, until

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.messages.groups.find_coordinator import Coordinator, FindCoordinatorRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.transactions.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from strandline.wire.messages.transactions.describe_transactions import DescribeTransactionsRequest
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.list_transactions import ListTransactionsRequest

pytestmark = pytest.mark.cluster


@pytest.fixture
def topic(shared_cluster: LocalCluster) -> str:
    name = f"t-{uuid.uuid4().hex[:10]}"
    create(shared_cluster, name, 3)
    return name


def producer_of(cluster: LocalCluster, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer(quiet(cluster.bootstrap, transactional_id=transactional_id, linger_ms=2, **settings))
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, *values: str) -> None:
    """Each value into each partition."""
    for value in values:
        for partition in range(3):
            producer.produce(topic, value.encode(), partition=partition)


def read(cluster: LocalCluster, topic: str, isolation: str = "read_committed") -> list[tuple[int, str]]:
    """All up to the last stable offset, or to the high watermark."""
    settings = {"group_id": "none", "enable_auto_commit": False, "isolation_level": isolation}
    consumer = Consumer(quiet(cluster.bootstrap, enable_partition_eof=True, auto_offset_reset="earliest", **settings))
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    found, ends = [], 0
    while ends < 3:
        message = consumer.poll(20)
        assert message is not None, found
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends += 1
        else:
            found.append((message.partition(), message.value().decode()))
    consumer.close()
    return sorted(found)


def each_partition(*values: str) -> list[tuple[int, str]]:
    return sorted((partition, value) for partition in range(3) for value in values)


def test_a_transaction_counts_in_all_partitions_or_in_none(shared_cluster: LocalCluster, topic: str) -> None:
    producer = producer_of(shared_cluster, topic)
    producer.begin_transaction()
    write(producer, topic, "a", "b")
    assert producer.flush(20) == 0
    assert read(shared_cluster, topic) == []
    assert read(shared_cluster, topic, "read_uncommitted") == each_partition("a", "b")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a", "b")
    producer.begin_transaction()
    write(producer, topic, "c")
    assert producer.flush(20) == 0
    producer.abort_transaction(20)
    producer.begin_transaction()
    write(producer, topic, "d")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a", "b", "d")


def test_a_new_producer_aborts_what_the_one_before_it_left_open_and_fences_it(
    shared_cluster: LocalCluster, topic: str
) -> None:
    zombie = producer_of(shared_cluster, topic)
    zombie.begin_transaction()
    write(zombie, topic, "zombie")
    assert zombie.flush(20) == 0
    producer = producer_of(shared_cluster, topic)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(20)
    assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    producer.begin_transaction()
    write(producer, topic, "a")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a")


def test_a_transaction_that_is_given_up_does_not_hold_up_readers_for_ever(
    shared_cluster: LocalCluster, topic: str
) -> None:
    producer = producer_of(shared_cluster, topic, transaction_timeout_ms=1_000)
    producer.begin_transaction()
    write(producer, topic, "given up")
    assert producer.flush(20) == 0
    other = producer_of(shared_cluster, f"{topic}-other")
    other.begin_transaction()
    write(other, topic, "a")
    other.commit_transaction(20)
    assert until(lambda: read(shared_cluster, topic), 30) == each_partition("a")


def test_a_transaction_outlives_its_coordinator_and_the_leaders_of_its_partitions(cluster: LocalCluster) -> None:
    """Each node in turn is killed while a transaction is open, and once more while it is committed."""
    name = "killed"
    create(cluster, name, 3)
    producer = producer_of(cluster, name)
    expected = []
    for number, node in enumerate(cluster.nodes):
        producer.begin_transaction()
        write(producer, name, f"open {number}")
        assert producer.flush(20) == 0
        node.kill()
        write(producer, name, f"after {number}")
        producer.commit_transaction(60)
        expected += [f"open {number}", f"after {number}"]
        node.start()
        until(lambda: len(in_sync(cluster, name)) == 9)
    assert until(lambda: read(cluster, name), 30) == each_partition(*expected)


def in_sync(cluster: LocalCluster, topic: str) -> list[int]:
    found = [partition_of(cluster, topic, partition) for partition in range(3)]
    return [node for partition in found if partition is not None for node in partition.isr_nodes]


def states(leader: NodeProcess, topic: str) -> tuple[ProducerState, ...]:
    """What the leader of the first partition knows of producers."""
    asked = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),))
    (partition,) = ask(HOST, leader.port, asked, None).topics[0].partitions
    found: tuple[ProducerState, ...] = partition.active_producers
    return found


def test_an_operator_sees_who_has_a_transaction_open(shared_cluster: LocalCluster, topic: str) -> None:
    producer = producer_of(shared_cluster, topic)
    producer.begin_transaction()
    write(producer, topic, "open")
    assert producer.flush(20) == 0
    nodes = shared_cluster.nodes
    listed = [ask(HOST, node.port, ListTransactionsRequest(state_filters=("Ongoing",)), None) for node in nodes]
    (found,) = [row for answer in listed for row in answer.transaction_states if row.transactional_id == topic]
    request = DescribeTransactionsRequest(transactional_ids=(topic,))
    answers = [ask(HOST, node.port, request, None).transaction_states[0] for node in nodes]
    (described,) = [row for row in answers if row.error_code == 0]
    assert (described.producer_id, described.transaction_state) == (found.producer_id, "Ongoing")
    assert [(row.topic, sorted(row.partitions)) for row in described.topics] == [(topic, [0, 1, 2])]
    leader = next(node for node in nodes if leads(shared_cluster, topic, 0, [node]) == node.node_id)
    (state,) = states(leader, topic)
    assert (state.producer_id, state.current_txn_start_offset) == (found.producer_id, 0)
    producer.abort_transaction(20)


def test_a_client_of_the_newest_versions_names_no_partitions_and_gets_an_epoch_with_each_end(
    shared_cluster: LocalCluster, topic: str
) -> None:
    """As the Java client of 4.x: Produce 12 adds the partition, EndTxn 5 raises the epoch (KIP-890)."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=(topic,))

    def coordinator() -> Coordinator | None:
        (found,) = ask(HOST, shared_cluster.nodes[0].port, request, 5).coordinators
        return found if found.error_code == 0 else None

    at = until(coordinator)

    def begun() -> InitProducerIdResponse | None:
        asked = InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=60_000)
        answer = ask(at.host, at.port, asked, 6)
        return answer if answer.error_code == 0 else None

    producer = until(begun)
    producer_id, epoch = producer.producer_id, producer.producer_epoch
    leader = next(node for node in shared_cluster.nodes if leads(shared_cluster, topic, 0) == node.node_id)

    def produced(value: bytes, epoch: int, sequence: int) -> int:
        batch = build(
            [(0, None, value, ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        rows = (PartitionProduceData(index=0, records=batch),)
        data = (TopicProduceData(name=topic, partition_data=rows),)
        asked = ProduceRequest(transactional_id=topic, acks=-1, timeout_ms=5_000, topic_data=data)
        (answer,) = ask(HOST, leader.port, asked, 12).responses[0].partition_responses
        return int(answer.error_code)

    for value, commits in (("a", True), ("b", False), ("c", True)):
        assert produced(value.encode(), epoch, 0) == ErrorCode.NONE
        end = EndTxnRequest(transactional_id=topic, producer_id=producer_id, producer_epoch=epoch, committed=commits)
        ended = ask(at.host, at.port, end, 5)
        assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (0, producer_id, epoch + 1)
        until(lambda: states(leader, topic)[0].current_txn_start_offset == -1)  # the marker is written
        assert produced(b"late", epoch, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
        epoch = ended.producer_epoch
    assert read(shared_cluster, topic) == [(0, "a"), (0, "c")]


def test_each_input_has_one_output_though_workers_stop_in_the_middle(shared_cluster: LocalCluster, topic: str) -> None:
    """Consume, transform, produce: offsets and outputs count together, or neither does (KIP-447)."""
    out = f"{topic}-out"
    create(shared_cluster, out, 3)
    plain = Producer(quiet(shared_cluster.bootstrap))
    for number in range(60):
        plain.produce(topic, str(number).encode(), partition=number % 3)
    assert plain.flush(20) == 0
    done = 0
    for life in range(6):
        settings = {"group_id": topic, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
        consumer = Consumer(quiet(shared_cluster.bootstrap, isolation_level="read_committed", **settings))
        consumer.subscribe([topic])
        producer = producer_of(shared_cluster, topic)
        deadline = time.monotonic() + 40
        while done < 60 and time.monotonic() < deadline:
            messages = [m for m in consumer.consume(7, 1.0) if m.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                producer.produce(out, message.value(), partition=message.partition())
            offsets = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
            if life < 5 and done >= 10 * life:
                break  # it dies here: outputs and offsets are written, and nobody has committed them
            producer.commit_transaction(20)
            done += len(messages)
        consumer.close()
        del producer
    assert done == 60
    assert sorted(int(value) for _, value in read(shared_cluster, out)) == list(range(60))
