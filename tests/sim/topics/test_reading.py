"""Consumers that read from followers while the cluster suffers, judged as all others are."""

import pytest
from tests.sim.play import ORDERS, SETTINGS, Play

from strandline.replica.serving.selection import RACK_AWARE
from strandline.sim.clients.nearby import Nearby, Roamer
from strandline.sim.runs.plan import draw_plan, with_reading
from strandline.sim.runs.run import run_plan
from strandline.sim.world.options import Options

pytestmark = pytest.mark.long


def racks(selector: str = RACK_AWARE) -> Play:
    return Play(options=Options(racks=3, settings=SETTINGS | {"replica.selector.class": selector}))


def test_consumers_read_from_the_replica_in_their_rack() -> None:
    play = racks()
    readers = [Nearby(play.scene, f"near{index}", ORDERS) for index in range(3)]
    for index, reader in enumerate(readers):
        reader.rack = f"r{index}"
    play.enter(*readers)
    play.run(3000)
    leader = play.leader().node_id
    for index, reader in enumerate(readers):
        is_near = leader % 3 == index
        assert (reader.from_others == 0) == is_near, (leader, index, reader.from_others)
        assert reader.read > 0
    play.end()


def test_without_a_selector_they_read_from_the_leader() -> None:
    play = racks(selector="org.apache.kafka.common.replica.LeaderSelector")
    reader = Nearby(play.scene, "near", ORDERS)
    play.enter(reader)
    play.run(2000)
    assert reader.read > 0
    assert reader.from_others == 0
    play.end()


def test_a_consumer_whose_replica_dies_reads_on_elsewhere() -> None:
    play = racks()
    reader = Nearby(play.scene, "near", ORDERS)
    reader.rack = f"r{next(m.node_id for m in play.machines if m is not play.leader()) % 3}"
    play.enter(reader)
    play.run(2000)
    assert reader.closer is not None or reader.from_others
    host = next(m for m in play.machines if f"r{m.node_id % 3}" == reader.rack)
    host.kill()
    before = reader.read
    play.run(6000)
    assert reader.read > before
    host.start()
    play.heal()
    play.end()


def test_leaders_change_while_consumers_read_from_anybody() -> None:
    play = racks()
    roamers = [Roamer(play.scene, f"near{index}", ORDERS) for index in range(3)]
    play.enter(*roamers)
    for _ in range(5):
        host = play.leader()
        host.kill()
        play.run(1500)
        host.start()
        play.heal()
    assert all(roamer.from_others for roamer in roamers)
    play.end()


def test_later_seeds_draw_them_and_the_first_ones_are_left_as_they_were() -> None:
    reading = [seed for seed in range(1, 200) if "reading" in draw_plan(seed).options.workloads]
    assert min(reading) > 100
    assert len(reading) > 8
    assert all(draw_plan(seed).options.racks for seed in reading)


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_drawn_plan_holds_with_consumers_that_read_from_followers(seed: int) -> None:
    outcome = run_plan(with_reading(draw_plan(seed)))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
