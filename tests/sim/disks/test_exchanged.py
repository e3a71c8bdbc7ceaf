"""Whole nodes whose files somebody exchanged by hand after a stop of which no inventory is left."""

from random import Random

import pytest
from tests.sim.play import Play

from strandline.base.ids import OFFSETS_TOPIC
from strandline.log.evidence.clean_shutdown import FILE as MARKER
from strandline.replica.hosting.follower import Follower
from strandline.sim.faults.damaged import damage, tamper
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind, Trace

ORDERS = "orders-0"


def stopped(play: Play, *, is_killed: bool) -> Machine:
    """One that does not lead orders-0, and has a replica of it."""
    machine = next(one for one in play.machines if one is not play.leader())
    machine.kill() if is_killed else machine.shut_down()
    play.until("it has stopped", lambda: not machine.is_running)
    return machine


def folder(machine: Machine, name: str) -> str:
    (found,) = [path for path in machine.disk.snapshot().entries if path.endswith(f"/{name}") and path.count("/") == 2]
    return found


def follows_under_its_name(machine: Machine, play: Play) -> bool:
    node = machine.node
    hosted = None if node is None or node.broker is None else node.broker.replicas.host.partitions.find(play.at())
    return hosted is not None and isinstance(hosted.role, Follower) and hosted.log.directory.endswith(f"/{ORDERS}")


@pytest.mark.parametrize("is_noted", [True, False], ids=["the checkpoint shows it", "metadata shows it"])
def test_topic_ids_that_were_swapped_after_a_kill_cost_a_copy_and_nothing_foreign_is_served(is_noted: bool) -> None:
    play = Play(3)
    play.run(6_000)
    machine = stopped(play, is_killed=True)
    entries = machine.disk.snapshot().entries
    others = [path.split("/")[2] for path in entries if path.count("/") == 2 and f"/{OFFSETS_TOPIC}-" in path]
    one, other = (f"{folder(machine, name)}/partition.metadata" for name in (ORDERS, others[0]))
    injector = FaultInjector(play.world, play.admin)
    swapped = {one: entries[other], other: entries[one]}
    checkpoints = {path: None for path in entries if path.endswith("/topic-id-checkpoint") and not is_noted}
    tamper(injector, machine, swapped | checkpoints, takes_records=True)
    machine.start()
    play.heal()
    play.until("it copies again", lambda: follows_under_its_name(machine, play))
    strays = [path for path in machine.disk.snapshot().entries if path.endswith("-stray")]
    assert len(strays) == 2
    play.end()


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_only_the_inventory_of_a_stop_shows_is_not_swapped_without_it(is_killed: bool) -> None:
    play = Play(3)
    play.run(6_000)
    machine = stopped(play, is_killed=is_killed)
    play.world.trace = trace = Trace()
    injector, image = FaultInjector(play.world, play.admin), machine.disk.snapshot()
    seen: dict[str, None] = {}
    for seed in range(400):
        machine.disk.restore(image)
        machine.has_inventory, machine.needs_inventory = not is_killed, False
        trace.moments.clear()
        damage(injector, Random(seed), machine, image.entries)
        reported = [moment.text for moment in trace.moments if moment.kind is Kind.FAULT]
        swapped = [text for text in reported if " is swapped: " in text]
        hidden = [text for text in swapped if "the topic id is" not in text and "a folder is" not in text]
        is_marked = not is_killed and not any(f"/{MARKER}" in text for text in reported)
        assert is_marked or not hidden, reported
        seen |= dict.fromkeys(text.split(": ")[0] for text in swapped)
    assert any("the topic id is swapped" in text for text in seen)
    assert any("a folder is swapped" in text for text in seen)
    assert any("the segment is swapped" in text for text in seen) != is_killed
