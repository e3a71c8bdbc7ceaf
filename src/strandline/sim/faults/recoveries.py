"""Partitions that nobody may lead: those who had everything are gone, and somebody must lead who lacks records. Only in
ruthless runs.
"""

from random import Random

from strandline.base.ids import NOBODY, OFFSETS_TOPIC
from strandline.replica.serving.leader import Leader
from strandline.sim.faults.scripted import PATIENCE, cast, hosted_on, when
from strandline.sim.faults.turmoil import Turmoil

BACK_MS = (300, 1500, 2500, 4000, 6000)
STRATEGY, OLDER = "unclean.recovery.strategy", "unclean.leader.election.enable"


def all_lost(turmoil: Turmoil, rng: Random) -> None:
    """All replicas lose their power within moments, and come back one after another."""
    found = cast(turmoil, rng)
    if found is None or not turmoil.world.options.is_ruthless:
        return
    turmoil.note(f"all replicas fall: {', '.join(machine.name for machine in found[1])}")
    for machine in found[1]:
        turmoil.later(rng.choice((0, 3, 200)), machine.power_cut)
        turmoil.later(rng.choice(BACK_MS), machine.start)


def strategy(turmoil: Turmoil, rng: Random) -> None:
    """A topic prefers a leader soon, or one that has the most, by the newer key or by the older one."""
    topics = list(turmoil.world.laws.metadata.image.topic_ids)
    if not topics:
        return
    topic = rng.choice(topics)
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


def forked(turmoil: Turmoil, rng: Random) -> None:
    """A leader that nobody hears of any more goes on writing, alone, and another one leads for a moment: its log has
    the later epoch and is the shorter one. Then all of them fall, and come back."""
    if turmoil.world.options.is_ruthless:
        when(turmoil, lambda: cast(turmoil, rng) is not None, lambda: fork(turmoil, rng))


def fork(turmoil: Turmoil, rng: Random) -> None:
    found = cast(turmoil, rng)
    topics = turmoil.world.laws.metadata.image.topics
    if found is None or topics[found[0].topic_id].name == OFFSETS_TOPIC:
        return  # few write there
    at, (first, *others) = found
    topic = topics[at.topic_id].name
    strategy = rng.choice(("Aggressive", "Balanced"))
    turmoil.admin.wish(lambda: turmoil.admin.configure(topic, STRATEGY, strategy))
    turmoil.note(f"{first.name} leads {topic}-{at.partition}, and is cut off from the other nodes")
    for machine in turmoil.world.machines.values():
        if machine is not first:
            turmoil.world.network.cut(first.name, machine.name)

    def is_forked() -> bool:
        long = hosted_on(first, at)
        roles = [hosted.role for hosted in (hosted_on(machine, at) for machine in others) if hosted is not None]
        return long is not None and any(
            type(role) is Leader and role.epoch_start_offset < role.log.log_end_offset < long.log.log_end_offset
            for role in roles
        )

    def fall() -> None:
        turmoil.note(f"all replicas fall: {', '.join(machine.name for machine in (first, *others))}")
        for machine in (first, *others):
            machine.kill()
            turmoil.later(300 + rng.choice((0, 100, 3000)), machine.start)
        turmoil.world.network.heal()

    when(turmoil, is_forked, fall, 2 * PATIENCE)
