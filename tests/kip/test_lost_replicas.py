"""A broker that knows that it lost records is not elected as if it had them, whatever was done to it while it was down.

Whole nodes: brokers stop in order, one after the other, and the files of the last one in sync are changed while it is
down. The others have everything; nothing that was acknowledged may be gone.
"""

from collections.abc import Callable

import pytest
from tests.sim.play import SETTINGS, Play

from strandline.base.ids import NodeId
from strandline.log.evidence.clean_shutdown import FILE
from strandline.metadata.image import RECOVERED, Partition
from strandline.sim.world.disk import Image
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.wire.batch import batches

SEGMENT = "/d0/orders-0/00000000000000000000.log"
Old = dict[str, bytes | None]


def partition(play: Play) -> Partition:
    found = play.world.laws.metadata.image.partition(play.at())
    assert found is not None
    return found


def content(machine: Machine) -> list[tuple[int, int]]:
    """Base offset and checksum of each batch of the partition's log, in all its segments."""
    files = machine.disk.contents()
    logs = sorted(path for path in files if path.startswith("/d0/orders-0/") and path.endswith(".log"))
    return [(header.base_offset, header.crc) for path in logs for header in batches(memoryview(files[path]))]


def truncated(machine: Machine, old: Old) -> None:
    file = machine.disk.open(SEGMENT)
    file.truncate(file.size() // 2)


def deleted(machine: Machine, old: Old) -> None:
    machine.disk.remove_tree("/d0/orders-0")


def older(machine: Machine, old: Old) -> None:
    """The partition's folder and all checkpoints are as they were: only the marker is of the last stop."""
    now = machine.disk.snapshot().entries

    def is_restored(path: str) -> bool:
        return path.startswith("/d0/orders-0") or path.endswith("-offset-checkpoint")

    kept = {path: data for path, data in now.items() if not is_restored(path)}
    machine.disk.restore(Image(kept | {path: data for path, data in old.items() if is_restored(path)}))
    assert machine.disk.exists(f"/d0/{FILE}")


def stop(play: Play, machine: Machine) -> None:
    machine.shut_down()
    play.until("it has stopped in order", lambda: not machine.is_running)


def epoch_of(play: Play, machine: Machine) -> int:
    return int(play.world.laws.metadata.image.brokers[NodeId(machine.node_id)].epoch)


def leads(play: Play) -> bool:
    return partition(play).leader >= 0


DAMAGE = {"truncated": truncated, "deleted": deleted, "older": older}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_the_last_one_in_sync_is_not_elected_cleanly_when_it_has_lost_records(
    damage: Callable[[Machine, Old], None],
) -> None:
    play = Play(options=Options(settings=SETTINGS | {"log.roll.ms": "3600000"}, elr=True))
    last = play.leader()
    second, third = (machine for machine in play.machines if machine is not last)
    old = dict(last.disk.snapshot().entries)
    play.run(1_500)
    for machine in (third, second, last):
        stop(play, machine)
    had, epoch = content(last), epoch_of(play, last)
    assert content(second) == had[: len(content(second))]
    acknowledged = content(second)
    play.world.damage.lost(NodeId(last.node_id), "lost files while it was down")
    damage(last, old)
    assert len(content(last)) < len(acknowledged)
    last.start()
    play.run(3_000)
    second.start()
    play.until("its new life is registered, and somebody leads", lambda: epoch_of(play, last) > epoch and leads(play))
    led_by, state = partition(play).leader, partition(play).leader_recovery_state
    assert (led_by, state) == (second.node_id, RECOVERED)
    assert [event.replica for event in partition(play).withdrawals] == [last.node_id]
    third.start()
    play.until("all are in sync again", lambda: len(partition(play).isr) == 3)
    for machine in play.machines:
        assert content(machine)[: len(acknowledged)] == acknowledged, machine.name
    assert partition(play).losses == ()
    play.end()
