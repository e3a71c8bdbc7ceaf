"""Three whole nodes in one thread and in virtual time: real machines, real codecs, disks that lose what was not synced.

`World` runs them, breaks them, and holds them to the laws after every event. Everything follows from the seed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.whole.laws import Laws
from tests.whole.network import START, Network, Station, Timeline

from strandline.base.effects import (
    Close,
    Effect,
    Endpoint,
    Event,
    Halt,
    Probe,
    Reply,
    Report,
    Save,
    Send,
    Sync,
    Synced,
)
from strandline.base.ids import Uuid
from strandline.base.time import NEVER, Instant
from strandline.broker.config import NodeConfig
from strandline.broker.node import Node
from strandline.broker.parts import prepare
from strandline.log.directory import DirectoryMeta, write_meta
from strandline.sim.disk import SimDisk

NODES = (1, 2, 3)
DATA = "/d"
RECOVERY_POINT_MS = 1300  # Kafka's minute is longer than most histories here
CLUSTER_ID = "sim-cluster-000000000A"
SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.quorum.voters": ",".join(f"{n}@n{n}:9093" for n in NODES),
    "log.dirs": DATA,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "controller.quorum.election.timeout.ms": "600",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.request.timeout.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "leader.imbalance.check.interval.seconds": "4",
    "log.roll.ms": "3000",
    "log.retention.check.interval.ms": "1000",
}


class Violation(AssertionError):
    """A law was broken; the message has the story that led there."""


class Host(Station):
    """One machine with a disk, and the node that runs on it."""

    def __init__(self, world: "World", node_id: int) -> None:
        super().__init__(f"n{node_id}", world.network)
        self.world = world
        self.node_id = node_id
        self.disk = SimDisk((DATA,))
        self.node: Node | None = None
        self.armed = NEVER
        self.flushes: deque[Sync | Save] = deque()
        self.is_flushing = False
        self.checked_end = -1
        directory = Uuid(world.rng.randbytes(16))
        write_meta(self.disk, DATA, DirectoryMeta(CLUSTER_ID, node_id, directory))
        self.disk.sync([DATA])

    # --- the process

    def start(self) -> None:
        if self.is_running:
            return
        if not self.is_powered:
            self.power_on()
        world = self.world
        self.is_running = True
        self.armed = NEVER
        self.flushes.clear()
        self.is_flushing = False
        world.tell(f"{self.name} starts")
        own = {
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{self.name}:9092,CONTROLLER://{self.name}:9093",
        }
        config = NodeConfig.from_properties(SETTINGS | own | world.settings)
        where = {"PLAINTEXT": Endpoint(self.name, 9092), "CONTROLLER": Endpoint(self.name, 9093)}
        rng = Random(world.rng.getrandbits(64))
        with world.telling(f"{self.name} start"):
            self.node = Node(prepare(config, self.disk, rng, where, world.now), world.now)
        assert self.node.broker is not None
        replicas = self.node.broker.replicas
        for task in replicas.tasks:
            if task.task == replicas.storage.flush:
                task.span_ms = RECOVERY_POINT_MS
        self.run("start", lambda node, now: node.start(now))

    def event(self, event: Event) -> None:
        self.run(event, lambda node, now: node.step(event, now))

    def run(self, event: Any, step: Callable[[Node, Instant], list[Effect]]) -> None:
        node = self.node
        assert node is not None
        world = self.world
        with world.telling(f"{self.name} on {event}"):
            effects = step(node, world.now)
            for effect in effects:
                self.perform(effect)
            if self.is_running:
                world.events += 1
                if node.committed.end != self.checked_end or world.events % world.check_every == 0:
                    self.checked_end = node.committed.end
                    node.check()
                world.laws.look(self)
                self.arm(node.deadline())

    def arm(self, deadline: Instant) -> None:
        if deadline >= self.armed or deadline == NEVER:
            return
        now = self.world.now
        self.armed = at = Instant(max(deadline, now + 1))
        life = self.life
        self.world.time.later(at - now, lambda: self.deliver(life, lambda: self.fire(at)))

    def fire(self, at: Instant) -> None:
        if self.armed != at or self.node is None:
            return
        self.armed = NEVER
        deadline = self.node.deadline()
        if deadline <= self.world.now:
            self.run("deadline", lambda node, now: node.expire(now))
        else:
            self.arm(deadline)

    def perform(self, effect: Effect) -> None:
        match effect:
            case Send():
                self.network.send(self, effect)
            case Reply(to=to):
                connection = self.inbound.get(to.connection)
                if connection is not None:
                    connection.reply(effect)
            case Sync() | Save():
                self.flushes.append(effect)
                self.flush()
            case Probe():
                self.network.probe(self, effect)
            case Close(connection=number):
                if number in self.inbound:
                    self.inbound[number].close()
            case Report(level=level, text=text):
                if level != "debug":
                    self.world.tell(f"{self.name} {level}: {text}")
            case Halt(why=why):
                self.world.tell(f"{self.name} halts: {why}")
                self.gone(power=False)
            case _:
                raise AssertionError(effect)

    def flush(self) -> None:
        """Group commit: what a batch names is durable some time before it is told so, and nothing written since is."""
        if self.is_flushing or not self.flushes:
            return
        self.is_flushing = True
        batch = list(self.flushes)
        self.flushes.clear()
        rng, life = self.world.rng, self.life
        first, second = rng.randrange(0, 4), rng.randrange(0, 6)
        if rng.randrange(0, 20) == 0:
            second += self.world.slow_sync_ms

        def save() -> None:
            if life != self.life or not self.is_running:
                return
            for effect in batch:
                if isinstance(effect, Sync):
                    self.disk.sync(effect.paths)
                else:
                    self.disk.write_file(effect.path, effect.content)
                    self.disk.sync([effect.path, effect.path.rpartition("/")[0]])

        def tell() -> None:
            self.is_flushing = False
            for effect in batch:
                self.deliver(life, lambda token=effect.token: self.event(Synced(token)))  # type: ignore[misc]
            self.flush()

        time = self.world.time
        time.later(first, save)
        time.later(first + second, lambda: self.deliver(life, tell))

    # --- faults

    def gone(self, *, power: bool) -> None:
        self.world.laws.forget(self)
        self.node = None
        self.vanish(power=power)

    def kill(self) -> None:
        if self.is_running:
            self.world.tell(f"{self.name} is killed")
            self.gone(power=False)

    def power_cut(self) -> None:
        self.world.tell(f"{self.name} loses power")
        if self.is_running:
            self.gone(power=True)
        self.is_powered = False
        self.disk.crash(self.world.rng)

    def pause(self) -> None:
        if self.is_running and not self.is_paused:
            self.world.tell(f"{self.name} stands still")
            self.is_paused = True

    def go_on(self) -> None:
        if self.is_paused:
            self.world.tell(f"{self.name} goes on")
            self.resume()

    def shut_down(self) -> None:
        if self.is_running and not self.is_paused:
            self.world.tell(f"{self.name} begins a controlled shutdown")
            self.run("shutdown", lambda node, now: node.shutdown(now))


class Telling:
    def __init__(self, world: "World", what: str) -> None:
        self.world = world
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, Violation):
            raise Violation(f"{type(error).__name__}: {error}\nin: {self.what[:1500]}\n{self.world.told()}") from error


class World:
    def __init__(self, seed: int, settings: dict[str, str] | None = None) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.settings = settings or {}
        self.time = Timeline()
        self.network = Network(self.time, self.rng)
        self.story: deque[str] = deque(maxlen=400)
        self.slow_sync_ms = 100
        self.events = 0
        self.check_every = 1
        self.laws = Laws(self.tell)
        self.hosts = {n: Host(self, n) for n in NODES}

    @property
    def now(self) -> Instant:
        return self.time.now

    def tell(self, text: str) -> None:
        self.story.append(f"{self.now - START:>8} {text}")

    def told(self) -> str:
        return f"--- seed {self.seed}: what happened\n" + "\n".join(self.story)

    def telling(self, what: str) -> Telling:
        return Telling(self, what)

    def run(self, span_ms: int) -> None:
        self.time.run(span_ms)

    def run_until(self, what: str, holds: Callable[[], Any], within_ms: int = 60_000) -> None:
        end = self.now + within_ms
        while not holds():
            if self.now >= end:
                raise Violation(f"not within {within_ms} ms: {what}\n{self.told()}")
            self.run(20)

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()
        self.run_until("all brokers are in", self.is_whole)

    def is_whole(self) -> bool:
        """Every node runs, is let in, and every partition has its leader and all replicas in sync."""
        for host in self.hosts.values():
            node = host.node
            if node is None or not host.is_running or node.broker is None or not node.broker.lifecycle.is_unfenced:
                return False
            brokers = node.image.brokers
            if len(brokers) < len(NODES) or not all(broker.is_active for broker in brokers.values()):
                return False
            for topic in node.image.topics.values():
                for partition in topic.partitions.values():
                    if partition.leader < 0 or set(partition.isr) != set(partition.replicas):
                        return False
        return True

    def leader_of(self, topic: str, partition: int = 0) -> Host:
        """By the newest image."""
        nodes = [host.node for host in self.hosts.values() if host.node is not None]
        image = max(nodes, key=lambda node: node.committed.end).image
        named = image.topic_named(topic)
        assert named is not None
        return self.hosts[named.partitions[partition].leader]

    def controller(self) -> Host | None:
        for host in self.hosts.values():
            if host.node is not None and host.node.controller is not None and host.node.controller.is_active:
                return host
        return None

    def end_faults(self) -> None:
        self.tell("faults end")
        self.network.heal()
        for host in self.hosts.values():
            host.go_on()
            host.start()

    def settle(self, within_ms: int = 60_000) -> None:
        """The cluster must heal by itself, and then agree about everything."""
        self.run_until("the cluster is whole again", self.is_healed, within_ms)
        try:
            self.laws.final(self)
        except AssertionError as error:
            raise Violation(f"{error}\n{self.told()}") from error

    def finish(self, clients: Sequence[Any], within_ms: int = 60_000) -> None:
        def unfinished() -> list[str]:
            for host in self.hosts.values():
                host.start()  # a controlled shutdown may have ended only now
            return [client.name for client in clients if not client.is_done]

        try:
            self.run_until("all clients are done", lambda: not unfinished(), within_ms)
        except Violation as error:
            raise Violation(f"not done: {unfinished()}; {error}") from error

    def is_healed(self) -> bool:
        for host in self.hosts.values():
            host.start()  # a controlled shutdown may have ended only now
        return self.is_whole() and self.laws.are_replicas_equal(self)
