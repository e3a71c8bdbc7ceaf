"""What must hold after every event, and what must hold when faults have ended.

- one leader, in one process, per partition and leader epoch
- a leader's high watermark never retreats within its epoch
- what once was below a leader's high watermark is the same, at the same offset, in the log of every later leader
- no follower knows a high watermark that no leader had
- nodes that have applied the same number of metadata records have the same metadata
- what was acknowledged with acks=all is committed, exactly at its offset
- a consumer reads only what is committed
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strandline.base.ids import TopicIdPartition, TopicPartition
from strandline.log.log import Log, Read
from strandline.replica.hosted import Hosted
from strandline.replica.leader import Leader
from strandline.wire.batch import batches
from strandline.wire.record import records

if TYPE_CHECKING:
    from tests.whole.cluster import Host, World

Entry = tuple[int, bytes, int, int]  # leader epoch, value, producer id, sequence of its batch
UNSEEN: Entry = (-1, b"", -1, -1)


def entries(log: Log, start: int, end: int) -> list[tuple[int, Entry]]:
    """The records of a log with their offsets."""
    found = []
    offset = start
    while offset < end:
        read = log.read(offset, 1 << 20, upto=end, min_one=True)
        assert isinstance(read, Read), (read, start, end, log.log_start_offset, log.log_end_offset)
        if not read.size:
            break
        for buffer in read.buffers:
            for header in batches(buffer):
                for record in records(header, buffer):
                    if start <= record.offset < end:
                        entry = (
                            header.partition_leader_epoch,
                            bytes(record.value or b""),
                            header.producer_id,
                            header.base_sequence,
                        )
                        found.append((record.offset, entry))
                offset = header.next_offset
    return found


class Laws:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.committed: dict[TopicIdPartition, list[Entry]] = {}
        self.names: dict[TopicIdPartition, TopicPartition] = {}
        self.leaders: dict[tuple[TopicIdPartition, int], tuple[str, int]] = {}
        self.watermarks: dict[tuple[str, TopicIdPartition], tuple[int, int]] = {}
        self.metadata: dict[int, int] = {}
        self.applied: dict[str, int] = {}
        self.acknowledged: list[tuple[TopicPartition, int, tuple[bytes, ...]]] = []
        self.once: dict[bytes, None] = {}  # values of idempotent producers
        self.deleted: dict[bytes, None] = {}
        self.is_data_lost = False  # more was lost than replication can make good: metadata alone must hold

    # --- after every event

    def look(self, host: "Host") -> None:
        node = host.node
        assert node is not None
        if self.applied.get(host.name) != node.committed.end:
            self.applied[host.name] = end = node.committed.end
            digest = hash(tuple(sorted(map(repr, node.image.records()))))
            assert self.metadata.setdefault(end, digest) == digest, f"metadata at {end} differs on {host.name}"
        if node.broker is None or self.is_data_lost:
            return
        for hosted in node.broker.replicas.host.all():
            if type(hosted.role) is Leader:
                self.look_at_leader(host, hosted, hosted.role)
            else:
                assert hosted.high_watermark <= max(
                    len(self.committed.get(hosted.at, ())), hosted.log.log_start_offset
                ), f"{host.name} believes that {hosted.name} is committed up to {hosted.high_watermark}"

    def look_at_leader(self, host: "Host", hosted: Hosted, leader: Leader) -> None:
        at, key = hosted.at, (host.name, hosted.at)
        known = self.watermarks.get(key)
        if known is not None and known == (leader.epoch, leader.high_watermark):
            return
        truth = self.committed.setdefault(at, [])
        self.names[at] = hosted.name
        if known is None or known[0] != leader.epoch:
            who = (host.name, host.life)
            first = self.leaders.setdefault((at, leader.epoch), who)
            assert first == who, f"{hosted.name} epoch {leader.epoch} is led by {first} and by {who}"
            end = hosted.log.log_end_offset
            self.tell(f"{host.name} leads {hosted.name} in epoch {leader.epoch}: hw {leader.high_watermark}, end {end}")
            if leader.epoch == max(epoch for one, epoch in self.leaders if one == at):
                self.compare(host, hosted, truth)
            # Else it catches up with metadata, and hears next that its leadership is over already.
        else:
            assert leader.high_watermark >= known[1], f"the high watermark of {hosted.name} fell on {host.name}"
        self.watermarks[key] = (leader.epoch, leader.high_watermark)
        if leader.high_watermark > len(truth):
            # What was committed and deleted at a user's wish within one event was never seen.
            unseen = min(hosted.log.log_start_offset, leader.high_watermark) - len(truth)
            truth += [UNSEEN] * max(unseen, 0)
            for offset, entry in entries(hosted.log, len(truth), leader.high_watermark):
                assert offset == len(truth), f"{hosted.name} has a hole before {offset} on {host.name}"
                truth.append(entry)
            assert len(truth) == leader.high_watermark, f"{hosted.name}: {len(truth)} of {leader.high_watermark}"

    def compare(self, host: "Host", hosted: Hosted, truth: list[Entry]) -> None:
        """Everything committed is in this leader's log."""
        log = hosted.log
        assert log.log_end_offset >= len(truth), (
            f"{host.name} leads {hosted.name} in epoch {hosted.role and hosted.role.epoch} up to {log.log_end_offset},"
            f" but {len(truth)} records were committed"
        )
        for offset, entry in entries(log, log.log_start_offset, len(truth)):
            assert truth[offset] in (entry, UNSEEN), (
                f"{hosted.name} at {offset}: {entry} on {host.name}, committed {truth[offset]}"
            )

    def forget(self, host: "Host") -> None:
        """The process is gone; what it knew does not bind the next one."""
        for key in [key for key in self.watermarks if key[0] == host.name]:
            del self.watermarks[key]
        self.applied.pop(host.name, None)

    # --- what clients saw

    def named(self, name: TopicPartition) -> list[TopicIdPartition]:
        return [at for at, known in self.names.items() if known == name]

    def acked(self, name: TopicPartition, offset: int, values: tuple[bytes, ...], *, once: bool) -> None:
        if self.is_data_lost:
            return
        self.acknowledged.append((name, offset, values))
        self.once.update(dict.fromkeys(values) if once else {})
        found = []
        for at in self.named(name):
            found.append([entry[1] for entry in self.committed[at][offset : offset + len(values)]])
        assert list(values) in found, f"{name} at {offset}: acknowledged {values}, committed {found}"

    def consumed(self, at: TopicIdPartition, offset: int, value: bytes) -> None:
        if self.is_data_lost:
            return
        truth = self.committed.get(at, [])
        assert offset < len(truth), f"{self.names.get(at)}: read offset {offset} of {len(truth)} committed"
        assert truth[offset][1] == value, f"{self.names.get(at)}: read {value!r} at {offset}, committed {truth[offset]}"

    # --- at the end

    def hosted_everywhere(self, world: "World") -> dict[TopicIdPartition, list[tuple["Host", Hosted]]]:
        found: dict[TopicIdPartition, list[tuple[Host, Hosted]]] = {}
        for host in world.hosts.values():
            assert host.node is not None
            assert host.node.broker is not None
            for hosted in host.node.broker.replicas.host.all():
                found.setdefault(hosted.at, []).append((host, hosted))
        return found

    def are_replicas_equal(self, world: "World") -> bool:
        ends = {host.node.committed.end for host in world.hosts.values() if host.node is not None}
        if len(ends) > 1:
            return False
        for copies in self.hosted_everywhere(world).values():
            if len({(hosted.log.log_end_offset, hosted.high_watermark) for _, hosted in copies}) > 1:
                return False
            if any(hosted.high_watermark < hosted.log.log_end_offset for _, hosted in copies):
                return False
        return True

    def final(self, world: "World") -> None:
        image: Any = world.hosts[1].node and world.hosts[1].node.image
        everywhere = self.hosted_everywhere(world)
        named = {TopicIdPartition(t.topic_id, index) for t in image.topics.values() for index in t.partitions}
        assert named == set(everywhere), "logs and metadata name different partitions"
        for at, copies in everywhere.items():
            replicas = image.partition(at).replicas
            assert sorted(host.node_id for host, _ in copies) == sorted(replicas), (at, replicas)
            if self.is_data_lost:
                start = max(hosted.log.log_start_offset for _, hosted in copies)
                logs = [entries(hosted.log, start, hosted.log.log_end_offset) for _, hosted in copies]
                assert all(log == logs[0] for log in logs), f"the replicas of {copies[0][1].name} differ"
                continue
            truth = self.committed[at]
            for host, hosted in copies:
                assert hosted.log.log_end_offset == len(truth), (hosted.name, host.name)
                self.compare(host, hosted, truth)
            mine = [entry[1] for entry in truth if entry[1] in self.once]
            assert len(mine) == len(set(mine)), f"{self.names[at]} has idempotent records twice: {twice(mine)}"


def twice(values: list[bytes]) -> list[bytes]:
    return sorted({value for value in values if values.count(value) > 1})
