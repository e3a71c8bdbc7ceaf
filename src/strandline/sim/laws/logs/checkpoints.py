"""What must hold of the checkpoints of a running broker.

- the recovery points that lie on disk vouch for no more than the logs themselves know to be durable: after a cut, an
  older one would vouch for batches that took the place of others and were never synced
"""

from strandline.base.ids import TopicPartition
from strandline.broker.node import Node
from strandline.log.checkpoints import Unreadable, parse_offsets
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import RECOVERY_POINTS
from strandline.sim.world.disk_content import Content
from strandline.sim.world.disk_names import Names
from strandline.sim.world.machine import Machine


class Checkpoints:
    def __init__(self) -> None:
        self.read: dict[tuple[str, str], tuple[bytes, dict[TopicPartition, int]]] = {}  # what was found last
        # A machine's disk as it was at the last look, and in which life of its process that was.
        self.disks: dict[str, tuple[tuple[Names, int, int], int]] = {}

    def look(self, machine: Machine, node: Node, touched: list[Hosted]) -> None:
        """Neither the logs were touched nor any file of the disk replaced: then all is as it was."""
        broker, disk = node.broker, (machine.disk.form, machine.life)
        if broker is None or node.halted:
            return
        is_same_disk = self.disks.get(machine.name) == disk
        if is_same_disk and not touched:
            return
        self.disks[machine.name] = disk
        host = broker.replicas.host
        for log_dir in broker.directories.live:
            path = f"{log_dir.path}/{RECOVERY_POINTS}"
            known = self.read.get((machine.name, path)) if is_same_disk else None
            rows, is_as_before = self.rows(machine, path) if known is None else (known[1], True)
            for name in [one.name for one in touched] if is_as_before else rows:
                hosted, saved = host.partitions.named(*name), rows.get(name, -1)
                if hosted is not None and hosted.directory.path == log_dir.path:
                    own = hosted.log.recovery_point
                    assert saved <= own, (
                        f"{machine.name}: the saved recovery point of {name} is {saved}, above its own, {own}"
                    )

    def rows(self, machine: Machine, path: str) -> tuple[dict[TopicPartition, int], bool]:
        """What the file says, and whether it said the same at the last look: then only touched logs can differ."""
        entry = machine.disk.names.find(path)
        found = entry.data if isinstance(entry, Content) else b""
        before = self.read.get((machine.name, path))
        if before is not None and before[0] == found:
            return before[1], True
        content = bytes(found)
        try:
            rows = parse_offsets(content) if content else {}
        except Unreadable:  # somebody damaged it
            rows = {}
        self.read[machine.name, path] = (content, rows)
        return rows, False
