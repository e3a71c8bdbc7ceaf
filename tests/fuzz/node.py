"""Whole nodes under drawn requests: three brokers, which are controllers too, in one simulated world.

Each step sends one request, of any API in any version, to one listener of one node. It is well formed; its values are
true, or extreme, or anything. Whoever sends it is a client, or poses as a node. The nodes take what clients push as
telemetry, as real ones do that serve metrics. After each step all nodes hold their invariants, and at the end all start
again. No law is asked for, since it may order anything. A run follows from its
seed.
"""

from collections.abc import Callable
from random import Random
from struct import pack_into
from typing import Any

from tests.fuzz.drawing import Draw, Vocabulary, message
from tests.fuzz.targets import drawn_batch

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from strandline.broker.telemetry.subscriptions import subscriptions_in
from strandline.metadata.records import CLIENT_METRICS_RESOURCE
from strandline.server.metrics.otlp import Otlp
from strandline.sim.hostile import GROUP, TOPIC, Known, request_layout, served
from strandline.sim.stranger.probing import PAUSE_MS, Case, Probe
from strandline.sim.world.machine import Machine
from strandline.wire.api import Api
from strandline.wire.batch import CRC_AT, HEADER_SIZE, crc_of, read_header

TXN = "strange-txn"
LONG_TEXTS = ("x" * 0x7FFF, "x" * 40_000)  # as much as an old version can have, and more
NAMES = (TOPIC, "compacted", "packed", "__consumer_offsets", "__transaction_state", METADATA_TOPIC, "new-1", "new-2")
OTHERS = (
    "consumer",
    "range",
    "retention.ms",
    "cleanup.policy",
    "compact",
    "zstd",
    "-1",
    "1",
    "n1",
    "",
    "0",
    "PLAINTEXT",
)
BYTES_OF_A_DRAW = 300
LIBRARY = Otlp()
SUBSCRIPTIONS = subscriptions_in({(CLIENT_METRICS_RESOURCE, "all"): {"metrics": "*", "interval.ms": "100"}})


class Insider(Vocabulary):
    """Knows what is true, and says it mostly."""

    def __init__(self, known: Known, rng: Random) -> None:
        self.known = known
        self.rng = rng

    def number(self, draw: Draw, name: str, letter: str) -> int:
        bits = {"b": 8, "h": 16, "i": 32, "q": 64, "H": 16, "I": 32}[letter]
        if draw.chance(170):
            true = self.known.numbers.get(name, draw.below(4))
            if draw.chance(20):
                true += draw.below(5) - 2
            if letter in "HI":
                return true % (1 << bits)
            return true if -(1 << (bits - 1)) <= true < 1 << (bits - 1) else 0
        return super().number(draw, name, letter)

    def text(self, draw: Draw, name: str) -> str:
        if draw.chance(120):
            found = self.known.texts.get(name)
            if found is not None:
                return found
        if draw.chance(150):
            return draw.one_of((*NAMES, GROUP, TXN))
        if draw.chance(150):
            return draw.one_of(OTHERS)
        return draw.one_of(LONG_TEXTS) if draw.chance(10) else super().text(draw, name)

    def uuid(self, draw: Draw, name: str) -> bytes:
        if draw.chance(200):
            return draw.one_of([*self.known.ids.values(), METADATA_TOPIC_ID, ZERO_UUID])
        return super().uuid(draw, name)

    def records(self, draw: Draw, name: str) -> bytes:
        if draw.chance(40):
            return draw.some(120)
        batch = drawn_batch(draw)
        if draw.chance(200) and len(batch) > HEADER_SIZE:
            pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
        return bytes(batch)


class Besieged(Probe):
    """The cluster of three, with topics of several kinds."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rng = Random(seed)
        self.seed = seed
        self.step = 0
        for name, settings in (
            ("compacted", {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"}),
            ("packed", {"compression_type": "zstd"}),
        ):
            self.admin.wish(lambda name=name, settings=settings: self.admin.create(name, 1, -1, **settings))
            self.world.run_until(f"{name} is there", lambda name=name: self.why_no_topic(name), 60_000)

    def go(self) -> None:
        self.step += 1
        rng = self.rng
        listener = rng.choice(("PLAINTEXT", "PLAINTEXT", "CONTROLLER"))
        api = rng.choice(served(on_controller=listener == "CONTROLLER"))
        version = rng.choice(api.request.versions)
        running = [one for one in self.world.machines.values() if one.node is not None and one.is_running]
        assert running, "all nodes have ended"
        for one in running:
            take_telemetry(one)
        self.prober.is_node = rng.random() < 0.5
        request = self.drawn(rng.choice(running), api, listener, version)
        if request is None:
            return
        try:
            for machine in running if rng.random() < 0.3 else [rng.choice(running)]:
                self.prober.send(machine, listener, request, version)
        except Exception:
            return  # it cannot be written: a text is too long for this version
        self.last = f"{api.name} v{version} to {listener}: {str(request)[:3000]}"
        self.world.run(rng.choice((0, 1, PAUSE_MS, PAUSE_MS, 200)))
        for one in running:
            assert one.node is not None, f"{one.name} has ended"

    def drawn(self, machine: Machine, api: Api, listener: str, version: int) -> Any:
        known = self.known(machine, Case(api, listener, {}))
        known.numbers.update(producer_id=self.rng.choice((-1, 0, 1, 1000)), producer_epoch=self.rng.choice((-1, 0, 1)))
        if machine.node is not None and machine.node.broker is not None:
            for instance in list(machine.node.broker.telemetry.instances.by_id.values())[:1]:
                known.ids["client"] = instance.instance_id
                known.numbers.update(subscription_id=instance.subscription_id)
        known.texts.update(transactional_id=TXN, group_id=GROUP, member_id=self.member)
        draw = Draw(self.rng.randbytes(BYTES_OF_A_DRAW))
        return message(request_layout(api, version), draw, Insider(known, self.rng))


def take_telemetry(machine: Machine) -> None:
    if machine.node is not None and machine.node.broker is not None:
        telemetry = machine.node.broker.telemetry
        telemetry.decoder = LIBRARY
        telemetry.subscriptions = telemetry.subscriptions or SUBSCRIPTIONS


def siege(seed: int, steps: int, report: Callable[[int], None] = lambda step: None) -> None:
    """Raises AssertionError with the seed, the step and its request in it."""
    one = Besieged(seed)
    try:
        for step in range(steps):
            one.go()
            report(step)
        one.world.run(10_000)
        one.restart()
    except Exception as error:
        raise AssertionError(f"seed {seed}, step {one.step}: {one.last}") from error
