"""An unclean recovery among whole replicas loses nothing, and so has no entry in the loss ledger (docs/losses.md).

Whole nodes that recover partitions (KIP-966, "Unclean recovery"), with ELR and min ISR 2.
"""

from collections.abc import Callable

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import NodeId
from strandline.log.evidence.wholeness import FILE
from strandline.metadata.image import Partition
from strandline.sim import loss_ledger
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.batch import batches

MANAGED = {"unclean.recovery.manager.enabled": "true", "unclean.recovery.timeout.ms": "2000"}


def play_of(seed: int = 1, **settings: str) -> Play:
    own = {key.replace("_", "."): value for key, value in settings.items()}
    return Play(seed, options=Options(settings=SETTINGS | MANAGED | own, elr=True))


def partition(play: Play) -> Partition:
    found = play.world.laws.metadata.image.partition(play.at())
    assert found is not None
    return found


def kill_all(play: Play) -> None:
    for machine in play.machines:
        machine.kill()


def start(play: Play) -> Partition:
    """All of them, until everything is as it was; the partition by then."""
    for machine in play.machines:
        machine.start()
    play.run(1000)
    play.heal()
    return partition(play)


def was_lossless(play: Play) -> bool:
    """Was the last unclean election, of which there was one, without loss?"""
    found = partition(play)
    last = max((loss.new_epoch for loss in found.losses), default=-1)
    assert max(last, found.lossless_epoch) >= 0
    return found.lossless_epoch > last


def may_be_lost(play: Play) -> bool:
    return bool(loss_ledger.ranges(play.world).get(play.at()))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_a_kill_of_all_brokers_nothing_is_lost_and_the_ledger_is_empty(seed: int) -> None:
    play = play_of(seed)
    kill_all(play)
    start(play)
    assert was_lossless(play)
    assert play.world.seen["elected: neither"], "it is an unclean election all the same"
    play.end()
    assert not loss_ledger.ranges(play.world), "of no partition"
    assert play.at() not in play.world.damage.exceeded, "so all laws hold without an excuse"


def test_after_kills_again_and_again_too() -> None:
    play = play_of()
    for _ in range(3):
        kill_all(play)
        before = partition(play).leader_epoch
        assert start(play).lossless_epoch > before
    play.end()
    assert not may_be_lost(play)


def test_a_loss_of_power_of_all_is_in_the_ledger() -> None:
    play = play_of()
    for machine in play.machines:
        machine.power_cut()
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)
    play.end()


@pytest.mark.parametrize("who", [0, 1, 2])
def test_one_that_lost_its_power_is_in_doubt_where_it_was_eligible_last(who: int) -> None:
    """It comes back last, so that it was believed to be in sync until then."""
    play = play_of()
    kill_all(play)
    last = play.machines[who]
    last.power_cut()
    for machine in play.machines:
        if machine is not last:
            machine.start()
    play.run(2000)
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)
    play.end()


def test_a_replica_in_doubt_that_is_killed_before_it_is_in_sync_stays_in_doubt() -> None:
    """All lose their power. They start, nobody may lead yet, and they are killed: that says nothing of the power."""
    play = play_of()
    for machine in play.machines:
        machine.power_cut()
    for machine in play.machines[:2]:
        machine.start()
    play.run(1500)
    kill_all(play)
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)
    play.end()


def segment_of(machine: Machine) -> str:
    return max(path for path in machine.disk.contents() if path.startswith("/d0/orders-0/") and path.endswith(".log"))


def truncated(machine: Machine) -> None:
    """Between two batches, below the high watermark that was saved: what is left is right."""
    path = segment_of(machine)
    found = list(batches(memoryview(machine.disk.contents()[path])))
    file = machine.disk.open(path)
    file.truncate(found[len(found) // 2].end)
    file.close()


def cut(machine: Machine) -> None:
    """In its last batch, of which no checkpoint knows."""
    file = machine.disk.open(segment_of(machine))
    file.truncate(file.size() - 1)
    file.close()


def emptied(machine: Machine) -> None:
    machine.replace_disk("/d0")


def deleted(machine: Machine) -> None:
    machine.disk.remove_tree("/d0/orders-0")


def of_another_directory(machine: Machine) -> None:
    """What says which logs are whole was copied from a directory that is none of this node's."""
    content = machine.disk.read_file(f"/d0/{FILE}")
    assert content is not None
    machine.disk.write_file(f"/d0/{FILE}", content.replace(b'"directoryId":"', b'"directoryId":"A'))


DAMAGE = {
    "truncated": truncated,
    "cut": cut,
    "emptied": emptied,
    "deleted": deleted,
    "of another directory": of_another_directory,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_replica_whose_files_were_damaged_after_the_kill_is_in_doubt(damage: Callable[[Machine], None]) -> None:
    play = play_of(log_roll_ms="3600000")
    play.run(2000)
    kill_all(play)
    for machine in play.machines[:2]:
        play.world.damage.lost(NodeId(machine.node_id), "lost files while it was down")
        damage(machine)
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)


@pytest.mark.parametrize("directory", ["/d0", "/m"])
def test_after_a_flush_that_failed_a_replica_is_in_doubt(directory: str) -> None:
    """The node cannot go on without the directory. It ends, and the system runs on, but drops what it could not write:
    after the file system is mounted anew the log is shorter, and what is left of it is right."""
    play = play_of()
    for machine in play.machines:
        machine.disk.fail_next_sync(lambda path: path.startswith(f"{directory}/"))
    for machine in play.machines:
        play.until("it has ended", lambda machine=machine: not machine.is_running)
        play.world.damage.lost(NodeId(machine.node_id), "could not flush")
        assert not machine.disk.exists(f"/d0/{FILE}")
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)


def test_files_of_an_older_process_vouch_for_nothing() -> None:
    """An image from after a stop in order: its marker, and what says which logs are whole, fit one another."""
    play = play_of()
    images = {}
    for machine in play.machines:
        machine.shut_down()
        play.until("it has stopped in order", lambda machine=machine: not machine.is_running)
        images[machine] = machine.disk.snapshot()
    for machine in play.machines:
        machine.start()
    play.heal()
    play.run(1500)
    kill_all(play)
    for machine in play.machines:
        play.world.damage.lost(NodeId(machine.node_id), "has an old image of its disk")
        now = machine.disk.snapshot().entries
        kept = {path: data for path, data in now.items() if path.startswith("/m")}
        old = {path: data for path, data in images[machine].entries.items() if path.startswith("/d")}
        machine.disk.restore(type(images[machine])(kept | old))
    start(play)
    assert not was_lossless(play)
    assert may_be_lost(play)


def test_without_elr_the_last_one_in_sync_leads_on_after_a_kill_and_notes_nothing() -> None:
    play = Play(options=Options(settings=SETTINGS, elr=False))
    kill_all(play)
    play.world.run_until("somebody leads", lambda: (start_all(play), play.world.why_not_led())[1], 30_000)
    play.heal()
    play.end()
    assert not may_be_lost(play)


def test_without_elr_it_notes_that_nothing_is_known_after_a_loss_of_power() -> None:
    play = Play(options=Options(settings=SETTINGS, elr=False))
    for machine in play.machines:
        machine.power_cut()
    play.world.run_until("somebody leads", lambda: (start_all(play), play.world.why_not_led())[1], 30_000)
    assert may_be_lost(play)


def start_all(play: Play) -> None:
    for machine in play.machines:
        machine.start()
