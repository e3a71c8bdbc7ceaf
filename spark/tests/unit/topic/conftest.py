"""One node for the tests of the topic source that read from a real cluster, and topics of their own on it."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from spark.tests.unit.topic.engine import Query
from tests.cluster.driving import admin_of, create, leads, quiet, until

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.topic import reading


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("default"))  # PySpark's own


@pytest.fixture(scope="session")
def node(one_node: LocalCluster) -> LocalCluster:
    """A cluster of one, that no test stops."""
    return one_node


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """What a worker of Spark keeps from task to task."""
    yield
    while reading.kept:
        reading.kept.popitem()[1].close()


class Topic:
    """A topic of one test's own."""

    def __init__(self, cluster: LocalCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.producer = Producer(quiet(cluster.bootstrap, linger_ms=0))
        self.admin = admin_of(cluster)

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.cluster.bootstrap, "subscribe": self.name}

    def write(self, *values: int, partition: int = 0, timestamp_ms: int = 0, key: bytes | None = None) -> None:
        """One record for each number, which is its value; on disk when this returns."""
        for value in values:
            self.producer.produce(self.name, b"%d" % value, key, partition=partition, timestamp=timestamp_ms)
        assert self.producer.flush(20) == 0

    def delete_records(self, before: int) -> None:
        """As retention does: the log's start moves."""
        done(self.admin.delete_records([TopicPartition(self.name, 0, before)]))

    def delete(self) -> None:
        done(self.admin.delete_topics([self.name], operation_timeout=10))
        until(lambda: not leads(self.cluster, self.name))

    def recreate(self) -> None:
        self.delete()
        create(self.cluster, self.name)

    def grow(self, partitions: int) -> None:
        done(self.admin.create_partitions([NewPartitions(self.name, partitions)]))
        until(lambda: leads(self.cluster, self.name, partitions - 1))
        self.producer = Producer(quiet(self.cluster.bootstrap, linger_ms=0))  # librdkafka is slow to hear of it


def done(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(15)


@pytest.fixture
def make_topic(node: LocalCluster) -> Callable[..., Topic]:
    def make(partitions: int = 1, **config: str) -> Topic:
        name = f"t-{uuid.uuid4().hex[:10]}"
        create(node, name, partitions, **config)
        return Topic(node, name)

    return make


@pytest.fixture
def start_query() -> Iterator[Callable[..., Query]]:
    with ExitStack() as queries:
        yield lambda options, **how: queries.enter_context(closing(Query(options, **how)))
