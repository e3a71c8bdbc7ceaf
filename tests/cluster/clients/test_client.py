"""The synchronous client against real nodes."""

import pickle
from pathlib import Path

import pytest
from tests.cluster.client_topics import (
    batch_of,
    config_of,
    consumed,
    create_topic,
    delete_topic,
    records_in,
    recreate_topic,
)

from strandline.base.errors import ErrorCode
from strandline.client.cluster import EARLIEST, LATEST, Cluster
from strandline.client.errors import (
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    ProduceFailed,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
    Unreachable,
)
from strandline.client.groups import Committed
from strandline.client.lanes import Pending
from strandline.client.producing import Produced, Producer
from strandline.testing.local_cluster import LocalCluster
from strandline.wire.compress import Codec

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def broker(one_node: LocalCluster) -> LocalCluster:
    """One node that no test stops."""
    return one_node


@pytest.fixture
def cluster(broker: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("strandline.client.metadata.MISSING_PATIENCE_MS", 300)
    with Cluster(config_of(broker.bootstrap)) as opened:
        yield opened  # type: ignore[misc]


def test_a_topic_shows_its_partitions_and_one_that_is_missing_is_left_out(
    cluster: Cluster, broker: LocalCluster
) -> None:
    name = create_topic(broker.bootstrap, 3)
    found = cluster.topics([name, "missing"])
    assert list(found) == [name]
    assert len(found[name].topic_id) == 22
    assert {index: view.leader for index, view in found[name].partitions.items()} == {0: 1, 1: 1, 2: 1}
    assert name in cluster.topics()
    assert [b.id for b in cluster.brokers().values()] == [1]


def test_an_illegal_name_is_refused_by_name(cluster: Cluster) -> None:
    with pytest.raises(KafkaError, match="topic a b: INVALID_TOPIC_EXCEPTION"):
        cluster.topics(["a b"])


def test_ends_and_times_are_found(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap, 2)
    cluster.produce(name, 0, batch_of([b"a", b"b"], timestamp=1000))
    cluster.produce(name, 0, batch_of([b"c"], timestamp=2000))
    ends = cluster.list_offsets({(name, 0): LATEST, (name, 1): LATEST})
    assert [(found.offset, found.leader_epoch) for found in ends.values()] == [(3, 0), (0, 0)]
    assert cluster.list_offsets({(name, 0): EARLIEST})[name, 0].offset == 0
    assert cluster.list_offsets({(name, 0): 1500})[name, 0][:2] == (2, 2000)
    assert cluster.list_offsets({(name, 0): 2001})[name, 0].offset == -1
    assert cluster.epoch_end(name, 0, 0) == (0, 3)
    assert cluster.epoch_end(name, 0, 7) == (-1, -1)


def test_what_was_produced_is_read_by_us_and_by_librdkafka(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap)
    values = [b"%d" % i for i in range(2000)]
    reported: list[Produced] = []
    with Producer(cluster, acknowledged=reported.append) as producer:
        for start in range(0, 2000, 100):
            producer.send(name, 0, batch_of(values[start : start + 100]), tag=start)
        producer.flush()
    assert [(row.base_offset, row.records, row.tag) for row in reported] == [(i, 100, i) for i in range(0, 2000, 100)]
    assert [record.value for record in records_in(cluster, name)] == values
    assert [record.value for record in records_in(cluster, name, max_bytes=1)] == values  # a batch at a time
    assert [message.value() for message in consumed(broker.bootstrap, name)] == values


def test_a_read_begins_and_ends_within_batches(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap)
    for start in range(0, 30, 10):
        cluster.produce(name, 0, batch_of([b"%d" % i for i in range(start, start + 10)]))
    fetched = list(cluster.read(name, 0, 15, 18, max_bytes=1))
    assert [row.next_offset for row in fetched] == [20]
    assert fetched[0].high_watermark == 30
    assert fetched[0].leader_epoch == 0
    assert list(cluster.read(name, 0, 18, 18)) == []


def test_acknowledgements_of_one_and_none(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap)
    assert cluster.produce(name, 0, batch_of([b"a"]), acks=1).base_offset == 0
    assert cluster.produce(name, 0, batch_of([b"b"]), acks=0).base_offset == -1
    assert cluster.produce(name, 0, batch_of([b"c"])).base_offset == 2


def test_what_is_not_there_says_so(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap)
    cluster.produce(name, 0, batch_of([b"a"]))
    with pytest.raises(OffsetOutOfRange, match=f"{name}-0 does not have offset 5: its log begins at 0 and ends at 1"):
        cluster.fetch(name, 0, 5)
    with pytest.raises(UnknownTopic, match="topic missing does not exist"):
        cluster.fetch("missing", 0, 0)
    with pytest.raises(UnknownTopic, match=f"partition {name}-7 does not exist"):
        cluster.fetch(name, 7, 0)
    with pytest.raises(UnknownTopic):
        cluster.list_offsets({("missing", 0): LATEST})
    with pytest.raises(TimedOut, match=f"Cannot fetch record for offset 1 of {name}-0 in 300 milliseconds"):
        list(cluster.read(name, 0, 0, 5, wait_ms=100, patience_ms=300))


def test_a_topic_that_was_created_anew_is_another_one(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap)
    cluster.produce(name, 0, batch_of([b"a"]))
    old = cluster.topics([name])[name].topic_id
    reading = cluster.read(name, 0, 0, 10, wait_ms=50)
    assert next(reading).next_offset == 1
    recreate_topic(broker.bootstrap, name)
    with pytest.raises(TopicIdChanged, match="was deleted and created anew") as caught:
        next(reading)
    assert (caught.value.expected, caught.value.found) == (old, cluster.topics([name])[name].topic_id)
    with pytest.raises(TopicIdChanged):
        cluster.fetch(name, 0, 0, topic_id=old)
    delete_topic(broker.bootstrap, name)
    with pytest.raises(UnknownTopic):
        cluster.fetch(name, 0, 0, topic_id=old)


def test_a_record_that_the_broker_finds_too_large_is_named(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap, max_message_bytes="1000")
    with pytest.raises(ProduceFailed, match=f"cannot write to {name}-0: MESSAGE_TOO_LARGE") as caught:
        cluster.produce(name, 0, batch_of([bytes(2000)]))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert pickle.loads(pickle.dumps(caught.value)).partition == 0


def test_a_batch_that_is_too_large_is_split_and_keeps_its_order(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap, max_message_bytes="1000")
    values = [b"%03d" % i + bytes(200) for i in range(40)]

    def pending(first: int, last: int) -> Pending:
        middle = (first + last) // 2
        return Pending(
            batch_of(values[first:last]),
            (first, last),
            (lambda: [pending(first, middle), pending(middle, last)]) if last - first > 1 else None,
        )

    reported: list[Produced] = []
    with Producer(cluster, acknowledged=reported.append) as producer:
        for start in range(0, 40, 20):
            whole = pending(start, start + 20)
            producer.send(name, 0, whole.bytes, tag=whole.tag, split=whole.split)
        producer.flush()
        producer.lanes[name, 0].check()
        assert producer.queued_bytes == 0
    assert [record.value for record in records_in(cluster, name)] == values
    assert sum(row.records for row in reported) == 40


def test_a_client_that_asks_for_a_topic_that_brokers_may_create_gets_it(cluster: Cluster) -> None:
    with pytest.raises(UnknownTopic):
        cluster.view("made-by-a-producer")
    with Producer(cluster, creates_topics=True) as producer:
        producer.send("made-by-a-producer", 0, batch_of([b"a"]))
        producer.flush()
    assert [record.value for record in records_in(cluster, "made-by-a-producer")] == [b"a"]


def test_groups_offsets_are_committed_and_read_back(cluster: Cluster, broker: LocalCluster) -> None:
    name = create_topic(broker.bootstrap, 2)
    assert cluster.offset_fetch("g") == {}
    cluster.offset_commit("g", {(name, 0): 5, (name, 1): Committed(6, 0, "m")})
    assert cluster.offset_fetch("g") == {(name, 0): Committed(5), (name, 1): Committed(6, 0, "m")}
    assert cluster.offset_fetch("g", [(name, 1)]) == {(name, 1): Committed(6, 0, "m")}


def test_a_sequence_that_the_broker_does_not_know_is_renewed_or_an_error(
    cluster: Cluster, broker: LocalCluster
) -> None:
    name = create_topic(broker.bootstrap)
    producer_id = cluster.init_producer_id()
    with Producer(cluster, producer=producer_id) as producer:
        producer.send(name, 0, batch_of([b"a"]))
        producer.flush()
    wrong = {(name, 0): 7}
    with (
        Producer(cluster, producer=producer_id, sequences=wrong, renews=False) as producer,
        pytest.raises(ProduceFailed, match="OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ):
        producer.send(name, 0, batch_of([b"b"]))
        producer.flush()
    with Producer(cluster, producer=producer_id, sequences=wrong) as producer:
        producer.send(name, 0, batch_of([b"b"]))
        producer.send(name, 0, batch_of([b"c"]))
        producer.flush()
        producer.lanes[name, 0].check()
    assert [record.value for record in records_in(cluster, name)] == [b"a", b"b", b"c"]


def test_nobody_listens(cluster: Cluster) -> None:
    with (
        Cluster(config_of("127.0.0.1:1")) as lonely,
        pytest.raises(Unreachable, match=r"no broker answers at 127\.0\.0\.1:1"),
    ):
        lonely.topics(["t"])


def test_a_follower_is_read_up_to_its_high_watermark(shared_cluster: LocalCluster) -> None:
    name = create_topic(shared_cluster.bootstrap, replication=3)
    with Cluster(config_of(shared_cluster.bootstrap)) as cluster:
        for value in (b"a", b"b"):
            cluster.produce(name, 0, batch_of([value]))
        view = cluster.topics([name])[name].partitions[0]
        for replica in view.replicas:
            assert [r.value for r in records_in(cluster, name, replica=replica)] == [b"a", b"b"]
            assert cluster.fetch(name, 0, 0, replica=replica).broker == replica
            ends = cluster.list_offsets({(name, 0): LATEST}, replica=replica)
            assert ends[name, 0].offset == 2


def test_leaders_are_killed_in_the_midst_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Idempotent, five batches in flight to three brokers; a reader follows meanwhile."""
    values = [b"%05d" % i for i in range(6000)]
    with LocalCluster(tmp_path, 3) as nodes:
        name = create_topic(nodes.bootstrap, 3, 3)
        with Cluster(config_of(nodes.bootstrap)) as cluster, Producer(cluster) as producer:
            leader = cluster.topics([name])[name].partitions[0].leader
            for at, start in enumerate(range(0, 6000, 10)):
                if at == 200:
                    nodes.node(leader).kill()
                if at == 400:
                    nodes.node(leader).start()
                for partition in range(3):
                    producer.send(name, partition, batch_of(values[start : start + 10]))
                    producer.lanes[name, partition].check()
            producer.flush()
            for partition in range(3):
                assert [r.value for r in records_in(cluster, name, partition)] == values


def test_a_read_goes_on_with_the_next_leader(tmp_path: Path) -> None:
    values = [b"%05d" % i for i in range(2000)]
    with LocalCluster(tmp_path, 3) as nodes:
        name = create_topic(nodes.bootstrap, 1, 3)
        with Cluster(config_of(nodes.bootstrap)) as cluster:
            with Producer(cluster) as producer:
                for start in range(0, 2000, 10):
                    producer.send(name, 0, batch_of(values[start : start + 10]))
                producer.flush()
            ends: list[int] = []
            for fetched in cluster.read(name, 0, 0, 2000, max_bytes=2000):
                ends.append(fetched.next_offset)
                if len(ends) == 3:
                    nodes.node(fetched.broker).kill()
            assert ends[-1] == 2000
            assert ends == sorted(set(ends))
            assert cluster.epoch_end(name, 0, 0) == (0, 2000)


def test_a_log_that_ends_before_what_was_read_is_truncated(cluster: Cluster, broker: LocalCluster) -> None:
    """As a reader sees it whose last records were cut off by an unclean election: their epoch ends earlier now."""
    name = create_topic(broker.bootstrap)
    cluster.produce(name, 0, batch_of([b"a"]))
    with pytest.raises(OffsetOutOfRange):
        cluster.fetch(name, 0, 5, leader_epoch=3)
    with pytest.raises(LogTruncated, match="epoch 0 ends at 1 now"):
        cluster.fetch(name, 0, 5, leader_epoch=0)


@pytest.mark.parametrize("codec", list(Codec))
def test_every_compression_passes_through(cluster: Cluster, broker: LocalCluster, codec: Codec) -> None:
    from strandline.wire.batch import build

    name = create_topic(broker.bootstrap)
    cluster.produce(name, 0, build([(1, b"k", b"v" * 100, (("h", b"x"),))] * 5, codec=codec))
    assert [r.value for r in records_in(cluster, name)] == [b"v" * 100] * 5
    assert [m.headers() for m in consumed(broker.bootstrap, name)] == [[("h", b"x")]] * 5
