"""Partitions that nobody may lead: those who had everything are gone, and somebody must lead who lacks records. Only in
ruthless runs.
"""

from random import Random

from strandline.base.ids import NOBODY
from strandline.sim.faults.scripted import cast
from strandline.sim.faults.turmoil import Turmoil

BACK_MS = (300, 1500, 2500, 4000, 6000)
STRATEGY, OLDER = "unclean.recovery.strategy", "unclean.leader.election.enable"


def all_lost(turmoil: Turmoil, rng: Random) -> None:
    """All replicas lose their power within moments, and come back one after another."""
    found = cast(turmoil, rng)
    if found is None or not turmoil.world.options.is_ruthless:
        return
    turmoil.tell(f"all replicas fall: {', '.join(machine.name for machine in found[1])}")
    for machine in found[1]:
        turmoil.later(rng.choice((0, 3, 200)), machine.power_cut)
        turmoil.later(rng.choice(BACK_MS), machine.start)


def strategy(turmoil: Turmoil, rng: Random) -> None:
    """A topic prefers a leader soon, or one that has the most, by the newer key or by the older one."""
    topic = rng.choice(list(turmoil.world.laws.metadata.image.topic_ids))
    key, value = rng.choice(((STRATEGY, "Aggressive"), (STRATEGY, "Balanced"), (OLDER, "true"), (OLDER, "false")))
    turmoil.admin.wish(lambda: turmoil.admin.configure(topic, key, value))


def designate(turmoil: Turmoil, rng: Random) -> None:
    """An operator says who shall lead, or whoever has the longest log, where nobody does."""
    stuck = [
        (topic.name, index, int(rng.choice(partition.replicas)))
        for topic in turmoil.world.laws.metadata.image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == NOBODY
    ]
    if stuck and turmoil.world.options.is_ruthless:
        turmoil.admin.wish(lambda: turmoil.admin.designate(stuck, rng.choice((2, 2, 3, 4))))
