"""Kafka's own Java client in groups of the consumer protocol (KIP-848), and Kafka's tools on them: see
`test_kafka_tools.py`."""

import re
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cluster.clients.kafka.test_kafka_tools import Tools, java, with_java
from tests.cluster.driving import admin_of, create, quiet, until
from tests.cluster.failures.test_group_failover import coordinator_of

from strandline.client.ask import ask_any
from strandline.metadata.records import GROUP_RESOURCE
from strandline.testing.local_cluster import LocalCluster
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

PARTITIONS = 6


class Stage:
    """A topic, a group, and what its consumers have printed."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster = cluster
        self.tools = Tools(cluster, folder)
        self.topic, self.group = f"jt-{uuid.uuid4().hex[:8]}", f"jg-{uuid.uuid4().hex[:8]}"
        self.printed: list[Path] = []
        self.made = 0
        self.admin = admin_of(cluster)
        create(cluster, self.topic, PARTITIONS)

    def produce(self, count: int) -> None:
        producer = Producer(quiet(self.cluster.bootstrap, enable_idempotence=True))
        for _ in range(count):
            producer.produce(self.topic, str(self.made).encode(), partition=self.made % PARTITIONS)
            self.made += 1
        assert producer.flush(30) == 0

    @contextmanager
    def consumer(self, **settings: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Kafka's console consumer, which commits every quarter of a second."""
        known = {"group.protocol": "consumer", "auto.offset.reset": "earliest", "auto.commit.interval.ms": "250"}
        given = {**known, **{key.replace("_", "."): value for key, value in settings.items()}}
        options = [text for key, value in given.items() for text in ("--consumer-property", f"{key}={value}")]
        names = ("--bootstrap-server", self.cluster.bootstrap, "--topic", self.topic, "--group", self.group)
        path = self.tools.folder / f"printed-{len(self.printed)}"
        self.printed.append(path)
        with path.open("wb") as file:
            process = subprocess.Popen(java("console-consumer", *names, *options), stdout=file)
            try:
                yield process
            finally:
                process.terminate()
                process.wait(60)

    def set_session(self, milliseconds: str) -> None:
        change = AlterableConfig(name="consumer.session.timeout.ms", value=milliseconds)
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=self.group, configs=(change,))
        answer = ask_any(self.cluster.bootstrap, IncrementalAlterConfigsRequest(resources=(resource,)), None)
        assert [row.error_code for row in answer.responses] == [0]

    def values(self) -> list[int]:
        return sorted(int(line) for path in self.printed for line in path.read_text().split())

    def has_all(self, timeout_s: float = 60) -> None:
        """Each record is consumed: once, as long as nobody dies."""
        until(lambda: set(self.values()) == set(range(self.made)), timeout_s)

    def groups(self, *options: str) -> str:
        """Kafka's tool for groups. By itself it gives a busy machine five seconds, and then ends with status 0."""
        return self.tools("consumer-groups", "--timeout", "60000", *options)

    def described(self, *options: str) -> str:
        return self.groups("--describe", "--group", self.group, *options)

    def shares(self) -> list[int]:
        """How many partitions each member has. Kafka's tool would take seconds to say it."""
        found = self.admin.describe_consumer_groups([self.group])[self.group].result(15)
        return sorted(len(member.assignment.topic_partitions) for member in found.members)

    def listed(self) -> list[str]:
        """Of the group: its type, and its state."""
        rows = self.groups("--list", "--state", "--type").splitlines()
        return next((row.split()[1:] for row in rows if row.startswith(self.group)), [])

    def committed(self) -> int:
        rows = re.findall(rf"^{self.group} +{self.topic} +\d+ +(\d+)", self.described(), re.MULTILINE)
        return sum(map(int, rows))


@with_java
def test_java_consumers_share_a_topic_and_kafkas_tools_administer_their_group(
    shared_cluster: LocalCluster, tmp_path: Path
) -> None:
    stage = Stage(shared_cluster, tmp_path)
    group = ("--group", stage.group)
    stage.produce(60)
    stage.set_session("30000")  # a JVM may take long to start
    with stage.consumer(group_remote_assignor="range"):
        with stage.consumer(group_instance_id="i"):
            stage.has_all()
            until(lambda: stage.shares() == [3, 3], 60)
        stage.produce(6)
        with stage.consumer(group_instance_id="i"):
            stage.has_all()
            assert stage.shares() == [3, 3], "it has left and come back, and nothing moved"
            stage.set_session("3000")  # the static member will be away for so long
            members = stage.described("--members", "--verbose")
            assert re.search(rf"^{stage.group} +\S+ +i +/127", members, re.MULTILINE)
            assert re.search(r" range +Stable +2\s*$", stage.described("--state"))
            assert "The group is not empty" in stage.groups("--delete", *group)
            refused = stage.groups("--delete-offsets", *group, "--topic", stage.topic)
            assert refused.count("Deleting offsets of a topic is forbidden") == PARTITIONS
    until(lambda: stage.shares() == [], 90)
    assert stage.listed() == ["Consumer", "Empty"]
    reset = ("--reset-offsets", *group, "--topic", stage.topic, "--to-offset", "4", "--execute")
    stage.groups(*reset)
    assert stage.committed() == 4 * PARTITIONS
    deleted = stage.groups("--delete-offsets", *group, "--topic", f"{stage.topic}:0,1")
    assert deleted.count("Successful") == 2
    assert stage.committed() == 4 * (PARTITIONS - 2)
    assert "was successful" in stage.groups("--delete", *group)
    assert stage.listed() == []
    assert len(stage.values()) == stage.made, "nobody died, so nothing was read twice"


@with_java
def test_java_consumers_go_on_when_their_coordinator_dies(cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(cluster, tmp_path)
    stage.set_session("30000")
    stage.produce(60)
    with stage.consumer(), stage.consumer():
        stage.has_all()
        until(lambda: stage.shares() == [3, 3], 60)
        dead = cluster.node(coordinator_of(cluster, stage.group))
        dead.kill()
        until(lambda: coordinator_of(cluster, stage.group) not in (0, dead.node_id), 40)
        stage.produce(12)
        stage.has_all()
        assert stage.shares() == [3, 3]
    assert stage.committed() == stage.made, "both have committed with the other coordinator"
    assert len(stage.values()) == stage.made, "no consumer has lost a partition, so nothing was read twice"


def commits_once(stage: Stage, protocol: str) -> None:
    """A group of its own, with a member that comes, commits and leaves."""
    known = quiet(stage.cluster.bootstrap, group_id=f"{stage.group}-{protocol}", enable_auto_commit=False)
    consumer = Consumer({**known, "group.protocol": protocol})
    consumer.subscribe([f"^{stage.topic}$"])
    until(lambda: (consumer.poll(0.1), len(consumer.assignment()) == PARTITIONS)[1], 60)
    consumer.commit(offsets=[TopicPartition(stage.topic, 0, 1)], asynchronous=False)
    consumer.close()


@with_java
def test_kafkas_dump_log_reads_every_record_of_groups(cluster: LocalCluster, tmp_path: Path) -> None:
    stage = Stage(cluster, tmp_path)
    for protocol in ("classic", "consumer"):
        commits_once(stage, protocol)
    node = cluster.node(1)
    node.terminate()
    assert node.wait_stopped() == 0
    files = [path for path in node.data_path.glob("__consumer_offsets-*/*.log") if path.stat().st_size]
    said = stage.tools.run("dump-log", "--offsets-decoder", "--deep-iteration", "--files", ",".join(map(str, files)))
    read = re.findall(r'^\| offset: .* key: \{"type":"(\d+)".* payload: (?:<DELETE>|\{"version")', said, re.MULTILINE)
    of_expressions = said.count(" key: Unknown record type 16 ")  # before Kafka 4.0
    assert len(read) + of_expressions == said.count("| offset: "), "each of them"
    assert {int(kind) for kind in read} - {16} == {1, 2, 3, 5, 6, 7, 8}, (
        "4 is Kafka's before 4.1, and never written here"
    )
    assert of_expressions or "16" in read
    assert "isvalid: false" not in said
