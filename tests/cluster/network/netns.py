"""Each node on a machine of its own: a network namespace, joined to the others and to the clients by a bridge.

It must run as root of a user namespace with a network and a mount namespace of its own, as `unshare -rnm` makes them;
then nothing of it is seen outside, and it ends with its process. `enter` says how.

A way is cut by giving the sender a wrong link address for the receiver: packets leave, and nobody takes them. So
connections hang as they do when a cable is pulled, and both directions can be cut alone.
"""

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

from tests.cluster.network.placing import CLIENTS, PlacedCluster, PlacedNode

NETWORK = "10.77.0"
BRIDGE = "br0"
NOBODY = "02:00:00:00:00:ff"
INSIDE = "STRANDLINE_IN_NAMESPACES"


def why_not() -> str | None:
    """Why can this machine not do it? None means it can."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return "unshare or ip is not installed"
    probe = ["unshare", "-rnm", "sh", "-c", "mount -t tmpfs t /run && mkdir /run/netns && ip netns add probe"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=20)
    return None if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


def enter(command: list[str]) -> list[str]:
    """The command that runs `command` where `Namespaces` can be made."""
    return ["unshare", "-rnm", "env", f"{INSIDE}=1", *command]


def is_inside() -> bool:
    return os.environ.get(INSIDE) == "1"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def address(node: int) -> str:
    return f"{NETWORK}.{node or 254}"


def link(node: int) -> str:
    return f"02:00:00:00:00:{node or 254:02x}"


class Namespaces:
    """`nodes` machines, and the clients on the bridge itself."""

    def __init__(self, nodes: int) -> None:
        assert is_inside()
        self.nodes = list(range(1, nodes + 1))
        self.lost: dict[tuple[int, int], None] = {}  # (from, to)
        self.slowed: dict[int, None] = {}
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        Path("/run/netns").mkdir()
        ip("link", "set", "lo", "up")
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("link", "set", BRIDGE, "address", link(CLIENTS), "up")
        ip("addr", "add", f"{address(CLIENTS)}/24", "dev", BRIDGE)
        for node in self.nodes:
            self.add(node)
        for a in (CLIENTS, *self.nodes):
            for b in (CLIENTS, *self.nodes):
                if a != b:
                    self.know(a, b, link(b))

    def add(self, node: int) -> None:
        name = f"n{node}"
        ip("netns", "add", name)
        ip("link", "add", f"v{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"v{node}", "master", BRIDGE, "up")
        ip("-n", name, "link", "set", "eth0", "address", link(node), "up")
        ip("-n", name, "addr", "add", f"{address(node)}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "lo", "up")

    def know(self, a: int, b: int, at: str) -> None:
        """`a` sends what is for `b` to this link address."""
        where = ["dev", BRIDGE] if a == CLIENTS else ["dev", "eth0"]
        inside = [] if a == CLIENTS else ["-n", f"n{a}"]
        ip(*inside, "neigh", "replace", address(b), "lladdr", at, *where, "nud", "permanent")

    def prefix(self, node: int) -> tuple[str, ...]:
        return ("ip", "netns", "exec", f"n{node}")

    # --- faults

    def lose(self, a: int, b: int) -> None:
        if (a, b) not in self.lost:
            self.lost[a, b] = None
            self.know(a, b, NOBODY)

    def cut(self, a: int, b: int, *, both: bool) -> None:
        self.lose(a, b)
        if both:
            self.lose(b, a)

    def isolate(self, node: int, *, both: bool) -> None:
        for other in (CLIENTS, *self.nodes):
            if other != node:
                self.cut(node, other, both=both)

    def slow(self, node: int, delay_ms: int) -> bool:
        """Not every kernel can (sch_netem)."""
        delay = ["root", "netem", "delay", f"{delay_ms}ms", f"{delay_ms // 4}ms"]
        done = self.queue(node, "replace", *delay)
        if done.returncode == 0:
            self.slowed[node] = None
        return done.returncode == 0

    def queue(self, node: int, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self.prefix(node), "tc", "qdisc", verb, "dev", "eth0", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)

    def heal(self) -> None:
        for a, b in self.lost:
            self.know(a, b, link(b))
        for node in self.slowed:
            self.queue(node, "del", "root")
        self.lost, self.slowed = {}, {}

    def break_off(self, rng: Random) -> int:
        """All that one node has with another, or with the clients. Not every kernel can (INET_DIAG_DESTROY)."""
        a, b = rng.sample([CLIENTS, *self.nodes], 2)
        inside = [] if a == CLIENTS else ["ip", "netns", "exec", f"n{a}"]
        done = subprocess.run(
            [*inside, "ss", "-tKHn", "dst", address(b)], capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout.count("\n") if done.returncode == 0 else 0


class NamespaceCluster(PlacedCluster):
    def __init__(self, folder: Path, nodes: int, properties: dict[str, str]) -> None:
        ports = [9092 + i for i in range(2 * nodes)]
        super().__init__(folder, nodes, properties, ports)
        self.wires = Namespaces(nodes)
        self.place(
            [
                PlacedNode(node, at, f"{at}:{node.port}", self.wires.prefix(node.node_id))
                for node in self.nodes
                for at in (address(node.node_id),)
            ]
        )
