"""Random histories: brokers die, are cut off, hear of metadata late; the controller elects from the ISR alone.

Whatever happens, in the end all replicas have the same log, and every acknowledged record is in it at its offset.
"""

import random
from typing import Any

import pytest
from tests.rows import each
from tests.unit.replica.conftest import AT, START, World

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId
from strandline.metadata import records as r
from strandline.wire.batch import batches, build

pytestmark = pytest.mark.slow  # hundreds of random histories

BROKERS = (1, 2, 3)


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(3)
        self.world.create(min_insync_replicas=self.rng.choice("12"))
        self.deaf: set[NodeId] = set()
        self.answers: list[tuple[bytes, Any]] = []

    def step(self) -> None:
        world, rng = self.world, self.rng
        node = NodeId(rng.choice(BROKERS))
        match rng.choice(("produce", "produce", "produce", "cut", "heal", "kill", "start", "deaf", "hear", "lead")):
            case "produce":
                self.produce(node)
            case "cut":
                world.cut = {node}
            case "heal":
                world.cut = set()
            case "kill" if node in world.nodes and len(world.nodes) > 1:
                world.kill(node)
                self.deaf.discard(node)
                if rng.random() < 0.7:
                    self.fence(node)
            case "start" if node not in world.nodes:
                world.start(node, clean=False)
                self.unfence(node)
            case "deaf" if not self.deaf:
                self.deaf = {node}
            case "hear":
                self.hear()
            case "lead":
                self.elect(prefer=node)
        world.run(rng.choice((0, 1, 30, 200, 2_000, 20_000)))

    def produce(self, node: NodeId) -> None:
        partition = self.world.image.partition(AT)
        assert partition is not None
        leader = partition.leader if self.rng.random() < 0.8 else node
        if leader in self.world.nodes:
            value = str(len(self.answers)).encode()
            batch = build([(START, None, value, ())])
            self.answers.append((value, self.world.produce(leader, batch=batch)))

    def change(self, **fields: Any) -> None:
        self.world.change(skip=tuple(self.deaf), **fields)

    def fence(self, node: NodeId) -> None:
        partition = self.world.image.partition(AT)
        assert partition is not None
        record = r.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=100 + node, fenced=1)
        self.world.commit(record, skip=tuple(self.deaf))
        isr = tuple(member for member in partition.isr if member != node)
        if node not in partition.isr:
            return
        if not isr:
            self.change(leader=NOBODY)
        elif partition.leader == node:
            self.change(isr=isr, leader=isr[0])
        else:
            self.change(isr=isr)

    def unfence(self, node: NodeId) -> None:
        record = r.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=100 + node, fenced=-1)
        self.world.commit(record, skip=tuple(self.deaf))
        partition = self.world.image.partition(AT)
        assert partition is not None
        if partition.leader == NOBODY:
            self.elect(prefer=node)

    def elect(self, prefer: NodeId) -> None:
        partition = self.world.image.partition(AT)
        assert partition is not None
        if prefer in partition.isr and prefer in self.world.nodes and self.world.image.is_active(prefer):
            self.change(leader=prefer)

    def hear(self) -> None:
        deaf, self.deaf = self.deaf, set()
        for node in deaf & set(self.world.nodes):
            self.world.catch_up(node)

    def heal(self) -> None:
        world = self.world
        world.cut = set()
        self.hear()
        for node in map(NodeId, BROKERS):
            if node not in world.nodes:
                world.start(node, clean=False)
            self.unfence(node)
        world.run(120_000)

    def log_of(self, node: NodeId) -> bytes:
        log = self.world.nodes[node].host.partitions.named("t", 0).log
        read = log.read(0, 1 << 30, upto=log.log_end_offset, min_one=True)
        return b"".join(read.buffers)


@each("seed", range(30))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    history = History(seed)
    for _ in range(60):
        history.step()
    history.heal()
    world = history.world
    partition = world.image.partition(AT)
    assert partition is not None
    assert partition.leader != NOBODY
    assert sorted(partition.isr) == list(BROKERS)
    logs = [history.log_of(NodeId(node)) for node in BROKERS]
    assert logs[0] == logs[1] == logs[2]
    values = {header.base_offset: logs[0][header.position : header.end] for header in batches(logs[0])}
    acknowledged = [(v, a()) for v, a in history.answers if a() is not None and a().error_code == ErrorCode.NONE]
    for value, answer in acknowledged:
        assert value in values[answer.base_offset]
    assert not [text for text in world.reports if "were committed here" in text]
    final = world.produce(partition.leader)
    world.run(1_000)
    assert final().error_code == ErrorCode.NONE
