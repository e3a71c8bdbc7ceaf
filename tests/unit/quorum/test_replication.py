"""Elections and replication in the small world of `network`, when nothing or one thing goes wrong."""

import pytest
from tests.rows import each
from tests.unit.quorum.network import World

from strandline.base.ids import NOBODY


@each("seed", range(20))
def test_new_cluster_elects_a_leader_soon(seed: int) -> None:
    world = World(seed)
    world.start()
    took = world.run_until(world.is_caught_up, 2000)
    assert took < 1000


def test_quorum_of_one_leads_at_once() -> None:
    world = World(1, voters=1)
    world.start()
    took = world.run_until(world.is_caught_up, 100)
    assert took <= 10


@pytest.mark.parametrize("seed", range(10))
def test_commit_reaches_all_nodes_within_milliseconds(seed: int) -> None:
    world = World(seed, observers=2)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    leader = world.leader()
    assert leader is not None
    last = world.append(leader.me, b"a", b"b")
    took = world.run_until(world.is_caught_up, 1000)
    assert took <= 40
    assert leader.high_watermark == last + 1
    assert [world.committed_values(n) for n in world.machines] == [[b"a", b"b"]] * 5


@each("seed", range(20))
def test_killed_leader_is_replaced_without_waiting_for_the_fetch_timeout(seed: int) -> None:
    world = World(seed)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    leader = world.leader()
    assert leader is not None
    world.kill(leader.me)
    took = world.run_until(world.is_caught_up, 3000)
    assert took < 600


def test_cut_off_leader_steps_down_and_the_others_elect_another() -> None:
    world = World(3)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    old = world.leader()
    assert old is not None
    world.isolate(old.me)
    world.run(12_000)
    assert not old.is_leader
    assert old.leader_id == NOBODY
    new = world.leader()
    assert new is not None
    assert new.me != old.me
    world.heal()
    world.run_until(world.is_caught_up, 10_000)


def test_cut_off_follower_does_not_disturb_the_leader_when_it_comes_back() -> None:
    world = World(4)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    leader = world.leader()
    assert leader is not None
    epoch = leader.leader_epoch
    lonely = next(n for n in world.machines if n != leader.me)
    world.isolate(lonely)
    world.run(30_000)
    assert world.quorum(lonely).leader_epoch == epoch
    world.heal()
    world.run_until(world.is_caught_up, 5_000)
    assert leader.is_leader
    assert leader.leader_epoch == epoch


def test_deposed_leader_cuts_what_it_could_not_commit() -> None:
    world = World(5)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    old = world.leader()
    assert old is not None
    world.isolate(old.me)
    world.append(old.me, b"lost")
    world.run(10_000)
    new = world.leader()
    assert new is not None
    assert new.me != old.me
    world.append(new.me, b"kept")
    world.heal()
    world.run_until(world.is_caught_up, 10_000)
    assert world.committed_values(old.me) == [b"kept"]


def test_resigning_leader_is_succeeded_at_once() -> None:
    world = World(6)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    old = world.leader()
    assert old is not None
    world.resign(old.me)
    assert not old.is_leader
    took = world.run_until(lambda: world.leader() is not None, 1000)
    assert took < 100


def test_restarted_cluster_keeps_what_was_committed() -> None:
    world = World(7)
    world.start()
    world.run_until(world.is_caught_up, 2000)
    leader = world.leader()
    assert leader is not None
    world.append(leader.me, b"a")
    world.run_until(world.is_caught_up, 1000)
    for n in world.machines:
        world.crash(n)
    world.start()
    world.run_until(world.is_caught_up, 5000)
    assert [world.committed_values(n) for n in world.machines] == [[b"a"]] * 3


def test_late_observer_is_given_a_snapshot() -> None:
    world = World(8, observers=1)
    world.start(1, 2, 3)
    world.run_until(world.is_caught_up, 2000)
    leader = world.leader()
    assert leader is not None
    last = world.append(leader.me, b"a")
    world.run_until(world.is_caught_up, 1000)
    snapshot = leader.state.log.snapshot_at(last + 1, b"state" * 1000)  # type: ignore[attr-defined]
    world.start(4)
    world.run_until(world.is_caught_up, 2000)
    assert world.machines[leader.me].log.snapshots == world.machines[list(world.machines)[3]].log.snapshots
    assert world.quorum(4).state.log.log_start_offset == snapshot.end_offset
