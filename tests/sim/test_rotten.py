"""What a flipped bit damages is repaired, also if the process is killed in the middle of the repair."""

from tests.sim.laws.test_laws import hosted_on
from tests.sim.play import ORDERS, SETTINGS, Play

from strandline.sim.clients.consumer import Consumer
from strandline.sim.world.options import Options


def test_a_process_that_is_killed_between_a_repair_and_its_sync_leaves_nothing_to_wait_for() -> None:
    """The next process trusts what lies below its recovery point, and syncs it no more: the system writes it back."""
    play = Play(options=Options(settings=SETTINGS | {"log.roll.ms": "300"}, sync_ms=200))
    play.until("old segments are durable", lambda: hosted_on(play.leader()).log.recovery_point > 50)
    play.run(3000)  # a checkpoint says so
    machine = play.leader()
    segment = hosted_on(machine).log.segments.bases[0]
    path = f"/d0/orders-0/{segment:020}.log"
    play.world.damage.lost(machine.node_id, "has a bit that flipped")
    machine.disk.flip(path, 100, 3)
    machine.is_rotten = True
    machine.touches += 1
    play.enter(Consumer(play.scene, "cb", ORDERS))
    play.until("it is repaired", lambda: any("repaired with another replica's" in line for line in play.world.story))
    assert machine.disk.lossy(path), "the repair is written and not synced"
    machine.kill()
    machine.start()
    play.end()
    assert not machine.is_rotten
