"""Partitions that nobody may lead: those who had everything are gone, and somebody must lead who lacks records. Only in
ruthless runs.
"""

from random import Random

from strandline.base.ids import NOBODY, OFFSETS_TOPIC
from strandline.replica.hosting.leader import Leader
from strandline.sim.faults.injector import FaultInjector
from strandline.sim.faults.scripted import PATIENCE, cast, hosted_on, when

BACK_MS = (300, 1500, 2500, 4000, 6000)
STRATEGY, OLDER = "unclean.recovery.strategy", "unclean.leader.election.enable"


def all_lost(injector: FaultInjector, rng: Random) -> None:
    """All replicas lose their power within moments, and come back one after another."""
    found = cast(injector, rng)
    if found is None or not injector.world.options.is_ruthless:
        return
    injector.note(f"all replicas fall: {', '.join(machine.name for machine in found[1])}")
    for machine in found[1]:
        injector.later(rng.choice((0, 3, 200)), machine.power_cut)
        injector.later(rng.choice(BACK_MS), machine.start)


def strategy(injector: FaultInjector, rng: Random) -> None:
    """A topic prefers a leader soon, or one that has the most, by the newer key or by the older one."""
    topics = list(injector.world.laws.metadata.image.topic_ids)
    if not topics:
        return
    topic = rng.choice(topics)
    key, value = rng.choice(((STRATEGY, "Aggressive"), (STRATEGY, "Balanced"), (OLDER, "true"), (OLDER, "false")))
    injector.admin.wish(lambda: injector.admin.configure(topic, key, value))


def designate(injector: FaultInjector, rng: Random) -> None:
    """An operator designates a leader, or elects the longest log, if there is no leader."""
    stuck = [
        (topic.name, index, int(rng.choice(partition.replicas)))
        for topic in injector.world.laws.metadata.image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == NOBODY
    ]
    if stuck and injector.world.options.is_ruthless:
        injector.admin.wish(lambda: injector.admin.designate(stuck, rng.choice((2, 2, 3, 4))))


def forked(injector: FaultInjector, rng: Random) -> None:
    """A leader that nobody hears of any more goes on writing, alone, and another one leads for a moment: its log has
    the later epoch and is the shorter one. Then all of them fall, and come back."""
    if injector.world.options.is_ruthless:
        when(injector, lambda: cast(injector, rng) is not None, lambda: fork(injector, rng))


def fork(injector: FaultInjector, rng: Random) -> None:
    found = cast(injector, rng)
    topics = injector.world.laws.metadata.image.topics
    if found is None or topics[found[0].topic_id].name == OFFSETS_TOPIC:
        return  # few write there
    at, (first, *others) = found
    topic = topics[at.topic_id].name
    strategy = rng.choice(("Aggressive", "Balanced"))
    injector.admin.wish(lambda: injector.admin.configure(topic, STRATEGY, strategy))
    injector.note(f"{first.name} leads {topic}-{at.partition}, and is cut off from the other nodes")
    for machine in injector.world.machines.values():
        if machine is not first:
            injector.world.network.cut(first.name, machine.name)

    def is_forked() -> bool:
        long = hosted_on(first, at)
        roles = [hosted.role for hosted in (hosted_on(machine, at) for machine in others) if hosted is not None]
        return long is not None and any(
            type(role) is Leader and role.epoch_start_offset < role.log.log_end_offset < long.log.log_end_offset
            for role in roles
        )

    def fall() -> None:
        injector.note(f"all replicas fall: {', '.join(machine.name for machine in (first, *others))}")
        for machine in (first, *others):
            machine.kill()
            injector.later(300 + rng.choice((0, 100, 3000)), machine.start)
        injector.world.network.heal()

    when(injector, is_forked, fall, 2 * PATIENCE)
