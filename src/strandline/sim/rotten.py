"""What bits that flipped have damaged, and the law about it: while one replica has a batch as it was written, all
replicas have it so in the end, and readers see it.

Where no replica has it, nothing can repair it: then the machine gets new disks, as an operator would see to it.
"""

from typing import TYPE_CHECKING

from strandline.log.evidence.soundness import damages
from strandline.log.log import Log
from strandline.sim.laws.logs.durable import why_not_durable
from strandline.sim.world.trace import Kind

if TYPE_CHECKING:
    from strandline.replica.hosting.hosted import Hosted
    from strandline.sim.simulation import World
    from strandline.sim.world.machine import Machine

Range = tuple[int, int]


def damaged(log: Log) -> list[Range]:
    """Offsets that cannot be read from the files of a log, up to its end."""
    return [(max(one.start, log.log_start_offset), one.end) for one in damages(log)]


def has(hosted: "Hosted", wanted: Range) -> bool:
    """Does this replica have all of it, as it was written?"""
    log, (start, end) = hosted.log, wanted
    if not log.log_start_offset <= start <= end <= log.log_end_offset:
        return False
    return all(end <= bad[0] or bad[1] <= start for bad in damaged(log))


def may_ask(world: "World", copy: "Hosted", wanted: Range) -> bool:
    """A replica answers up to its high watermark. That moves, where no more failed than is promised to be survived."""
    return wanted[1] <= copy.high_watermark or copy.at not in world.damage.exceeded


def hosting(machine: "Machine") -> "list[Hosted]":
    broker = None if machine.node is None else machine.node.broker
    return [] if broker is None else list(broker.replicas.host.partitions.all())


def why_not_sound(world: "World") -> str | None:
    """Do all disks hold what was written there, or what no replica could give them? Who is beyond repair gets new
    ones."""
    for machine in world.machines.values():
        broker = None if machine.node is None else machine.node.broker
        if broker is None or not broker.lifecycle.is_unfenced:
            return f"{machine.name} is not let in"
    for machine in world.machines.values():
        if machine.is_rotten:
            why = why_unsound(world, machine)
            if why is not None:
                return why
            machine.is_rotten = False
    return None


def why_unsound(world: "World", machine: "Machine") -> str | None:
    others = [other for other in world.machines.values() if other is not machine]
    for hosted in hosting(machine):
        if machine.has_lost(hosted):
            return f"{hosted.name} is gone on {machine.name}, which does not know it yet"
        why = why_not_durable(machine.disk, hosted.log, 0)
        if why is not None:
            return f"a repair of {hosted.name} on {machine.name} is under way: {why}"
        for wanted in damaged(hosted.log):
            for other in others:
                for copy in hosting(other):
                    if (
                        copy.at == hosted.at
                        and not other.has_lost(copy)
                        and has(copy, wanted)
                        and may_ask(world, copy, wanted)
                    ):
                        return f"{hosted.name} is damaged at {wanted} on {machine.name}, and whole on {other.name}"
            machine.note(Kind.HEALED, f"gets new disks, since nobody has {hosted.name} from {wanted[0]} to {wanted[1]}")
            world.damage.lost(machine.node_id, "has new disks")
            machine.kill()
            for root in machine.log_dirs:
                machine.replace_disk(root)
            machine.start()
            return None
    return None
