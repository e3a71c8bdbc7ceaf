"""Kafka's own command line tools against real nodes, and what they ask that no other client of the tests does.

The tools are Java programs that are no part of this project. They run where KAFKA_TOOLS names a class path that has
`org.apache.kafka.tools`, the `libs/*` of a Kafka distribution for instance; see docs/tools.md. What needs no Java is
tested always.
"""

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.disks.test_directories import Jbod
from tests.cluster.driving import QUICK, until
from tests.worlds import AUTHORIZED

from strandline.base.errors import ErrorCode as E
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.messages.cluster.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.records.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("kafka-tools")]

CLASS_PATH = os.environ.get("KAFKA_TOOLS", "")
CLASSES = {
    "acls": "tools.AclCommand",
    "cluster": "tools.ClusterTool",
    "configs": "tools.ConfigCommand",
    "consumer-groups": "tools.consumer.group.ConsumerGroupCommand",
    "console-consumer": "tools.consumer.ConsoleConsumer",
    "console-producer": "tools.ConsoleProducer",
    "delegation-tokens": "tools.DelegationTokenCommand",
    "delete-records": "tools.DeleteRecordsCommand",
    "dump-log": "tools.DumpLogSegments",
    "features": "tools.FeatureCommand",
    "get-offsets": "tools.GetOffsetShell",
    "leader-election": "tools.LeaderElectionCommand",
    "log-dirs": "tools.LogDirsCommand",
    "metadata-shell": "shell.MetadataShell",
    "metadata-quorum": "tools.MetadataQuorumCommand",
    "reassign-partitions": "tools.reassign.ReassignPartitionsCommand",
    "topics": "tools.TopicCommand",
    "transactional-message-copier": "tools.TransactionalMessageCopier",
    "transactions": "tools.TransactionsCommand",
    "verifiable-consumer": "tools.VerifiableConsumer",
    "verifiable-producer": "tools.VerifiableProducer",
}
with_java = pytest.mark.skipif(
    not CLASS_PATH or shutil.which("java") is None,
    reason="needs java, and in KAFKA_TOOLS a class path with Kafka's tools",
)
OLDER = {  # before Kafka 4.0, or 4.1
    "acls": "kafka.admin.AclCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "dump-log": "kafka.tools.DumpLogSegments",
}
BROKER, TOPIC = 4, 2  # ConfigResource types


# --- without Java


def test_a_controller_reports_its_configuration_to_clients_that_bootstrap_from_controllers(
    shared_cluster: LocalCluster, topic: str
) -> None:
    """`kafka-configs --bootstrap-controller … --describe` (KIP-919)."""
    node = shared_cluster.node(2)

    def described(kind: int, name: str) -> tuple[int, dict[str, str | None]]:
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
        answer = ask(HOST, node.controller_port, DescribeConfigsRequest(resources=(resource,)), 4, timeout_s=5)
        return answer.results[0].error_code, {row.name: row.value for row in answer.results[0].configs}

    error, own = described(BROKER, "2")
    assert (error, own["node.id"]) == (E.NONE, "2")
    assert described(TOPIC, topic)[0] == E.NONE
    assert described(BROKER, "1")[0] == E.INVALID_REQUEST, "another node's"


def test_get_offsets_may_ask_for_what_waits_to_be_tiered(shared_cluster: LocalCluster, topic: str) -> None:
    """`kafka-get-offsets --time earliest-pending-upload` sends the newest version alone; nothing is ever tiered."""
    found = []
    for node in shared_cluster.nodes:
        asked = ListOffsetsTopic(name=topic, partitions=(ListOffsetsPartition(partition_index=0, timestamp=-6),))
        answer = ask(HOST, node.port, ListOffsetsRequest(replica_id=-1, topics=(asked,)), 11, timeout_s=5)
        row = answer.topics[0].partitions[0]
        found.append((E(row.error_code), row.offset))
    assert sorted(found) == sorted([(E.NONE, -1), *[(E.NOT_LEADER_OR_FOLLOWER, -1)] * 2])


# --- with Java


def java(tool: str, *arguments: str) -> list[str]:
    """The command that runs it."""
    newer = f"org.apache.kafka.{CLASSES[tool]}"
    name = OLDER[tool] if tool in OLDER and not has_class(newer) else newer
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", CLASS_PATH, name, *arguments]


@functools.cache
def has_class(name: str) -> bool:
    """In KAFKA_TOOLS."""
    command = ["javap", "-cp", CLASS_PATH, name]
    if shutil.which("javap") is None:
        return True
    return subprocess.run(command, capture_output=True, timeout=90, check=False).returncode == 0


class Tools:
    """Kafka's tools, each by its script's name without `kafka-`."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def run(self, tool: str, *arguments: str, status: int = 0, stdin: str = "") -> str:
        """What it prints; if it is to fail, its complaints too."""
        command = java(tool, *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    def __call__(self, tool: str, *arguments: str, status: int = 0, stdin: str = "") -> str:
        servers = ("--bootstrap-server", self.cluster.bootstrap)
        return self.run(tool, *servers, *arguments, status=status, stdin=stdin)

    def file(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def fill(self, topic: str, records: int) -> None:
        said = self("verifiable-producer", "--topic", topic, "--max-messages", str(records), "--acks", "-1")
        assert said.count("producer_send_success") == records


class JbodTools(Tools):
    cluster: Jbod


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JbodTools]:
    """A cluster of brokers with three log directories each, and the tools."""
    folder = tmp_path_factory.mktemp("tools")
    properties = {**QUICK, **AUTHORIZED, "auto.leader.rebalance.enable": "false"}
    with Jbod(folder / "cluster", 3, properties=properties) as cluster:
        yield JbodTools(cluster, folder)


def rows(said: str, start: str = "\tTopic:") -> list[str]:
    return [line for line in said.splitlines() if line.startswith(start)]


@with_java
def test_topics_live_and_die(tools: JbodTools) -> None:
    made = tools("topics", "--create", "--topic", "a", "--partitions", "3", "--config", "min.insync.replicas=2")
    assert "Created topic a." in made
    assert "Topic 'a' already exists." in tools("topics", "--create", "--topic", "a", status=1)
    more = "cannot be reached because only 3 broker(s) are registered"
    assert more in tools("topics", "--create", "--topic", "b", "--replication-factor", "5", status=1)
    assert "no such broker is registered" in tools("topics", "--create", "--topic", "b", *assigned("1:9"), status=1)
    assert "2 would not be an increase" in tools("topics", "--alter", "--topic", "a", "--partitions", "2", status=1)
    tools("topics", "--alter", "--topic", "a", "--partitions", "5")
    for limit in ((), ("--partition-size-limit-per-response", "2")):
        assert len(rows(tools("topics", "--describe", "--topic", "a", *limit))) == 5
    for nothing in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        assert not rows(tools("topics", "--describe", "--topic", "a", f"--{nothing}-partitions"))
    tools("topics", "--delete", "--topic", "a")
    assert "a" not in tools("topics", "--list").splitlines()


def assigned(replicas: str) -> tuple[str, str]:
    return "--replica-assignment", replicas


@with_java
def test_configs_of_each_level(tools: JbodTools) -> None:
    tools("topics", "--create", "--topic", "c")
    levels = (
        (("--topic", "c"), "retention.ms", "DYNAMIC_TOPIC_CONFIG"),
        (("--broker", "1"), "log.segment.bytes", "DYNAMIC_BROKER_CONFIG"),
        (("--broker-defaults",), "log.segment.bytes", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    )
    for entity, key, source in levels:
        tools("configs", "--alter", *entity, "--add-config", f"{key}=33554432")
        assert f"{source}:{key}=33554432" in tools("configs", "--describe", *entity)
        tools("configs", "--alter", *entity, "--delete-config", key)
        assert f"{source}:{key}" not in tools("configs", "--describe", *entity)
        assert "Not a number of type" in tools("configs", "--alter", *entity, "--add-config", f"{key}=abc", status=1)
    every = tools("configs", "--describe", "--topic", "c", "--all")
    assert len(rows(every, "  ")) >= 30
    controller = ("--bootstrap-controller", f"{HOST}:{tools.cluster.node(1).controller_port}")
    assert "node.id=1 " in tools.run("configs", *controller, "--describe", "--broker", "1", "--all")


@with_java
def test_acls_are_added_listed_and_removed(tools: JbodTools) -> None:
    who, resources = ("--allow-principal", "User:acl"), ("--topic", "acl", "--group", "acl")
    added = tools("acls", "--add", *who, *resources, "--consumer")
    assert "Adding ACLs for resource `ResourcePattern(resourceType=GROUP, name=acl, patternType=LITERAL)`" in added
    entry = "(principal=User:acl, host=*, operation=READ, permissionType=ALLOW)"
    until(lambda: tools("acls", "--list").count(entry) == 2, 40)
    assert "already exists." in tools("acls", "--add", *who, *resources, "--consumer")
    controllers = ",".join(f"{HOST}:{node.controller_port}" for node in tools.cluster.nodes)
    directly = ("acls", "--bootstrap-controller", controllers)
    tools.run(*directly, "--add", *who, "--operation", "Alter", "--cluster")
    assert "operation=ALTER" in tools.run(*directly, "--list", "--cluster")
    tools.run(*directly, "--remove", "--force", "--cluster")
    prefixed = ("--resource-pattern-type", "prefixed")
    tools("acls", "--add", "--deny-principal", "User:acl", "--operation", "Write", "--topic", "ac", *prefixed)
    match = ("--resource-pattern-type", "match")
    until(lambda: "operation=WRITE, permissionType=DENY" in tools("acls", "--list", "--topic", "acl", *match), 40)
    wrong = ("--add", "--allow-principal", "User:acl", "--allow-host", "", "--topic", "acl")
    assert "Host pattern cannot be null or empty" in tools("acls", *wrong, status=1)
    for name, *patterns in (("acl", *match), ("ac", *prefixed)):
        tools("acls", "--remove", "--force", "--topic", name, *patterns)
    tools("acls", "--remove", "--force", "--group", "acl")
    until(lambda: tools("acls", "--list").strip() == "", 40)


@with_java
def test_a_reassignment_with_throttles_and_directories(tools: JbodTools) -> None:
    tools("topics", "--create", "--topic", "m", *assigned("1:2"))
    tools.fill("m", 2000)
    target = str(tools.cluster.directories(tools.cluster.node(1))[2])
    goal = {"topic": "m", "partition": 0, "replicas": [3, 1], "log_dirs": ["any", target]}
    plan = ("--reassignment-json-file", tools.file("move.json", {"version": 1, "partitions": [goal]}))
    topics = tools.file("generate.json", {"version": 1, "topics": [{"topic": "m"}]})
    generate = ("--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    assert "Proposed partition reassignment configuration" in tools("reassign-partitions", *generate)

    slowly = ("--throttle", "1000", "--replica-alter-log-dirs-throttle", "1000000")
    assert "Successfully started" in tools("reassign-partitions", "--execute", *plan, *slowly)
    assert "adding: 3. removing: 2." in tools("reassign-partitions", "--list")
    assert "throttled.replicas=0:3" in tools("configs", "--describe", "--topic", "m")
    assert "throttled.rate=1000 " in tools("configs", "--describe", "--broker", "2")
    assert "Successfully cancelled" in tools("reassign-partitions", "--cancel", *plan)
    assert "throttled" not in tools("configs", "--describe", "--topic", "m")

    faster = ("--throttle", "50000000", "--replica-alter-log-dirs-throttle", "50000000")
    tools("reassign-partitions", "--execute", *plan, *faster)
    ended = ("Reassignment of partition m-0 is completed.", "Reassignment of replica m-0-1 completed successfully.")
    until(lambda: all(row in tools("reassign-partitions", "--verify", *plan) for row in ended), 40)
    assert "throttled" not in tools("configs", "--describe", "--entity-type", "brokers")
    assert tools.cluster.directories(tools.cluster.node(1))[2].joinpath("m-0").is_dir()
    log = tools.cluster.node(1).data_path / "__cluster_metadata-0" / f"{0:0>20}.log"
    show = ("metadata-shell", "--snapshot", str(log), "tree", "/image/topics/byName/m")
    until(lambda: "replicas=[3, 1]," in tools.run(*show), 40)  # it may look before it has read to the end


@with_java
def test_leaders_are_elected_by_hand(tools: JbodTools) -> None:
    tools("topics", "--create", "--topic", "e", *assigned("1:2"))
    goal = [{"topic": "e", "partition": 0, "replicas": [2, 1]}]
    plan = ("--reassignment-json-file", tools.file("order.json", {"version": 1, "partitions": goal}))
    tools("reassign-partitions", "--execute", *plan)
    election = ("leader-election", "--election-type", "preferred")
    asked = [{"topic": "e", "partition": 0}, {"topic": "e", "partition": 9}]
    said = tools(*election, "--path-to-json-file", tools.file("elect.json", {"partitions": asked}), status=1)
    assert "Successfully completed leader election (PREFERRED) for partitions e-0" in said
    assert "No such partition as e-9" in said
    assert "Valid replica already elected" in tools(*election, "--topic", "e", "--partition", "0")
    tools(*election, "--all-topic-partitions")


@with_java
def test_the_replicas_that_may_lead_without_loss_are_reported(tools: JbodTools) -> None:
    """Also by the metadata shell, which passes over what our records have in tags of our own."""
    tools("topics", "--create", "--topic", "p", *assigned("2:1"), "--config", "min.insync.replicas=2")
    tools("topics", "--create", "--topic", "q", *assigned("1"))
    tools("configs", "--alter", "--topic", "q", "--add-config", "unclean.recovery.strategy=None")
    node = tools.cluster.node(1)

    def described(topic: str, *filters: str) -> list[str]:
        answer = rows(tools("topics", "--describe", "--topic", topic, *filters))
        return [re.sub(r"\s+", " ", row).strip() for row in answer]

    node.kill()
    eligible = "Topic: p Partition: 0 Leader: 2 Replicas: 2,1 Isr: 2 Elr: 1 LastKnownElr:"
    until(lambda: described("p") == [eligible], 40)
    assert described("p", "--under-min-isr-partitions") == [eligible]
    assert described("p", "--at-min-isr-partitions") == []
    waiting = "Topic: q Partition: 0 Leader: none Replicas: 1 Isr: Elr: 1 LastKnownElr:"
    until(lambda: described("q") == [waiting], 40)
    assert described("q", "--unavailable-partitions") == [waiting]

    node.start()
    node.wait_sees(3)
    lossy = "Topic: q Partition: 0 Leader: none Replicas: 1 Isr: Elr: LastKnownElr: 1"
    until(lambda: described("q") == [lossy], 40)
    said = tools("leader-election", "--election-type", "unclean", "--topic", "q", "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions q-0" in said
    assert described("q") == ["Topic: q Partition: 0 Leader: 1 Replicas: 1 Isr: 1 Elr: LastKnownElr:"]
    log = node.data_path / "__cluster_metadata-0" / f"{0:0>20}.log"
    show = ("metadata-shell", "--snapshot", str(log), "cat", "/image/topics/byName/q/0")
    until(lambda: "leader=1, leaderRecoveryState=RECOVERING" in tools.run(*show), 40)
    changes = [row for row in tools.run("dump-log", *decoded(log)).splitlines() if "PARTITION_CHANGE" in row]
    assert any('"isr":[1],"leader":1,"leaderRecoveryState":1' in row for row in changes)


def decoded(metadata: Path) -> tuple[str, ...]:
    return "--cluster-metadata-decoder", "--files", str(metadata)


@with_java
def test_eligible_leader_replicas_are_switched_off_and_on(tools: JbodTools) -> None:
    """A new cluster begins with them, as its bootstrap file says."""
    bootstrap = tools.run("dump-log", *decoded(tools.cluster.node(1).data_path / "bootstrap.checkpoint"))
    assert '"data":{"name":"eligible.leader.replicas.version","featureLevel":1}' in bootstrap
    feature = ("--feature", "eligible.leader.replicas.version")
    for command, level in (("downgrade", 0), ("upgrade", 1)):
        said = tools("features", command, feature[0], f"{feature[1]}={level}")
        assert f"{feature[1]} was {command}d to {level}." in said
        assert re.search(rf"{feature[1]} .*FinalizedVersionLevel: {level}\b", tools("features", "describe"))
    assert "requires:\n    metadata.version=23" in tools(
        "features", "feature-dependencies", *feature[:1], f"{feature[1]}=1"
    )
    unset = ("--alter", "--broker-defaults", "--delete-config", "min.insync.replicas")
    assert "cannot be removed while ELR is enabled" in tools("configs", *unset, status=1)


@with_java
def test_offsets_and_what_is_deleted(tools: JbodTools) -> None:
    tools("topics", "--create", "--topic", "o")
    tools.fill("o", 20)
    deletion = {"topic": "o", "partition": 0, "offset": 5}
    tools("delete-records", "--offset-json-file", tools.file("delete.json", {"version": 1, "partitions": [deletion]}))
    named = {"earliest": "o:0:5", "latest": "o:0:20", "earliest-local": "o:0:5", "0": "o:0:5"}
    for name, expected in named.items():
        assert tools("get-offsets", "--topic", "o", "--time", name).split() == [expected]
    for name in ("latest-tiered", "earliest-pending-upload", "9999999999999"):
        assert tools("get-offsets", "--topic", "o", "--time", name) == ""
    read = ("--topic", "o", "--group-id", "g", "--max-messages", "15", "--reset-policy", "earliest")
    assert '"count":15' in tools("verifiable-consumer", *read, "--enable-autocommit")
    assert re.search(r"g +o +0 +20 +20 +0 ", tools("consumer-groups", "--describe", "--group", "g"))


@with_java
def test_the_cluster_is_described(tools: JbodTools) -> None:
    status = tools("metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId: +[123]\n", status)
    assert len(rows(tools("metadata-quorum", "describe", "--replication"), "")) == 4
    assert "metadata.version" in tools("features", "describe")
    feature = ("--feature", "eligible.leader.replicas.version=1", "--dry-run")
    assert "can be upgraded to 1" in tools("features", "upgrade", *feature)
    for kind in ("--bootstrap-server", "--bootstrap-controller"):
        ports = [n.port if kind == "--bootstrap-server" else n.controller_port for n in tools.cluster.nodes]
        said = tools.run("cluster", "list-endpoints", kind, f"{HOST}:{ports[0]}")
        assert all(str(port) in said for port in ports)
    directories = json.loads(tools("log-dirs", "--describe").splitlines()[-1])
    assert [len(broker["logDirs"]) for broker in directories["brokers"]] == [3, 3, 3]


@with_java
def test_the_files_of_a_node_are_dumped(tools: JbodTools) -> None:
    tools("topics", "--create", "--topic", "f", *assigned("1"), "--config", "segment.bytes=1048576")
    values = "\n".join(f"{n:0>2000}" for n in range(1200))
    tools("console-producer", "--topic", "f", "--compression-codec", "none", stdin=values)
    node = tools.cluster.node(1)
    node.terminate()
    assert node.wait_stopped() == 0
    (folder,) = (path / "f-0" for path in tools.cluster.directories(node) if (path / "f-0").is_dir())

    def dumped(where: Path, pattern: str, *options: str) -> str:
        files = sorted(where.glob(pattern))
        assert files
        return tools.run("dump-log", "--files", ",".join(map(str, files)), *options)

    assert len(list(folder.glob("*.log"))) == 3
    records = dumped(folder, "*.log", "--print-data-log")
    assert records.count("payload: 0") == 1200
    assert "isvalid: true" in records
    assert "isvalid: false" not in records
    for index in ("*.index", "*.timeindex"):
        assert "passed sanity check" in dumped(folder, index, "--index-sanity-check")
        assert not re.search("mismatch|out of order|exception", dumped(folder, index), re.IGNORECASE)
    assert "lastSequence: 1199" in dumped(folder, "*.snapshot")
    metadata = dumped(node.data_path / "__cluster_metadata-0", "*.log", "--cluster-metadata-decoder")
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"f"' in metadata
    node.start()
    node.wait_sees(3)
