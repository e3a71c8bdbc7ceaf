"""One simulated world: machines, clients, network, time, what was seen of all of it. Everything follows from a plan."""

import re
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.ids import NOBODY, NodeId
from strandline.history.operation import History
from strandline.metadata.image import Partition
from strandline.replica.hosted import Hosted
from strandline.sim.damage import Damage
from strandline.sim.laws.laws import Laws
from strandline.sim.runs.options import Options, properties
from strandline.sim.world.machine import Machine
from strandline.sim.world.network import Network
from strandline.sim.world.timeline import Timeline
from strandline.sim.world.trace import Kind, Moment, Trace
from strandline.sim.world.violation import Violation

STEP_MS = 20  # how often a condition that is waited for is looked at
STORY_LINES = 400
MEMORY = re.compile(r"<memory at \w+>")  # an address would differ from process to process


class World:
    def __init__(self, seed: int, options: Options, trace: Trace | None = None) -> None:
        self.seed = seed
        self.options = options
        self.trace = trace
        self.time = Timeline()
        self.network = Network(self.time, self.random("network"), options.weather, trace)
        self.network.spring = self.spring
        self.network.topic_name = self.topic_name
        self.story: deque[str] = deque(maxlen=STORY_LINES)
        self.events = 0
        self.seen: Counter[str] = Counter()  # what happened how often
        self.ambushes: dict[str, list[Callable[[str], None]]] = {}  # what waits for the next moment or message
        self.history = History()
        self.damage = Damage(self)
        self.laws = Laws(self)
        shared = properties(options)
        self.machines: dict[NodeId, Machine] = {}
        for n in range(1, options.brokers + 1):
            roles = "broker,controller" if n <= options.controllers else "broker"
            self.machines[NodeId(n)] = Machine(self, NodeId(n), roles, shared | options.own_settings.get(n, {}))

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    # --- what happened

    def tell(
        self,
        kind: Kind,
        text: str,
        machine: str = "",
        *,
        hosted: Hosted | None = None,
        partition: str = "",
        leader_epoch: int = -1,
    ) -> None:
        now = self.time.now
        self.seen[kind] += 1
        if self.ambushes:
            self.spring(kind, machine)
        if kind is not Kind.HIGH_WATERMARK:
            self.story.append(f"{now:>8} {machine} {text}")
        if self.trace is not None:
            high_watermark = log_end = -1
            if hosted is not None:
                partition = str(hosted.name)
                high_watermark, log_end = hosted.high_watermark, hosted.log.log_end_offset
                leader_epoch = getattr(hosted.role, "epoch", -1)
            self.trace.moments.append(
                Moment(now, machine, kind, text, partition, high_watermark, log_end, leader_epoch)
            )

    def spring(self, what: str, machine: str) -> None:
        """Something happened that an ambush may wait for."""
        waiting = self.ambushes.get(what)
        if waiting and machine:
            waiting.pop(0)(machine)

    def topic_name(self, topic: Any) -> str:
        """Of a topic in a message, which may have but its id."""
        name = getattr(topic, "name", "") or getattr(topic, "topic", "") or getattr(topic, "topic_name", "")
        if not name and hasattr(topic, "topic_id"):
            known = self.laws.metadata.image.topics.get(topic.topic_id)
            name = known.name if known is not None else ""
        return str(name)

    def holding(self, event: Any) -> "Holding":
        return Holding(self, event)

    def violated(self, check: str, evidence: str = "") -> Violation:
        self.tell(Kind.VIOLATION, check)
        return Violation(check, evidence, self.time.now)

    # --- running

    def run(self, span_ms: int) -> None:
        self.time.run(span_ms)

    def run_until(self, what: str, holds: Callable[[], Any], within_ms: int) -> None:
        """Go on until `holds` tells nothing; what it tells is why not yet."""
        end = self.time.now + within_ms
        while (why := holds()) is not None:
            if self.time.now >= end:
                raise self.violated(f"not within {within_ms} ms: {what}", str(why))
            self.run(STEP_MS)

    # --- what clients and faults look at

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        return tuple(machine.where["PLAINTEXT"] for machine in self.machines.values())

    def controller(self) -> Machine | None:
        for machine in self.machines.values():
            if machine.node is not None and machine.node.controller is not None and machine.node.controller.is_active:
                return machine
        return None

    def why_not_led(self) -> str | None:
        """Every node runs and is let in, and every partition has its leader. None: it is so."""
        for machine in self.machines.values():
            node = machine.node
            if node is None or node.broker is None:
                return f"{machine.name} does not run"
            if not node.broker.lifecycle.is_unfenced:
                return f"{machine.name} is not let in"
            brokers = node.image.brokers
            if len(brokers) < len(self.machines) or not all(broker.is_active for broker in brokers.values()):
                return f"{machine.name} does not know that all brokers are active"
            for topic in node.image.topics.values():
                for index, partition in topic.partitions.items():
                    if partition.leader < 0:
                        return f"{topic.name}-{index} has no leader, as {machine.name} sees it"
        return None

    def why_not_led_without(self, dead: Machine) -> str | None:
        """The others are let in, and lead all partitions of which one of them is in the ISR."""
        controller = self.controller()
        if controller is None or controller is dead:
            return "there is no controller"
        assert controller.node is not None
        image = controller.node.image
        for machine in self.machines.values():
            broker = image.brokers.get(machine.node_id)
            if machine is not dead and (machine.node is None or broker is None or not broker.is_active):
                return f"{machine.name} is not let in"
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                may_lead = self.may_lead_without(dead.node_id, partition)
                if may_lead and partition.leader not in may_lead:
                    return f"{topic.name}-{index}: leader {partition.leader}, ISR {partition.isr}, {dead.name} is dead"
        return None

    def may_lead_without(self, dead: NodeId, partition: Partition) -> list[NodeId]:
        """Nobody need lead if this is empty. A recovery waits for all who were eligible last."""
        sound = partition.isr or partition.elr
        if sound:
            return [node for node in sound if node != dead]
        if self.is_recovery_managed:
            return [] if not partition.last_known_elr or dead in partition.last_known_elr else list(partition.replicas)
        return [node for node in (partition.last_known_leader,) if node not in (dead, NOBODY)]

    @property
    def is_recovery_managed(self) -> bool:
        return next(iter(self.machines.values())).config.boolean("unclean.recovery.manager.enabled")

    def why_not_whole(self) -> str | None:
        """And all replicas are in sync."""
        why = self.why_not_led()
        if why is not None:
            return why
        for topic in self.laws.metadata.image.topics.values():
            for index, partition in topic.partitions.items():
                if set(partition.isr) != set(partition.replicas):
                    return f"{topic.name}-{index}: leader {partition.leader}, ISR {partition.isr}"
                if partition.is_moving:
                    return f"{topic.name}-{index} still moves: {partition.replicas}, -{partition.removing_replicas}"
        return None

    def digest(self) -> str:
        """Of every byte that machines sent or made durable, in order."""
        return self.network.digest.hexdigest()


class Holding:
    """Whatever breaks inside is a violation, told with the event that it happened in (or what that returns)."""

    __slots__ = ("event", "world")

    def __init__(self, world: World, event: Any) -> None:
        self.world = world
        self.event = event

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, Violation):
            what = str(error) or type(error).__name__
            if not isinstance(error, AssertionError):
                what = f"{type(error).__name__}: {what}"
            event = self.event() if callable(self.event) else self.event
            event = MEMORY.sub("<memory>", str(event))[:1000]
            raise self.world.violated(what, f"while handling {event}") from error
