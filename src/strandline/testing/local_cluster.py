"""A cluster of real node processes on this machine: laid out in folders, started, killed, restarted.

`strandline up`, the demo and the tests share it. Everything listens on 127.0.0.1. A node's folder holds
`server.properties`, `data/` (its log directory) and `node.log` (what it printed).
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from strandline.base.ids import parse_uuid
from strandline.broker.config import NodeConfig, parse_properties
from strandline.client.ask import ask, config_of
from strandline.client.errors import AuthenticationFailed
from strandline.metadata.configs.node_configs import METRICS_LISTENER
from strandline.metadata.records import UserScramCredentialRecord
from strandline.security.protocols import PLAINTEXT, SASL_SSL
from strandline.security.secret import ClusterSecret
from strandline.server import lifeline
from strandline.server.storage.formatting import NotFormattable, format_node, random_uuid_text
from strandline.server.storage.lock import Holder, holder_of
from strandline.server.storage.secret_file import NAME as SECRET_NAME
from strandline.server.storage.secret_file import new_secret, read_secret, write_secret
from strandline.testing.nursery import nursery
from strandline.testing.power_loss import DURABLE, WRITE_BACK_MS, restore
from strandline.testing.secured import ADMIN, SecuredFolder
from strandline.wire.messages.topics.metadata import MetadataRequest

HOST = "127.0.0.1"
INTERRUPTING = (signal.SIGINT, signal.SIGTERM)
PATIENCE_S = 60.0  # with a machine that has other things to do; who dies is noticed at once


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal that comes meanwhile counts afterwards. Between the start of a process and the moment in which it is
    known, it would leave one behind that nobody stops."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals interrupt the main thread alone
        return
    came: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in INTERRUPTING}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(came[0])


class StartFailed(Exception):
    """A node did not come up; the message holds the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago, all different."""
    with ExitStack() as open_sockets:
        ports = []
        for _ in range(count):
            probe = open_sockets.enter_context(socket.socket())
            probe.bind((HOST, 0))
            ports.append(probe.getsockname()[1])
        return ports


def is_port_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def kill(self) -> None: ...


class NodeProcess:
    """One node: its folder, its ports and, while it runs, its process."""

    forks = False  # as a fork of the nursery, which starts sooner, instead of a program of its own

    def __init__(
        self, node_id: int, folder: Path, port: int, controller_port: int, client: Mapping[str, str] | None = None
    ) -> None:
        self.node_id = node_id
        self.folder = folder
        self.port = port
        self.controller_port = controller_port
        self.client = dict(client or {})  # how a client reaches it, besides its address
        self.metrics_port: int | None = None  # None: it serves no metrics
        self.process: Process | None = None
        self.environment: dict[str, str] = {}  # besides that of this process

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def config_path(self) -> Path:
        return self.folder / "server.properties"

    @property
    def log_path(self) -> Path:
        return self.folder / "node.log"

    @property
    def data_path(self) -> Path:
        return self.folder / "data"

    @property
    def durable_path(self) -> Path:
        """What a loss of power would leave of the data, if this node can lose power."""
        return self.folder / "durable"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def other(self) -> Holder | None:
        """Who has this node's data, where that is not the process that was started here."""
        return None if self.running else holder_of(str(self.data_path))

    @property
    def is_up(self) -> bool:
        return self.running or self.other is not None

    @property
    def command(self) -> list[str]:
        program = ("strandline.testing.node",) if DURABLE in self.environment else ("strandline", "node")
        return [sys.executable, "-m", *program, "--config", str(self.config_path)]

    def start(self) -> None:
        assert not self.running
        if self.forks:
            with uninterrupted():
                self.process = nursery().start(self.config_path, self.log_path, self.environment)
            return
        with self.log_path.open("ab") as output, uninterrupted():
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self.environment, **lifeline.environment()},
                pass_fds=(lifeline.reading_end(),),
                start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops nodes in order
            )

    def listens(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=0.2).close()
        except OSError:
            return False
        return True

    def wait_listening(self, timeout_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + timeout_s
        while not self.listens():
            if not self.is_up or time.monotonic() > until:
                raise StartFailed(
                    f"node {self.node_id} did not come up; the end of {self.log_path}:\n{self.log_tail()}"
                )
            time.sleep(0.02)

    def brokers_seen(self) -> int:
        """How many brokers this node's metadata names; 0 while it has not joined yet, or does not know our user."""
        try:
            config = config_of(self.address, self.client)
            return len(ask(HOST, self.port, MetadataRequest(topics=()), 12, timeout_s=1.0, config=config).brokers)
        except (OSError, AuthenticationFailed):
            return 0

    def wait_sees(self, brokers: int, timeout_s: float = PATIENCE_S) -> None:
        """Until this node has joined, and knows of so many brokers that have."""
        until = time.monotonic() + timeout_s
        while self.brokers_seen() < brokers:
            if not self.is_up or time.monotonic() > until:
                raise StartFailed(f"node {self.node_id} sees no {brokers} brokers; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def log_tail(self, lines: int = 20) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def kill(self) -> None:
        """SIGKILL: the process is gone at once; what it had written stays in the page cache."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def can_lose_power(self, write_back_ms: int = 0) -> None:
        """From its next start on. See `power_loss`."""
        self.environment |= {DURABLE: str(self.durable_path), WRITE_BACK_MS: str(write_back_ms)}

    def cut_power(self) -> None:
        """The process ends at once, and all that its disk did not sync is lost."""
        assert DURABLE in self.environment
        self.kill()
        restore(self.durable_path)

    def write_back(self) -> None:
        """The system writes its dirty pages, as it does by itself sooner or later."""
        assert DURABLE in self.environment
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask for a controlled shutdown."""
        if self.running:
            assert self.process is not None
            self.process.send_signal(signal.SIGTERM)

    def wait_stopped(self, timeout_s: float = 20.0) -> int:
        """The exit status; a node that does not stop in time is killed."""
        assert self.process is not None
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class LocalCluster:
    """Nodes 1..n, each broker and controller, in `folder`/node-<id>."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 3,
        *,
        ports: Sequence[int] | None = None,
        metrics_ports: Sequence[int] = (),
        properties: Mapping[str, str] | None = None,
        protocol: str = PLAINTEXT,
        client: Mapping[str, str] | None = None,
        is_secure: bool = False,
    ) -> None:
        """`ports`: a broker port and a controller port for each node; free ones if None. `metrics_ports`: one for
        each node, or none at all. `protocol`: of the brokers' listener, which has its name; `client`: the properties
        with which a client reaches it. `is_secure`: with TLS, SASL, ACLs and users (`secured`); its client is the
        super user once it is laid out."""
        assert nodes >= 1
        assert len(metrics_ports) in (0, nodes)
        ports = ports or free_ports(2 * nodes)
        self.folder = folder
        self.properties = dict(properties or {})
        self.secured = SecuredFolder(folder) if is_secure else None
        self.protocol = SASL_SSL if is_secure else protocol
        self.client = dict(client or {})
        self.nodes = [
            NodeProcess(i + 1, folder / f"node-{i + 1}", ports[2 * i], ports[2 * i + 1], client) for i in range(nodes)
        ]
        for node, metrics_port in zip(self.nodes, metrics_ports, strict=False):
            node.metrics_port = metrics_port

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def node(self, node_id: int) -> NodeProcess:
        return self.nodes[node_id - 1]

    def lay_out(self) -> None:
        """Write configurations; format folders that are not formatted yet. Data that is there stays, and so does all
        of a node that somebody else runs."""
        cluster_id_path = self.folder / "cluster.id"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not cluster_id_path.exists():
            cluster_id_path.write_text(random_uuid_text() + "\n")
        cluster_id = cluster_id_path.read_text().strip()
        try:
            parse_uuid(cluster_id)
        except ValueError:
            raise NotFormattable(f"{cluster_id_path} does not have a cluster id") from None
        secret = self.secret()
        users = self.secure()
        for node in self.nodes:
            if node.other is not None:
                continue
            node.folder.mkdir(exist_ok=True)
            text = self.properties_text(node)
            node.config_path.write_text(text)
            config = NodeConfig.from_properties(parse_properties(text))
            format_node(config, cluster_id, ignore_formatted=True, secret=secret, users=users)

    def secure(self) -> list[UserScramCredentialRecord]:
        """Make what a secured cluster has besides its nodes; the users with whom a new one begins."""
        if self.secured is None:
            return []
        self.secured.make(range(1, len(self.nodes) + 1))
        self.client = self.secured.client(ADMIN)
        for node in self.nodes:
            node.client = dict(self.client)
        return self.secured.credentials()

    def secret(self) -> ClusterSecret:
        path = str(self.folder / SECRET_NAME)
        if not os.path.exists(path):
            write_secret(path, new_secret())
        return read_secret(path)

    def properties_text(self, node: NodeProcess) -> str:
        voters = ",".join(f"{n.node_id}@{HOST}:{n.controller_port}" for n in self.nodes)
        replication = min(3, len(self.nodes))
        rows = {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            "controller.quorum.voters": voters,
            "listeners": f"{self.protocol}://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
            "advertised.listeners": f"{self.protocol}://{HOST}:{node.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": self.protocol,
            "log.dirs": str(node.data_path),
            "default.replication.factor": str(replication),
            "min.insync.replicas": str(max(1, replication - 1)),
            "offsets.topic.replication.factor": str(replication),
            "transaction.state.log.replication.factor": str(replication),
            "transaction.state.log.min.isr": str(max(1, replication - 1)),
            "unclean.recovery.manager.enabled": "true",  # replicas are asked for their logs before one may lose any
            "group.initial.rebalance.delay.ms": "0",  # a single consumer need not wait for others, as in Kafka's own
            **(self.secured.node_properties(node.node_id) if self.secured else {}),
            **({METRICS_LISTENER: f"{HOST}:{node.metrics_port}"} if node.metrics_port else {}),
            **self.properties,
        }
        return "".join(f"{key}={value}\n" for key, value in rows.items())

    def start(self) -> None:
        """All nodes but those that somebody else runs already."""
        self.lay_out()
        for node in self.nodes:
            if not node.is_up:
                node.start()
        for node in self.nodes:
            node.wait_listening()
        for node in self.nodes:
            node.wait_sees(len(self.nodes))
        if self.secured is not None:
            self.secured.grant(self.bootstrap)

    def stop(self, timeout_s: float = 20.0) -> list[int]:
        """Controlled shutdown of every running node, one after another, so that leadership can move; exit statuses."""
        statuses = []
        for node in self.nodes:
            if node.running:
                node.terminate()
                statuses.append(node.wait_stopped(timeout_s))
        return statuses

    def stop_together(self, timeout_s: float = PATIENCE_S) -> None:
        """All at once, those that are still starting too: for a cluster that nobody has used."""
        for node in self.nodes:
            node.terminate()
        for node in self.nodes:
            if node.running:
                node.wait_stopped(timeout_s)

    def kill(self) -> None:
        for node in self.nodes:
            if node.running:
                node.resume()
                node.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
