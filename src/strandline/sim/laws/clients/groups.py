"""What a group's coordinator says is what its log says, below what is committed there.

- a commit that is acknowledged is in the log, committed
- the offset that a group reads is the newest of those that were committed before its coordinator's leader epoch, or
  acknowledged since; or a newer one, whose commit had no answer
- no offset of a group with members is removed
- what a member is assigned is written, in the generation that it asked about

The log is read here from its records alone, and not by what the coordinator remembers.
"""

from types import NoneType
from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.ids import OFFSETS_TOPIC, ZERO_UUID, TopicIdPartition, Uuid
from strandline.coordination.partitioning import partition_for
from strandline.log.reading import Read
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.batch import batches
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.record import records

READ_BYTES = 1 << 20
ASKING = (OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest)
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence
Key = tuple[str, str, int]  # group, topic, partition
Position = tuple[int, Uuid]  # what was committed, and of which topic
NOTHING: Position = (-1, ZERO_UUID)


class Replayed:
    """What the records of one coordinator's log say, each with its offset; for one leader epoch."""

    def __init__(self, epoch: int, removed: set[Key]) -> None:
        self.epoch = epoch
        self.removed = removed
        self.end = 0
        self.positions: dict[Key, list[tuple[int, Position]]] = {}
        self.groups: dict[str, list[tuple[int, GroupMetadataValue]]] = {}
        self.told: dict[Key, int] = {}  # by key: where that is which was acknowledged last

    def read(self, hosted: Hosted) -> None:
        log = hosted.log
        self.end = max(self.end, log.log_start_offset)
        while self.end < log.log_end_offset:
            found = log.read(self.end, READ_BYTES, upto=log.log_end_offset, min_one=True)
            if not isinstance(found, Read) or not found.size:
                return
            for buffer in found.buffers:
                for header in batches(buffer):
                    for record in () if header.is_control else records(header, buffer):
                        self.take(record.offset, record.key, record.value)
                    self.end = header.next_offset

    def take(self, offset: int, written: bytes | None, content: bytes | None) -> None:
        key = decode_key(written)
        match key, None if key is None else decode_value(key, content):
            case OffsetCommitKey(), OffsetCommitValue() as value:
                self.at(key).append((offset, (value.offset, Uuid(value.topic_id))))
            case OffsetCommitKey(), None:
                known = self.groups.get(key.group)
                assert not known or not known[-1][1].members, (
                    f"an offset of {key.group} is removed, which has members: {known[-1][1]}"
                )
                self.at(key).append((offset, NOTHING))
                self.removed.add((key.group, key.topic, key.partition))
            case GroupMetadataKey(), GroupMetadataValue() as value:
                self.groups.setdefault(key.group, []).append((offset, value))

    def at(self, key: OffsetCommitKey) -> list[tuple[int, Position]]:
        return self.positions.setdefault((key.group, key.topic, key.partition), [])


class Groups:
    HEARS = tuple((Received, request) for request in ASKING)
    ANSWERS = (OffsetCommitResponse, OffsetFetchResponse, SyncGroupResponse, NoneType)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.asked: dict[Asked, Any] = {}
        self.replayed: dict[tuple[str, int, TopicIdPartition], Replayed] = {}
        self.removed: set[Key] = set()  # offsets that expired, as a log said at any time, or whose topic was deleted

    def forget(self, machine: Machine) -> None:
        """The process is gone, and answers nobody."""
        for asked in [asked for asked in self.asked if asked[0] == machine.name]:
            del self.asked[asked]

    def received(self, machine: Machine, event: Any) -> None:
        self.asked[machine.name, machine.life, event.to.connection, event.to.sequence] = event.message

    def replies(self, machine: Machine, reply: Reply) -> None:
        if not self.asked:
            return
        asked = self.asked.pop((machine.name, machine.life, reply.to.connection, reply.to.sequence), None)
        match asked, reply.message:
            case OffsetCommitRequest(), OffsetCommitResponse() as answer:
                self.commits(machine, asked, answer)
            case OffsetFetchRequest(), OffsetFetchResponse() as answer:
                self.returns_offsets(machine, answer)
            case SyncGroupRequest(), SyncGroupResponse() as answer if not answer.error_code:
                self.assigns(machine, asked, answer)

    def commits(self, machine: Machine, asked: OffsetCommitRequest, answer: OffsetCommitResponse) -> None:
        done = {(row.name, p.partition_index) for row in answer.topics for p in row.partitions if p.error_code == 0}
        found = self.log_of(machine, asked.group_id) if done else None
        if found is None:
            return
        replayed, committed, _ = found
        for topic in asked.topics:
            for row in topic.partitions:
                if (topic.name, row.partition_index) not in done:
                    continue
                key = (asked.group_id, topic.name, row.partition_index)
                there = [at for at, (said, _) in replayed.positions.get(key, ()) if said == row.committed_offset]
                there = [at for at in there if at < committed]
                assert there, (
                    f"{machine.name} acknowledges offset {row.committed_offset} of {key}, and it is not committed"
                )
                replayed.told[key] = there[-1]

    def returns_offsets(self, machine: Machine, answer: OffsetFetchResponse) -> None:
        for group in answer.groups:
            found = self.log_of(machine, group.group_id) if not group.error_code else None
            if found is None:
                continue
            replayed, committed, start = found
            for topic in group.topics:
                for row in topic.partitions:
                    key = (group.group_id, topic.name, row.partition_index)
                    said = self.may_be_returned(machine, replayed, key, committed, start)
                    assert row.committed_offset in said, (
                        f"{machine.name} says that {row.committed_offset} is the offset of {key}, and it is {said}"
                    )

    def may_be_returned(self, machine: Machine, replayed: Replayed, key: Key, committed: int, start: int) -> list[int]:
        rows = [row for row in replayed.positions.get(key, ()) if row[0] < committed]
        before = [at for at, _ in rows if at < start]
        first = max([*before[-1:], replayed.told.get(key, -1)], default=-1)
        assert machine.node is not None
        there = machine.node.image.topic_ids.get(key[1])
        said = [position if topic in (there, ZERO_UUID) else -1 for at, (position, topic) in rows if at >= first]
        return said if first >= 0 else [-1, *said]

    def assigns(self, machine: Machine, asked: SyncGroupRequest, answer: SyncGroupResponse) -> None:
        found = self.log_of(machine, asked.group_id)
        if found is None:
            return
        replayed, committed, _ = found
        written = (
            member.assignment
            for at, value in replayed.groups.get(asked.group_id, ())
            if at < committed and value.generation == asked.generation_id
            for member in value.members
            if member.member_id == asked.member_id
        )
        assert any(bytes(one) == bytes(answer.assignment) for one in written), (
            f"{machine.name} assigns {answer.assignment!r} to {asked.member_id} in generation {asked.generation_id} of"
            f" {asked.group_id}, and that is not written"
        )

    def log_of(self, machine: Machine, group: str) -> tuple[Replayed, int, int] | None:
        """What the group's coordinator has in its log, up to where that counts, and where its leader epoch begins.
        None where nothing can be asked of it."""
        node = machine.node
        topic = None if node is None else node.image.topic_named(OFFSETS_TOPIC)
        if node is None or node.broker is None or topic is None or machine.is_rotten:
            return None
        at = TopicIdPartition(topic.topic_id, partition_for(group, len(topic.partitions)))
        hosted = node.broker.replicas.host.partitions.find(at)
        world = self.world
        if at in world.damage.exceeded or world.damage.is_lossy(at, machine.node_id) or hosted is None:
            return None
        leader = hosted.role
        assert type(leader) is Leader, f"{machine.name} answers for {group}, and leads its partition no longer"
        which = (machine.name, machine.life, at)
        replayed = self.replayed.get(which)
        if replayed is None or replayed.epoch != leader.epoch:
            replayed = self.replayed[which] = Replayed(leader.epoch, self.removed)
        with machine.disk.observed():
            replayed.read(hosted)
        return replayed, max(leader.high_watermark, leader.epoch_start_offset), leader.epoch_start_offset
