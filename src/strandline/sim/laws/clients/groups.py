"""What a group's coordinator says is what its log says, below what is committed there.

- a commit that is acknowledged is in the log, committed
- the offset that a group reads is the newest of those that were committed before its coordinator's leader epoch, or
  acknowledged since; or a newer one, whose commit had no answer
- no offset of a group with members is removed
- what a member is assigned is written, in the generation that it asked about
- an offset that is committed in a transaction is in the log, in that transaction, when it is acknowledged. It counts
  from the marker on. Until then who asks for stable offsets gets none
- no member of an earlier generation commits in a transaction (KIP-447), nor who is no member of the present one

The log is read here from its records alone, and not by what the coordinator remembers.
"""

from types import NoneType
from typing import Any

from strandline.base.effects import Received, Reply
from strandline.base.ids import OFFSETS_TOPIC, ZERO_UUID, TopicIdPartition
from strandline.coordination.partitioning import partition_for
from strandline.replica.hosting.leader import Leader
from strandline.sim.laws.clients.replayed import Key, Replayed
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

ASKING = (OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, TxnOffsetCommitRequest)
Asked = tuple[str, int, int, int]  # machine, its life, connection and sequence


class Groups:
    HEARS = tuple((Received, request) for request in ASKING)
    ANSWERS = (OffsetCommitResponse, OffsetFetchResponse, SyncGroupResponse, TxnOffsetCommitResponse, NoneType)

    def __init__(self, world: Subject) -> None:
        self.world = world
        self.asked: dict[Asked, Any] = {}
        self.outdated: dict[Asked, str] = {}  # commits in transactions that must be refused, and why
        self.replayed: dict[tuple[str, int, TopicIdPartition], Replayed] = {}
        self.removed: set[Key] = set()  # offsets that expired, as a log said at any time, or whose topic was deleted

    def forget(self, machine: Machine) -> None:
        """The process is gone, and answers nobody."""
        for asked in [asked for asked in self.asked if asked[0] == machine.name]:
            del self.asked[asked]
            self.outdated.pop(asked, None)

    def received(self, machine: Machine, event: Any) -> None:
        which = machine.name, machine.life, event.to.connection, event.to.sequence
        self.asked[which] = event.message
        if type(event.message) is TxnOffsetCommitRequest:
            why = self.why_outdated(machine, event.message)
            if why is not None:
                self.outdated[which] = why

    def replies(self, machine: Machine, reply: Reply) -> None:
        if not self.asked:
            return
        which = machine.name, machine.life, reply.to.connection, reply.to.sequence
        asked, outdated = self.asked.pop(which, None), self.outdated.pop(which, None)
        match asked, reply.message:
            case OffsetCommitRequest(), OffsetCommitResponse() as answer:
                self.commits(machine, asked, answer)
            case OffsetFetchRequest(), OffsetFetchResponse() as answer:
                self.returns_offsets(machine, asked, answer)
            case TxnOffsetCommitRequest(), TxnOffsetCommitResponse() as answer:
                self.commits_in_transaction(machine, asked, answer, outdated)
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
                replayed.acknowledged[key] = there[-1]

    def why_outdated(self, machine: Machine, asked: TxnOffsetCommitRequest) -> str | None:
        """By what is committed when it comes: its record may be written in the next generation."""
        found = self.log_of(machine, asked.group_id, answers=False) if asked.generation_id >= 0 else None
        last = None if found is None else found[0].last_of(asked.group_id, found[1])
        if last is None:
            return None
        if asked.generation_id < last.generation:
            return f"the group is in generation {last.generation}"
        is_member = any(member.member_id == asked.member_id for member in last.members)
        return None if is_member or asked.generation_id != last.generation else "this generation has no such member"

    def commits_in_transaction(
        self, machine: Machine, asked: TxnOffsetCommitRequest, answer: TxnOffsetCommitResponse, outdated: str | None
    ) -> None:
        done = {(row.name, p.partition_index) for row in answer.topics for p in row.partitions if p.error_code == 0}
        found = self.log_of(machine, asked.group_id) if done else None
        if found is None:
            return
        assert outdated is None, f"{machine.name} accepts {asked}, though {outdated}"
        replayed, committed, _ = found
        producer = asked.producer_id, asked.producer_epoch
        for topic in asked.topics:
            for row in topic.partitions:
                if (topic.name, row.partition_index) in done:
                    key = (asked.group_id, topic.name, row.partition_index)
                    there = replayed.written.get((key, producer), ())
                    assert any(at < committed and said == row.committed_offset for at, said in there), (
                        f"{machine.name} acknowledges offset {row.committed_offset} of {key} in the transaction of"
                        f" {producer}, and it is not committed there"
                    )

    def returns_offsets(self, machine: Machine, asked: OffsetFetchRequest, answer: OffsetFetchResponse) -> None:
        for group in answer.groups:
            found = self.log_of(machine, group.group_id) if not group.error_code else None
            if found is None:
                continue
            replayed, committed, start = found
            for topic in group.topics:
                for row in topic.partitions:
                    key = (group.group_id, topic.name, row.partition_index)
                    if row.error_code:
                        continue
                    assert not asked.require_stable or not replayed.is_unstable(key, committed), (
                        f"{machine.name} says that {row.committed_offset} is the stable offset of {key}, and a"
                        f" transaction that has committed another is open"
                    )
                    said = self.may_be_returned(machine, replayed, key, committed, start)
                    assert row.committed_offset in said, (
                        f"{machine.name} says that {row.committed_offset} is the offset of {key}, and it is {said}"
                    )

    def may_be_returned(self, machine: Machine, replayed: Replayed, key: Key, committed: int, start: int) -> list[int]:
        rows = [row for row in replayed.positions.get(key, ()) if row[0] < committed]
        before = [at for at, _ in rows if at < start]
        first = max([*before[-1:], replayed.acknowledged.get(key, -1)], default=-1)
        assert machine.node is not None
        there = machine.node.image.topic_ids.get(key[1])
        said = [position if topic in (there, ZERO_UUID) else -1 for at, (position, topic) in rows if at >= first]
        return said if first >= 0 else [-1, *said]

    def assigns(self, machine: Machine, asked: SyncGroupRequest, answer: SyncGroupResponse) -> None:
        found = self.log_of(machine, asked.group_id)
        if found is None:
            return
        assert machine.node is not None
        replayed, committed, _ = found
        group = replayed.consumers.get(asked.group_id)
        if group is not None and group.members():
            return  # it is a consumer group (`classics.py`)
        written = (
            member.assignment
            for at, value in replayed.groups.get(asked.group_id, ())
            if at < committed and value.generation == asked.generation_id
            for member in value.members
            if member.member_id == asked.member_id
        )
        assignment = bytes(answer.assignment)
        if any(bytes(one) == assignment for one in written):
            return
        # The answer is from before the group went on as a classic one.
        assert group is not None and group.has_assigned(
            asked.member_id, asked.generation_id, assignment, committed, machine.node.image
        ), (
            f"{machine.name} assigns {answer.assignment!r} to {asked.member_id} in generation {asked.generation_id} of"
            f" {asked.group_id}, and that is not written"
        )

    def log_of(self, machine: Machine, group: str, *, answers: bool = True) -> tuple[Replayed, int, int] | None:
        """What the group's coordinator has in its log, up to where that counts, and where its leader epoch begins.
        None where nothing can be asked of it. `answers`: so it must be the coordinator."""
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
        if not answers and type(leader) is not Leader:
            return None
        assert type(leader) is Leader, f"{machine.name} answers for {group}, and leads its partition no longer"
        which = (machine.name, machine.life, at)
        replayed = self.replayed.get(which)
        if replayed is None or replayed.epoch != leader.epoch:
            replayed = self.replayed[which] = Replayed(leader.epoch, self.removed)
        with machine.disk.observed():
            replayed.read(hosted)
        return replayed, max(leader.high_watermark, leader.epoch_start_offset), leader.epoch_start_offset
