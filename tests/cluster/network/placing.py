"""A cluster whose nodes are reached somewhere else than where a local cluster puts them: behind proxies, or on machines
of their own.

Faults of the network are asked of `Wires`, which know nodes by number; `CLIENTS` are all that is no node.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Protocol

from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.messages.topics.metadata import MetadataRequest

CLIENTS = 0


class Wires(Protocol):
    def cut(self, a: int, b: int, *, both: bool) -> None:
        """What `a` sends to `b` is lost from now on, silently; both ways if `both`."""
        ...

    def isolate(self, node: int, *, both: bool) -> None:
        """What the node sends is lost; what it is sent, too, if `both`."""
        ...

    def slow(self, node: int, delay_ms: int) -> bool:
        """What the node sends takes so much longer. False: that can not be done here."""
        ...

    def heal(self) -> None: ...

    def break_off(self, rng: Random) -> int:
        """Close some connections under both their ends; how many."""
        ...


class PlacedNode(NodeProcess):
    """`host`: where the node listens. `advertised`: where it tells others to come."""

    def __init__(self, place: NodeProcess, host: str, advertised: str, prefix: tuple[str, ...] = ()) -> None:
        super().__init__(place.node_id, place.folder, place.port, place.controller_port)
        self.host = host
        self.advertised = advertised
        self.prefix = prefix

    @property
    def address(self) -> str:
        return self.advertised

    def start(self) -> None:
        assert not self.running
        command = [*self.prefix, sys.executable, "-m", "strandline", "node", "--config", str(self.config_path)]
        with self.log_path.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def listens(self) -> bool:
        return self.brokers_seen() > 0

    def brokers_seen(self) -> int:
        try:
            return len(ask(self.host, self.port, MetadataRequest(topics=()), 12, timeout_s=1.0).brokers)
        except OSError:
            return 0


class PlacedCluster(LocalCluster):
    wires: Wires

    def __init__(self, folder: Path, nodes: int, properties: Mapping[str, str], ports: list[int] | None = None) -> None:
        super().__init__(folder, nodes, ports=ports, properties=properties)
        self.places: list[PlacedNode] = []

    def place(self, places: list[PlacedNode]) -> None:
        self.places = places
        self.nodes = [*places]

    def properties_text(self, node: NodeProcess) -> str:
        """As for a local cluster, with every address replaced by the one to use; a node's listeners stay its own."""
        rows = []
        for row in super().properties_text(node).splitlines():
            key = row.partition("=")[0]
            for other in self.places:
                is_advertised = key == "advertised.listeners"
                broker = other.advertised if is_advertised else f"{other.host}:{other.port}"
                row = row.replace(f"{HOST}:{other.port}", broker)
                row = row.replace(f"{HOST}:{other.controller_port}", self.voter(node.node_id, other, key))
            rows.append(row)
        return "\n".join(rows) + "\n"

    def voter(self, asker: int, other: PlacedNode, key: str) -> str:
        """Where one node finds another's controller."""
        return f"{other.host}:{other.controller_port}"
