"""Partitions whose last eligible replicas lose power, on real processes: who leads then, by which strategy, and what
the loss ledger says of it (KIP-966).

Nodes 1 to 3 are brokers and controllers, 4 and 5 brokers alone, so that most partitions here lose all their replicas
while the metadata quorum stands. A replica has after its loss of power what its system had written back before. Of
every acknowledged record that is gone the ledger must know: it may lie above the start of an entry, never below.
"""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.cluster.driving import QUICK, active_controller, admin_of, quiet, until

from strandline.base.errors import ErrorCode
from strandline.base.ids import METADATA_TOPIC, NOBODY
from strandline.client.ask import ask
from strandline.metadata.framing import decode_record
from strandline.metadata.image import RECOVERED, RECOVERING, Image
from strandline.metadata.losses import AT_MOST, UNKNOWN
from strandline.metadata.registrations import Partition, Topic
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.testing.power_loss import durable_files
from strandline.wire.batch import batches
from strandline.wire.messages.own.describe_losses import DescribeLossesRequest, Loss
from strandline.wire.messages.topics.elect_leaders import (
    DESIGNATION,
    LONGEST_LOG_AGGRESSIVE,
    LONGEST_LOG_BALANCED,
    ElectLeadersRequest,
    TopicPartitions,
)
from strandline.wire.record import records

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("unclean-recovery")]

E = ErrorCode
VOTERS = (1, 2, 3)
RECOVERY_MS = 3000
BALANCED, AGGRESSIVE, NONE = "Balanced", "Aggressive", "None"


class Cluster(LocalCluster):
    """Three nodes that are brokers and controllers, and two brokers; each can lose power."""

    def __init__(self, folder: Path) -> None:
        recovery = {"unclean.recovery.timeout.ms": str(RECOVERY_MS), "min.insync.replicas": "2"}
        super().__init__(folder, 5, properties={**QUICK, **recovery, "default.replication.factor": "3"})
        for node in self.nodes:
            node.can_lose_power()

    def properties_text(self, node: NodeProcess) -> str:
        rows = dict(row.split("=", 1) for row in super().properties_text(node).splitlines())
        rows["controller.quorum.voters"] = ",".join(rows["controller.quorum.voters"].split(",")[: len(VOTERS)])
        if node.node_id not in VOTERS:
            rows |= {"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{node.port}"}
        return "".join(f"{key}={value}\n" for key, value in rows.items())

    def image(self) -> Image:
        """The metadata, as the log of a voter that runs has it."""
        voter = next(node for node in self.nodes[: len(VOTERS)] if node.running)
        image = Image()
        for segment in sorted((voter.data_path / f"{METADATA_TOPIC}-0").glob("*.log")):
            content = segment.read_bytes()
            for header in batches(content):
                for record in () if header.is_control else records(header, content):
                    image.apply(decode_record(record.value))
        return image

    def partition(self, topic: str) -> Partition:
        found: Topic = until(lambda: self.image().topic_named(topic))
        return found.partitions[0]

    def create(self, topics: Mapping[str, str], *replicas: int) -> None:
        """Topics with their strategies, each with one partition that all its replicas are in sync of."""
        new = [
            NewTopic(name, 1, replica_assignment=[list(replicas)], config={"unclean.recovery.strategy": strategy})
            for name, strategy in topics.items()
        ]
        admin = admin_of(self)
        for future in admin.create_topics(new, operation_timeout=10).values():
            future.result(15)
        until(lambda: all(self.partition(name).leader == replicas[0] for name in topics))

    def start_nodes(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.node(node_id).start()
        for node_id in node_ids:
            self.node(node_id).wait_sees(1)

    def elect(self, topic: str, election_type: int, designated: int | None = None, timeout_ms: int = 15_000) -> E:
        """By hand (ElectLeaders version 3)."""
        leaders = None if designated is None else (designated,)
        asked = TopicPartitions(topic=topic, partitions=(0,), designated_leaders=leaders)
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=(asked,), timeout_ms=timeout_ms)
        answer = ask(HOST, active_controller(self).port, request, 3, timeout_s=30)
        return E(answer.replica_election_results[0].partition_result[0].error_code)

    def durable_end(self, node_id: int, topic: str) -> int:
        """Where the node's log of the topic would end after a loss of power."""
        folder, ends = f"{self.node(node_id).data_path}/{topic}-0", [0]
        for path, content in durable_files(self.node(node_id).durable_path).items():
            if Path(path).parent == Path(folder) and path.endswith(".log") and content is not None and content.exists():
                ends += [header.next_offset for header in batches(content.read_bytes())]
        return max(ends)


class Load:
    """Producers of acks=all, in a thread; which records were acknowledged, by topic and offset."""

    def __init__(self, cluster: Cluster, *topics: str) -> None:
        self.topics = topics
        self.acknowledged: dict[str, dict[int, bytes]] = {topic: {} for topic in topics}
        self.stopping = threading.Event()
        settings = quiet(
            cluster.bootstrap, linger_ms=2, reconnect_backoff_ms=20, reconnect_backoff_max_ms=200, acks="all"
        )
        self.producer = Producer(settings)
        self.thread = threading.Thread(target=self.run, name="load")

    def run(self) -> None:
        sent = 0
        while not self.stopping.is_set():
            if len(self.producer) < 500:
                for topic in self.topics:
                    self.producer.produce(topic, b"%d" % sent, partition=0, on_delivery=self.delivered)
                sent += 1
            self.producer.poll(0.002)

    def delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.acknowledged[message.topic()][message.offset()] = message.value()

    def progress(self, more: int = 100) -> None:
        """Until so many records more are acknowledged in each topic."""
        goals = {topic: len(found) + more for topic, found in self.acknowledged.items()}
        until(lambda: all(len(found) >= goals[topic] for topic, found in self.acknowledged.items()), 30)

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join()
        self.producer.purge()
        self.producer.flush(5)

    def __enter__(self) -> "Load":
        self.thread.start()
        self.progress()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def write_back(cluster: Cluster, node_id: int, *topics: str) -> None:
    """The node's system writes its dirty pages: at least what is acknowledged by now is durable there."""
    before = {topic: cluster.durable_end(node_id, topic) for topic in topics}
    cluster.node(node_id).write_back()
    until(lambda: all(cluster.durable_end(node_id, topic) > before[topic] for topic in topics))


def read(cluster: Cluster, topic: str) -> dict[int, bytes]:
    """All that a consumer finds once all replicas are in sync: a leader alone knows of no high watermark."""
    all_in_sync(cluster, topic)
    consumer = Consumer(quiet(cluster.bootstrap, group_id="unused", enable_auto_commit=False))
    try:
        where = TopicPartition(topic, 0, 0)
        end = consumer.get_watermark_offsets(where, timeout=20)[1]
        consumer.assign([where])
        found: dict[int, bytes] = {}

        def is_read() -> bool:
            for message in consumer.consume(10_000, 0.1):
                assert message.error() is None, message.error()
                found[message.offset()] = message.value()
            return bool(consumer.position([where])[0].offset >= end)

        if end:
            until(is_read, 30)
        return found
    finally:
        consumer.close()


def lost(cluster: Cluster, topic: str, load: Load) -> list[int]:
    """Offsets of acknowledged records that are not there any more; other records may be."""
    found = read(cluster, topic)
    return [offset for offset, value in sorted(load.acknowledged[topic].items()) if found.get(offset) != value]


def recovered(cluster: Cluster, topic: str) -> Partition:
    """The partition once somebody leads."""

    def led() -> Partition | None:
        partition = cluster.partition(topic)
        return partition if partition.leader != NOBODY else None

    found = until(led, 40)
    assert found is not None
    return found


def reported_losses(cluster: Cluster, node_id: int, topic: str, where: str) -> list[Loss]:
    """What the node says of the topic: of the metadata, or of its own replica."""
    answer = ask(HOST, cluster.node(node_id).port, DescribeLossesRequest(topics=(topic,)), 0)
    return [loss for loss in answer.losses if loss.where == where]


def the_loss(cluster: Cluster, topic: str, load: Load, cause: str, *, leader: int, end: int = 0) -> None:
    """There is one entry in the partition's ledger, and it accounts for everything that is lost.

    `end`: where the new leader's log ended. The entry may begin below: if another was named leader for a moment, before
    it was known to be without power too, there might be other records in that one's log.
    """
    assert len(recovered(cluster, topic).losses) == 1
    (loss,) = until(lambda: reported_losses(cluster, leader, topic, "metadata"))
    assert cause in loss.cause
    assert (loss.replica, loss.certainty) == (leader, AT_MOST if end else UNKNOWN)
    gone = lost(cluster, topic, load)
    assert gone, "records lay in page caches alone, so some must be gone"
    assert loss.start <= min(gone[0], end)
    assert end <= gone[0]
    assert any(own.start <= gone[0] for own in reported_losses(cluster, leader, topic, "replica")), (
        "it knew when it began"
    )


def all_in_sync(cluster: Cluster, *topics: str) -> None:
    until(lambda: all(set(cluster.partition(t).isr) == set(cluster.partition(t).replicas) for t in topics), 40)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Each test leaves all nodes running."""
    with Cluster(tmp_path_factory.mktemp("recovery")) as cluster:
        yield cluster


def test_all_nodes_lose_power_at_once_under_load(cluster: Cluster) -> None:
    """Balanced: who has the longest log leads, and its ledger entry bounds what was acknowledged and is gone."""
    cluster.create({"everywhere": BALANCED}, 1, 2, 3)
    with Load(cluster, "everywhere") as load:
        write_back(cluster, 1, "everywhere")
        load.progress()
        write_back(cluster, 2, "everywhere")
        load.progress()
        for node in cluster.nodes:
            node.kill()
        load.stop()
        for node in cluster.nodes:
            node.cut_power()
        ends = {node_id: cluster.durable_end(node_id, "everywhere") for node_id in VOTERS}
        assert 0 == ends[3] < ends[1] < ends[2] <= max(load.acknowledged["everywhere"])
        cluster.start_nodes(1, 2, 3, 4, 5)
    the_loss(cluster, "everywhere", load, "unclean recovery, Balanced", leader=2, end=ends[2])
    assert cluster.partition("everywhere").leader_recovery_state == RECOVERED


def test_one_of_the_replicas_that_were_eligible_last_stays_away(cluster: Cluster) -> None:
    """Both replicas of some topics lose power; one is back for a while, then only the other is there.

    Aggressive takes who answers within its time, also if the controller dies meanwhile. Balanced waits for the one that
    is away, unless somebody decides by hand; and with None nobody leads at all until somebody does.
    """
    by_hand = {"designated": BALANCED, "longest": BALANCED, "none": NONE}
    topics = {"aggressive": AGGRESSIVE, "waits": BALANCED, **by_hand}
    cluster.create(topics, 4, 5)
    with Load(cluster, *topics) as load:
        write_back(cluster, 4, *topics)
        load.progress()
        write_back(cluster, 5, *topics)
        load.progress()
        for node_id in (4, 5):
            cluster.node(node_id).kill()
        load.stop()
        for node_id in (4, 5):
            cluster.node(node_id).cut_power()
    ends = {topic: {node_id: cluster.durable_end(node_id, topic) for node_id in (4, 5)} for topic in topics}
    assert all(0 < end[4] < end[5] for end in ends.values())

    begins = "unclean recovery (Aggressive) of aggressive-0 begins"
    controller = active_controller(cluster)
    until(lambda: begins in controller.log_path.read_text())
    controller.kill()  # what it had asked is asked again by the next one
    cluster.start_nodes(4)
    (loss,) = recovered(cluster, "aggressive").losses
    assert (loss.replica, loss.cause, loss.certainty) == (4, "unclean recovery, Aggressive", AT_MOST)
    assert loss.start <= ends["aggressive"][4]
    successor = active_controller(cluster)
    assert successor is not controller
    assert begins in successor.log_path.read_text()

    rest = ("waits", *by_hand)
    assert all(cluster.partition(topic).elr == (5,) for topic in rest), "it may have everything, for all that is known"
    cluster.node(4).kill()
    until(lambda: not cluster.image().is_active(4))
    cluster.start_nodes(5, controller.node_id)
    until(lambda: all(set(cluster.partition(topic).last_known_elr) == {4, 5} for topic in rest))
    assert cluster.elect("longest", LONGEST_LOG_BALANCED, timeout_ms=300) is E.REQUEST_TIMED_OUT
    assert cluster.elect("designated", DESIGNATION, 4) is E.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert all(cluster.partition(topic).leader == NOBODY for topic in rest)
    assert cluster.elect("designated", DESIGNATION, 5) is E.NONE
    assert cluster.elect("longest", LONGEST_LOG_AGGRESSIVE) is E.NONE

    cluster.start_nodes(4)
    assert recovered(cluster, "waits").leader == 5
    assert cluster.partition("none").leader == NOBODY
    assert cluster.elect("none", LONGEST_LOG_AGGRESSIVE) is E.NONE
    causes = {"waits": "unclean recovery, Balanced", "designated": "designation", "longest": "longest_log_aggressive"}
    for topic, cause in {**causes, "none": "longest_log_aggressive"}.items():
        the_loss(cluster, topic, load, cause, leader=5, end=ends[topic][5])
    starts = [loss.start for loss in cluster.partition("aggressive").losses]
    assert len(starts) == 2, "it did not wait for the leader that it had found"
    assert min(starts) <= lost(cluster, "aggressive", load)[0]


def test_the_last_replica_standing_loses_power(cluster: Cluster) -> None:
    """One that left an ISR below min ISR has everything that was committed, and leads cleanly: nothing is lost."""
    cluster.create({"clean": BALANCED}, 4, 5)
    with Load(cluster, "clean") as load:
        cluster.node(5).terminate()
        assert cluster.node(5).wait_stopped() == 0
        until(lambda: cluster.partition("clean").elr == (5,))
        assert cluster.partition("clean").isr == (4,)
        cluster.node(4).kill()
        load.stop()
    cluster.node(4).cut_power()
    assert cluster.durable_end(4, "clean") == 0
    until(lambda: cluster.partition("clean").isr == ())
    cluster.start_nodes(5)
    partition = recovered(cluster, "clean")
    assert (partition.leader, partition.leader_recovery_state, partition.losses) == (5, RECOVERED, ())
    cluster.start_nodes(4)
    assert lost(cluster, "clean", load) == []


def test_without_a_recovery_manager_the_last_leader_leads_again(cluster: Cluster) -> None:
    """The phase-one behaviour of the KIP's delivery plan, for Balanced."""
    cluster.properties["unclean.recovery.manager.enabled"] = "false"
    cluster.lay_out()
    for node_id in VOTERS:
        cluster.node(node_id).kill()
    cluster.start_nodes(*VOTERS)
    cluster.create({"unmanaged": BALANCED}, 4, 5)
    with Load(cluster, "unmanaged") as load:
        for node_id in (4, 5):
            cluster.node(node_id).kill()
        load.stop()
        for node_id in (4, 5):
            cluster.node(node_id).cut_power()
    until(lambda: cluster.partition("unmanaged").isr == ())
    last = cluster.partition("unmanaged").last_known_leader
    other = 9 - last
    cluster.start_nodes(other)
    until(lambda: cluster.partition("unmanaged").last_known_elr == (other,))
    until(lambda: cluster.image().is_active(other))
    cluster.node(other).kill()
    cluster.start_nodes(last)
    partition = recovered(cluster, "unmanaged")
    assert (partition.leader, partition.leader_recovery_state) == (last, RECOVERING)
    cluster.start_nodes(other)
    the_loss(cluster, "unmanaged", load, "the last known leader leads again", leader=last)
