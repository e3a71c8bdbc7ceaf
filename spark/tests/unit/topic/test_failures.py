"""What nodes that die do to a reader: another leader in mid-read, and a log that comes back shorter."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest
from spark.tests.unit.topic.conftest import Topic
from spark.tests.unit.topic.engine import Query
from tests.cluster.driving import create, leader_of, leads, until

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import DataLoss
from strandline_spark.topic.source import DefaultSource

SIZE = 20_000  # bytes of a value: a fetch has a few records only


def read_slowly(topic: Topic, **options: str) -> Iterator[list[int]]:
    """The offsets of one partition, batch by batch."""
    source = DefaultSource(options={**topic.options, "kafka.max.partition.fetch.bytes": "50000", **options})
    reader = source.reader(schema=source.schema())
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield batch.column("offset").to_pylist()


def test_a_leader_that_dies_in_mid_read_costs_no_record(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 3) as cluster:
        create(cluster, "t")
        topic = Topic(cluster, "t")
        for _ in range(50):
            topic.producer.produce("t", b"x" * SIZE)
        assert topic.producer.flush(20) == 0
        read = read_slowly(topic)
        offsets = next(read)
        leader = cluster.node(leader_of(cluster, "t"))
        leader.kill()
        for batch in read:
            offsets += batch
        assert offsets == list(range(50))
        until(lambda: leads(cluster, "t") not in (0, leader.node_id))


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[Topic]:
    """A topic on one node that loses what its disk has not synced."""
    cluster = LocalCluster(tmp_path, 1)
    cluster.lay_out()
    cluster.nodes[0].can_lose_power()
    with cluster:
        create(cluster, "t")
        yield Topic(cluster, "t")


def lose_power(topic: Topic) -> None:
    (node,) = topic.cluster.nodes
    node.cut_power()
    node.start()
    node.wait_listening()
    node.wait_sees(1)
    until(lambda: leads(topic.cluster, topic.name))


def test_records_that_were_read_and_then_lost_are_reported_although_others_took_their_offsets(frail: Topic) -> None:
    frail.write(*range(10))
    with closing(Query(frail.options)) as strict, closing(Query({**frail.options, "failOnDataLoss": "false"})) as query:
        assert len(strict.trigger() or []) == 10
        assert len(query.trigger() or []) == 10
        lose_power(frail)
        frail.write(*range(100, 120))  # the log is longer than before: by offsets alone nothing has happened
        with pytest.raises(DataLoss) as lost:
            strict.trigger()
        assert "t-0 was truncated: the record before offset 10 was of leader epoch 0" in lost.value.problem
        assert query.values() == list(range(100, 120))


def test_a_batch_that_was_planned_before_its_records_were_lost_is_not_read_from_others(frail: Topic) -> None:
    frail.write(*range(10))
    with closing(Query(frail.options)) as query:
        assert query.plan()
        lose_power(frail)
        frail.write(*range(100, 120))
        with pytest.raises(DataLoss) as lost:
            query.trigger()
        assert "truncated" in lost.value.problem


def test_a_query_outlives_a_moment_in_which_no_broker_is_there(frail: Topic) -> None:
    (node,) = frail.cluster.nodes
    frail.write(0)
    with closing(Query(frail.options)) as query:
        assert query.values() == [0]
        node.kill()
        returns = Timer(1.5, node.start)
        returns.start()
        assert query.values() == []
        returns.join()
        node.wait_sees(1)
        frail.write(1)
        assert query.values() == [1]


def test_a_node_that_comes_back_with_all_its_records_has_lost_nothing(frail: Topic) -> None:
    frail.write(*range(10))
    with closing(Query(frail.options)) as query:
        assert len(query.trigger() or []) == 10
        (node,) = frail.cluster.nodes
        node.kill()
        node.start()
        node.wait_listening()
        node.wait_sees(1)
        frail.write(10)
        assert query.values() == [10]
