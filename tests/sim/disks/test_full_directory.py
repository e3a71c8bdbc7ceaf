"""One of a machine's log directories is full: it goes on with the other one, and is back by itself with both."""

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import NodeId
from strandline.base.ports import DiskFull
from strandline.log.evidence.clean_shutdown import FILE
from strandline.metadata.image import RECOVERED, Partition
from strandline.metadata.losses import CAUSES, Cause
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.sim.world.room import CHECK_MS, STEADY_LOOKS

TWO = Options(settings=SETTINGS | {"min.insync.replicas": "2"}, log_dirs=2, elr=True)
PAIRS = 12


def play_of(seed: int = 1) -> Play:
    """With a topic of many partitions, each of which lies on two machines."""
    play = Play(seed, options=TWO)
    play.admin.errands.append(play.admin.create("pairs", PAIRS, 2))
    play.until("it is there", lambda: play.world.laws.metadata.image.topic_named("pairs"))
    play.run(1_000)
    return play


def pairs(play: Play) -> dict[int, Partition]:
    found = play.world.laws.metadata.image.topic_named("pairs")
    assert found is not None
    return found.partitions


def directory(machine: Machine) -> str:
    """Of the partition that is written to."""
    (root,) = [root for root in machine.log_dirs if machine.disk.exists(f"{root}/orders-0")]
    return root


def fill(play: Play, machine: Machine) -> str:
    root = directory(machine)
    machine.disk.filled[root] = None
    play.until("it is offline", lambda: machine.has_offline_directories)
    assert machine.is_running
    return root


def of_orders(play: Play) -> Partition:
    found = play.world.laws.metadata.image.partition(play.at())
    assert found is not None
    return found


def epoch(play: Play, machine: Machine) -> int:
    return int(play.world.laws.metadata.image.brokers[NodeId(machine.node_id)].epoch)


def left_in_order(play: Play, machine: Machine) -> bool:
    """Did its present life begin after a clean stop?"""
    broker = machine.node.broker if machine.node is not None else None
    return broker is not None and broker.clean_start and broker.lifecycle.identity.previous_broker_epoch >= 0


def test_a_directory_that_takes_no_marker_of_a_clean_stop_costs_the_other_one_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = play_of()
    machine = play.leader()
    root, save = directory(machine), machine.disk.save

    def refuse(path: str, content: bytes) -> None:
        if path == f"{root}/{FILE}":
            raise DiskFull(f"{path}: No space left on device")
        save(path, content)

    monkeypatch.setattr(machine.disk, "save", refuse)
    machine.shut_down()
    play.until("it has stopped", lambda: not machine.is_running)
    monkeypatch.undo()
    (other,) = [one for one in machine.log_dirs if one != root]
    assert machine.disk.exists(f"{other}/{FILE}")
    assert not machine.disk.exists(f"{root}/{FILE}")
    machine.start()
    assert left_in_order(play, machine)
    play.heal()


@pytest.mark.parametrize("seed", [1, 2])
def test_it_comes_back_by_itself_when_there_is_room_and_its_other_logs_keep_their_places(seed: int) -> None:
    play = play_of(seed)
    machine = play.leader()
    before = epoch(play, machine)
    root = fill(play, machine)
    play.until("another one leads", lambda: play.leader() is not machine)
    play.run(3_000)
    assert machine.has_offline_directories, "there is no room yet"
    machine.make_room()
    play.until("it has begun anew", lambda: epoch(play, machine) > before)
    assert left_in_order(play, machine)
    play.until("all are in sync again", lambda: len(of_orders(play).isr) == 3)
    assert not of_orders(play).withdrawals, "it was neither in sync nor eligible"
    others = [index for index in pairs(play) if not machine.disk.exists(f"{root}/pairs-{index}")]
    assert not any(pairs(play)[index].withdrawals for index in others)
    assert not machine.has_offline_directories
    play.heal()
    play.end()


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_is_eligible_stays_so_in_the_other_directory_and_not_in_the_one_that_was_full(is_gone: bool) -> None:
    """Of some pairs the machine is the last one in sync, in either directory; the other of the pair is down. In the
    directory that was full, records may be gone, or whole logs."""
    play = play_of()
    machine = play.leader()
    root = fill(play, machine)
    second = next(one for one in play.machines if one is not machine)
    play.run(3_000)
    second.shut_down()
    play.until("the second has stopped in order", lambda: not second.is_running)
    both = {NodeId(machine.node_id), NodeId(second.node_id)}
    theirs = [index for index, one in pairs(play).items() if set(one.replicas) == both]
    back = [index for index in theirs if machine.disk.exists(f"{root}/pairs-{index}")]
    kept = [index for index in theirs if index not in back]
    assert back
    assert kept
    assert all(machine.node_id in (*pairs(play)[index].isr, *pairs(play)[index].elr) for index in theirs)
    if is_gone:
        for index in back:
            machine.disk.tamper(f"{root}/pairs-{index}", None)
    before = epoch(play, machine)
    machine.make_room()
    play.until("it has begun anew", lambda: epoch(play, machine) > before and left_in_order(play, machine))
    play.until("it leads", lambda: all(pairs(play)[index].leader == machine.node_id for index in kept))
    assert not any(pairs(play)[index].withdrawals for index in kept)
    for index in back:
        one = pairs(play)[index]
        assert machine.node_id not in (*one.isr, *one.elr, one.leader)
        expected = Cause.MISSING if is_gone else Cause.OFFLINE
        assert [event.cause for event in one.withdrawals] == [CAUSES[expected]]
    second.start()
    play.until("all are in sync", lambda: all(len(one.isr) == 2 for one in pairs(play).values()))
    assert all(one.leader_recovery_state == RECOVERED and not one.losses for one in pairs(play).values())
    play.heal()
    play.end()


def test_it_does_not_come_back_for_a_moment_of_room() -> None:
    play = play_of()
    machine = play.leader()
    before, root = epoch(play, machine), fill(play, machine)
    for _ in range(5):
        machine.make_room()
        play.run((STEADY_LOOKS - 1) * CHECK_MS - 1)
        machine.disk.filled[root] = None
        play.run(CHECK_MS + 1)
    assert epoch(play, machine) == before
    play.end()


def test_a_kill_while_it_stops_is_not_followed_by_a_start() -> None:
    play = play_of()
    machine = play.leader()
    fill(play, machine)
    machine.make_room()
    play.until("it stops", lambda: machine.comes_back)
    machine.kill()
    play.run(5_000)
    assert not machine.is_running
    play.end()
