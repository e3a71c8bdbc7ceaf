"""The simulator as a `Stage`: clients act in a world that sees into the brokers, and checks at once what they saw."""

from random import Random

from strandline.base.effects import Endpoint
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.history.operation import History
from strandline.sim.actor import Actor
from strandline.sim.clients.client import Client
from strandline.sim.simulation import World
from strandline.sim.world.timeline import START
from strandline.sim.world.trace import Kind


class Scene:
    def __init__(self, world: World) -> None:
        self.world = world
        self.clients: list[Client] = []
        self.gone: dict[Uuid, None] = {}  # topics that may be deleted by now
        self.last: dict[TopicPartition, str] = {}  # by which client each has been read wholly, after all else was over

    def enter(self, client: Client) -> None:
        self.clients.append(client)
        Actor(self.world, client)

    # --- the Stage

    @property
    def history(self) -> History:
        return self.world.history

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        return self.world.bootstrap

    def now_ms(self) -> int:
        return self.world.time.now

    def wall_ms(self) -> int:
        return START + self.world.time.now

    def random(self, name: str) -> Random:
        return self.world.random(name)

    def note(self, client: str, text: str) -> None:
        self.world.note(Kind.CLIENT, text, client)

    def acknowledged(self, at: TopicIdPartition, offset: int, values: tuple[bytes, ...]) -> None:
        self.world.laws.partitions.acknowledged(at, offset, values)

    def consumed(self, at: TopicIdPartition, end: int) -> None:
        self.world.laws.partitions.consumed(at, end)

    def suspect(self, at: TopicIdPartition, why: str) -> None:
        if self.world.laws.partitions.is_bound(at) and at.topic_id not in self.gone:
            raise self.world.violated(why)

    def deleted(self, topic_id: Uuid) -> None:
        self.gone[topic_id] = None

    def is_exceeded(self, topic: str) -> bool:
        return self.world.damage.is_exceeded(topic)

    def was_removed(self, group: str, topic: str, partition: int) -> bool:
        return (group, topic, partition) in self.world.laws.groups.removed
