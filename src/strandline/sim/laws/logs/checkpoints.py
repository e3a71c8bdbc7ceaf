"""What must hold of the checkpoints of a running broker.

- the recovery points that lie on disk vouch for no more than the logs themselves know to be durable: after a cut, an
  older one would vouch for batches that took the place of others and were never synced
"""

from strandline.base.ids import TopicPartition
from strandline.broker.node import Node
from strandline.log.checkpoints import Unreadable, parse_offsets
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.rows import RECOVERY_POINTS
from strandline.sim.world.machine import Machine


class Checkpoints:
    def __init__(self) -> None:
        self.read: dict[tuple[str, str], tuple[bytes, dict[TopicPartition, int]]] = {}  # what was found last
        self.changes: dict[
            tuple[str, int], int
        ] = {}  # of a machine's disk, in one life of its process, at the last look

    def look(self, machine: Machine, node: Node, touched: list[Hosted]) -> None:
        """Neither the logs were touched nor anything on the disk: then all is as it was."""
        broker = node.broker
        if broker is None or node.halted:
            return
        life, changes = (machine.name, machine.life), machine.disk.changes
        if not touched and self.changes.get(life) == changes:
            return
        self.changes[life] = changes
        host = broker.replicas.host
        for log_dir in broker.directories.live:
            rows, is_as_before = self.rows(machine, f"{log_dir.path}/{RECOVERY_POINTS}")
            for name in [one.name for one in touched] if is_as_before else rows:
                hosted, saved = host.partitions.named(*name), rows.get(name, -1)
                if hosted is not None and hosted.directory.path == log_dir.path:
                    known = hosted.log.recovery_point
                    assert saved <= known, (
                        f"{machine.name}: the saved recovery point of {name} is {saved}, above its own, {known}"
                    )

    def rows(self, machine: Machine, path: str) -> tuple[dict[TopicPartition, int], bool]:
        """What the file says, and whether it said the same at the last look: then only touched logs can differ."""
        content = machine.disk.peek(path) or b""
        before = self.read.get((machine.name, path))
        if before is not None and before[0] == content:
            return before[1], True
        try:
            rows = parse_offsets(content) if content else {}
        except Unreadable:  # somebody damaged it
            rows = {}
        self.read[machine.name, path] = (content, rows)
        return rows, False
