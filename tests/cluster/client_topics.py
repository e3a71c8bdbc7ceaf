"""What tests of the client and the sink share: topics, batches, and what a topic holds by another client's account."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.client.cluster import LATEST, Cluster
from strandline.client.config import ClientConfig
from strandline.wire.batch import build
from strandline.wire.record import Record, all_records


def config_of(bootstrap: str, **options: str) -> ClientConfig:
    given = {f"kafka.{key.replace('_', '.')}": value for key, value in options.items()}
    return ClientConfig.of({"kafka.bootstrap.servers": bootstrap, **given})


def create_topic(bootstrap: str, partitions: int = 1, replication: int = 1, **configs: str) -> str:
    """A new topic, by a name of its own."""
    name = f"t-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    given = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, partitions, replication, config=given)])[name].result()
    return name


def delete_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result()


def recreate_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    delete_topic(bootstrap, name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()


def batch_of(values: Iterable[bytes], timestamp: int = 1_000) -> bytearray:
    return bytearray(build([(timestamp, None, value, ()) for value in values]))


def records_in(cluster: Cluster, topic: str, partition: int = 0, **how: Any) -> list[Record]:
    """All that our own client reads."""
    end = cluster.list_offsets({(topic, partition): LATEST})[topic, partition].offset
    found: list[Record] = []
    for fetched in cluster.read(topic, partition, 0, end, **how):
        found += all_records(bytes(fetched.records))
    return found


@contextmanager
def consumer(bootstrap: str) -> Iterator[Consumer]:
    opened = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid4().hex, "enable.auto.commit": False})
    try:
        yield opened
    finally:
        opened.close()


def consumed(bootstrap: str, topic: str, partition: int = 0) -> list[Any]:
    """All messages of a partition, as librdkafka reads them."""
    with consumer(bootstrap) as reading:
        _, end = reading.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        reading.assign([TopicPartition(topic, partition, 0)])
        found: list[Any] = []
        here = 0
        while here < end:
            for message in reading.consume(min(end - here, 10_000), timeout=10):  # as many, or ten seconds
                assert message.error() is None
                found.append(message)
                here = message.offset() + 1
        return found
