"""A coordinator on a log whose writes are committed, or fail, when a test says so."""

import random
import struct
from typing import Any

from strandline.base.effects import Caller, Effect, Received, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, LeaderEpoch, TopicPartition, Uuid
from strandline.base.time import Instant
from strandline.base.timers import Timers
from strandline.coordination.internal_log import Done, Part, Reached, Replayed
from strandline.group.classic.group import Group
from strandline.group.config import GroupConfig
from strandline.group.coordinator import Groups
from strandline.group.shards.shard import Shard
from strandline.metadata.features import GROUP_FEATURE
from strandline.metadata.image import Image
from strandline.metadata.records import (
    GROUP_RESOURCE,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.wire.batch import read_header
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.control import EndTxnMarker, build_end_txn, decode_control
from strandline.wire.messages.groups.group_records import GroupKey, decode_key
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from strandline.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from strandline.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from strandline.wire.record import Row, records, rows

START = 1_000_000
LATEST = {
    "JoinGroupRequest": 9,
    "SyncGroupRequest": 5,
    "HeartbeatRequest": 4,
    "LeaveGroupRequest": 5,
    "OffsetCommitRequest": 9,  # those after it go by topic ids
    "OffsetFetchRequest": 9,
    "TxnOffsetCommitRequest": 5,
}


class HeldLog:
    """One partition of `__consumer_offsets`. Appends wait in `under_way` until the test ends them, in order."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.under_way: list[tuple[bytes, Done]] = []
        self.asked: list[tuple[str, bool]] = []  # by appends in transactions: its id; is the partition added?
        self.epoch: LeaderEpoch | None = LeaderEpoch(0)
        self.is_damaged = False
        self.refuses: ErrorCode | None = None  # appends, before anything is in the log
        self.has_uncommitted = False  # of what a new leader found

    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        done: Done,
        *,
        transaction: str = "",
        adds: bool = False,
    ) -> list[Effect]:
        header = read_header(batch)
        assert header.is_transactional == bool(transaction)
        if self.refuses is not None:
            return done(self.refuses, -1, now)
        if transaction:
            self.asked.append((transaction, adds))
        self.under_way.append((bytes(batch), done))
        return []

    def written(self, batch: bytes) -> int:
        """Where it lies."""
        base = self.end
        self.batches.append(struct.pack(">q", base) + batch[8:])
        self.end = read_header(self.batches[-1]).next_offset
        return base

    def is_committed(self, topic: str, partition: int) -> bool:
        return not self.has_uncommitted

    def reader(self, topic: str, partition: int) -> "HeldReader":
        return HeldReader(self)

    def live_keys(self) -> list[GroupKey]:
        """What compaction leaves: keys whose last record is no tombstone."""
        last = {}
        for batch in self.batches:
            for part in replayed(batch):
                last |= {bytes(key or b""): value for _, key, value in part.rows}
        return [key for raw, value in last.items() if value is not None and (key := decode_key(raw)) is not None]

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return self.epoch


class HeldReader:
    """Reads batch by batch, as far as the log went when the reader was made."""

    def __init__(self, log: HeldLog) -> None:
        self.log = log
        self.end = log.end
        self.left = list(log.batches)

    def read(self, bytes_max: int, now: Instant) -> Part:
        if self.log.is_damaged:
            return Part((), 0, Reached.DAMAGE)
        found: list[Replayed] = []
        size = 0
        while self.left and size < bytes_max:
            batch = self.left.pop(0)
            size += len(batch)
            found += replayed(batch)
        return Part(found, size, Reached.MORE if self.left else Reached.END)


def replayed(batch: bytes) -> list[Replayed]:
    header = read_header(batch)
    producer_id = header.producer_id if header.is_transactional else -1
    if not header.is_control:
        found: list[Row] = []
        rows(header, batch, found)
        return [Replayed(found, None, producer_id)]
    markers = [decode_control(record) for record in records(header, batch)]
    return [Replayed((), marker, producer_id) for marker in markers if isinstance(marker, EndTxnMarker)]


class Coordination:
    """Requests go in as a client would send them, and every answer is encoded in the version it was asked in."""

    def __init__(self, *, delay_ms: int = 0, **config: Any) -> None:
        self.log = HeldLog()
        self.config = GroupConfig(initial_rebalance_delay_ms=delay_ms, **config)
        self.groups = Groups(self.config, self.log, random.Random(1))
        self.now = START
        self.answers: dict[int, Any] = {}
        self.asked: dict[int, Any] = {}
        self.image = Image()
        self.made = 0
        self.image.apply(FeatureLevelRecord(name=GROUP_FEATURE, feature_level=1))
        self.create(OFFSETS_TOPIC, 1)
        for name in ("t", "u"):
            self.create(name)

    # --- metadata

    def create(self, name: str, partitions: int = 2) -> None:
        self.made += 1
        topic_id = Uuid(self.made.to_bytes(16, "big"))
        rows = [
            PartitionRecord(partition_id=p, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1)
            for p in range(partitions)
        ]
        self.image.apply_all([TopicRecord(name=name, topic_id=topic_id), *rows])
        self.apply()

    def grow(self, name: str, partitions: int) -> None:
        self.add_partitions(name, partitions)
        self.apply()

    def add_partitions(self, name: str, partitions: int) -> None:
        """In the image alone."""
        topic = self.image.topics[self.image.topic_ids[name]]
        for p in range(len(topic.partitions), partitions):
            row = PartitionRecord(partition_id=p, topic_id=topic.topic_id, replicas=(1,), isr=(1,), leader=1)
            self.image.apply(row)

    def register(self, node: int, rack: str) -> None:
        self.image.apply(RegisterBrokerRecord(broker_id=node, rack=rack, broker_epoch=1))
        self.apply()

    def configure_group(self, name: str, value: str) -> None:
        self.image.apply(ConfigRecord(resource_type=GROUP_RESOURCE, resource_name="g", name=name, value=value))
        self.apply()

    def delete(self, name: str) -> None:
        self.image.apply(RemoveTopicRecord(topic_id=self.image.topic_ids[name]))
        self.apply()

    def apply(self) -> None:
        self.take(self.groups.apply(self.image, self.image.take_delta(), Instant(self.now)))

    # --- the world

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Reply)
            number = effect.to.sequence
            assert number in self.asked, "an answer to nobody"
            assert number not in self.answers, "answered twice"
            message = effect.message
            again = decode_all(type(message), effect.to.api_version, encode_bytes(message, effect.to.api_version))
            self.answers[number] = again
        self.groups.check()

    def send(self, message: Any, version: int | None = None) -> int:
        number = len(self.asked)
        self.asked[number] = message
        chosen = LATEST.get(type(message).__name__, type(message).versions[-1]) if version is None else version
        to = ReplyTo(1, number, number, type(message).key, chosen)
        received = Received(to, Caller("app", "10.0.0.1", "PLAINTEXT"), message)
        self.take(self.groups.answer(received, Instant(self.now)))
        return number

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Send, let writes be committed, and give back the answer, which must be there."""
        number = self.send(message, version)
        self.commit()
        return self.answers[number]

    def commit(self) -> int:
        count = 0
        while self.log.under_way:
            batch, done = self.log.under_way.pop(0)
            self.take(done(ErrorCode.NONE, self.log.written(batch), Instant(self.now)))
            count += 1
        return count

    def end_transaction(self, producer_id: int = 7, *, commits: bool = True) -> None:
        """Let writes be committed, and then the marker."""
        self.commit()
        marker = build_end_txn(EndTxnMarker(commits, 0), timestamp=self.now, producer_id=producer_id, producer_epoch=0)
        self.marker_committed(self.log.written(marker), producer_id, commits=commits)

    def marker_committed(self, offset: int, producer_id: int = 7, *, commits: bool = True) -> None:
        at, now = TopicPartition(OFFSETS_TOPIC, 0), Instant(self.now)
        self.take(self.groups.transaction_ended(at, producer_id, commits, offset, now))

    def fail(self, error: ErrorCode, *, is_written: bool = False) -> None:
        """`is_written`: the records are in the log, and nobody knows whether they will be committed."""
        batch, done = self.log.under_way.pop(0)
        base = self.log.written(batch) if is_written else -1
        self.take(done(error, base, Instant(self.now)))

    def move_away(self) -> None:
        """Another broker leads the partition from now on: the replicas end what waits for it."""
        self.log.epoch = None
        while self.log.under_way:
            self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.take(self.groups.follow_leadership(Instant(self.now)))

    def take_over(self, epoch: int) -> None:
        """This broker leads it again, with what the log has."""
        self.log.epoch = LeaderEpoch(epoch)
        self.take(self.groups.follow_leadership(Instant(self.now)))

    def wait(self, span_ms: int) -> None:
        """Let time pass, stopping at each deadline as a driver does."""
        end = self.now + span_ms
        while self.groups.deadline() <= end:
            self.now = max(self.now, self.groups.deadline())
            self.take(self.groups.expire(Instant(self.now)))
            assert self.groups.deadline() > self.now, "the deadline does not move: a driver would spin"
        self.now = end

    def unanswered(self) -> list[Any]:
        return [self.asked[n] for n in self.asked if n not in self.answers]

    @property
    def shard(self) -> Shard:
        return self.groups.shards.loaded[0]

    @property
    def group(self) -> Group:
        group = self.shard.classic("g")
        assert group is not None
        return group

    def reload(self) -> Shard:
        """What a new leader of the partition would hold."""
        shard = Shard(0, LeaderEpoch(1), self.config, Timers())
        for batch in self.log.batches:
            shard.replay(replayed(batch))
        shard.complete(1 << 40, Instant(self.now))
        shard.begin_rebalances(Instant(self.now))
        shard.begin_sessions(1 << 40, Instant(self.now), lambda group_id: self.config.consumer_session_timeout_ms)
        return shard

    def fail_over(self) -> Shard:
        """The leader of the partition changes, and this broker leads it anew."""
        assert self.log.epoch is not None
        self.log.epoch = LeaderEpoch(self.log.epoch + 1)
        self.take(self.groups.follow_leadership(Instant(self.now)))
        return self.shard

    # --- requests

    def join(self, member_id: str = "", *, version: int | None = None, **changes: Any) -> int:
        return self.send(join_request(member_id, **changes), version)

    def enter(self, **changes: Any) -> tuple[str, int]:
        """Both steps of joining: the id, and the number of the JoinGroup that is under way with it."""
        member_id = self.answers[self.join(**changes)].member_id
        return member_id, self.join(member_id, **changes)

    def sync(self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **changes: Any) -> int:
        parts = tuple(SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in (assignments or {}).items())
        return self.send(
            SyncGroupRequest(group_id="g", member_id=member_id, generation_id=generation, assignments=parts, **changes),
            5 if changes else 3,
        )

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="g", member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        return ErrorCode(self.answers[self.send(request)].error_code)

    def leave(self, *members: MemberIdentity) -> LeaveGroupResponse:
        answer = self.answers[self.send(LeaveGroupRequest(group_id="g", members=members))]
        assert isinstance(answer, LeaveGroupResponse)
        return answer

    def joined(self, number: int) -> JoinGroupResponse:
        answer = self.answers[number]
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        return answer

    def stable(self, **changes: Any) -> str:
        """A group of one member, stable in generation 1."""
        member_id, number = self.enter(**changes)
        if self.config.initial_rebalance_delay_ms:
            self.wait(self.config.initial_rebalance_delay_ms)
        assert self.joined(number).generation_id == 1
        self.sync(member_id, 1, {member_id: b"all"})
        self.commit()
        return member_id

    def static(self, instance_id: str = "i1", **changes: Any) -> str:
        """A group of one static member, stable in generation 1."""
        number = self.join(group_instance_id=instance_id, **changes)
        member_id = self.joined(number).member_id
        self.sync(member_id, 1, {member_id: b"all"})
        self.commit()
        return member_id


def join_request(
    member_id: str = "",
    *,
    group_id: str = "g",
    group_instance_id: str | None = None,
    session: int = 10_000,
    rebalance: int = 60_000,
    protocol_type: str = "consumer",
    protocols: dict[str, bytes] | None = None,
    reason: str | None = None,
) -> JoinGroupRequest:
    offered = {"range": b"topics"} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session,
        rebalance_timeout_ms=rebalance,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type=protocol_type,
        protocols=tuple(JoinGroupRequestProtocol(name=n, metadata=m) for n, m in offered.items()),
        reason=reason,
    )


def commit_request(
    offset: int, member_id: str = "", generation: int = -1, metadata: str = "", topic: str = "t", partition: int = 0
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(part,)),),
    )


def pending_request(
    offset: int,
    member_id: str = "",
    generation: int = -1,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    instance_id: str | None = None,
    metadata: str = "",
    topic: str = "t",
    partition: int = 0,
    transactional_id: str = "tx",
) -> TxnOffsetCommitRequest:
    part = TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id="g",
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(part,)),),
    )
