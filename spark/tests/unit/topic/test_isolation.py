"""What a source returns of transactions: with read_committed neither aborted records nor what lies behind open ones."""

import pickle
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from spark.tests.unit.topic.conftest import Topic
from spark.tests.unit.topic.engine import Query
from tests.cluster.driving import quiet

from strandline.client.cluster import LATEST, Cluster
from strandline.client.config import ClientConfig
from strandline_spark.topic.source import DefaultSource

MakeTopic = Callable[..., Topic]
COMMITTED = {"kafka.isolation.level": "read_committed"}
pytestmark = pytest.mark.timeout(60)


class Writer:
    """A transactional producer; what it writes is at the brokers when `write` returns."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        options = quiet(topic.cluster.bootstrap, transactional_id=uuid.uuid4().hex, linger_ms=0)
        self.producer = Producer(options)
        self.producer.init_transactions(20)

    def write(self, *values: int, partition: int = 0) -> None:
        for value in values:
            self.producer.produce(self.topic.name, b"%d" % value, partition=partition)
        assert self.producer.flush(20) == 0

    @contextmanager
    def transaction(self, *, commits: bool) -> Iterator[None]:
        self.producer.begin_transaction()
        yield
        self.producer.commit_transaction(20) if commits else self.producer.abort_transaction(20)
        until_stable(self.topic)


def until_stable(topic: Topic) -> None:
    """Markers follow a decision at once, but not before the answer."""
    with Cluster(ClientConfig.of(topic.options)) as cluster:
        for _ in range(500):
            ends = [cluster.list_offsets({(topic.name, 0): LATEST}, level)[topic.name, 0].offset for level in (0, 1)]
            if ends[0] == ends[1]:
                return
    raise AssertionError(ends)


def batch_values(topic: Topic, **options: str) -> list[int]:
    """As a batch query reads them, each task from what was pickled for it."""
    source = pickle.loads(pickle.dumps(DefaultSource(options={**topic.options, **options})))
    reader = source.reader(source.schema())
    tasks = [pickle.loads(pickle.dumps(task)) for task in reader.partitions()]
    return [int(value) for task in tasks for rows in reader.read(task) for value in rows.column("value").to_pylist()]


def test_aborted_records_are_in_no_committed_batch_however_the_ranges_are_cut(make_topic: MakeTopic) -> None:
    """A task may begin in the middle of an aborted transaction, whose first record another task has read over."""
    topic = make_topic()
    one, two = Writer(topic), Writer(topic)
    with one.transaction(commits=True):
        one.write(*range(10))
        two.producer.begin_transaction()
        two.write(*range(100, 110))
        one.write(*range(10, 20))
        two.write(*range(110, 120))
        two.producer.abort_transaction(20)
    with two.transaction(commits=False):
        two.write(*range(200, 220))
    with two.transaction(commits=True):
        two.write(*range(20, 25))
    for cut in ({}, {"minPartitions": "7"}, {"maxRecordsPerPartition": "3"}):
        assert batch_values(topic, **COMMITTED, **cut) == list(range(25)), cut
    assert sorted(batch_values(topic)) == [*range(25), *range(100, 120), *range(200, 220)]


def test_a_committed_batch_ends_before_the_first_open_transaction(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(0, 1)
    late, early = Writer(topic), Writer(topic)
    late.producer.begin_transaction()
    late.write(2)
    early.producer.begin_transaction()
    early.write(3)
    early.producer.commit_transaction(20)
    topic.write(4)
    assert batch_values(topic, **COMMITTED) == [0, 1], "3 is committed, and lies behind what is open"
    assert batch_values(topic, **COMMITTED, endingOffsets=f'{{"{topic.name}": {{"0": 2}}}}') == [0, 1]
    assert batch_values(topic) == [0, 1, 2, 3, 4]
    late.producer.commit_transaction(20)
    until_stable(topic)
    assert batch_values(topic, **COMMITTED) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("commits", [True, False])
def test_a_committed_stream_waits_at_an_open_transaction_and_goes_on_behind_it(
    make_topic: MakeTopic, start_query: Callable[..., Query], commits: bool
) -> None:
    topic = make_topic()
    topic.write(0)
    committed, uncommitted = start_query(topic.options | COMMITTED), start_query(topic.options)
    writer = Writer(topic)
    with writer.transaction(commits=commits):
        writer.write(1, 2)
        topic.write(3)
        assert committed.values() == [0]
        assert uncommitted.values() == [0, 1, 2, 3]
        assert committed.trigger() is None, "nothing can be read: there is no batch"
        assert committed.reader.reportLatestOffset()["topics"][topic.name]["partitions"]["0"]["offset"] == 1
    assert committed.values() == ([1, 2, 3] if commits else [3])
    assert uncommitted.values() == []


def test_a_committed_batch_that_is_repeated_after_a_crash_is_the_same_though_more_is_committed_since(
    make_topic: MakeTopic, start_query: Callable[..., Query]
) -> None:
    topic = make_topic()
    query = start_query(topic.options | COMMITTED)
    writer = Writer(topic)
    with writer.transaction(commits=False):
        writer.write(100)
    topic.write(0)
    with writer.transaction(commits=True):
        writer.write(1)
        topic.write(2)
        before = query.trigger()
    assert before is not None
    query.lose_commit()
    assert query.trigger() == before
    assert [value for _, _, value in before] == [0]
    assert query.values() == [1, 2]


def test_a_stream_that_finds_only_aborted_records_moves_on_over_them(
    make_topic: MakeTopic, start_query: Callable[..., Query]
) -> None:
    topic = make_topic()
    query = start_query(topic.options | COMMITTED)
    writer = Writer(topic)
    with writer.transaction(commits=False):
        writer.write(*range(50))
    assert query.values() == []
    topic.write(50)
    assert query.values() == [50]
