"""The network of one world: who hears whom, how late, how often, and what gets lost.

Loss costs time, as TCP's retransmissions do. A duplicate is a request that reaches its target again, later and on a
connection of its own, whose answer nobody reads: the request of a client that gave up, or of a proxy that tries twice.
"""

import hashlib
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import msgspec

from strandline.base.effects import Failure, Probe, Probed, Send
from strandline.base.value import Value
from strandline.sim.world.connection import Connection, Pipe, Station, name_of
from strandline.sim.world.timeline import Timeline
from strandline.sim.world.trace import Passage, Trace
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.brokers.broker_registration import BrokerRegistrationRequest
from strandline.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from strandline.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from strandline.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from strandline.wire.messages.quorum.vote import VoteRequest, VoteResponse
from strandline.wire.messages.records.fetch import FetchRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.records.produce import ProduceRequest
from strandline.wire.messages.topics.metadata import MetadataRequest

PERMILLE = 1000
# Requests that their protocols must bear twice. The others would be wishes of a user who wished only once.
DUPLICATED = {
    AlterPartitionRequest,
    BeginQuorumEpochRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
    VoteRequest,
}
LOST_MS = (20, 40, 200, 400)  # what one lost packet costs


AMBUSHED = {AlterPartitionRequest, VoteResponse}  # messages that ambushes wait for


Tamper = Callable[[Connection, Any, int], Any]


class Weather(Value, frozen=True):
    """How the network is while nothing is cut."""

    latency_ms: int = 3
    lost_permille: int = 0
    duplicated_permille: int = 0
    duplicate_delay_ms: int = 500


class Network:
    def __init__(self, time: Timeline, rng: Random, weather: Weather, trace: Trace | None) -> None:
        self.time = time
        self.rng = rng
        self.weather = weather
        self.trace = trace
        self.spring: Callable[[str, str], None] = lambda what, machine: None  # who wants to know of messages
        self.ambushes: dict[str, list[Callable[[str], None]]] = {}  # what waits for the next moment or message
        self.topic_name: Callable[[Any], str] = lambda topic: ""  # of a topic in a message, for the trace
        self.tamper: Tamper | None = None  # who changes what arrives
        self.repeats: Callable[[Any], bool] | None = None  # whether a request comes a second time, beside the weather's
        self.digest = hashlib.blake2b(digest_size=8)
        self.stations: dict[str, Station] = {}
        self.numbers = count(1)
        self.cuts: dict[tuple[str, str], None] = {}  # what no longer passes, by direction
        self.slow: dict[tuple[str, str], int] = {}

    def latency(self, source: str, target: str) -> int:
        if source == target:
            return 0
        weather, random = self.weather, self.rng.random
        span = int(random() * (weather.latency_ms + 1))
        if weather.lost_permille and random() * PERMILLE < weather.lost_permille:
            span += self.rng.choice(LOST_MS)
        if self.slow:
            span += self.slow.get((source, target), 0)
        return span

    def cut(self, a: str, b: str, *, both: bool = True) -> None:
        self.cuts[a, b] = None
        if both:
            self.cuts[b, a] = None

    def heal(self) -> None:
        self.cuts.clear()
        self.slow.clear()

    def calm(self) -> None:
        self.heal()
        self.repeats = None
        self.weather = Weather(latency_ms=self.weather.latency_ms)
        for connection in self.connections():
            connection.up.lag_ms = connection.down.lag_ms = 0

    # --- messages

    def send(self, source: Station, effect: Send) -> None:
        key = (effect.endpoint, effect.channel)
        connection = source.outbound.get(key)
        if connection is None:
            connection = source.outbound[key] = Connection(self, source, effect.endpoint, effect.channel)
        connection.send(effect)

    def duplicates(self, message: Any) -> bool:
        if self.repeats is not None and self.repeats(message):
            return True
        permille = self.weather.duplicated_permille
        return permille > 0 and type(message) in DUPLICATED and self.rng.random() * PERMILLE < permille

    def send_again(self, connection: Connection, frame: bytes) -> None:
        life = connection.target.life

        def again() -> None:
            if connection.target.life == life and connection.target.is_running:
                shadow = Connection(self, connection.source, *connection.key)
                shadow.is_shadow = True
                shadow.up.push(lambda: shadow.arrived(frame, None))

        self.time.later(self.rng.randrange(0, self.weather.duplicate_delay_ms), again)

    def count(self, frame: bytes) -> None:
        """Every byte that leaves a machine is part of the run's digest."""
        self.digest.update(frame)

    def probe(self, source: Station, effect: Probe) -> None:
        target = self.stations[effect.endpoint.host]
        life = source.life
        up, down = Pipe(self, source, target), Pipe(self, target, source)
        outcome: list[Any] = []

        def report(why: Failure | None) -> None:
            if not outcome:
                outcome.append(why)
                source.deliver(life, lambda: source.event(Probed(effect.token, why)))

        def seen() -> None:
            why = None if target.is_running else Failure.REFUSED
            down.push(lambda: report(why))

        up.push(seen)
        self.time.later(effect.timeout_ms, lambda: report(Failure.TIMED_OUT))

    def connections(self) -> list[Connection]:
        return [one for name in sorted(self.stations) for one in self.stations[name].outbound.values()]

    # --- the trace

    @property
    def is_watched(self) -> bool:
        """Does anybody want to know of messages that leave?"""
        return self.trace is not None or bool(self.ambushes)

    def leaving(self, source: Station, target: Station, message: Any, *, is_answer: bool) -> Passage | None:
        if type(message) in AMBUSHED:
            self.spring(type(message).__name__, source.name)
        if self.trace is None:
            return None
        partitions = named_partitions(message, self.topic_name)
        return Passage(self.time.now, -1, source.name, target.name, name_of(message), is_answer, partitions)

    def arrives(self, passage: Passage | None, *, is_lost: bool = False) -> None:
        if passage is not None and self.trace is not None:
            at = -1 if is_lost else self.time.now
            self.trace.passages.append(msgspec.structs.replace(passage, arrived_ms=at))


def named_partitions(message: Any, name: Callable[[Any], str]) -> tuple[str, ...]:
    """The partitions that a message is about, where it says so."""
    found: dict[str, None] = {}
    for topic in (
        *getattr(message, "topics", ()),
        *getattr(message, "topic_data", ()),
        *getattr(message, "responses", ()),
    ):
        for row in getattr(topic, "partitions", ()) or getattr(topic, "partition_data", ()):
            index = getattr(row, "partition", getattr(row, "index", getattr(row, "partition_index", None)))
            if index is not None and name(topic):
                found[f"{name(topic)}-{index}"] = None
    return tuple(found)
