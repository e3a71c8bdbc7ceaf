"""The group coordinator of one broker: all groups whose `__consumer_offsets` partition this broker leads.

It finds the shard of a request, lets the group decide, and writes what must survive: committed offsets and finished
assignments. An answer that depends on a write is sent when the write is committed (acks=all), never before.

A partition with damage that another replica may repair is not loaded before: what is missing in it would be answered as
if nobody had ever committed it.

Invariant: there is a shard for exactly the partitions of `__consumer_offsets` that this broker leads and has loaded.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, LeaderEpoch, Uuid
from strandline.base.ports import Rng
from strandline.base.time import NEVER, Instant, after
from strandline.group import answers
from strandline.group.answers import coordinator_error, membership_error
from strandline.group.classic import Group, GroupConfig, State
from strandline.group.join import Joining
from strandline.group.offsets import CommittedOffset, batch_of, expired, offset_record
from strandline.group.partitioning import partition_for
from strandline.group.shard import Shard, group_record
from strandline.group.topics import Topics
from strandline.metadata.image import Delta, Image
from strandline.wire.messages.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from strandline.wire.messages.groups.group_records import GroupKey, GroupMetadataKey, GroupValue, OffsetCommitKey
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from strandline.wire.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.wire.record import Record

LOAD_AGAIN_MS = 1_000
TOMBSTONES_MAX = 10_000  # in one batch
LEAVE_TOGETHER = 3  # the LeaveGroup version from which several members leave with one request (KIP-345)
MISSING_GROUP_NAMED = 9  # the OffsetCommit version from which a missing group has an error of its own
Done = Callable[[ErrorCode, int, Instant], list[Effect]]  # the last: when the write ended
Records = list[tuple[GroupKey, GroupValue | None]]  # None: a tombstone


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`, as the replicas of this broker offer them."""

    def append_internal(
        self, topic: str, partition: int, batch: bytearray, now: Instant, done: Done
    ) -> list[Effect]: ...

    def is_whole(self, topic: str, partition: int, now: Instant) -> bool:
        """Can all be read of a partition that this broker leads? If not, that is seen to: ask again later."""
        ...

    def records_internal(self, topic: str, partition: int) -> Iterable[Record]:
        """Every record of a partition that this broker leads, from the log's start to its end."""
        ...

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None: ...


class Groups:
    def __init__(self, config: GroupConfig, log: OffsetsLog, rng: Rng) -> None:
        self.config = config
        self.log = log
        self.joining = Joining(config, rng)
        self.topics = Topics()
        self.partitions = 0  # of __consumer_offsets; 0 until it exists
        self.shards: dict[int, Shard] = {}
        self.damaged: set[int] = set()  # partitions that this broker leads and cannot load yet
        self.next_load: Instant = NEVER
        self.next_retention_check: Instant = NEVER
        self.routes: dict[type, Callable[[Received, Instant], list[Effect]]] = {
            JoinGroupRequest: self.join,
            SyncGroupRequest: self.sync,
            HeartbeatRequest: self.heartbeat,
            LeaveGroupRequest: self.leave,
            OffsetCommitRequest: self.commit_offsets,
            OffsetFetchRequest: self.fetch_offsets,
            DescribeGroupsRequest: self.describe,
            ListGroupsRequest: self.list_groups,
            DeleteGroupsRequest: self.delete,
        }

    def answer(self, received: Received, now: Instant) -> list[Effect]:
        return self.routes[type(received.message)](received, now)

    # --- which groups are ours

    def apply(self, image: Image, delta: Delta, now: Instant) -> list[Effect]:
        """Leadership of `__consumer_offsets` may have moved. Call after the replicas have applied the same delta."""
        self.topics.image = image
        topic = image.topic_named(OFFSETS_TOPIC)
        self.partitions = 0 if topic is None else len(topic.partitions)
        touched = delta.reloaded or any(at.topic_id in delta.topics for at in delta.partitions)
        if topic is not None and not touched:
            touched = any(at.topic_id == topic.topic_id for at in delta.partitions)
        effects = self.follow_leadership(now) if touched or (topic is None and self.shards) else []
        if delta.reloaded or any(was is not None for was in delta.topics.values()):
            for shard in self.shards.values():
                effects += self.forget_outdated(shard, now)
        return effects

    def follow_leadership(self, now: Instant) -> list[Effect]:
        led = {p: epoch for p in range(self.partitions) if (epoch := self.log.leads(OFFSETS_TOPIC, p)) is not None}
        effects: list[Effect] = []
        for partition, shard in list(self.shards.items()):
            if led.get(partition) != shard.leader_epoch:
                del self.shards[partition]
                for group in shard.groups.values():
                    effects += group.dissolve(ErrorCode.NOT_COORDINATOR)
        missing = [partition for partition in led if partition not in self.shards]
        self.damaged = {partition for partition in missing if not self.log.is_whole(OFFSETS_TOPIC, partition, now)}
        self.next_load = after(now, LOAD_AGAIN_MS) if self.damaged else NEVER
        for partition, epoch in led.items():
            if partition not in self.shards and partition not in self.damaged:
                shard = self.shards[partition] = Shard(partition, epoch, self.config)
                shard.load(self.log.records_internal(OFFSETS_TOPIC, partition), now)
                effects += self.forget_outdated(shard, now)  # nobody did when the topic was deleted, perhaps
        if self.shards and self.next_retention_check == NEVER:
            self.next_retention_check = after(now, self.config.offsets_retention_check_ms)
        return effects

    def shard_of(self, group_id: str) -> Shard | ErrorCode:
        if self.partitions == 0:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = partition_for(group_id, self.partitions)
        if partition in self.damaged:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self.shards.get(partition, ErrorCode.NOT_COORDINATOR)

    def existing(self, group_id: str) -> tuple[Shard, Group] | ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else (shard, group)

    # --- membership

    def join(self, received: Received, now: Instant) -> list[Effect]:
        request: JoinGroupRequest = received.message
        shard: Shard | ErrorCode = self.shard_of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        if isinstance(shard, ErrorCode):
            refusal = JoinGroupResponse(error_code=shard, member_id=request.member_id)
            return [Reply(received.to, refusal)]
        unknown = request.group_id not in shard.groups
        if unknown and request.member_id:
            refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
            return [Reply(received.to, refusal)]
        group = shard.group(request.group_id, now)

        def persist(changed: Group, then: Callable[[ErrorCode], list[Effect]]) -> list[Effect]:
            record = group_record(changed)
            return self.write(shard, [record], now, lambda error, base, at: then(membership_error(error)))

        effects = self.joining.join(group, received, request, persist, now)
        return effects + self.persist_if_emptied(shard, group, now)

    def sync(self, received: Received, now: Instant) -> list[Effect]:
        request: SyncGroupRequest = received.message
        found = self.existing(request.group_id)
        if isinstance(found, ErrorCode):
            return [Reply(received.to, SyncGroupResponse(error_code=found))]
        shard, group = found
        why = group.why_not(request.member_id, request.group_instance_id, request.generation_id)
        other_type = request.protocol_type not in (None, group.protocol_type)
        if why is None and (other_type or request.protocol_name not in (None, group.protocol)):
            why = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if why is None and group.state is State.PREPARING_REBALANCE:
            why = ErrorCode.REBALANCE_IN_PROGRESS
        if why is not None:
            return [Reply(received.to, SyncGroupResponse(error_code=why))]
        member = group.members[request.member_id]
        member.heard(now)
        if group.state is State.STABLE:
            return [Reply(received.to, group.sync_answer(member))]
        effects = group.release_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.syncing = received.to
        if member.member_id != group.leader:
            return effects
        group.assign({a.member_id: bytes(a.assignment) for a in request.assignments})
        generation = group.generation

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            del base_offset
            if group.state is not State.COMPLETING_REBALANCE or group.generation != generation:
                return []  # the group moved on while the write was under way
            return (
                group.become_stable(now) if error is ErrorCode.NONE else group.fail_sync(membership_error(error), now)
            )

        return effects + self.write(shard, [group_record(group)], now, done)

    def heartbeat(self, received: Received, now: Instant) -> list[Effect]:
        request: HeartbeatRequest = received.message
        found = self.existing(request.group_id)
        if isinstance(found, ErrorCode):
            return [Reply(received.to, HeartbeatResponse(error_code=found))]
        group = found[1]
        why = group.why_not(request.member_id, request.group_instance_id, request.generation_id)
        if why is None:
            group.members[request.member_id].heard(now)
            if group.state is State.PREPARING_REBALANCE:
                why = ErrorCode.REBALANCE_IN_PROGRESS
        return [Reply(received.to, HeartbeatResponse(error_code=why or ErrorCode.NONE))]

    def leave(self, received: Received, now: Instant) -> list[Effect]:
        request: LeaveGroupRequest = received.message
        found = self.existing(request.group_id)
        one = received.to.api_version < LEAVE_TOGETHER
        leaving = (MemberIdentity(member_id=request.member_id),) if one else request.members
        if found is ErrorCode.UNKNOWN_MEMBER_ID and not one:  # no such group, so each of them is unknown
            unknown = tuple(left(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in leaving)
            return [Reply(received.to, LeaveGroupResponse(members=unknown))]
        if isinstance(found, ErrorCode):
            return [Reply(received.to, LeaveGroupResponse(error_code=found))]
        shard, group = found
        effects: list[Effect] = []
        results = []
        for identity in leaving:
            error, consequences = self.leave_one(group, identity, now)
            effects += consequences
            results.append(left(identity, error))
        effects += self.persist_if_emptied(shard, group, now)
        top = results[0].error_code if one else ErrorCode.NONE
        return [Reply(received.to, LeaveGroupResponse(error_code=top, members=tuple(results))), *effects]

    def leave_one(self, group: Group, identity: MemberIdentity, now: Instant) -> tuple[ErrorCode, list[Effect]]:
        member_id = identity.member_id
        if identity.group_instance_id is not None:
            current = group.static.get(identity.group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID, []
            if member_id and member_id != current:
                return ErrorCode.FENCED_INSTANCE_ID, []
            member_id = current
        if group.pending.pop(member_id, None) is not None:
            return ErrorCode.NONE, group.end_join_if_complete(now)
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, []
        return ErrorCode.NONE, group.remove(member, now)

    # --- offsets

    def commit_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request: OffsetCommitRequest = received.message
        shard: Shard | ErrorCode = self.shard_of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        version, known = received.to.api_version, self.topics.known(request)
        why = shard if isinstance(shard, ErrorCode) else self.why_not_commit(shard, request, version, now)
        if why is not None or isinstance(shard, ErrorCode):
            return [Reply(received.to, answers.committed(request, why or ErrorCode.NONE, self.config, known))]
        accepted = self.acceptable(request, known, now)
        if not accepted:
            return [Reply(received.to, answers.committed(request, ErrorCode.NONE, self.config, known))]
        keys = [(request.group_id, topic, index) for topic, index, _ in accepted]
        shard.committing.update(keys)

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            del base_offset, now
            shard.committing -= Counter(keys)
            if error is ErrorCode.NONE:
                offsets = shard.offsets.setdefault(request.group_id, {})
                offsets.update({(topic, index): committed for topic, index, committed in accepted})
            answer = answers.committed(request, coordinator_error(error), self.config, known)
            return [Reply(received.to, answer)]

        return self.write(shard, [offset_record(request.group_id, *entry) for entry in accepted], now, done)

    def acceptable(
        self, request: OffsetCommitRequest, known: dict[tuple[str, int], Uuid], now: Instant
    ) -> list[tuple[str, int, CommittedOffset]]:
        """What of a commit is written: of partitions that there are, with texts that are not too long. As in
        Kafka, offset and epoch may be any: a Fetch from there says whether there is such a place."""
        return [
            (
                topic.name,
                p.partition_index,
                CommittedOffset(
                    p.committed_offset,
                    p.committed_leader_epoch,
                    p.committed_metadata or "",
                    now,
                    known[topic.name, p.partition_index],
                ),
            )
            for topic in request.topics
            for p in topic.partitions
            if (topic.name, p.partition_index) in known
            and len(p.committed_metadata or "") <= self.config.offset_metadata_max_bytes
        ]

    def why_not_commit(
        self, shard: Shard, request: OffsetCommitRequest, version: int, now: Instant
    ) -> ErrorCode | None:
        group = shard.groups.get(request.group_id)
        alone = request.generation_id_or_member_epoch < 0
        if alone and (group is None or not group.members):
            return None  # a consumer that assigns partitions itself commits without being a member
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND if version >= MISSING_GROUP_NAMED else ErrorCode.ILLEGAL_GENERATION
        why = group.why_not(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
        if why is None:
            group.members[request.member_id].heard(now)
            if group.state is State.COMPLETING_REBALANCE:
                why = ErrorCode.REBALANCE_IN_PROGRESS
        return why

    def fetch_offsets(self, received: Received, now: Instant) -> list[Effect]:
        del now
        request: OffsetFetchRequest = received.message

        def offsets_of(group_id: str) -> Any:
            shard = self.shard_of(group_id)
            return shard if isinstance(shard, ErrorCode) else self.topics.current(shard.offsets.get(group_id, {}))

        return [Reply(received.to, answers.fetched(request, received.to.api_version, offsets_of))]

    # --- administration

    def describe(self, received: Received, now: Instant) -> list[Effect]:
        del now
        request: DescribeGroupsRequest = received.message
        described = []
        for group_id in request.groups:
            shard = self.shard_of(group_id)
            group = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
            error = shard if isinstance(shard, ErrorCode) else ErrorCode.NONE
            if group is None and not isinstance(shard, ErrorCode) and group_id in shard.offsets:
                group = Group(group_id, self.config, Instant(0))  # it only ever committed offsets
            row = answers.described(
                group_id, group, error, received.to.api_version, request.include_authorized_operations
            )
            described.append(row)
        return [Reply(received.to, DescribeGroupsResponse(groups=tuple(described)))]

    def list_groups(self, received: Received, now: Instant) -> list[Effect]:
        del now
        request: ListGroupsRequest = received.message
        groups = [g for shard in self.shards.values() for g in shard.groups.values()]
        loners = [
            group_id for shard in self.shards.values() for group_id in shard.offsets if group_id not in shard.groups
        ]
        listed = answers.listed(groups, loners, request)
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.damaged else ErrorCode.NONE
        return [Reply(received.to, ListGroupsResponse(error_code=error, groups=listed))]

    def delete(self, received: Received, now: Instant) -> list[Effect]:
        """Answered when the last of the deletions is written: a deletion that was reported never comes back."""
        request: DeleteGroupsRequest = received.message
        names = list(dict.fromkeys(request.groups_names))
        errors: dict[str, ErrorCode] = {}

        def settle(group_id: str, error: ErrorCode) -> list[Effect]:
            errors[group_id] = error
            if len(errors) < len(names):
                return []
            results = tuple(DeletableGroupResult(group_id=name, error_code=errors[name]) for name in names)
            return [Reply(received.to, DeleteGroupsResponse(results=results))]

        if not names:
            return [Reply(received.to, DeleteGroupsResponse(results=()))]
        effects: list[Effect] = []
        for group_id in names:
            why = self.why_not_delete(group_id)
            effects += settle(group_id, why) if why is not None else self.delete_one(group_id, settle, now)
        return effects

    def delete_one(self, group_id: str, settle: Callable[[str, ErrorCode], list[Effect]], now: Instant) -> list[Effect]:
        shard = self.shards[partition_for(group_id, self.partitions)]
        offsets = list(shard.offsets.get(group_id, {}))
        tombstones = self.tombstones(shard, group_id, offsets, with_group=True)
        return self.forget(shard, tombstones, now, lambda error: settle(group_id, membership_error(error)))

    def why_not_delete(self, group_id: str) -> ErrorCode | None:
        shard = self.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        if group is None:
            return None if group_id in shard.offsets else ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else None

    # --- writing

    def tombstones(
        self, shard: Shard, group_id: str, offsets: Iterable[tuple[str, int]], *, with_group: bool
    ) -> Records:
        """The group itself is gone from memory at once, so that whoever joins now founds a new one."""
        records: Records = [(OffsetCommitKey(group=group_id, topic=topic, partition=p), None) for topic, p in offsets]
        if with_group and shard.groups.pop(group_id, None) is not None:
            records.append((GroupMetadataKey(group=group_id), None))
        return records

    def forget(
        self, shard: Shard, tombstones: Records, now: Instant, then: Callable[[ErrorCode], list[Effect]]
    ) -> list[Effect]:
        """Offsets go when their tombstones are committed, in the log's order with commits that are under way."""

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            del base_offset
            for key, value in tombstones:
                if error is ErrorCode.NONE and isinstance(key, OffsetCommitKey):
                    shard.apply(key, value, now)
            return then(error)

        return self.write(shard, tombstones, now, done)

    def write(
        self,
        shard: Shard,
        records: Records | list[tuple[GroupKey, GroupValue]],
        now: Instant,
        done: Done,
    ) -> list[Effect]:
        return self.log.append_internal(OFFSETS_TOPIC, shard.partition, batch_of(records, now), now, done)

    def persist_if_emptied(self, shard: Shard, group: Group, now: Instant) -> list[Effect]:
        """The last member is gone: the next coordinator must not wait for it."""
        if group.state is State.EMPTY and group.generation > 0 and group.since == now:
            return self.write(shard, [group_record(group)], now, lambda error, base, at: [])
        return []

    # --- time

    def deadline(self) -> Instant:
        groups = [g.deadline() for shard in self.shards.values() for g in shard.groups.values()]
        return min(self.next_retention_check, self.next_load, *groups)

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.follow_leadership(now) if self.next_load <= now else []
        for shard in self.shards.values():
            for group in list(shard.groups.values()):
                if group.deadline() <= now:
                    effects += group.expire(now)
                    effects += self.persist_if_emptied(shard, group, now)
        if self.next_retention_check <= now:
            self.next_retention_check = after(now, self.config.offsets_retention_check_ms)
            for shard in self.shards.values():
                effects += self.forget_outdated(shard, now)
                effects += self.forget_old(shard, now)
        return effects

    def forget_outdated(self, shard: Shard, now: Instant) -> list[Effect]:
        """Offsets of topics that are deleted. What fails, or is just being committed, is found at the next look."""
        tombstones: Records = []
        for group_id, offsets in shard.offsets.items():
            gone = [at for at in self.topics.outdated(offsets) if not shard.committing[(group_id, *at)]]
            tombstones += self.tombstones(shard, group_id, gone, with_group=False)
        effects: list[Effect] = []
        for begin in range(0, len(tombstones), TOMBSTONES_MAX):
            part = tombstones[begin : begin + TOMBSTONES_MAX]
            effects += self.forget(shard, part, now, lambda error: [])
        return effects

    def forget_old(self, shard: Shard, now: Instant) -> list[Effect]:
        """Empty groups lose the offsets whose time is up, and with the last of them themselves."""
        tombstones: Records = []
        for group_id in list(dict.fromkeys([*shard.offsets, *shard.groups])):
            group = shard.groups.get(group_id)
            if group is not None and (group.members or group.pending):
                continue
            offsets = shard.offsets.get(group_id, {})
            empty_since = Instant(0) if group is None else group.since
            old = expired(offsets, empty_since, self.config.offsets_retention_ms, now)
            if any(shard.committing[(group_id, *at)] for at in old):
                continue  # a tombstone would come after the commit in the log, and take that away
            tombstones += self.tombstones(shard, group_id, old, with_group=len(old) == len(offsets))
        return self.forget(shard, tombstones, now, lambda error: []) if tombstones else []

    def check(self) -> None:
        for shard in self.shards.values():
            for group in shard.groups.values():
                group.check()


def left(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
