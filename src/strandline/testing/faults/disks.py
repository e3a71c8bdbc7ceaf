"""Faults of a node's disk (`testing/disk_faults.py`)."""

from strandline.testing.disk_faults import FAILED, FULL
from strandline.testing.faults.fault import Fault
from strandline.testing.faults.processes import start
from strandline.testing.relayed_cluster import RelayedNode


def fill(node: RelayedNode) -> Fault:
    node.fault_path.write_text(FULL)
    return Fault(f"the disk of node {node.node_id} is full", lambda: repair(node))


def fail(node: RelayedNode) -> Fault:
    node.fault_path.write_text(FAILED)
    return Fault(f"the disk of node {node.node_id} has failed", lambda: repair(node))


def repair(node: RelayedNode) -> None:
    """A node that waits for room would come back by itself, in a while; a test should not wait for that."""
    node.fault_path.unlink(missing_ok=True)
    if node.running and not node.is_paused and not node.listens():
        node.kill()
    start(node)
