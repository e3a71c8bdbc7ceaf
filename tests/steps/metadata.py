"""Three whole nodes with many partitions, in one process on virtual time: which steps keep a node's loop, and why.

The nodes, their codecs and their messages are real; network, disks and clocks are the simulator's, so that a run is the
same each time but for how long its steps take. A step is an event or a deadline, as in `server.pump`; the driver's part
of it (frames, sockets, files) is not in the figures.
"""

from collections.abc import Callable
from typing import Any

from tests.steps.stopwatch import COLLECTOR, Stopwatch

from strandline.base.effects import Effect
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.broker import due
from strandline.broker.config import NodeConfig
from strandline.broker.node import Node
from strandline.metadata.image import Image
from strandline.server.metrics.long_steps import cause_of
from strandline.server.pump import DEADLINE
from strandline.sim.clients.client import Client, Life, Request
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.topics.elect_leaders import ElectLeadersRequest
from strandline.wire.messages.topics.metadata import MetadataRequest

NODES = 4  # of which three are replicas of each partition
REPLICAS = 3
LONG_S = 0.010  # what the metric of a node counts, too
WITHIN_MS = 600_000
REST_MS = 12_000  # checkpoints are written, sessions of the dead end
SETTINGS = {  # as they are by default, where the simulator's nodes are more hasty
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.request.timeout.ms": "2000",
    "leader.imbalance.check.interval.seconds": "300",
    "log.scrub.interval.ms": "3600000",
}


class Quiet:
    """Stands for the laws: nobody judges this run."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class User(Client):
    """Asks for one thing after another, each until it is answered."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, "user")
        self.wishes: list[tuple[Any, int]] = []
        self.answers: list[Any] = []

    def live(self) -> Life:
        while True:
            if not self.wishes:
                yield 10
                continue
            message, version = self.wishes[0]
            answer = yield Request(self.stage.bootstrap[0], message, version, 60_000)
            if answer is not None:
                self.answers.append(answer)
                del self.wishes[0]


class Watched:
    """A machine whose node's steps are timed, by phase and cause."""

    def __init__(self, machine: Machine, bench: "Bench") -> None:
        self.machine = machine
        self.bench = bench
        self.plain = machine.run
        machine.run = self.run  # type: ignore[method-assign]
        machine.check = lambda *_, **__: None  # type: ignore[method-assign]  # its invariants cost more than its steps
        machine.settings |= SETTINGS
        machine.config = NodeConfig.from_properties(machine.settings)

    def run(self, event: Any, act: Callable[[Node, Instant], list[Effect]] | None = None) -> None:
        now = self.machine.clock.now()
        parts: list[str] = []
        if event == DEADLINE and (node := self.machine.node) is not None:
            parts = due.names(node.quorum, node.forwarding, node.controller, node.broker, now)
        cause = cause_of(event, parts)
        step = act or (lambda node, now: node.step(event, now))
        self.plain(event, lambda node, now: self.bench.watch(cause).step(lambda: step(node, now)))


class Bench:
    def __init__(self, partitions: int, topics: int) -> None:
        self.world = World(1, Options(brokers=NODES, controllers=3, settings=SETTINGS))
        self.world.laws = Quiet()  # type: ignore[assignment]
        self.partitions = partitions
        self.names = [f"topic-{number}" for number in range(topics)]
        self.sizes = [partitions // topics + (number < partitions % topics) for number in range(topics)]
        self.watches: dict[str, Stopwatch] = {}
        self.watched = [Watched(machine, self) for machine in self.world.machines.values()]
        self.scene = Scene(self.world)
        self.user = User(self.scene)

    def watch(self, cause: str) -> Stopwatch:
        if cause not in self.watches:
            self.watches[cause] = Stopwatch(cause)
        return self.watches[cause]

    def phase(self, name: str, act: Callable[[], None], until: Callable[[], bool]) -> None:
        """Print which causes kept a loop for 10 ms or more, the longest first, and how long all steps took."""
        self.watches = {}
        began = self.world.time.now
        act()
        end = began + WITHIN_MS
        while not until():
            assert self.world.time.now < end, f"{name} does not end"
            self.world.run(20)
        self.world.run(REST_MS)
        steps = [step for watch in self.watches.values() for step, _ in watch.steps]
        print(f"\n{name}: {len(steps):,} steps, {sum(steps):.2f} s, longest {1000 * max(steps):.1f} ms", flush=True)
        for longest, cause, watch in sorted(
            ((max(step - gc for step, gc in watch.steps), cause, watch) for cause, watch in self.watches.items()),
            reverse=True,
        ):
            many = [step - gc for step, gc in watch.steps if step - gc >= LONG_S]
            if many:
                print(f"  {cause}: {1000 * longest:.1f} ms at most, {len(many)} over 10 ms", flush=True)

    # --- what is done

    def ask(self, message: Any, version: int) -> None:
        self.user.wishes.append((message, version))

    def is_answered(self) -> bool:
        return not self.user.wishes

    def create(self) -> None:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=size, replication_factor=REPLICAS)
            for name, size in zip(self.names, self.sizes, strict=True)
        )
        self.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)

    def move(self) -> None:
        """Each partition leaves the first of its replicas for the node that has none of it."""
        image = self.image()
        rows = []
        for topic in image.topics.values():
            moved = []
            for index, partition in topic.partitions.items():
                free = next(NodeId(node) for node in range(1, NODES + 1) if node not in partition.replicas)
                moved.append(ReassignablePartition(partition_index=index, replicas=(*partition.replicas[1:], free)))
            rows.append(ReassignableTopic(name=topic.name, partitions=tuple(moved)))
        self.ask(AlterPartitionReassignmentsRequest(topics=tuple(rows), timeout_ms=60_000), 1)

    def elect(self) -> None:
        self.ask(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=60_000), 2)

    def describe(self) -> None:
        self.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)

    def delete(self) -> None:
        topics = tuple(DeleteTopicState(name=name, topic_id=bytes(16)) for name in self.names)
        self.ask(DeleteTopicsRequest(topics=topics, timeout_ms=60_000), 6)

    # --- what is waited for

    def image(self) -> Image:
        controller = self.world.controller()
        assert controller is not None and controller.node is not None
        return controller.node.image

    def live(self) -> list[Machine]:
        return [machine for machine in self.world.machines.values() if machine.node is not None]

    def is_whole(self) -> bool:
        """All nodes know all partitions, have logs for theirs, and all replicas are in sync."""
        if len(self.live()) < NODES or not self.is_answered():
            return False
        for machine in self.live():
            node: Any = machine.node
            if not node.broker.lifecycle.is_unfenced or node.broker.replicas.assigned.waiting:
                return False
            partitions = [p for topic in node.image.topics.values() for p in topic.partitions.values()]
            if len(partitions) != self.partitions:
                return False
            if any(set(p.isr) != set(p.replicas) or p.is_moving for p in partitions):
                return False
        return True

    def is_led(self) -> bool:
        dead = [machine.node_id for machine in self.world.machines.values() if machine.node is None]
        return all(
            all(
                p.leader >= 0 and p.leader not in dead
                for t in node.image.topics.values()
                for p in t.partitions.values()
            )
            for machine in self.live()
            if (node := machine.node) is not None
        )

    def is_deleted(self) -> bool:
        return self.is_answered() and not any(machine.node.image.topics for machine in self.live() if machine.node)


def main(partitions: int, topics: int, until: str) -> None:
    bench = Bench(partitions, topics)
    world = bench.world
    print(f"{partitions:,} partitions in {topics} topics, {REPLICAS} replicas each on {NODES} nodes")

    def start_all() -> None:
        for machine in world.machines.values():
            machine.start()

    bench.partitions = 0
    bench.phase("the nodes start", start_all, bench.is_whole)
    bench.scene.enter(bench.user)
    bench.partitions = partitions
    victim = world.machines[NodeId(NODES)]

    def controller() -> Machine:
        found = world.controller()
        assert found is not None
        return found

    active = controller()
    steps: dict[str, tuple[Callable[[], None], Callable[[], bool]]] = {
        "created": (bench.create, bench.is_whole),
        "described": (bench.describe, bench.is_answered),
        "a broker is killed": (victim.kill, bench.is_led),
        "it comes back": (victim.start, bench.is_whole),
        "preferred leaders": (bench.elect, bench.is_whole),
        "a controlled shutdown": (victim.shut_down, lambda: victim.node is None),
        "back from it": (victim.start, bench.is_whole),
        "the controller is killed": (active.kill, lambda: world.controller() is not None and bench.is_led()),
        "the controller comes back": (active.start, bench.is_whole),
        "all partitions move": (bench.move, bench.is_whole),
        "deleted": (bench.delete, bench.is_deleted),
    }
    assert until in ("", *steps), f"phases are {list(steps)}"
    for name, (act, has_ended) in steps.items():
        bench.phase(name, act, has_ended)
        if name == until:
            break
    print(f"\nthe collector took {COLLECTOR.total:.1f} s in all")
