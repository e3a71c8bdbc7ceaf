"""Trap T42: transactions whose end a power loss took. Each test is named by its trap."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World

from strandline.base.ids import NOBODY, LeaderEpoch, NodeId
from strandline.metadata.losses import NO_END, UNKNOWN
from strandline.metadata.registrations import RECOVERING
from strandline.replica.losses import hanging_transactions
from strandline.replica.losses.hanging_transactions import NOTED_MAX
from strandline.wire.batch import build


def batch(base: int, producer: int, **fields: Any) -> bytes:
    fields = {"producer_epoch": 0, "base_sequence": -1, "transactional": True, **fields}
    return build([(0, b"\x00\x00\x00\x01", b"v", ())], base_offset=base, leader_epoch=0, producer_id=producer, **fields)


def data(base: int, producer: int, sequence: int = 0) -> bytes:
    return batch(base, producer, base_sequence=sequence)


def marker(base: int, producer: int) -> bytes:
    return batch(base, producer, control=True)


@pytest.fixture
def world() -> World:
    made = World()
    made.create()
    made.run(1_000)
    return made


def fill(world: World, *content: bytes, node: int = 2) -> None:
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    world.cut = {NodeId(1), NodeId(2), NodeId(3)}
    for one in content:
        hosted.log.append_as_follower(memoryview(bytearray(one)), LeaderEpoch(0), world.now)


def lead_uncleanly(world: World, node: int = 2) -> None:
    world.change(leader=NOBODY, isr=())
    world.change(leader=node, isr=(node,), leader_recovery_state=RECOVERING)


def found(world: World, node: int = 2) -> list[tuple[int, str]]:
    events = [lost.event for lost in world.nodes[NodeId(node)].host.ledger.all()]
    return [(event.start, event.cause) for event in events if event.certainty == UNKNOWN and event.end == NO_END]


def test_t42_after_an_unclean_election_transactions_without_an_end_are_noted_and_told(world: World) -> None:
    fill(world, data(0, 7), data(1, 8), marker(2, 7), data(3, 8, 1), data(4, 7, 1))
    lead_uncleanly(world)
    world.run(1_000)
    assert found(world) == [
        (1, "open transaction of producer 8 since offset 1"),
        (4, "open transaction of producer 7 since offset 4"),
    ]
    assert sum("open transaction of producer" in text for text in world.reports) == 2
    (event, _) = [lost.event for lost in world.nodes[NodeId(2)].host.ledger.all()][1:]
    assert (event.replica, event.old_epoch, event.new_epoch) == (2, 1, 2)


def test_t42_where_every_transaction_has_its_end_nothing_is_reported(world: World) -> None:
    plain = build(
        [(0, None, b"v", ())], base_offset=4, leader_epoch=0, producer_id=9, producer_epoch=0, base_sequence=0
    )
    fill(world, data(0, 7), data(1, 8), marker(2, 8), marker(3, 7), plain)
    lead_uncleanly(world)
    world.run(1_000)
    assert found(world) == []


def test_t42_a_clean_election_asks_nothing(world: World) -> None:
    fill(world, data(0, 7))
    world.change(leader=2, isr=(2, 3))
    world.run(1_000)
    assert found(world) == []
    assert world.nodes[NodeId(2)].hanging_transactions.looks == {}


def test_t42_a_large_log_is_looked_through_in_bounded_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging_transactions, "STEP_BYTES", 1)
    fill(world, *[data(base, 7, base) for base in range(5)])
    lead_uncleanly(world)
    world.run(30)
    assert found(world) == [], "a step is one batch here, and three steps are not enough"
    world.run(100)
    assert found(world) == [(0, "open transaction of producer 7 since offset 0")]


def test_t42_what_is_written_after_the_election_is_not_looked_at(world: World) -> None:
    fill(world, data(0, 7), marker(1, 7))
    lead_uncleanly(world)
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    hosted.log.append_as_follower(memoryview(bytearray(data(2, 7, 1))), LeaderEpoch(9), world.now)
    world.run(1_000)
    assert found(world) == []


def test_t42_a_broker_that_no_longer_leads_looks_no_further(world: World) -> None:
    fill(world, data(0, 7))
    lead_uncleanly(world)
    world.change(leader=NOBODY)
    world.run(1_000)
    assert found(world) == []
    assert world.nodes[NodeId(2)].hanging_transactions.looks == {}


def test_t42_of_very_many_open_transactions_the_first_are_named(world: World) -> None:
    fill(world, *[data(base, base) for base in range(NOTED_MAX + 3)])
    lead_uncleanly(world)
    world.run(1_000)
    reported = found(world)
    assert len(reported) == NOTED_MAX + 1
    assert reported[-1] == (NOTED_MAX, "3 more open transactions since this offset")
