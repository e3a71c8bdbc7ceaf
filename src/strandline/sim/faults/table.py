"""All kinds of faults, by name, and how often each comes among those that a run has."""

from collections.abc import Callable
from random import Random

from strandline.base.value import Value
from strandline.sim.faults import (
    absurd,
    ambush,
    damaged,
    damaged_metadata,
    directories,
    disks,
    eligible,
    operations,
    process,
    recoveries,
    scripted,
    wires,
)
from strandline.sim.faults.injector import FaultInjector


class FaultKind(Value, frozen=True):
    act: Callable[[FaultInjector, Random], None]
    weight: int


FAULTS: dict[str, FaultKind] = {
    "kill": FaultKind(process.kill, 6),
    "start": FaultKind(process.start, 8),
    "power cut": FaultKind(process.power_cut, 8),
    "shut down": FaultKind(process.shut_down, 3),
    "rolling restart": FaultKind(process.rolling_restart, 1),
    "pause": FaultKind(process.pause, 4),
    "double": FaultKind(process.double, 5),
    "bounce": FaultKind(process.bounce, 3),
    "ambush": FaultKind(ambush.ambush, 14),
    "clock jump": FaultKind(process.clock_jump, 2),
    "cut": FaultKind(wires.cut, 4),
    "isolate": FaultKind(wires.isolate, 3),
    "heal": FaultKind(wires.heal, 8),
    "slow": FaultKind(wires.slow, 2),
    "break off": FaultKind(wires.break_off, 5),
    "full disk": FaultKind(disks.full, 2),
    "failing sync": FaultKind(disks.failing_sync, 2),
    "failing directory": FaultKind(disks.failing_directory, 1),
    "new disk": FaultKind(disks.replaced, 2),
    "old image": FaultKind(disks.restored, 1),
    "bit rot": FaultKind(disks.rot, 1),
    "recreate": FaultKind(operations.recreate, 3),
    "configure": FaultKind(operations.configure, 2),
    "trim": FaultKind(operations.trim, 2),
    "add partitions": FaultKind(operations.add_partitions, 1),
}

# Drawn apart, by `plan.draw_moves`.
MOVES: dict[str, FaultKind] = {
    "reassign": FaultKind(operations.reassign, 4),
    "cancel": FaultKind(operations.cancel, 1),
    "elect": FaultKind(operations.elect, 1),
}

# Drawn apart, by `plan.draw_eligible`, for seeds with Eligible Leader Replicas.
ELIGIBLE: dict[str, FaultKind] = {
    "last replica": FaultKind(eligible.last_replica, 6),
    "switch ELR": FaultKind(eligible.switch, 1),
    "min ISR while eligible": FaultKind(eligible.min_isr, 2),
    "unregister": FaultKind(eligible.unregister, 2),
    "lost directory": FaultKind(eligible.lost_directory, 2),
    "stale marker": FaultKind(eligible.stale_marker, 2),
}

# Drawn apart, by `plan.draw_damaged`.
DAMAGED: dict[str, FaultKind] = {
    "damaged files": FaultKind(damaged.damaged_files, 3),
    "damaged last": FaultKind(damaged.damaged_last, 1),
}

# Drawn apart, by `plan.draw_damaged_metadata`.
METADATA: dict[str, FaultKind] = {
    "damaged metadata": FaultKind(damaged_metadata.damaged_metadata, 1),
    "stale metadata": FaultKind(damaged_metadata.stale_metadata, 1),
}

# Drawn apart, by `plan.draw_recoveries`.
RECOVERIES: dict[str, FaultKind] = {
    "all lost": FaultKind(recoveries.all_lost, 2),
    "strategy": FaultKind(recoveries.strategy, 2),
    "designate": FaultKind(recoveries.designate, 3),
}

# Drawn apart, by `plan.draw_directories`.
DIRECTORIES: dict[str, FaultKind] = {
    "full directory": FaultKind(directories.full_directory, 3),
    "stopped without a directory": FaultKind(directories.stopped_without, 4),
    "exchanged directory": FaultKind(directories.exchanged, 2),
}

# Plans that were written down name these, and `plan.draw_overlaps` draws some of them.
SCRIPTED: dict[str, FaultKind] = {
    "absurd proposal": FaultKind(absurd.absurd_proposal, 1),
    "late heartbeats": FaultKind(absurd.late_heartbeats, 1),
    "forked": FaultKind(recoveries.forked, 1),
    "kindled": FaultKind(ambush.kindle, 1),
    "eligible taken away": FaultKind(operations.reassign_eligible, 1),
    "long jump": FaultKind(process.long_jump, 1),
    "move logs": FaultKind(disks.move_logs, 1),
    "throttle": FaultKind(operations.throttle, 1),
    "ping pong": FaultKind(scripted.ping_pong, 1),
    "held records": FaultKind(scripted.held_records, 1),
    "unproven groups": FaultKind(scripted.unproven_groups, 1),
    "held divergence": FaultKind(scripted.held_divergence, 1),
    "held proposal": FaultKind(scripted.held_proposal, 1),
    "late joiner": FaultKind(scripted.late_joiner, 1),
    "lost term": FaultKind(scripted.lost_term, 1),
    "split vote": FaultKind(scripted.split_vote, 1),
    "deleted without ISR": FaultKind(eligible.deleted_without_isr, 1),
    "two in a row": FaultKind(scripted.in_a_row, 1),
    "lost majority": FaultKind(damaged_metadata.lost_majority, 1),
    "flipped": FaultKind(wires.flipped, 1),
    "late markers": FaultKind(wires.late_markers, 1),
}
