"""A real cluster for tests and scripts: nodes as processes, topics, settings for clients, and faults on request.

    with cluster(nodes=3) as strandline:
        strandline.create_topic("orders", partitions=3)
        producer = Producer(strandline.client_config())
        with strandline.killed(strandline.leader("orders", 0)):
            …

Several `Cluster` objects can share the same nodes, each with a prefix for its names, and with faults, answers and
captured requests of its own: so tests are apart from one another without starting nodes.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from strandline.client.admin.topics import create_topic, delete_topics, topic_names
from strandline.testing.answers.calls import AnswerCalls
from strandline.testing.answers.kafka_relays import KafkaRelays
from strandline.testing.client_settings import LIBRARIES, Access
from strandline.testing.faults.calls import FaultCalls
from strandline.testing.health import active_controller, anybody, leader_of, partition_states, until
from strandline.testing.local_cluster import StartFailed
from strandline.testing.relayed_cluster import RelayedCluster
from strandline.testing.secured import ADMIN
from strandline.testing.watching.history import WatchedHistory

SIZES = (1, 3, 5)
STARTS_MAX = 3  # another program may take a port that was free
TAKEN = "address already in use"
EXPLAIN_S, EXPLAINED_MAX = 20.0, 3
INTERNAL = "__"  # what the names of internal topics begin with


class Cluster(FaultCalls, AnswerCalls):
    """A running cluster. `prefix`: what the names of its topics, groups and transactional ids begin with."""

    def __init__(self, nodes: RelayedCluster, prefix: str = "") -> None:
        super().__init__(nodes)
        self.prefix = prefix
        self.listen()

    # --- names and addresses

    def name(self, name: str) -> str:
        """How a topic, a group or a transactional id of this test is called in the cluster. What it returns it returns
        unchanged when asked again."""
        return name if name.startswith((self.prefix, INTERNAL)) else f"{self.prefix}{name}"

    def named(self, topic: str) -> str:
        return self.name(topic)

    @property
    def bootstrap(self) -> str:
        """host:port,host:port, where clients find the nodes."""
        return self.nodes.bootstrap

    @property
    def node_ids(self) -> list[int]:
        return [node.node_id for node in self.nodes.relayed]

    def client_config(
        self, library: str = "confluent-kafka", /, *, user: str = ADMIN, **options: Any
    ) -> dict[str, Any]:
        """The settings of a client of this library: "confluent-kafka", "aiokafka" or "kafka-python". `options` come
        on top; for confluent-kafka, `group_id` is group.id. `user`: with `secure`, who logs in."""
        if library not in LIBRARIES:
            raise ValueError(f"'{library}' is not one of {', '.join(LIBRARIES)}")
        return LIBRARIES[library](Access(self.bootstrap, self.nodes.secured, user), options)

    # --- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Its name in the cluster, once every node knows it and all partitions have leaders. Without a replication
        factor it has three replicas, or as many as there are nodes. Raises StrandlineError."""
        name = self.name(name)
        create_topic(anybody(self.nodes), name, partitions, replication_factor or -1, config)
        until(lambda: self.why_not_led(name, partitions))
        return name

    def why_not_led(self, name: str, partitions: int) -> str:
        for node in self.nodes.relayed:
            if node.answers:
                states = partition_states(self.nodes, [name], [node])
                if len(states) < partitions or any(state.leader < 0 for state in states.values()):
                    return f"node {node.node_id} does not know the leaders of {name}"
        return ""

    def topics(self) -> list[str]:
        """Those of this test, by their names in the cluster; internal ones are left out."""
        names = topic_names(anybody(self.nodes))
        return [name for name in names if name.startswith(self.prefix) and not name.startswith(INTERNAL)]

    def delete_topics(self, *names: str) -> None:
        """Raises LookupError for those that were not deleted."""
        refused = {name: why for name, why in delete_topics(anybody(self.nodes), map(self.name, names)).items() if why}
        if refused:
            raise LookupError("; ".join(f"{name}: {why}" for name, why in refused.items()))

    # --- roles

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads the partition; waits until there is one."""
        name = self.name(topic)
        until(lambda: "" if leader_of(self.nodes, name, partition) else f"nobody leads {name}-{partition}")
        return leader_of(self.nodes, name, partition)

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The nodes in the partition's ISR."""
        return list(partition_states(self.nodes, [self.name(topic)])[self.name(topic), partition].isr)

    def controller(self) -> int:
        """The node with the active controller; 0: there is none at the moment."""
        return active_controller(self.nodes)

    # --- histories

    def watch(
        self,
        *clients: Any,
        acks: int | None = None,
        idempotent: bool | None = None,
        read_committed: bool | None = None,
    ) -> WatchedHistory:
        """Record what these producers and consumers do from now on: of confluent-kafka, aiokafka or kafka-python. The
        application uses `history.clients` in their place. How they are configured is read from their requests; name
        what they are meant to be (`idempotent=True`, `read_committed=True`) to have that judged instead."""
        return WatchedHistory(
            clients,
            lambda: anybody(self.nodes),
            lambda topics: partition_states(self.nodes, topics).values(),
            self.requests,
            acks=acks,
            idempotent=idempotent,
            read_committed=read_committed,
        )

    # --- what is wrong

    def log(self, node: int, lines: int = 40) -> str:
        """The end of what the node printed."""
        return self.node(node).log_tail(lines)

    def explain(self) -> str:
        """What `strandline explain` prints about topics of this test that are not healthy, at most `EXPLAINED_MAX`;
        empty if all are healthy."""
        states = partition_states(self.nodes, self.topics()).values()
        ill = [state.at.topic for state in states if state.leader < 0 or set(state.isr) != set(state.replicas)]
        return "\n".join(self.explained(topic) for topic in list(dict.fromkeys(ill))[:EXPLAINED_MAX])

    def explained(self, topic: str) -> str:
        servers = ",".join(node.direct_address for node in self.nodes.relayed if node.answers)
        command = [sys.executable, "-m", "strandline", "explain", topic, "--bootstrap-server", servers]
        if self.nodes.secured is not None:
            command += ["--command-config", str(self.nodes.secured.properties_path(ADMIN))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=EXPLAIN_S, check=False)
        except subprocess.TimeoutExpired:
            return f"{topic}: `strandline explain` did not end within {EXPLAIN_S:.0f} s"
        return (done.stdout + done.stderr).strip()


# --- starting


def started(folder: Path, nodes: int, config: Mapping[str, str] | None, secure: bool) -> RelayedCluster:
    """A new cluster that runs. Raises StartFailed."""
    if nodes not in SIZES:
        raise ValueError(f"nodes={nodes}: a cluster has 1, 3 or 5")
    folder = folder.absolute()  # nodes are forks of a process whose working directory may be another one
    for attempt in range(1, STARTS_MAX + 1):
        made = RelayedCluster(folder / f"{attempt}", nodes, properties=config, is_secure=secure, relays=KafkaRelays)
        try:
            made.start()
            return made
        except StartFailed as error:
            made.close()
            if attempt == STARTS_MAX or TAKEN not in str(error).lower():
                raise
        except BaseException:
            made.close()
            raise
    raise AssertionError("an attempt ends in one of these ways")


@contextmanager
def cluster(
    nodes: int = 3, *, config: Mapping[str, str] | None = None, secure: bool = False, folder: Path | None = None
) -> Iterator[Cluster]:
    """A cluster of its own, for the time of the block.

    `nodes`: 1, 3 or 5. `config`: Kafka's properties, for all nodes. `secure`: with TLS, SASL and ACLs; clients are the
    super user `admin`, or `alice`. `folder`: where the nodes' files stay; by default they are deleted."""
    with tempfile.TemporaryDirectory(prefix="strandline-") as scratch:
        running = started(folder or Path(scratch), nodes, config, secure)
        try:
            yield Cluster(running)
        finally:
            running.close()


@asynccontextmanager
async def async_cluster(
    nodes: int = 3, *, config: Mapping[str, str] | None = None, secure: bool = False, folder: Path | None = None
) -> AsyncIterator[Cluster]:
    """As `cluster`. Its start and its end do not block the loop; the methods of the cluster do."""
    made = cluster(nodes, config=config, secure=secure, folder=folder)
    strandline = await asyncio.to_thread(made.__enter__)
    try:
        yield strandline
    finally:
        await asyncio.to_thread(made.__exit__, *sys.exc_info())
