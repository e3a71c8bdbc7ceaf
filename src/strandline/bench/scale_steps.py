"""The steps of one measurement of many partitions: create, write, rest, lose a node, get it back, lose the controller.

A time runs from the command or the signal until every living node has done it, as `scale_cluster` sees it.
"""

import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from strandline.base.value import Value
from strandline.bench.scale_cluster import (
    Held,
    Partitions,
    Pinger,
    await_controller,
    await_service,
    cpu_s,
    give_up,
    held_by,
    listening,
    open_files,
    resident_mb,
)
from strandline.testing.local_cluster import LocalCluster, NodeProcess, free_ports

NODES = 3
CHECKPOINTED_S = 6.0  # the checkpoint of the high watermarks comes every five
STOP_S = 300.0
FENCED = re.compile(r"^(\S+ \S+) WARNING broker (\d+) is fenced: ", re.MULTILINE)

Say = Callable[[str], None]


class ScaleConfig(Value, frozen=True):
    topics: int = 10
    idle_s: float = 20
    folder: Path | None = None


class Step(Value, frozen=True):
    """One step: how long it took, the processor time of all nodes that lived, and how long any of them was deaf.

    `held`: what kept the loop of a node for 10 ms or more, with the number of times and the milliseconds in all."""

    seconds: float
    cpu_s: float
    deaf_s: float
    held: Held = {}  # noqa: RUF012  # a Value copies it


class Scaled(Value, frozen=True):
    partitions: int
    topics: int
    create: Step
    write: Step
    kib_per_partition: float  # resident memory of a node, for each of the partitions, all of which it hosts
    open_files: int  # of a node
    idle_percent: float  # of a core, the mean of the nodes
    leaders: Step  # after SIGKILL of a node that is not the active controller
    detected_s: float  # of that: until the controller had decided that the node is dead, and what follows
    restart: Step  # of that node, until every ISR is full
    controller_s: float  # after SIGKILL of the active controller, until another one has served a request
    controller: Step  # the same, until every partition has a live leader again
    restart_controller: Step
    stop: Step  # a controlled shutdown of one node, its leaderships moved first
    start: Step  # after that clean stop, until every ISR is full
    delete: Step  # until no node has a file of them


class Steps:
    def __init__(self, cluster: LocalCluster, partitions: Partitions, say: Say) -> None:
        self.cluster = cluster
        self.partitions = partitions
        self.say = say

    def others(self, node: NodeProcess) -> list[NodeProcess]:
        return [other for other in self.cluster.nodes if other is not node]

    def step(self, what: str, nodes: list[NodeProcess], act: Callable[[], None]) -> Step:
        self.say(what)
        held = held_by(nodes)
        with listening(nodes) as pingers:
            before, began = cpu_s(nodes), time.monotonic()
            act()
            seconds = time.monotonic() - began
            used = cpu_s(nodes) - before
        return Step(round(seconds, 3), round(used, 2), round(longest(pingers), 3), more(held_by(nodes), held))

    def create(self) -> Step:
        def act() -> None:
            self.partitions.create()
            self.partitions.await_in_sync(self.cluster.nodes)
            self.partitions.await_logs(self.cluster.nodes)

        return self.step("creating them", self.cluster.nodes, act)

    def write(self) -> Step:
        return self.step("writing a record into each", self.cluster.nodes, self.partitions.write)

    def delete(self) -> Step:
        def act() -> None:
            self.partitions.delete()
            self.partitions.await_on(self.cluster.nodes, lambda _: False, "deleted partitions")
            self.partitions.await_logs(self.cluster.nodes)

        return self.step("deleting them", self.cluster.nodes, act)

    def rest(self, seconds: float) -> float:
        self.say(f"resting for {CHECKPOINTED_S + seconds:.0f} s")
        time.sleep(CHECKPOINTED_S)
        before, began = cpu_s(self.cluster.nodes), time.monotonic()
        time.sleep(seconds)
        used = cpu_s(self.cluster.nodes) - before
        return round(100 * used / (time.monotonic() - began) / NODES, 2)

    def lose(self, node: NodeProcess, what: str, then: Callable[[], None] | None = None) -> Step:
        left = self.others(node)

        def act() -> None:
            node.kill()
            if then is not None:
                then()
            self.partitions.await_led(left)

        return self.step(what, left, act)

    def lose_controller(self, active: NodeProcess) -> tuple[Step, float]:
        """And after how many seconds another one served."""
        served: list[float] = []

        def serve() -> None:
            await_service(self.others(active), "after-failover")
            served.append(time.monotonic() - began)

        began = time.monotonic()
        step = self.lose(active, f"SIGKILL of the active controller, node {active.node_id}", serve)
        return step, served[0]

    def get_back(self, node: NodeProcess, what: str) -> Step:
        node.start()  # first, so that its processor time can be asked for; it does nothing yet

        return self.step(what, self.cluster.nodes, lambda: self.partitions.await_in_sync(self.cluster.nodes))

    def stop(self, node: NodeProcess) -> Step:
        def act() -> None:
            node.terminate()
            if node.wait_stopped(STOP_S) != 0:
                give_up(node, "did not stop in order")

        return self.step(f"stopping node {node.node_id} in order", self.others(node), act)


def more(after: Held, before: Held) -> Held:
    """The causes with the most time first."""
    grown = []
    for cause, (times, ms) in after.items():
        times_before, ms_before = before.get(cause, (0, 0.0))
        if times > times_before:
            grown.append((ms - ms_before, times - times_before, cause))
    return {cause: (times, round(ms, 1)) for ms, times, cause in sorted(grown, reverse=True)}


def longest(pingers: list[Pinger]) -> float:
    return max(pinger.stop() for pinger in pingers)


def measure(partitions: int, config: ScaleConfig, folder: Path, say: Say) -> Scaled:
    ports = free_ports(3 * NODES)
    with LocalCluster(folder, NODES, ports=ports[: 2 * NODES], metrics_ports=ports[2 * NODES :]) as cluster:
        nodes = cluster.nodes
        warm = Steps(cluster, Partitions(cluster, "warm", 1, 10), say)
        warm.create()
        warm.write()
        of_nodes_mb = resident_mb(nodes)
        steps = Steps(cluster, Partitions(cluster, "scale", min(config.topics, partitions), partitions), say)
        create, write = steps.create(), steps.write()
        idle = steps.rest(config.idle_s)
        used_mb, files = resident_mb(nodes) - of_nodes_mb, max(open_files(node.pid) for node in nodes)

        active = cluster.node(await_controller(nodes))
        victim = steps.others(active)[0]
        killed_at = time.time()
        leaders = steps.lose(victim, f"SIGKILL of node {victim.node_id}")
        detected_s = fenced_at(active, victim) - killed_at
        restart = steps.get_back(victim, f"node {victim.node_id} comes back")

        active = cluster.node(await_controller(nodes))
        controller, served_s = steps.lose_controller(active)
        restart_controller = steps.get_back(active, f"node {active.node_id} comes back")
        stop = steps.stop(active)
        start = steps.get_back(active, f"node {active.node_id} comes back from a clean stop")
        delete = steps.delete()
    return Scaled(
        partitions=partitions,
        topics=len(steps.partitions.sizes),
        create=create,
        write=write,
        kib_per_partition=round(used_mb * 1e6 / 1024 / partitions, 1),
        open_files=files,
        idle_percent=idle,
        leaders=leaders,
        detected_s=round(detected_s, 3),
        restart=restart,
        controller_s=round(served_s, 3),
        controller=controller,
        restart_controller=restart_controller,
        stop=stop,
        start=start,
        delete=delete,
    )


def fenced_at(controller: NodeProcess, node: NodeProcess) -> float:
    """When the controller said that it has fenced the node."""
    said = FENCED.findall(controller.log_path.read_text(errors="replace"))
    times = [text for text, number in said if int(number) == node.node_id]
    if not times:
        give_up(controller, f"never fenced node {node.node_id}")
    return datetime.strptime(times[-1], "%Y-%m-%d %H:%M:%S.%f").timestamp()  # local, as it is logged
