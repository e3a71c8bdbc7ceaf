"""Few replicas, and replicas whose logs hold what the others never had."""

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from tests.cluster.driving import (
    assert_nothing_lost,
    batches_on,
    create,
    flowing,
    headers_on,
    isr_of,
    leader_of,
    logs_agree,
    partition_of,
    quiet,
    read_all,
    until,
)

from strandline.testing.local_cluster import LocalCluster
from strandline.wire.batch import build

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def produce(cluster: LocalCluster, value: bytes, *, at: str | None = None, **settings: object) -> KafkaError | None:
    """Produce one record to partition 0 of topic t; the error, if there was one."""
    outcome: list[KafkaError | None] = []
    producer = Producer(quiet(at or cluster.bootstrap, reconnect_backoff_max_ms=200, **settings))
    producer.produce("t", value, partition=0, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(30)
    (error,) = outcome
    return error


def test_a_leader_that_hangs_for_less_than_its_session_keeps_leading(cluster: LocalCluster) -> None:
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        leader = leader_of(cluster, "t")
        partition = partition_of(cluster, "t")
        assert partition is not None
        cluster.node(leader).pause()
        time.sleep(2.0)  # the length of the hang is what this test is about
        cluster.node(leader).resume()
        flow.progress()
        after = partition_of(cluster, "t")
        assert after is not None
        assert (after.leader_id, after.leader_epoch) == (leader, partition.leader_epoch)
    assert_nothing_lost(cluster, "t", flow)


def test_with_fewer_in_sync_replicas_than_asked_for_acks_all_is_refused_and_acks_1_is_not(
    cluster: LocalCluster,
) -> None:
    # The metadata quorum needs two of three nodes to shrink an ISR, so all three are asked for and one is down.
    create(cluster, "t", min_insync_replicas="3")
    leader = leader_of(cluster, "t")
    down = next(node for node in cluster.nodes if node.node_id != leader)
    assert produce(cluster, b"all are here", acks="all") is None
    down.kill()
    until(lambda: len(isr_of(cluster, "t")) == 2)
    error = produce(cluster, b"refused", acks="all", message_timeout_ms=1500, retries=0)
    assert error is not None
    assert error.code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert produce(cluster, b"one is enough", acks=1) is None
    down.start()
    until(lambda: len(isr_of(cluster, "t")) == 3, 30)
    assert produce(cluster, b"whole again", acks="all") is None
    until(lambda: logs_agree(cluster, "t"))
    assert read_all(cluster, "t") == [b"all are here", b"one is enough", b"whole again"]


def test_with_two_of_three_nodes_down_nothing_that_is_not_replicated_is_acknowledged(cluster: LocalCluster) -> None:
    create(cluster, "t")
    assert produce(cluster, b"before", acks="all") is None
    leader = leader_of(cluster, "t")
    others = [node for node in cluster.nodes if node.node_id != leader]
    for node in others:
        node.kill()
    error = produce(cluster, b"alone", acks="all", message_timeout_ms=2500)
    assert error is not None
    for node in others:
        node.start()
    until(lambda: len(isr_of(cluster, "t")) == 3, 30)
    # The ISR may still shrink now: then the broker says that too few have it, and the producer sends it again.
    assert produce(cluster, b"after", acks="all", message_timeout_ms=30_000, enable_idempotence=True) is None
    until(lambda: logs_agree(cluster, "t"))
    values = read_all(cluster, "t")
    # A record whose producer gave up may be there or not; the acknowledged ones must be.
    assert values in ([b"before", b"after"], [b"before", b"alone", b"after"])


def newest_segment(folder: Path) -> Path:
    return max(folder.glob("*.log"))


def test_a_follower_with_a_batch_of_an_old_epoch_that_the_leader_never_had_is_cut_back(cluster: LocalCluster) -> None:
    create(cluster, "t")
    assert produce(cluster, b"of epoch 0", acks="all") is None
    first = leader_of(cluster, "t")
    follower = next(node for node in cluster.nodes if node.node_id != first)
    until(lambda: logs_agree(cluster, "t"))
    follower.kill()
    last = headers_on(follower, "t")[-1]
    bogus = build(
        [(last.max_timestamp, b"k", b"never acknowledged", ())] * 3,
        base_offset=last.next_offset,
        leader_epoch=last.partition_leader_epoch,
    )
    with newest_segment(follower.data_path / "t-0").open("ab") as segment:
        segment.write(bogus)
    # A new leader epoch begins, and its records take the offsets of the bogus batch.
    cluster.node(first).kill()
    cluster.node(first).start()
    until(lambda: first in isr_of(cluster, "t"), 30)
    until(lambda: (partition := partition_of(cluster, "t")) and partition.leader_epoch > last.partition_leader_epoch)
    assert produce(cluster, b"of a later epoch", acks="all") is None
    follower.start()
    until(lambda: follower.node_id in isr_of(cluster, "t"), 30)
    until(lambda: logs_agree(cluster, "t"))
    assert bogus not in batches_on(follower, "t")
    assert read_all(cluster, "t") == [b"of epoch 0", b"of a later epoch"]


def test_a_leader_that_dies_with_records_nobody_copied_comes_back_without_them(cluster: LocalCluster) -> None:
    create(cluster, "t")
    assert produce(cluster, b"copied", acks="all") is None
    leader = cluster.node(leader_of(cluster, "t"))
    followers = [node for node in cluster.nodes if node is not leader]
    until(lambda: logs_agree(cluster, "t"))
    for node in followers:
        node.pause()
    # The first answers fetches that the followers had sent before they hung; the second reaches nobody.
    assert produce(cluster, b"on its way", at=leader.address, acks=1) is None
    assert produce(cluster, b"acknowledged by one node alone", at=leader.address, acks=1) is None
    assert len(batches_on(leader, "t")) == 3
    leader.kill()
    for node in followers:
        node.resume()
    until(lambda: leader_of(cluster, "t") != leader.node_id, 30)
    assert produce(cluster, b"of the new leader", acks="all") is None
    leader.start()
    until(lambda: leader.node_id in isr_of(cluster, "t"), 30)
    until(lambda: logs_agree(cluster, "t"))
    values = [value for value in read_all(cluster, "t") if value != b"on its way"]
    assert values == [b"copied", b"of the new leader"]
