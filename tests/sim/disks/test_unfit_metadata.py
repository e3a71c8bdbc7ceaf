"""Whole nodes with metadata that nobody can apply, in batches whose checksums are right."""

from random import Random

import pytest
from tests.sim.play import Play

from strandline.base.effects import Effect
from strandline.base.time import Instant
from strandline.broker import draft
from strandline.broker.node import Node
from strandline.quorum.storage.metadata_log import DIRECTORY
from strandline.sim.faults.damaged_metadata import UNFIT, damage
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.world.machine import METADATA_DIR, Machine
from strandline.sim.world.trace import Kind, Trace

UNKNOWN = b"\x01\x7f\x00"


def stop(play: Play, machine: Machine, *, is_killed: bool) -> None:
    machine.kill() if is_killed else machine.shut_down()
    play.until("it has stopped", lambda: not machine.is_running)


def reports_of(play: Play, machine: Machine) -> list[str]:
    assert play.world.trace is not None
    kinds = (Kind.REPORT, Kind.HALTED)
    return [
        moment.text for moment in play.world.trace.moments if moment.kind in kinds and moment.machine == machine.name
    ]


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_voter_with_such_a_record_copies_it_again_and_votes_then(seed: int) -> None:
    play = Play(seed)
    machine = play.machines[seed % 3]
    stop(play, machine, is_killed=seed % 2 == 0)
    injector = FaultInjector(play.world, play.admin)
    damage(injector, Random(seed), machine, UNFIT)
    machine.start()
    node = machine.node
    assert node is not None
    assert node.committed.found is not None
    assert not node.quorum.state.has_a_say
    play.heal()
    play.until("it votes again", lambda: node.quorum.state.has_a_say)
    assert machine.node is node
    play.end()


def test_an_older_program_that_does_not_know_a_record_stops_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play()
    play.world.trace = Trace()
    machine = next(machine for machine in play.machines if machine is not play.world.controller())
    stop(play, machine, is_killed=False)
    with monkeypatch.context() as older:
        older.setattr(draft, "why_unfit", lambda image, record: "this program does not know what it means")
        machine.start()
    play.until("it has stopped", lambda: not machine.is_running)
    line = reports_of(play, machine)[-1]
    assert line.startswith("halts: the metadata record at offset ")
    assert "which leads, has the same. Start the version that wrote it" in line
    assert not machine.has_left, "it did not mean to"
    machine.start()
    play.end()


def poison(play: Play) -> None:
    """The active controller writes a record that no node knows."""
    play.world.trace = Trace()
    controller = play.world.controller()
    assert controller is not None

    def write(node: Node, now: Instant) -> list[Effect]:
        return node.propagate(node.quorum.append([UNKNOWN], now)[1], now)

    controller.run("a defect of the controller", write)


def poisoned() -> Play:
    """It is committed by a majority. The third has it too, and is alone then."""
    play = Play()
    poison(play)
    play.until("two have stopped", lambda: sum(machine.is_running for machine in play.machines) == 1)
    play.run(20_000)
    return play


def test_a_node_that_cannot_apply_a_committed_record_stops_cleanly_with_one_line() -> None:
    play = poisoned()
    assert play.world.controller() is None
    for machine in play.machines:
        if machine.is_running:
            assert machine.node is not None
            assert machine.node.committed.unfit is None, "it cannot know"
            continue
        (line,) = [text for text in reports_of(play, machine) if "cannot be applied" in text]
        assert line.startswith("halts: the metadata record at offset ")
        assert "metadata record 127 version 0 is not known. It is committed" in line
        left = machine.disk.snapshot().entries
        assert any(path.endswith("cleanshutdown") for path in left), "its logs are durable, and it says so"


def test_after_that_nobody_leads_or_cuts_anything_and_all_say_why() -> None:
    play = poisoned()
    for machine in play.machines:
        machine.kill()
    images = [machine.disk.snapshot().entries for machine in play.machines]
    segment = f"{METADATA_DIR}/{DIRECTORY}/{0:020d}.log"
    for machine in play.machines:
        machine.start()
    play.run(20_000)
    for machine, before in zip(play.machines, images, strict=True):
        assert machine.node is not None
        assert not machine.node.quorum.state.has_a_say
        assert any("This node compares it with the leader's" in text for text in reports_of(play, machine))
        assert machine.disk.read_file(segment) == before[segment]
