"""kafka-python, whose protocol code is its own, against a cluster that stays whole."""

import threading
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.driving import create, leads, until
from tests.cluster.network.proxy import Proxies

from strandline.testing.local_cluster import LocalCluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import NewTopic
    from kafka.errors import GroupSubscribedToTopicError, NoError
    from kafka.structs import OffsetAndMetadata

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

DAY_ONE = 1_700_000_000_000


def send(cluster: LocalCluster, topic: str, *values: bytes | None, **settings: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), acks="all", **settings)
    try:
        sent = [
            producer.send(topic, value, key=b"k%d" % i, timestamp_ms=DAY_ONE + i, headers=[("n", b"%d" % i)])
            for i, value in enumerate(values)
        ]
        for future in sent:
            future.get(15)
    finally:
        producer.close()


def reader(cluster: LocalCluster, *topics: str, **settings: Any) -> Any:
    # The client may share out partitions before it knows any (docs/clients.md), and then asks again after this time.
    asks = {"metadata_max_age_ms": 1000}
    chosen = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **asks, **settings}
    return KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap.split(","), **chosen)


def take(consumer: Any, count: int) -> list[Any]:
    taken: list[Any] = []

    def enough() -> bool:
        for records in consumer.poll(timeout_ms=100, max_records=count - len(taken)).values():
            taken.extend(records)
        return len(taken) >= count

    until(enough)
    return taken


@pytest.fixture
def admin(shared_cluster: LocalCluster) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=shared_cluster.bootstrap.split(","))
    yield client
    client.close()


@pytest.mark.parametrize("codec", [None, "gzip"])  # its other codecs need more packages; aiokafka is tried with them
def test_records_come_back_as_they_were_sent(shared_cluster: LocalCluster, topic: str, codec: str | None) -> None:
    values = [b"", None, b"x" * 300_000, b"last"]
    send(shared_cluster, topic, *values, compression_type=codec)
    consumer = reader(shared_cluster, topic)
    got = take(consumer, 4)
    consumer.close()
    assert [record.value for record in got] == values
    assert [record.key for record in got] == [b"k%d" % i for i in range(4)]
    assert [record.timestamp for record in got] == [DAY_ONE + i for i in range(4)]
    assert [tuple(map(tuple, record.headers)) for record in got] == [(("n", b"%d" % i),) for i in range(4)]


def test_an_idempotent_producer_a_seek_and_the_ends(shared_cluster: LocalCluster, topic: str) -> None:
    send(shared_cluster, topic, *[b"%d" % i for i in range(50)], enable_idempotence=True)
    where = TopicPartition(topic, 0)
    consumer = reader(shared_cluster)
    consumer.assign([where])
    assert consumer.beginning_offsets([where]) == {where: 0}
    assert consumer.end_offsets([where]) == {where: 50}
    assert consumer.offsets_for_times({where: DAY_ONE + 20})[where].offset == 20
    consumer.seek(where, 40)
    assert take(consumer, 1)[0].value == b"40"
    consumer.close()


def test_a_subscription_made_while_the_client_asks_for_the_brokers_is_forgotten_by_the_client(
    shared_cluster: LocalCluster, topic: str
) -> None:
    """docs/clients.md. The answer to the older question clears the mark that a newer one is to be asked: then nobody
    asks for the topic, and nothing is fetched, however long its records have been there."""
    send(shared_cluster, topic, b"v")
    proxies = Proxies()
    port = proxies.before(1, shared_cluster.node(1).port)
    proxies.slow(1, 200)  # time for what otherwise needs a thread that stands still for a moment
    consumer = KafkaConsumer(bootstrap_servers=f"127.0.0.1:{port}", api_version=(2, 8), auto_offset_reset="earliest")
    until(lambda: consumer._cluster.metadata_refresh_in_progress)
    consumer.subscribe([topic])
    assert consumer.poll(3000) == {}
    assert consumer.assignment() == set()
    assert topic in consumer.topics()  # which asks again
    assert take(consumer, 1)[0].value == b"v"
    consumer.close()


def test_a_group_goes_on_where_it_committed(shared_cluster: LocalCluster, topic: str, admin: Any) -> None:
    send(shared_cluster, topic, b"1", b"2", b"3")
    where = TopicPartition(topic, 0)
    first = reader(shared_cluster, topic, group_id=topic)
    take(first, 3)
    first.commit({where: OffsetAndMetadata(1, "note", -1)})
    first.close()
    second = reader(shared_cluster, topic, group_id=topic)
    assert take(second, 1)[0].value == b"2"
    assert second.committed(where) == 1
    assert topic in str(admin.list_groups())
    second.close()
    until(lambda: "Empty" in str(admin.describe_groups([topic])))
    admin.delete_groups([topic])
    assert topic not in str(admin.list_groups())


def test_two_members_share_the_partitions(shared_cluster: LocalCluster) -> None:
    name = f"k-{uuid.uuid4().hex[:10]}"
    create(shared_cluster, name, partitions=4)
    settings = {"group_id": name, "heartbeat_interval_ms": 200, "session_timeout_ms": 6000}
    one, two = Member(reader(shared_cluster, name, **settings)), Member(reader(shared_cluster, name, **settings))
    until(lambda: len(one.partitions) == len(two.partitions) == 2, 60)
    assert one.partitions | two.partitions == {TopicPartition(name, p) for p in range(4)}
    two.leave()
    until(lambda: len(one.partitions) == 4, 60)
    one.leave()


class Member:
    """A consumer that polls in a thread of its own, as a member of a group must: only so does it hear of rebalances."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.partitions: set[Any] = set()
        self.running = True
        self.thread = threading.Thread(target=self.poll)
        self.thread.start()

    def poll(self) -> None:
        while self.running:
            self.consumer.poll(100)
            self.partitions = self.consumer.assignment()
        self.consumer.close()

    def leave(self) -> None:
        self.running = False
        self.thread.join()


def test_topics_are_created_grown_and_deleted(shared_cluster: LocalCluster, admin: Any) -> None:
    name = f"k-{uuid.uuid4().hex[:10]}"
    admin.create_topics([NewTopic(name, 2, 3)])
    until(lambda: leads(shared_cluster, name, 1))
    # Any node may be asked, and each learns of the topic in its own time.
    until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 2)
    admin.create_partitions({name: 3})
    until(lambda: leads(shared_cluster, name, 2))
    admin.delete_topics([name])
    until(lambda: name not in admin.list_topics())


def test_the_metadata_quorum_is_described(shared_cluster: LocalCluster, admin: Any) -> None:
    (quorum,) = admin.describe_metadata_quorum()["topics"][0]["partitions"]
    assert quorum["leader_id"] in {1, 2, 3}
    assert {voter["replica_id"] for voter in quorum["current_voters"]} == {1, 2, 3}


def test_only_what_a_transaction_commits_is_read(shared_cluster: LocalCluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=shared_cluster.bootstrap.split(","), transactional_id=topic)
    try:
        producer.init_transactions()
        for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin_transaction()
            producer.send(topic, value).get(15)
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    consumer = reader(shared_cluster, topic, isolation_level="read_committed")
    try:
        assert [record.value for record in take(consumer, 2)] == [b"a", b"c"]
    finally:
        consumer.close()


def test_offsets_of_topics_that_nobody_reads_are_deleted(shared_cluster: LocalCluster, topic: str, admin: Any) -> None:
    at = TopicPartition(topic, 0)
    send(shared_cluster, topic, b"a", b"b")
    consumer = reader(shared_cluster, topic, group_id=topic)
    take(consumer, 2)
    consumer.commit()
    assert admin.delete_group_offsets(topic, [at]) == {at: GroupSubscribedToTopicError}
    consumer.close()
    assert admin.list_group_offsets({topic: None})[topic][at].offset == 2
    assert admin.delete_group_offsets(topic, [at]) == {at: NoError}
    assert admin.list_group_offsets({topic: None})[topic] == {}
