"""Three nodes of Strandline and three of Kafka, laid out alike: the same listeners, certificates, users and ACLs.

Each node is broker and controller. Clients have four listeners: PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL, the last
two with SCRAM-SHA-512. Brokers use SSL among themselves, and prove who they are by their certificates, or by the
cluster's secret. Whoever comes by PLAINTEXT is a super user; `alice` has what ACLs permit.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from strandline.client.admin.acls import create_acls
from strandline.client.admin.users import alter_credentials, upsertion
from strandline.client.ask import ask, config_of
from strandline.client.config import ClientConfig
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.metadata.security.acls import Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.server.storage.formatting import random_uuid_text
from strandline.testing.certificates import make_authority, make_certificate
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess, free_ports
from strandline.wire.messages.topics.metadata import MetadataRequest

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NODES = 3
MECHANISM, USER, PASSWORD = "SCRAM-SHA-512", "alice", "a password of hers"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
# Without these, Kafka's listeners with SASL do not start.
MODULES = {
    f"listener.name.{name.lower()}.{MECHANISM.lower()}.sasl.jaas.config": f"{SCRAM};"
    for name in PROTOCOLS
    if "SASL" in name
}
LOGIN = f'{SCRAM} username="{USER}" password="{PASSWORD}";'
TOPICS = "strandline-bench-"  # which the bench makes
PATIENCE_S = 180
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


class Side(NamedTuple):
    name: str
    at: Mapping[str, str]  # by protocol, the addresses of all nodes
    pids: tuple[int, ...]
    authority: Path

    def config(self, protocol: str) -> ClientConfig:
        found = {"security.protocol": protocol}
        if "SSL" in protocol:
            found["ssl.truststore.location"] = str(self.authority)
        if "SASL" in protocol:
            found |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": LOGIN}
        return config_of(self.at[protocol], found)


class Layout:
    """Ports, certificates and properties of three nodes in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        ports = free_ports(NODES * (len(PROTOCOLS) + 1))
        width = len(PROTOCOLS) + 1
        self.ports = [ports[width * i : width * (i + 1)] for i in range(NODES)]
        self.authority, self.key = folder / "ca.pem", folder / "ca.key"
        make_authority(self.authority, self.key)
        for node_id in range(1, NODES + 1):
            make_certificate(self.store(node_id), f"node-{node_id}", self.authority, self.key)

    def store(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}.store"

    def listeners(self, node_id: int) -> dict[str, str]:
        return {name: f"{HOST}:{port}" for name, port in zip(PROTOCOLS, self.ports[node_id - 1], strict=False)}

    def properties(self, node_id: int) -> dict[str, str]:
        """That both systems understand."""
        advertised = ",".join(f"{name}://{address}" for name, address in self.listeners(node_id).items())
        voters = ",".join(f"{i}@{HOST}:{ports[-1]}" for i, ports in enumerate(self.ports, 1))
        protocols = ",".join(f"{name}:{name}" for name in PROTOCOLS)
        nodes = ";".join(f"User:CN=node-{i}" for i in range(1, NODES + 1))
        return {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.quorum.voters": voters,
            "listeners": f"{advertised},CONTROLLER://{HOST}:{self.ports[node_id - 1][-1]}",
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "SSL",
            "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
            "listener.name.ssl.ssl.client.auth": "requested",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store(node_id)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.enabled.mechanisms": MECHANISM,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:ANONYMOUS;{nodes}",
            "log.dirs": str(self.folder / f"node-{node_id}" / "data"),
            "default.replication.factor": str(NODES),
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": str(NODES),
        }

    def side(self, name: str, pids: Sequence[int]) -> Side:
        at = {
            protocol: ",".join(self.listeners(node_id)[protocol] for node_id in range(1, NODES + 1))
            for protocol in PROTOCOLS
        }
        return Side(name, at, tuple(pids), self.authority)


class Ours(LocalCluster):
    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.folder, NODES, ports=[p for ports in layout.ports for p in (ports[0], ports[-1])])
        self.layout = layout

    def properties_text(self, node: NodeProcess) -> str:
        rows = self.layout.properties(node.node_id)
        return "".join(f"{key}={value}\n" for key, value in rows.items())


@contextmanager
def strandline(folder: Path) -> Iterator[Side]:
    layout = Layout(folder)
    with Ours(layout) as cluster:
        yield layout.side("Strandline", [node.pid for node in cluster.nodes])


@contextmanager
def kafka(folder: Path, class_path: str) -> Iterator[Side]:
    layout = Layout(folder)
    cluster_id, running = random_uuid_text(), []
    try:
        for node_id in range(1, NODES + 1):
            (folder / f"node-{node_id}").mkdir()
            file = folder / f"node-{node_id}" / "server.properties"
            rows = layout.properties(node_id) | MODULES
            file.write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
            java = ["java", *HEAP, "-cp", class_path]
            format_it = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(file)]
            subprocess.run(format_it, check=True, capture_output=True)
            with (folder / f"node-{node_id}.log").open("wb") as log:
                running.append(subprocess.Popen([*java, "kafka.Kafka", str(file)], stdout=log, stderr=log))
        side = layout.side("Kafka", [process.pid for process in running])
        wait_for(side, running)
        yield side
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def wait_for(side: Side, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until a node sees all of them."""
    host, _, port = side.at["PLAINTEXT"].partition(",")[0].rpartition(":")
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and all(process.poll() is None for process in processes):
        try:
            if len(ask(host, int(port), MetadataRequest(topics=()), 12, timeout_s=2).brokers) == NODES:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise TimeoutError(f"{side.name} does not come up; see {side.authority.parent}")


# --- users and ACLs


def admit(side: Side) -> None:
    """alice, who may use the topics of the bench."""
    alter_credentials(side.config("PLAINTEXT"), upsertion(USER, MECHANISM, PASSWORD))
    create_acls(side.config("PLAINTEXT"), [acl(TOPICS, PatternType.PREFIXED, USER, AclOperation.ALL)])


def further_acls(count: int) -> list[Acl]:
    """Of other users. A third of them are about prefixes."""
    return [
        acl(f"team-{at}-"[: 6 + at % 5], PatternType.PREFIXED, f"u{at}", AclOperation.WRITE)
        if at % 3 == 0
        else acl(f"topic-{at}", PatternType.LITERAL, f"u{at}", AclOperation.WRITE)
        for at in range(count)
    ]


def acl(name: str, pattern: PatternType, user: str, operation: AclOperation) -> Acl:
    return Acl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission=AclPermission.ALLOW,
    )


def load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())
