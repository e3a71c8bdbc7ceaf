"""Clusters in the states that the console's tests and its pictures show."""

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from tests.cluster.driving import admin_of, isr_of, leads, partition_of, quiet, until

from strandline.testing.local_cluster import LocalCluster

BOTH, ALONE = 10, 5  # records that both replicas have, and that broker 2 alone has


def produce(cluster: LocalCluster, topic: str, count: int) -> None:
    producer = Producer(quiet(cluster.bootstrap, acks="all"))
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(20) == 0


def lose_the_leader(cluster: LocalCluster, topic: str) -> None:
    """A new topic, whose broker 2 alone has the last records, and is down; 3 has those before. Its cluster writes
    high watermarks often (`replica.high.watermark.checkpoint.interval.ms`)."""
    admin = admin_of(cluster)
    new = NewTopic(topic, 1, replica_assignment=[[2, 3]], config={"min.insync.replicas": "1"})
    admin.create_topics([new])[topic].result(15)
    until(lambda: leads(cluster, topic) == 2)
    produce(cluster, topic, BOTH)
    cluster.node(3).pause()
    until(lambda: isr_of(cluster, topic) == {2})
    produce(cluster, topic, ALONE)
    checkpoint = cluster.node(2).data_path / "replication-offset-checkpoint"
    until(lambda: f"{topic} 0 {BOTH + ALONE}\n" in checkpoint.read_text())
    cluster.node(2).kill()
    cluster.node(3).resume()

    def is_lost() -> bool:
        state = partition_of(cluster, topic)
        return state is not None and state.leader_id < 0 and tuple(state.offline_replicas) == (2,)

    until(is_lost, 40)


def bring_back(cluster: LocalCluster, topic: str) -> None:
    """Broker 2, after another leader was elected."""
    cluster.node(2).start()
    until(lambda: isr_of(cluster, topic) == {2, 3}, 40)
