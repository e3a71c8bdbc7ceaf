"""A local cluster whose nodes and clients reach each node through relays, and whose disks fail on request.

So everything can be broken from outside, while the nodes run the code that they always run. A node's own controller is
the only thing that it reaches directly.
"""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from strandline.security.protocols import SASL_SSL
from strandline.testing.disk_faults import FAULT
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess, free_ports
from strandline.testing.nursery import nursery
from strandline.testing.relays import Relays

QUICK = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "replica.lag.time.max.ms": "1500",
    "transaction.state.log.num.partitions": "5",
}  # what tests wait for comes soon; everything else is as in Kafka


class RelayedNode(NodeProcess):
    """`port` and `controller_port` are the node's own, which nobody else is given."""

    relayed_port = 0
    relayed_controller_port = 0
    is_paused = False
    forks = True

    @property
    def address(self) -> str:
        """Where all others find it."""
        return f"{HOST}:{self.relayed_port}"

    @property
    def direct_address(self) -> str:
        """Where no fault of the network is in the way."""
        return f"{HOST}:{self.port}"

    @property
    def fault_path(self) -> Path:
        """What is wrong with its disk, for the disk itself; nothing if there is no such file."""
        return self.folder / "disk-fault"

    @property
    def answers(self) -> bool:
        """Can it, as far as its process goes?"""
        return self.running and not self.is_paused

    def start(self) -> None:
        self.is_paused = False
        super().start()

    def pause(self) -> None:
        super().pause()
        self.is_paused = True

    def resume(self) -> None:
        super().resume()
        self.is_paused = False

    def kill(self) -> None:
        super().kill()
        self.is_paused = False


class RelayedCluster(LocalCluster):
    def __init__(
        self,
        folder: Path,
        nodes: int = 3,
        *,
        properties: Mapping[str, str] | None = None,
        is_secure: bool = False,
        relays: Callable[[], Relays] = Relays,
    ) -> None:
        ports = free_ports(2 * nodes)
        super().__init__(folder, nodes, ports=ports, properties={**QUICK, **(properties or {})}, is_secure=is_secure)
        self.relayed = [
            RelayedNode(i + 1, folder / f"node-{i + 1}", ports[2 * i], ports[2 * i + 1]) for i in range(nodes)
        ]
        self.nodes = [*self.relayed]
        for node in self.relayed:
            node.can_lose_power()
            node.environment[FAULT] = str(node.fault_path)
        self.make_relays = relays
        self.relays: Relays | None = None
        self.to_clients: dict[int, ssl.SSLContext] = {}  # by node, if it has TLS

    def node(self, node_id: int) -> RelayedNode:
        assert 1 <= node_id <= len(self.relayed), f"there is no node {node_id}"
        return self.relayed[node_id - 1]

    @property
    def wires(self) -> Relays:
        assert self.relays is not None, "the cluster is laid out"
        return self.relays

    def lay_out(self) -> None:
        nursery()  # imports while all this is written
        if self.relays is None:
            if self.secured is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self.secured.make(range(1, len(self.nodes) + 1))  # the relays have the nodes' certificates
            self.relays = self.make_relays()
            for node in self.relayed:
                node.relayed_port = self.relay(node, node.port)
                node.relayed_controller_port = self.relay(node, node.controller_port)
        super().lay_out()

    def relay(self, node: RelayedNode, port: int) -> int:
        if self.secured is None:
            return self.wires.before(node.node_id, port)
        if node.node_id not in self.to_clients:
            self.to_clients[node.node_id] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.present(node)
        to_node = ssl.create_default_context(cafile=str(self.secured.authority))
        return self.wires.before(node.node_id, port, 0, self.to_clients[node.node_id], to_node)

    def present(self, node: RelayedNode) -> None:
        """From now on, the node's relays show the certificate that its key store has now."""
        assert self.secured is not None
        self.to_clients[node.node_id].load_cert_chain(self.secured.store(node.node_id))

    def properties_text(self, node: NodeProcess) -> str:
        assert isinstance(node, RelayedNode)
        rows = dict(row.split("=", 1) for row in super().properties_text(node).splitlines())
        rows["advertised.listeners"] = f"{self.protocol}://{node.address}"
        ports = {
            other.node_id: other.controller_port if other is node else other.relayed_controller_port
            for other in self.relayed
        }
        rows["controller.quorum.voters"] = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in ports.items())
        return "".join(f"{key}={value}\n" for key, value in rows.items())

    @property
    def is_secure(self) -> bool:
        return self.protocol == SASL_SSL

    def close(self) -> None:
        """Kill all nodes, and end the relays."""
        self.kill()
        if self.relays is not None:
            self.relays.close()
            self.relays = None
