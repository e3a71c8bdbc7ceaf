"""Every fault as a method: it acts at once and lasts until `heal`, or as a context manager until the end of the block.

Each has two names, `kill` and `killed`, so that both read well; they are the same.
"""

from collections.abc import Sequence

from strandline.testing.faults import certificates, disks, leaders, network, processes
from strandline.testing.faults.chaos import SLOW_S, Break, Chaos
from strandline.testing.faults.fault import Fault
from strandline.testing.health import (
    OFFSETS_TOPIC,
    PATIENCE_S,
    TRANSACTIONS_TOPIC,
    NotSo,
    coordinating_partition,
    leader_of,
    until,
    why_not_healthy,
)
from strandline.testing.relayed_cluster import RelayedCluster, RelayedNode
from strandline.testing.relays import CLIENTS, Way

MAJORITY_KEPT = ("kill", "stop", "pause", "restart", "isolate", "slow", "lose_power")  # for chaos


class FaultCalls:
    """Nodes are named by their ids, from 1 on."""

    def __init__(self, nodes: RelayedCluster) -> None:
        self.nodes = nodes
        self.faults: list[Fault] = []  # that were caused here

    def named(self, topic: str) -> str:
        """A topic's name in the cluster."""
        return topic

    def node(self, node: int) -> RelayedNode:
        return self.nodes.node(node)

    def caused(self, fault: Fault) -> Fault:
        self.faults = [known for known in self.faults if not known.is_over]
        self.faults.append(fault)
        return fault

    # --- processes

    def kill(self, node: int) -> Fault:
        """SIGKILL. What the node had written is still there when it starts again."""
        return self.caused(processes.kill(self.node(node)))

    def stop(self, node: int) -> Fault:
        """A controlled shutdown, and wait until the process has ended."""
        return self.caused(processes.stop(self.node(node)))

    def pause(self, node: int) -> Fault:
        """SIGSTOP: the process keeps its connections, and does nothing."""
        return self.caused(processes.pause(self.node(node)))

    def restart(self, node: int) -> Fault:
        """A controlled shutdown and a start. Nothing is left to repair."""
        return self.caused(processes.restart(self.node(node)))

    def lose_power(self, node: int) -> Fault:
        """As `kill`, and all that was not synced to the disk is gone."""
        return self.caused(processes.lose_power(self.node(node)))

    def expire_session(self, node: int) -> Fault:
        """The node stands still, and the controller has fenced it when this returns."""
        return self.caused(processes.expire_session(self.nodes, self.node(node)))

    # --- network

    def isolate(self, node: int, *, clients: bool = True) -> Fault:
        """The node and all others do not reach each other; with `clients`, neither do clients reach the node."""
        return self.caused(network.isolate(self.nodes, self.node(node), clients=clients))

    def cut(self, source: int | str, target: int | str) -> Fault:
        """One way: what the source sends does not arrive at the target. Either may be "clients"."""
        way = Way(end_of(source), end_of(target))
        return self.caused(network.cut(self.nodes, f"{source} does not reach {target}", way))

    def slow(self, node: int, delay_s: float = SLOW_S) -> Fault:
        """All that the node sends is so many seconds late, at least."""
        return self.caused(network.slow(self.nodes, self.node(node), delay_s))

    def shrink_isr(
        self, topic: str, partition: int = 0, to: int = 1, *, record: bytes | None = b"the ISR shrinks"
    ) -> Fault:
        """Followers do not reach the leader until only `to` replicas are in sync, after `replica.lag.time.max.ms`
        (1.5 s here). As in Kafka, a follower that lacks nothing stays in sync, so this `record` is written, with
        acks=1. None: nothing is written or waited for, and the ISR shrinks after the next record."""
        return self.caused(network.shrink_isr(self.nodes, self.named(topic), partition, to, record))

    # --- disks

    def fill_disk(self, node: int) -> Fault:
        """Whatever takes room fails from now on; the node stops serving when it next writes."""
        return self.caused(disks.fill(self.node(node)))

    def fail_disk(self, node: int) -> Fault:
        """Every read and write fails from now on; the node ends when it next uses its disk."""
        return self.caused(disks.fail(self.node(node)))

    # --- roles, certificates

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None) -> Fault:
        """To the node `to`, or to any other one that is in sync. The end of the block moves it back."""
        return self.caused(leaders.move_leader(self.nodes, self.named(topic), partition, to))

    def move_coordinator(
        self, group: str | None = None, *, transactional_id: str | None = None, to: int | None = None
    ) -> Fault:
        """Of a group, or of a transactional id."""
        topic, partition = self.coordinating(group, transactional_id)
        return self.caused(leaders.move_leader(self.nodes, topic, partition, to))

    def coordinator(self, group: str | None = None, *, transactional_id: str | None = None) -> int:
        """The node that coordinates the group, or the transactional id. 0: none does at the moment."""
        return leader_of(self.nodes, *self.coordinating(group, transactional_id))

    def coordinating(self, group: str | None, transactional_id: str | None) -> tuple[str, int]:
        if (group is None) == (transactional_id is None):
            raise ValueError("name a group, or else a transactional id")
        topic = OFFSETS_TOPIC if transactional_id is None else TRANSACTIONS_TOPIC
        key = self.named(transactional_id if group is None else group)  # type: ignore[arg-type]  # one is not None
        return topic, coordinating_partition(self.nodes, key, topic)

    def rotate_certificate(self, node: int) -> Fault:
        """For a cluster with `secure`: the node has another key and certificate when this returns."""
        return self.caused(certificates.rotate(self.nodes, self.node(node)))

    killed = kill
    stopped = stop
    paused = pause
    restarted = restart
    without_power = lose_power
    expired_session = expire_session
    isolated = isolate
    cut_one_way = cut
    slowed = slow
    shrunk_isr = shrink_isr
    full_disk = fill_disk
    failed_disk = fail_disk
    moved_leader = move_leader
    moved_coordinator = move_coordinator
    rotated_certificate = rotate_certificate

    # --- all of them

    def chaos(self, seed: int | None = None, *, faults: Sequence[str] = MAJORITY_KEPT, pause_s: float = 0.5) -> Chaos:
        """For a `with` block: one fault after another, each on one node. The seed is printed, and brings the same
        faults again. `faults`: names of methods that take a node; `pause_s`: between two, on average."""
        breaks: dict[str, Break] = {name: getattr(self, name) for name in faults}
        return Chaos(seed, breaks, len(self.nodes.relayed), pause_s)

    def heal(self, timeout_s: float = PATIENCE_S) -> None:
        """Repair everything, and wait until the cluster is healthy."""
        faults, self.faults = self.faults, []
        for fault in reversed(faults):
            fault.end()
        self.nodes.wires.heal()
        for node in self.nodes.relayed:
            if not node.answers:
                processes.start(node)
        self.wait_until_healthy(timeout_s)

    @property
    def is_disturbed(self) -> bool:
        """Is there a fault that was caused here and is not over?"""
        return any(not fault.is_over for fault in self.faults)

    def why_not_healthy(self) -> str:
        """One sentence; empty if all nodes run, all replicas are in sync, and there is a controller."""
        return why_not_healthy(self.nodes)

    def wait_until_healthy(self, timeout_s: float = PATIENCE_S) -> None:
        """Raises NotSo, which says what is wrong and ends with the log of the node concerned."""
        try:
            until(self.why_not_healthy, timeout_s)
        except NotSo as error:
            logs = (f"node {node.node_id}:\n{node.log_tail(5)}" for node in self.nodes.relayed)
            raise NotSo("\n".join((str(error), *logs))) from None


def end_of(name: int | str) -> int:
    if name == "clients":
        return CLIENTS
    assert isinstance(name, int), f"{name!r} is neither the id of a node nor 'clients'"
    return name
