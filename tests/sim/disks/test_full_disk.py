"""A machine's disk is full: its node leaves, the others go on, and it comes back by itself when there is room."""

import pytest
from tests.sim.play import Play

from strandline.sim.world.machine import Machine
from strandline.sim.world.room import CHECK_MS


def fill(machine: Machine) -> None:
    machine.disk.capacity = machine.disk.used


def without_room(play: Play, machine: Machine) -> None:
    fill(machine)
    play.until("it has left", lambda: not machine.is_running)
    assert machine.waits_for_room


@pytest.mark.parametrize("seed", [1, 2])
def test_a_leader_without_room_leaves_and_comes_back_by_itself_when_there_is_some(seed: int) -> None:
    play = Play(seed)
    machine = play.leader()
    without_room(play, machine)
    play.until("another one leads", lambda: play.leader() is not machine)
    play.run(3_000)
    assert not machine.is_running, "there is none yet"
    machine.make_room()
    play.run(CHECK_MS + 1)
    assert machine.is_running
    play.heal()
    play.end()


def test_the_controller_without_room_leaves_and_comes_back_by_itself() -> None:
    play = Play(3)
    machine = play.world.controller()
    assert machine is not None
    without_room(play, machine)
    play.until("there is another one", lambda: play.world.controller() not in (None, machine))
    machine.make_room()
    play.heal()
    play.end()


def test_a_little_room_is_not_enough() -> None:
    """Or the next write would end it again, and each time its logs are checked and others have to lead."""
    play = Play(1)
    machine = play.leader()
    without_room(play, machine)
    machine.disk.capacity = machine.disk.used * 5 // 4
    play.run(5_000)
    assert not machine.is_running
    machine.disk.capacity = machine.disk.used * 30
    play.run(2 * CHECK_MS)
    assert machine.is_running
    machine.make_room()
    play.end()


def test_a_start_by_hand_meanwhile_is_not_followed_by_a_second_start() -> None:
    play = Play(1)
    machine = play.leader()
    without_room(play, machine)
    machine.make_room()
    machine.start()
    machine.kill()
    play.run(5_000)
    assert not machine.is_running
    play.end()


def test_all_machines_without_room_come_back_with_all_that_was_acknowledged() -> None:
    play = Play(2)
    for machine in play.machines:
        fill(machine)
    play.until("all have left", lambda: not any(machine.is_running for machine in play.machines))
    for machine in play.machines:
        machine.make_room()
    play.heal()
    play.end()
