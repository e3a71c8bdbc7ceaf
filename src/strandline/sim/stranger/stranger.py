"""Somebody who knows the cluster's secret, and sends well-formed messages with hostile numbers to every listener.

It stands for a node that is out of its mind, so the line is drawn by what it sends: each message is one that a sound
receiver refuses, or that is about nothing but the stranger's own topic and group. It sends voters epochs that nobody
can have, other clusters' ids, and ids of nobody; it has no broker's epoch. A message in which all is plausible is
believed if a node sends it.
"""

from random import Random

from strandline.base.effects import Event, Send
from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NOBODY
from strandline.base.value import Value
from strandline.sim.hostile import (
    HEADER_EXTREMES,
    PLAIN_NUMBERS,
    PLAIN_TEXTS,
    TOPIC,
    Known,
    Wrong,
    batch_with,
    extremes,
    message,
    places,
    request_layout,
    served,
)
from strandline.sim.simulation import World
from strandline.sim.world.connection import Station
from strandline.sim.world.machine import CLUSTER_ID, Machine
from strandline.sim.world.trace import Kind
from strandline.wire.api import Api
from strandline.wire.batch import build

BROKER_EPOCH_VERSION = 15  # of Fetch: the first that names the replica's (KIP-903)
NOT_A_NODE = 77
NO_BROKERS_EPOCH = 1 << 40
CHANNELS = 8
DEEP = ("Produce", "IncrementalAlterConfigs")  # what gets furthest with a value that is wrong
TIMEOUT_MS = 1_000
QUORUM = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot")
NEAR = (0, 0, 1, 2, 1_000, 1 << 20)  # how far from the very last
IDENTITIES = ("replica_epoch", "leader_epoch", "current_leader_epoch", "broker_epoch")  # must never be plausible


class StrangerToken(Value, frozen=True):
    """Counts the requests of the stranger."""

    sent: int


class Stranger(Station):
    """It hears no answers: what they say changes nothing in what it sends next."""

    def __init__(self, world: World, pause_ms: int) -> None:
        super().__init__("stranger", world.network)
        self.is_node = True
        self.world = world
        self.pause_ms = pause_ms
        self.rng = world.random("stranger")
        self.is_running = True
        self.is_over = False
        self.sent = 0
        world.time.later(0, self.go_on)

    def event(self, event: Event) -> None:
        pass

    def go_on(self) -> None:
        if self.is_over:
            return
        self.trouble(self.rng.choice(list(self.world.machines.values())))
        self.world.time.later(self.rng.randrange(1, 2 * self.pause_ms), self.go_on)

    def trouble(self, machine: Machine) -> None:
        rng = self.rng
        listener = rng.choice(sorted(machine.where))
        api = rng.choice(served(on_controller=listener == "CONTROLLER"))
        if listener == "PLAINTEXT" and rng.randrange(6) == 0:
            api = rng.choice([one for one in served(on_controller=False) if one.name in DEEP])
        if api.name in QUORUM or rng.randrange(6):
            version = api.request.versions[-1]
        else:
            version = rng.choice(api.request.versions)
        wrong = self.wrong(api, version)
        if api.name == "Produce" and rng.randrange(2):
            wrong = {}  # but for its batch
        if api.name in QUORUM and rng.randrange(3) == 0:
            request = message(api, version, self.other_cluster(machine), {})
        else:
            request = message(api, version, self.known(api, version, machine, listener), wrong)
        self.sent += 1
        self.world.note(Kind.CLIENT, f"{api.name} to {listener} of {machine.name}: {shown(wrong)}", self.name)
        channel = str(self.sent % CHANNELS)
        self.network.send(
            self,
            Send(machine.where[listener], channel, request, version, TIMEOUT_MS, StrangerToken(self.sent), NOBODY),
        )

    def wrong(self, api: Api, version: int) -> Wrong:
        """One or two values that go wrong."""
        found = list(places(request_layout(api, version)))
        chosen = self.rng.sample(found, min(len(found), self.rng.choice((1, 1, 2))))
        return {at: drawn(self.rng, letter, at[-1]) for at, letter in chosen if not is_kept(api, at[-1])}

    def known(self, api: Api, version: int, machine: Machine, listener: str) -> Known:
        """What it pretends to be: one whose epoch nobody can have."""
        rng, image = self.rng, self.world.laws.metadata.image
        about_quorum = listener == "CONTROLLER" and (api.name in QUORUM or api.name == "Fetch")
        other = int(rng.choice([node for node in self.world.machines if node != machine.node_id]))
        is_node = api.name in QUORUM or api.name in ("BrokerHeartbeat", "AlterPartition", "AllocateProducerIds")
        if api.name == "Fetch":
            is_node = version >= BROKER_EPOCH_VERSION and not about_quorum  # it names an epoch that no broker has
        node = other if is_node else NOT_A_NODE
        epoch = (1 << 31) - 1 - rng.choice(NEAR)
        return Known(
            numbers={
                **dict.fromkeys(("broker_id", "replica_id", "leader_id", "candidate_id", "node_id"), node),
                **dict.fromkeys(("broker_epoch", "previous_broker_epoch"), NO_BROKERS_EPOCH),
                **dict.fromkeys(("leader_epoch", "replica_epoch"), epoch),
                "current_leader_epoch": epoch if about_quorum else -1,
                **PLAIN_NUMBERS,
                "replicas": other,
            },
            texts={
                "cluster_id": self.cluster_id(api),
                **dict.fromkeys(("topic", "name", "topic_name"), METADATA_TOPIC if about_quorum else TOPIC),
                **PLAIN_TEXTS,
            },
            ids={"topic_id": METADATA_TOPIC_ID if about_quorum else image.topic_ids.get(TOPIC, METADATA_TOPIC_ID)},
            records=self.records(),
            empty=(("topics", "assignments"), ("topics", "configs")) if api.name == "CreateTopics" else (),
        )

    def cluster_id(self, api: Api) -> str:
        """A broker that nobody knows may join if it names the right cluster."""
        return "another-cluster-000000" if api.name == "BrokerRegistration" else CLUSTER_ID

    def other_cluster(self, machine: Machine) -> Known:
        """A voter of another cluster that has the same ids, at an epoch that could be ours."""
        node = machine.node
        epoch = (0 if node is None else node.quorum.leader_epoch) + self.rng.randrange(1, 4)
        other = int(self.rng.choice([one for one in self.world.machines if one != machine.node_id]))
        return Known(
            numbers={
                **dict.fromkeys(("replica_id", "leader_id", "candidate_id"), other),
                **dict.fromkeys(("replica_epoch", "leader_epoch", "current_leader_epoch"), epoch),
                "last_offset": 1 << 40,
                "voter_id": -1,
                "max_bytes": 1 << 20,
            },
            texts={"cluster_id": self.rng.choice(("another-cluster-000000", "", None)), "topic_name": METADATA_TOPIC}
            | {"name": METADATA_TOPIC, "host": "n1"},
            ids={},
        )

    def records(self) -> bytes:
        sound = build([(self.world.time.now, None, b"strange", ())], base_offset=0, leader_epoch=-1)
        extreme = self.rng.choice([None, *HEADER_EXTREMES])
        return sound if extreme is None else batch_with(sound, *extreme)


def is_kept(api: Api, name: str) -> bool:
    """What must stay as it is, or the message would be about somebody else's things, or plausible."""
    if api.name == "BrokerRegistration":
        return name == "cluster_id"
    if api.name in ("AlterConfigs", "IncrementalAlterConfigs", "DescribeConfigs"):
        return name in ("resource_type", "resource_name", "name")
    if api.name == "Fetch":
        return name == "replica_epoch"  # without it the message might be a replica's
    return api.name == "UpdateFeatures" and name == "feature"


def drawn(rng: Random, letter: str, name: str) -> int | str | float:
    found = rng.choice(extremes(letter))
    if name in IDENTITIES and isinstance(found, int) and 0 <= found <= 1:
        return NO_BROKERS_EPOCH if letter == "q" else (1 << 31) - 2
    return found


def shown(wrong: Wrong) -> str:
    return ", ".join(f"{'.'.join(at)}={str(found)[:24]}" for at, found in wrong.items())
