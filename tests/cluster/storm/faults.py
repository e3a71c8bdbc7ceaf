"""What a storm does to the nodes, drawn from its seed.

The rule of wiped disks: before a disk is wiped, all replicas of all partitions are in sync. Then the node is killed.
Its disk is wiped only if both others say that they are in sync in every partition, that one of them leads it, and that
both have all that is committed of the metadata; otherwise the node starts again with what it has. The next disk is
wiped only when everything is in sync again. Any node may be killed or stopped at any time. So each acknowledged record
lies on two disks when a third one is wiped: it must survive.

The clock of a node jumps where it starts, as it reads the machine's clock only then.
"""

import time
from collections import Counter
from collections.abc import Callable
from random import Random

from tests.cluster.storm.clients import TOPIC, Writer
from tests.cluster.storm.cluster import StormCluster, Wrong, until

from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, NodeProcess
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest

HEAL_S = 180.0  # on a busy machine, too
SYNC_S = 30.0
PAUSE_S = 7.0
JUMP_MS = 12 * 3_600_000


class Faults:
    def __init__(
        self, cluster: StormCluster, rng: Random, writers: list[Writer], partitions: int, say: Callable[[str], None]
    ) -> None:
        self.cluster = cluster
        self.rng = rng
        self.writers = writers
        self.partitions = partitions
        self.say = say
        self.counts: Counter[str] = Counter()
        self.ended: list[str] = []  # nodes that ended by themselves
        self.longest_heal_s = 0.0
        self.kinds: dict[str, tuple[int, Callable[[], None]]] = {
            "kill": (6, self.kill),
            "stop": (5, self.stop),
            "zombie": (5, self.zombie),
            "shutdown": (2, self.shut_down),
            "kill all": (2, self.kill_all),
            "restart all": (1, self.restart_all),
            "wipe": (3, self.wipe),
            "elect": (2, self.elect),
            "reassign": (3, self.reassign),
            "new producer": (2, self.new_producer),
        }

    def strike(self) -> None:
        weights = [weight for weight, _ in self.kinds.values()]
        (name,) = self.rng.choices(list(self.kinds), weights)
        self.counts[name] += 1
        self.kinds[name][1]()

    def pause(self, most_s: float) -> None:
        time.sleep(self.rng.uniform(0, most_s))

    def start(self, node: NodeProcess) -> None:
        if node.running:
            return
        why = self.cluster.why_ended(node)
        if why:
            self.ended.append(why)
        if self.rng.randrange(3) == 0:
            self.counts["jump"] += 1
            self.cluster.set_clock(node, self.rng.randint(-JUMP_MS, JUMP_MS))
        node.start()

    def any_node(self) -> NodeProcess:
        return self.rng.choice(self.cluster.nodes)

    def a_leader(self) -> NodeProcess:
        """Of a partition that is drawn, if it has one."""
        partition = self.rng.randrange(self.partitions)
        return self.cluster.leader_of(TOPIC, partition) or self.any_node()

    # --- single nodes

    def kill(self) -> None:
        node = self.rng.choice((self.any_node, self.a_leader))()
        if node.running:
            node.kill()
        self.pause(5)
        self.start(node)

    def stop(self) -> None:
        node = self.any_node()
        if node.running:
            node.pause()
            try:
                self.pause(PAUSE_S)
            finally:
                node.resume()

    def zombie(self) -> None:
        """A leader stands still until another one leads, and goes on as if it still led; now and then the new one is
        killed at that moment."""
        partition = self.rng.randrange(self.partitions)
        node = self.cluster.leader_of(TOPIC, partition)
        if node is None or not node.running:
            return
        node.pause()
        try:
            until(lambda: self.why_no_other_leads(partition, node), PAUSE_S)
            self.pause(0.5)
        finally:
            node.resume()
        if self.rng.randrange(3) == 0:
            self.kill()

    def why_no_other_leads(self, partition: int, node: NodeProcess) -> str:
        return "nobody else leads" if self.cluster.leader_of(TOPIC, partition) in (node, None) else ""

    def shut_down(self) -> None:
        node = self.any_node()
        if node.running:
            node.terminate()
            self.pause(4)
            node.wait_stopped()
        self.start(node)

    # --- all nodes

    def kill_all(self) -> None:
        order = self.rng.sample(self.cluster.nodes, len(self.cluster.nodes))
        for node in order:
            if node.running:
                node.kill()
            self.pause(self.rng.choice((0, 0.5)))
        self.start_all()

    def restart_all(self) -> None:
        for node in self.rng.sample(self.cluster.nodes, len(self.cluster.nodes)):
            node.terminate()
            self.pause(1)
        for node in self.cluster.nodes:
            if node.process is not None:
                node.wait_stopped()
        self.start_all()

    def start_all(self) -> None:
        for node in self.rng.sample(self.cluster.nodes, len(self.cluster.nodes)):
            self.pause(self.rng.choice((0, 2)))
            self.start(node)

    # --- disks

    def wipe(self) -> None:
        node, cluster = self.any_node(), self.cluster
        self.heal("before a disk is wiped")
        node.kill()
        others = cluster.others(node)
        why = until(lambda: cluster.why_not_in_sync(others) or cluster.why_no_quorum(others), SYNC_S)
        if why:
            self.counts["wipe given up"] += 1
            self.say(f"the disk of node {node.node_id} is not wiped: {why}")
        else:
            self.counts["wiped"] += 1
            cluster.wipe(node)
            self.pause(3)
        self.start(node)

    # --- places

    def elect(self) -> None:
        self.send(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5_000), 2)

    def reassign(self) -> None:
        """Another order, or two replicas instead of three: two hold what min.insync.replicas asks for."""
        rows = []
        for partition in self.rng.sample(range(self.partitions), 2):
            ids = self.rng.sample([node.node_id for node in self.cluster.nodes], self.rng.choice((2, 3, 3)))
            rows.append(ReassignablePartition(partition_index=partition, replicas=tuple(ids)))
        self.send(
            AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=tuple(rows)),)), 0
        )

    def all_replicas(self) -> None:
        ids = tuple(node.node_id for node in self.cluster.nodes)
        rows = [
            ReassignablePartition(partition_index=partition, replicas=ids[partition % 3 :] + ids[: partition % 3])
            for partition in range(self.partitions)
        ]
        self.send(
            AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=TOPIC, partitions=tuple(rows)),)), 0
        )

    def send(self, message: object, version: int) -> None:
        """To any node that answers: each passes it on to the controller."""
        for node in self.rng.sample(self.cluster.nodes, len(self.cluster.nodes)):
            try:
                ask(HOST, node.port, message, version, timeout_s=5)
                return
            except OSError:
                continue

    # --- clients

    def new_producer(self) -> None:
        self.rng.choice(self.writers).wants_another.set()

    # --- peace

    def heal(self, when: str) -> None:
        """Everybody runs, every partition has all three replicas in sync, and each writer that is
        not done makes progress."""
        began = time.monotonic()
        before = [writer.acknowledged for writer in self.writers]
        reported_at = 0.0

        def why_not() -> str:
            nonlocal reported_at
            for node in self.cluster.nodes:
                self.start(node)
            if time.monotonic() > reported_at + 5:
                self.all_replicas()
                reported_at = time.monotonic()
            return self.cluster.why_not_whole() or ", ".join(
                f"{writer.name} makes no progress"
                for writer, count in zip(self.writers, before, strict=True)
                if writer.acknowledged <= count and writer.thread.is_alive()
            )

        why = until(why_not, HEAL_S)
        if why:
            raise Wrong(f"{when}: not healed within {HEAL_S:.0f} s: {why}")
        self.longest_heal_s = max(self.longest_heal_s, time.monotonic() - began)
