"""Somebody on the network who does not know the cluster's secret, and sends what only nodes may send.

It sees everything that there is to be known (`forged`), so each of its messages would be believed if a node sent it.
No law may break by it: nodes believe nobody without the secret. Where there is an authorizer it also asks everything
that a client can ask, about what is not its own: an ACL denies it all, and the law of permissions looks at its answers.
"""

from msgspec.structs import replace

from strandline.base.effects import Event, Send
from strandline.base.ids import NOBODY
from strandline.base.value import Value
from strandline.sim.hostile import PLAIN_NUMBERS, PLAIN_TEXTS, Known, message, served
from strandline.sim.simulation import World
from strandline.sim.stranger.forged import TO_BROKERS, TO_CONTROLLERS, Insider
from strandline.sim.world.connection import Station
from strandline.sim.world.machine import CLUSTER_ID, Machine
from strandline.sim.world.trace import Kind
from strandline.wire.batch import build

INTRUDER = "intruder"
CHANNELS = 8
LISTING = {"Metadata": None, "DescribeTopicPartitions": (), "DescribeLogDirs": None}  # the topics that ask for all
TIMEOUT_MS = 1_000


class IntruderToken(Value, frozen=True):
    """Counts the requests of the intruder."""

    sent: int


class Intruder(Station):
    """It hears no answers: it knows already what they could say."""

    def __init__(self, world: World, pause_ms: int) -> None:
        super().__init__(INTRUDER, world.network)
        if world.options.authorizer:
            self.principal = f"User:{INTRUDER}"
        self.world = world
        self.pause_ms = pause_ms
        self.rng = world.random(INTRUDER)
        self.is_running = True
        self.is_over = False
        self.sent = 0
        world.time.later(0, self.go_on)

    def event(self, event: Event) -> None:
        pass

    def go_on(self) -> None:
        if self.is_over:
            return
        machine = self.rng.choice(list(self.world.machines.values()))
        if machine.node is not None and machine.is_running:
            listener = self.rng.choice(sorted(machine.where))
            if self.world.options.authorizer and self.rng.randrange(3) == 0:
                self.ask(machine, listener)
            else:
                self.forge(machine, listener)
        self.world.time.later(self.rng.randrange(1, 2 * self.pause_ms), self.go_on)

    def forge(self, machine: Machine, listener: str) -> None:
        forging = self.rng.choice(TO_CONTROLLERS if listener == "CONTROLLER" else TO_BROKERS)
        forged = forging(Insider(self.world, machine, self.rng))
        if forged is not None:
            self.put(machine, listener, *forged)

    def ask(self, machine: Machine, listener: str) -> None:
        """Anything, as a client, about a topic of others."""
        apis = served(on_controller=listener == "CONTROLLER")
        listing = [one for one in apis if one.name in LISTING]
        api = self.rng.choice(listing if listing and self.rng.randrange(5) == 0 else apis)
        version = api.request.versions[-1]
        image = self.world.laws.metadata.image
        topic = self.rng.choice(sorted(image.topic_ids) or ["orders"])
        known = Known(
            numbers={**PLAIN_NUMBERS, "broker_id": 1, "max_wait_ms": 10},
            texts={
                **PLAIN_TEXTS,
                **dict.fromkeys(("topic", "name", "topic_name", "resource_name"), topic),
                **dict.fromkeys(("group_id", "key", "coordinator_keys"), self.rng.choice(("ga", "gb", "members"))),
                "cluster_id": CLUSTER_ID,
                "principal": self.principal,
                "transactional_id": self.rng.choice((None, "t-a")),
            },
            ids={"topic_id": image.topic_ids.get(topic, b"\0" * 16)},
            records=build([(self.world.time.now, None, b"intruder", ())], base_offset=0, leader_epoch=-1),
            empty=(("topics", "assignments"), ("topics", "configs")) if api.name == "CreateTopics" else (),
        )
        wanted = message(api, version, known, {})
        if api.name in LISTING and self.rng.randrange(2):
            wanted = replace(wanted, topics=LISTING[api.name])
        self.put(machine, listener, wanted, version)

    def put(self, machine: Machine, listener: str, request: object, version: int) -> None:
        self.sent += 1
        self.world.note(Kind.CLIENT, f"{type(request).__name__} to {listener} of {machine.name}", self.name)
        effect = Send(
            machine.where[listener],
            str(self.sent % CHANNELS),
            request,
            version,
            TIMEOUT_MS,
            IntruderToken(self.sent),
            NOBODY,
        )
        self.network.send(self, effect)
