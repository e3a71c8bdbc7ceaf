"""The folder of a local cluster before anything in it is touched: which nodes it has, which of them run, and for whom.

Nothing is made or written here.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from strandline.broker.config import parse_properties
from strandline.server.storage.lock import Holder, holder_of
from strandline.testing.local_cluster import PATIENCE_S, LocalCluster, NodeProcess, is_port_free


class Occupied(Exception):
    """Something runs there, or on the ports, that must end first; the second argument says what to do."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice


def properties_in(folder: Path, node_id: int) -> dict[str, str]:
    """As the node was last started with; nothing if it never was."""
    try:
        return dict(parse_properties((folder / f"node-{node_id}" / "server.properties").read_text()))
    except (OSError, ValueError):
        return {}


def nodes_in(folder: Path) -> int:
    """How many nodes the cluster has that was made there; 0 if none was."""
    voters = properties_in(folder, 1).get("controller.quorum.voters", "")
    return len(voters.split(",")) if voters else 0


def bootstrap_in(folder: Path) -> str:
    listeners = (properties_in(folder, i + 1).get("advertised.listeners", "") for i in range(nodes_in(folder)))
    return ",".join(listener.rpartition("/")[2] for listener in listeners if listener)


def refuse_running(folder: Path) -> None:
    """Raises Occupied if another `strandline up` has the folder."""
    holder = holder_of(str(folder))
    if holder is not None:
        raise running(folder, holder)


def running(folder: Path, holder: Holder | None) -> Occupied:
    bootstrap = bootstrap_in(folder)
    process = f", process {holder.pid}" if holder else ""
    stop = f"Ctrl-C in its terminal{f' or `kill {holder.pid}`' if holder else ''} stops it"
    where = f"; its bootstrap address is {bootstrap}" if bootstrap else ""
    return Occupied(
        f"a cluster runs in {folder} already (`strandline up`{process}){where}",
        f"{stop}; another cluster needs another folder and other ports: --dir and --port",
    )


def refuse_busy_ports(cluster: LocalCluster) -> None:
    """Raises Occupied where a node that must be started would not get its ports, or one that runs has others."""
    busy = []
    for node in cluster.nodes:
        other = node.other
        if other is None or other.starter:  # who still stops has its ports
            busy += [port for port in ports_of(node) if other is None and not is_port_free(port)]
        elif not has_ports(node):
            raise Occupied(
                f"node {node.node_id} was started by hand (process {other.pid}) and listens elsewhere, at"
                f" {address_of(node)}",
                f"stop it with `kill {other.pid}`, or name the cluster's ports with --port",
            )
    if busy:
        named = ", ".join(map(str, sorted(busy)))
        problem = f"port {named} is in use" if len(busy) == 1 else f"ports {named} are in use"
        raise Occupied(problem, "is a cluster running already? Choose others with --port")


def ports_of(node: NodeProcess) -> Iterator[int]:
    yield node.port
    yield node.controller_port
    if node.metrics_port is not None:
        yield node.metrics_port


def address_of(node: NodeProcess) -> str:
    listener = properties_in(node.folder.parent, node.node_id).get("advertised.listeners", "")
    return listener.rpartition("/")[2]


def has_ports(node: NodeProcess) -> bool:
    return address_of(node) == node.address


def leftovers(cluster: LocalCluster) -> list[tuple[NodeProcess, Holder]]:
    """Nodes of an earlier `strandline up` that is gone: they have noticed, and shut down."""
    held = ((node, node.other) for node in cluster.nodes)
    return [(node, holder) for node, holder in held if holder is not None and holder.starter]


def await_leftovers(cluster: LocalCluster, patience_s: float = PATIENCE_S) -> None:
    """Raises Occupied if they do not end."""
    until = time.monotonic() + patience_s
    while left := leftovers(cluster):
        if time.monotonic() > until:
            who = ", ".join(f"node {node.node_id} (process {holder.pid})" for node, holder in left)
            kill = " ".join(str(holder.pid) for _, holder in left)
            raise Occupied(f"nodes of an earlier `strandline up` still run here: {who}", f"`kill {kill}` stops them")
        time.sleep(0.05)
