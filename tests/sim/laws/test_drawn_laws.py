"""The laws about what is drawn fire: what they forbid is done by hand. And clients that strain a broker get through."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec import structs
from tests.sim.laws.test_laws import hosted_on, of_leader, other
from tests.sim.play import ORDERS, Play

from strandline.base.ids import OFFSETS_TOPIC, NodeId
from strandline.quorum.ports import SnapshotId
from strandline.sim.clients.member import Member
from strandline.sim.clients.odd import Odd
from strandline.sim.faults.absurd import absurd_proposal
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.laws.cluster.metadata import parts_of
from strandline.sim.world.violation import Violation


def recovery_point_is_ahead(play: Play) -> None:
    """Nothing is flushed any more, and the log says that all of it is durable."""
    hosted = hosted_on(other(play))
    hosted.log.mark_synced(hosted.log.log_end_offset)


def metadata_begins_behind_an_unsynced_snapshot(play: Play) -> None:
    machine = other(play)
    assert machine.node is not None
    log = machine.node.metadata_log
    end = machine.node.committed.end
    log.snapshots.append(SnapshotId(end, log.last_epoch))
    log.disk.write_file(f"{log.directory}/{end:020d}-{log.last_epoch:010d}.checkpoint", b"")
    log.snapshots = log.snapshots[-1:]
    log.log.advance_log_start(end)


def snapshot_has_another_epoch(play: Play) -> None:
    machine = other(play)
    assert machine.node is not None
    machine.node.metadata_log.snapshots.append(SnapshotId(machine.node.committed.end, 99))


def what_is_not_committed_is_deleted(play: Play) -> None:
    machine, hosted, leader = of_leader(play)
    for one in play.machines:
        if one is not machine:
            play.world.network.cut(machine.name, one.name)
    play.run(400)
    assert leader.high_watermark < hosted.log.log_end_offset
    hosted.log.advance_log_start(hosted.log.log_end_offset)


def heartbeats_name_too_much(play: Play) -> None:
    node = next(machine for machine in play.machines if machine is not play.world.controller()).node
    assert node is not None and node.broker is not None
    heartbeat = node.broker.lifecycle.heartbeat

    def name_more(*rest: Any, **options: Any) -> Any:
        asked = heartbeat(*rest, **options)
        return structs.replace(asked, current_metadata_offset=asked.current_metadata_offset + 1)

    node.broker.lifecycle.heartbeat = name_more  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (recovery_point_is_ahead, "for durable up to .* not all of the bytes"),
        (metadata_begins_behind_an_unsynced_snapshot, "no snapshot of what was before is durable"),
        (snapshot_has_another_epoch, "of epoch 99; its last record is of epoch"),
        (what_is_not_committed_is_deleted, "deleted orders-0 up to .*, and its high watermark is"),
        (heartbeats_name_too_much, "says that it knows metadata up to"),
    ],
)
def test_a_broken_law_is_noticed(harm: Callable[[Play], None], law: str) -> None:
    play = Play()
    harm(play)
    with pytest.raises(Violation, match=law):
        play.run(6000)


def test_a_log_that_flushes_too_late_by_the_number_of_records_is_noticed() -> None:
    play = Play(log_flush_interval_messages="1")
    log = of_leader(play)[1].log
    assert log.must_flush
    log.flush_if_due = lambda: None  # type: ignore[method-assign]
    with pytest.raises(Violation, match="are not durable, and flush"):
        play.run(1000)


def test_a_broker_that_takes_a_cleaners_mark_from_a_producer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.wire.batch.why_not_from_client", lambda header: None)
    play = Play()
    play.enter(Odd(play.scene, "odd", ORDERS))
    with pytest.raises(Violation, match="takes a batch from a producer that only a broker may write"):
        play.run(6000)


def test_what_images_differ_in_is_seen_whether_or_not_their_snapshots_have_it() -> None:
    image = other(Play()).node.image  # type: ignore[union-attr]
    twin = image.copy()
    (topic,) = (one for one in twin.topics.values() if one.name == "orders")
    changed = structs.replace(topic.partitions[0], last_known_leader=NodeId(7))
    twin.topics[topic.topic_id] = structs.replace(topic, partitions={**topic.partitions, 0: changed})
    assert parts_of(image) != parts_of(twin)
    assert parts_of(image) == parts_of(image.copy())


def test_an_odd_producer_is_refused_what_it_must_not_send_and_its_sequences_wrap() -> None:
    play = Play()
    odd = Odd(play.scene, "odd", ORDERS)
    play.enter(odd)
    play.run(3000)
    assert odd.acked > 20
    assert any("must not" in line for line in play.world.story)


def members_of(play: Play) -> list[Member]:
    committed: dict[int, int] = {}
    members = [Member(play.scene, f"m{n}", "members", "orders", committed, "one" if n == 2 else "") for n in range(3)]
    play.enter(*members)
    return members


def of_groups() -> Play:
    return Play(group_min_session_timeout_ms="100", group_initial_rebalance_delay_ms="50")


def test_members_of_a_group_come_and_go_and_its_positions_go_on() -> None:
    play = of_groups()
    members = members_of(play)
    play.run(6000)
    assert all(member.acked for member in members)
    play.leader(OFFSETS_TOPIC, 0).kill()
    play.run(3000)
    play.end()


def test_a_group_whose_position_is_set_back_is_noticed() -> None:
    play = of_groups()
    members = members_of(play)
    play.run(2000)
    members[0].committed.update(dict.fromkeys(range(3), 10_000))
    with pytest.raises(Violation, match="back from 10000"):
        play.run(3000)


@pytest.mark.parametrize("guard", ["why_not_altered", "is_ineligible"])
def test_a_controller_that_takes_what_no_leader_proposes_is_noticed(
    guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play()
    monkeypatch.setattr(f"strandline.controller.partitions.isr.{guard}", lambda *_: None)
    injector, rng = FaultInjector(play.world, play.admin), Random(1)
    with pytest.raises(Violation, match=r"the controller takes|AssertionError"):
        for _ in range(60):
            absurd_proposal(injector, rng)
            play.run(20)


def test_the_controller_refuses_what_no_leader_proposes() -> None:
    play = Play()
    injector, rng = FaultInjector(play.world, play.admin), Random(1)
    for _ in range(30):
        absurd_proposal(injector, rng)
        play.run(20)
    play.end()
