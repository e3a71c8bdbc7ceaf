"""The quorum under crashes, partitions and lost messages: its laws hold always, and it comes back when they end."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.quorum.network import World

from strandline.base.ids import NodeId


def storm(world: World, rounds: int) -> None:
    """Things go wrong at random; somebody writes whenever there is somebody to write to."""
    rng = world.rng
    for round_number in range(rounds):
        world.run(rng.randrange(1, 400))
        leaders = [quorum for quorum in world.alive if quorum.is_leader]
        for leader in leaders:
            if rng.randrange(0, 2):
                world.append(leader.me, b"%d by %d" % (round_number, leader.me))
        n = NodeId(rng.randrange(1, len(world.machines) + 1))
        is_alive = world.machines[n].quorum is not None
        match rng.randrange(0, 10):
            case 0 | 1 if is_alive:
                world.crash(n)
            case 2 if is_alive:
                world.kill(n)
            case 0 | 1 | 2 | 3:
                if not is_alive:
                    world.start(n)
            case 4:
                world.isolate(n)
            case 5:
                other = NodeId(rng.randrange(1, len(world.machines) + 1))
                world.cut.add((n, other))
            case 6:
                world.heal()
            case 7:
                world.loss_percent = rng.randrange(0, 30)
            case 8 if is_alive and world.quorum(n).is_leader:
                world.resign(n)
            case 9 if is_alive:
                world.snapshot(n)
            case _:
                world.run(rng.randrange(1, 4000))


def calm(world: World) -> None:
    """Everything is repaired: one leader, all caught up, nothing committed lost."""
    world.heal()
    committed = dict(world.committed)
    for n, machine in world.machines.items():
        if machine.quorum is None:
            world.start(n)
    world.run_until(world.is_caught_up, 30_000)
    leader = world.leader()
    assert leader is not None
    world.append(leader.me, b"last")
    world.run_until(world.is_caught_up, 5_000)
    start = max(machine.log.start for machine in world.machines.values())
    for machine in world.machines.values():
        held = {base: (epoch, content) for base, _, epoch, content in machine.log.entries}
        for base, entry in committed.items():
            assert base < machine.log.start or held[base] == entry
    ends = [[entry for entry in machine.log.entries if entry[0] >= start] for machine in world.machines.values()]
    assert all(end == ends[0] for end in ends)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32))
def test_three_machines(seed: int) -> None:
    world = World(seed)
    world.start()
    storm(world, 40)
    calm(world)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 1 << 32))
def test_five_machines_and_an_observer(seed: int) -> None:
    world = World(seed, voters=5, observers=1)
    world.start()
    storm(world, 40)
    calm(world)


@pytest.mark.parametrize("seed", range(3))
def test_same_seed_same_story(seed: int) -> None:
    def story() -> list[object]:
        world = World(seed)
        world.start()
        storm(world, 20)
        return [world.now, world.count, sorted(world.leaders.items()), sorted(world.committed.items())]

    assert story() == story()
