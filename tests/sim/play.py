"""A cluster with clients, for a test that decides itself what happens to it."""

from collections.abc import Callable
from typing import Any

from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client
from strandline.sim.clients.committer import Committer
from strandline.sim.clients.consumer import Consumer
from strandline.sim.clients.producer import Producer
from strandline.sim.runs.calm import calm, why_not_healed
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.workloads.workload import Setting, Workload
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options

ORDERS = TopicPartition("orders", 0)
SETTINGS = {
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "log.flush.offset.checkpoint.interval.ms": "1300",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "log.roll.ms": "3000",
    "log.retention.check.interval.ms": "1000",
}


class Small(Workload):
    """An idempotent producer with acks=all, one with acks=1, a consumer, and a group that commits."""

    def setup(self) -> None:
        self.admin.errands.append(self.admin.create("orders"))

    def start(self) -> None:
        stage = self.stage
        self.writers += [
            Producer(stage, "pa", ORDERS),
            Producer(stage, "pb", ORDERS, acks=1),
            Committer(stage, "ga", "orders"),
        ]
        self.readers.append(Consumer(stage, "ca", ORDERS))

    def partitions(self) -> tuple[TopicPartition, ...]:
        return (ORDERS,)


class Play:
    def __init__(self, seed: int = 1, *, options: Options | None = None, **settings: str) -> None:
        own = {key.replace("_", "."): value for key, value in settings.items()}
        self.world = World(seed, options or Options(settings=SETTINGS | own))
        for machine in self.machines:
            machine.start()
        self.world.run_until("all brokers are in", self.world.why_not_whole, 30_000)
        self.scene = Scene(self.world)
        self.admin = Admin(self.scene, "admin")
        self.scene.enter(self.admin)
        self.workload = Small(self.scene, self.admin, Setting(2, 3, "1048576", 30))
        self.workload.setup()
        self.run(300)
        self.workload.start()
        for client in self.workload.clients():
            self.scene.enter(client)
        self.run(1000)

    @property
    def machines(self) -> list[Machine]:
        return list(self.world.machines.values())

    def run(self, span_ms: int) -> None:
        self.world.run(span_ms)

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        self.world.run_until(what, lambda: None if holds() else "not yet", 60_000)

    def heal(self) -> None:
        self.world.run_until("the cluster is whole", self.world.why_not_whole, 60_000)

    def leader(self, topic: str = "orders", partition: int = 0) -> Machine:
        found = self.world.laws.metadata.image.topic_named(topic)
        assert found is not None
        return self.world.machines[NodeId(found.partitions[partition].leader)]

    def at(self) -> TopicIdPartition:
        found = self.world.laws.metadata.image.topic_named(ORDERS.topic)
        assert found is not None
        return TopicIdPartition(found.topic_id, ORDERS.partition)

    def enter(self, *clients: Client) -> None:
        for client in clients:
            (self.workload.readers if isinstance(client, Consumer) else self.workload.writers).append(client)
            self.scene.enter(client)

    def end(self) -> None:
        """Faults end, clients come to their ends, and everything is judged."""
        calm(self.world, self.scene, self.admin, [self.workload])
        assert why_not_healed(self.world) is None
