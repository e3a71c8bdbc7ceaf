"""What must be on the medium when a node says so. The simulated disk knows what it has synced; a node only believes it.

- below its recovery point a log is durable, names and bytes: a start trusts that unread
- where the metadata log begins, a durable snapshot holds what was before
- a snapshot bears the epoch of its last record, by which voters find out whether it is in their history
"""

from strandline.base.ids import TopicIdPartition
from strandline.broker.node import Node
from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.quorum.ports import SnapshotId
from strandline.quorum.storage.metadata_log import SUFFIX, MetadataLog, snapshot_name
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.sim.laws.subject import Subject
from strandline.sim.world.disk import SimDisk
from strandline.sim.world.disk_content import Content
from strandline.sim.world.machine import Machine
from strandline.wire.batch import read_header

ROTTING = ("struck: bit rot", "struck: damaged files", "struck: damaged last")
Life = tuple[str, int]  # a machine and its process


class Durable:
    def __init__(self, world: Subject) -> None:
        self.world = world
        self.points: dict[tuple[Life, TopicIdPartition], int] = {}
        self.starts: dict[Life, int] = {}
        self.newest: dict[Life, SnapshotId | None] = {}
        self.looked_at: dict[
            str, tuple[int, int, SnapshotId | None]
        ] = {}  # where its metadata began and what was newest
        self.waiting: dict[Life, dict[Hosted, None]] = {}  # touched, and not looked at yet

    def look(self, machine: Machine, node: Node, touched: list[Hosted]) -> None:
        broker = node.broker
        if touched and (self.waiting or machine.is_rotten or node.halted or broker is None):
            self.waiting.setdefault((machine.name, machine.life), {}).update(dict.fromkeys(touched))
            touched = []
        if machine.is_rotten or node.halted:
            return
        log = node.metadata_log
        start, newest = log.log.log_start_offset, log.snapshots[-1] if log.snapshots else None
        before = self.looked_at.get(machine.name)
        if before is None or before[2] is not newest or before[1] != start or before[0] != machine.life:
            self.look_at_metadata(machine, (machine.name, machine.life), log)
            self.looked_at[machine.name] = machine.life, start, newest
        if broker is not None and (touched or self.waiting):
            life = machine.name, machine.life
            self.look_at_logs(machine, life, broker.replicas.host, [*self.waiting.pop(life, ()), *touched])

    def look_at_logs(self, machine: Machine, life: Life, host: Host, logs: list[Hosted]) -> None:
        for hosted in logs:
            if host.partitions.find(hosted.at) is not hosted:
                continue
            if machine.has_lost(hosted):
                self.waiting.setdefault(life, {})[hosted] = None
                continue
            point = hosted.log.recovery_point
            before = self.points.get((life, hosted.at), 0)
            if point != before:
                self.points[life, hosted.at] = point
                # What was repaired in the middle of a log is synced when it is: at worst it is found damaged again.
                if point > before and (before or not any(self.world.seen[fault] for fault in ROTTING)):
                    with machine.disk.observed():
                        why = why_not_durable(machine.disk, hosted.log, before)
                    assert why is None, f"{machine.name} takes {hosted.name} for durable up to {point}: {why}"

    def look_at_metadata(self, machine: Machine, life: Life, log: MetadataLog) -> None:
        start = log.log_start_offset
        if start > self.starts.get(life, 0):
            self.starts[life] = start
            below = [
                f"{log.directory}/{snapshot_name(one)}{SUFFIX}" for one in log.snapshots if one.end_offset >= start
            ]
            assert not all(machine.disk.lossy(path) for path in below), (
                f"the metadata log of {machine.name} begins at {start}, and no snapshot of what was before is durable"
            )
        newest = log.snapshots[-1] if log.snapshots else None
        if newest != self.newest.get(life):
            self.newest[life] = newest
            epoch = None if newest is None else self.epoch_of(newest.end_offset - 1)
            assert newest is None or epoch in (None, newest.epoch), (
                f"{machine.name} has a snapshot up to {newest.end_offset} of epoch {newest.epoch}; its last record"
                f" is of epoch {epoch}"
            )

    def epoch_of(self, offset: int) -> int | None:
        """As the committed batch says. None: nobody has seen it."""
        for base, (end, batch) in reversed(self.world.committed.batches.items()):
            if base <= offset < end:
                return read_header(memoryview(batch)).partition_leader_epoch
        return None


def why_not_durable(disk: SimDisk, log: Log, before: int) -> str | None:
    """`before`: what a look saw earlier in this life, or 0. What is compacted, or was swapped before a start,
    may change its name later: both names are found."""
    for segment in log.segments:
        if segment.next_offset <= before or segment.base_offset >= log.recovery_point:
            continue
        start, end = (position(segment, offset) for offset in (before, log.recovery_point))
        entry = disk.names.find(segment.path)
        if isinstance(entry, Content) and entry.is_lossy_in(start, end):
            return f"not all of the bytes from {start} to {end} are synced in {segment.path}"
        if before and log.cleaned_to is None and disk.names.is_unsynced(segment.path):
            return f"the name {segment.path} is not synced"
    return None


def position(segment: Segment, offset: int) -> int:
    """Where the batch with this offset lies in the segment's file."""
    if offset <= segment.base_offset:
        return 0
    found = segment.position_of(offset) if offset < segment.next_offset else None
    return segment.size if found is None else found
