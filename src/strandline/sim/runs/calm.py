"""The liveness phase: faults have ended and all machines are healed. Within a bounded time every partition has its
leader and a whole ISR, clients come through, replicas agree; then the histories are judged.
"""

from collections.abc import Sequence

from strandline.base.ids import NOBODY, TRANSACTION_TOPIC, TopicPartition, Uuid
from strandline.base.value import Value
from strandline.history import atomicity, cycles
from strandline.history.judge import judge, report
from strandline.history.operation import Key
from strandline.history.policy import Facts, every_writer
from strandline.sim import loss_ledger
from strandline.sim.clients.admin import Admin
from strandline.sim.clients.client import Client, key_of
from strandline.sim.rotten import why_not_sound
from strandline.sim.runs.grouped import REBALANCING
from strandline.sim.runs.transactional import TRANSACTIONAL
from strandline.sim.scene import Scene
from strandline.sim.simulation import World
from strandline.sim.workloads.workload import Workload
from strandline.sim.world.machine import Machine
from strandline.sim.world.trace import Kind

BOUND_MS = 60_000


def calm(
    world: World, scene: Scene, admin: Admin, workloads: Sequence[Workload], permitters: Sequence[Client] = ()
) -> None:
    """`permitters`: those who must permit everything again before anything can be asked of clients."""
    is_rotten = any(machine.is_rotten for machine in world.machines.values())
    dead = None if is_rotten else left_dead(world)
    heal(world, dead)
    if is_rotten:
        world.run_until("what rotted is repaired", lambda: why_not_repaired(world, admin), BOUND_MS)
    if dead is not None:
        world.run_until("all others and their leaders are there", lambda: why_not_led_without(world, dead), BOUND_MS)
        heal(world)
    world.run_until("all brokers and leaders are there", lambda: why_not_led(world, admin), BOUND_MS)
    finish(world, permitters)
    before = [workload.progress() for workload in workloads]
    world.run_until("all clients make progress", lambda: why_no_progress(workloads, before), BOUND_MS)
    if REBALANCING in world.options.workloads:
        await_stable_groups(world, workloads)
    writers: list[Client] = [admin, *[client for workload in workloads for client in workload.writers]]
    readers = [client for workload in workloads for client in workload.readers]
    finish(world, writers)
    if any(name in TRANSACTIONAL for name in world.options.workloads):
        world.run_until("no transaction is open", lambda: why_open(world), BOUND_MS)
    world.run_until("all replicas agree", lambda: why_not_healed(world), BOUND_MS)
    finish(world, readers)
    last = [workload.last_reader(at) for workload in workloads for at in workload.partitions()]
    for reader in last:
        scene.enter(reader)
    finish(world, last)
    # What the network had doubled may have come only now.
    world.run_until("all replicas still agree", lambda: why_not_healed(world), BOUND_MS)
    with world.holding("the end"):
        world.laws.final()
    scene.last = {reader.at: reader.name for reader in last}
    judged(world, scene, workloads)


def left_dead(world: World) -> Machine | None:
    """One that is down may stay so for a while: the others must do without it. Not where one of them waits for it: a
    voter whose metadata was damaged."""
    waiting = world.laws.votes.had
    down = [one for one in world.machines.values() if not one.is_running and not waiting.keys() - {one.name}]
    rng = world.random("calm")
    return rng.choice(down) if down and rng.randrange(2) else None


def heal(world: World, dead: Machine | None = None) -> None:
    """All machines but one that stays dead."""
    world.note(Kind.HEALED, "faults end" if dead is None else f"faults end, and {dead.name} stays dead")
    world.network.calm()
    for machine in world.machines.values():
        machine.disk.write_back()  # a process may have been killed between a repair and its sync
        if machine is dead:
            machine.kill()  # its process may be there and wait for room: then it would come back by itself
            continue
        machine.make_room()
        machine.disk.sync_faults.clear()
        machine.disk.fuse, machine.disk.tinder = -1, ("", 0)
        for root in machine.disk.roots:
            machine.disk.mend(root)
        if machine.has_offline_directories or machine.changed:  # or does not know yet that somebody deleted a folder
            machine.kill()
        machine.go_on()
        machine.start()


def start_all(world: World, dead: Machine | None = None) -> None:
    """A controlled shutdown may have ended only now, or a flush from before have failed. Where somebody damaged files,
    a node may refuse to start, and say why: an operator gives it new disks."""
    for machine in world.machines.values():
        if machine is not dead:
            machine.repaired()
            if machine.is_tampered and (machine.has_offline_directories or not machine.is_running):
                renew(world, machine)


def renew(world: World, machine: Machine) -> None:
    world.damage.lost(machine.node_id, "has new disks")
    machine.kill()
    machine.is_rotten = machine.is_tampered = False
    for root in machine.log_dirs:
        machine.replace_disk(root)
    machine.start()


def why_not_repaired(world: World, admin: Admin) -> str | None:
    """Replicas ask each other only about partitions that somebody leads."""
    start_all(world)
    elect_by_hand(world, admin)
    return why_not_sound(world)


def why_not_led_without(world: World, dead: Machine) -> str | None:
    start_all(world, dead)
    return world.why_not_led_without(dead)


def why_not_led(world: World, admin: Admin) -> str | None:
    start_all(world)
    elect_by_hand(world, admin)
    return world.why_not_led()


def elect_by_hand(world: World, admin: Admin) -> None:
    """Nobody is in sync or eligible, and it is not known who led last, or might have what was committed, for they have
    begun anew in other directories: an operator decides."""
    stuck = [
        TopicPartition(topic.name, index)
        for topic in world.laws.metadata.image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == NOBODY
        and not (partition.isr or partition.elr)
        and (not partition.last_known_elr if world.is_recovery_managed else partition.last_known_leader == NOBODY)
    ]
    if stuck and not admin.errands:
        admin.wish(lambda: admin.elect_uncleanly(stuck))


def why_not_healed(world: World) -> str | None:
    start_all(world)
    return world.why_not_whole() or world.laws.why_not_equal()


def why_open(world: World) -> str | None:
    start_all(world)
    return world.laws.transactions.why_open()


def why_no_progress(workloads: Sequence[Workload], before: Sequence[dict[str, int]]) -> str | None:
    for workload, counts in zip(workloads, before, strict=True):
        for name, count in workload.progress().items():
            if count <= counts[name]:
                return f"{name} gets nothing through"
    return None


def await_stable_groups(world: World, workloads: Sequence[Workload]) -> None:
    """And again after each of the last changes."""
    for workload in workloads:
        workload.become_steady()

    def topics() -> dict[str, tuple[Uuid, int]]:
        return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in world.committed.image.topics.values()}

    def why_not() -> str | None:
        start_all(world)
        there = topics()
        return next((why for workload in workloads if (why := workload.why_not_stable(there)) is not None), None)

    is_changing = True
    while is_changing:
        world.run_until("all groups have what they are to have", why_not, BOUND_MS)
        is_changing = sum(workload.changes_once_more(topics()) for workload in workloads) > 0  # each is asked


def finish(world: World, clients: Sequence[Client]) -> None:
    """Stop them, and let each end what it does."""
    for client in clients:
        client.is_stopped = True

    def why_not() -> str | None:
        start_all(world)
        unfinished = [client.name for client in clients if not client.is_done]
        return f"{', '.join(unfinished)} did not come to an end" if unfinished else None

    world.run_until("all clients are done", why_not, BOUND_MS)


def judged(world: World, scene: Scene, workloads: Sequence[Workload]) -> None:
    """The clients' histories, by Jepsen's anomalies."""
    material = material_of(world, scene)
    judgement = judge(world.history.operations, material.facts, material.trimmed, material.finals)
    wrong = list(judgement.violations)
    if world.damage.is_exceeded(TRANSACTION_TOPIC):  # what was decided may be lost
        wrong = [anomaly for anomaly in wrong if not every_writer(anomaly, lambda one: bool(one.transactional_id))]
    else:
        wrong += atomicity.find(world.history.operations, material.finals, material.facts.exceeded, material.trimmed)
        wrong += cycles.find(world.history.operations, material.facts.exceeded)
    for workload in workloads:
        wrong += workload.wrong(world.history.operations, material.finals)
    if wrong:
        raise world.violated(wrong[0].name, report(wrong))


class Material(Value, frozen=True):
    """What a judgement needs beside the operations."""

    facts: Facts
    trimmed: dict[Key, int]
    finals: dict[Key, str]


def material_of(world: World, scene: Scene) -> Material:
    names, trimmed = {}, {}
    for at, name in world.laws.partitions.names.items():
        names[at] = key_of(name, at.topic_id)
    for at, copies in world.laws.copies().items():
        if at in names:
            trimmed[names[at]] = max(hosted.log.log_start_offset for _, hosted in copies)
    living = world.laws.metadata.image.topics
    finals = {
        names[at]: scene.last[name]
        for at, name in world.laws.partitions.names.items()
        if at.topic_id in living and name in scene.last
    }
    exceeded = {names[at]: fault.since_ms for at, fault in world.damage.exceeded.items() if at in names}
    lost = {names[at]: found for at, found in loss_ledger.ranges(world).items() if at in names}
    facts = Facts(
        exceeded=tuple(exceeded),
        exceeded_ms=exceeded,
        gone=tuple(key for at, key in names.items() if at.topic_id in scene.gone),
        is_duplicating=world.options.weather.duplicated_permille > 0,
        ledger=lost if loss_ledger.may_be_asked(world) else None,
    )
    return Material(facts, trimmed, finals)
