"""Faults of a node's process, and of the power of its machine."""

from strandline.testing.faults.fault import Fault
from strandline.testing.health import is_fenced, until
from strandline.testing.relayed_cluster import RelayedCluster, RelayedNode


def start(node: RelayedNode) -> None:
    """Whatever its process does: afterwards the node listens."""
    if node.running and node.is_paused:
        node.resume()
    if not node.running:
        node.start()
    node.wait_listening()


def kill(node: RelayedNode) -> Fault:
    if node.running:
        node.kill()
    return Fault(f"node {node.node_id} is killed", lambda: start(node))


def stop(node: RelayedNode) -> Fault:
    if node.running:
        node.resume()
        node.terminate()
        node.wait_stopped()
    return Fault(f"node {node.node_id} is stopped", lambda: start(node))


def pause(node: RelayedNode) -> Fault:
    if node.answers:
        node.pause()
    return Fault(f"node {node.node_id} is paused", lambda: start(node))


def restart(node: RelayedNode) -> Fault:
    stop(node).end()
    return Fault(f"node {node.node_id} was restarted")


def lose_power(node: RelayedNode) -> Fault:
    if node.running:
        node.cut_power()
        node.is_paused = False
    return Fault(f"node {node.node_id} lost power", lambda: start(node))


def expire_session(cluster: RelayedCluster, node: RelayedNode) -> Fault:
    """It stands still until the controller has fenced it."""
    fault = pause(node)
    until(lambda: "" if is_fenced(cluster, node) else f"the session of node {node.node_id} has not expired")
    return Fault(f"the session of node {node.node_id} has expired", fault.end)
