"""Who belongs to a group, request by request: the group decides, and what must survive is written.

Invariant: an answer that depends on a write is sent when the write is committed (acks=all), never before.
"""

from collections.abc import Callable

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.group.classic.group import Group, State
from strandline.group.classic.joining import Joining
from strandline.group.config import GroupConfig
from strandline.group.consumer.ending import group_tombstones
from strandline.group.serving.answers import left, membership_error
from strandline.group.serving.classic_in_consumer import LEAVE_TOGETHER, ClassicInConsumer
from strandline.group.shards.shard import Shard, group_record
from strandline.group.shards.shards import GroupShards
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse


class Membership:
    def __init__(self, config: GroupConfig, shards: GroupShards, rng: Rng, in_consumer: ClassicInConsumer) -> None:
        self.shards = shards
        self.in_consumer = in_consumer
        self.joining = Joining(config, rng)

    def join(self, received: Received, now: Instant) -> list[Effect]:
        request: JoinGroupRequest = received.message
        shard: Shard | ErrorCode = self.shards.of(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
        if isinstance(shard, ErrorCode):
            refusal = JoinGroupResponse(error_code=shard, member_id=request.member_id)
            return [Reply(received.to, refusal)]
        consumers = shard.consumer(request.group_id)
        if consumers is not None and consumers.members:
            return self.in_consumer.join(shard, consumers, received, now)
        why, effects = self.make_room(shard, request, now)
        if why is not None:
            return [*effects, Reply(received.to, JoinGroupResponse(error_code=why, member_id=request.member_id))]
        group = shard.group(request.group_id, now)

        def persist(changed: Group, then: Callable[[ErrorCode], list[Effect]]) -> list[Effect]:
            record = group_record(changed)
            return self.shards.write(shard, [record], now, lambda error, base, at: then(membership_error(error)))

        effects += self.joining.join(group, received, request, persist, now)
        return effects + self.shards.persist_if_emptied(shard, group, now)

    def make_room(self, shard: Shard, request: JoinGroupRequest, now: Instant) -> tuple[ErrorCode | None, list[Effect]]:
        """Why may nobody join? An empty group of the consumer protocol ends, and a classic one comes in its place."""
        consumers = shard.consumer(request.group_id)
        assert consumers is None or not consumers.members, "its members may join it"
        if request.member_id and (consumers is not None or request.group_id not in shard.groups):
            return ErrorCode.UNKNOWN_MEMBER_ID, []
        if consumers is None:
            return None, []
        error, effects = self.shards.write_through(shard, group_tombstones(consumers), now, lambda error, at: [])
        if error is not ErrorCode.NONE:
            return membership_error(error), effects
        assert shard.groups[request.group_id] is consumers, "it is still there"
        del shard.groups[request.group_id]
        return None, effects

    def sync(self, received: Received, now: Instant) -> list[Effect]:
        request: SyncGroupRequest = received.message
        consumers = self.in_consumer.group(request.group_id)
        if consumers is not None:
            return self.in_consumer.sync(*consumers, received, now)
        found = self.shards.existing(request.group_id)
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
        assert group.state is not State.EMPTY, "who may sync is a member"
        member = group.members[request.member_id]
        member.heard(now)
        if group.state is State.STABLE:
            return [Reply(received.to, group.sync_answer(member))]
        effects = group.release_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        assert member.syncing is None
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

        return effects + self.shards.write(shard, [group_record(group)], now, done)

    def heartbeat(self, received: Received, now: Instant) -> list[Effect]:
        request: HeartbeatRequest = received.message
        consumers = self.in_consumer.group(request.group_id)
        if consumers is not None:
            return self.in_consumer.heartbeat(*consumers, received, now)
        found = self.shards.existing(request.group_id)
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
        found = self.shards.existing(request.group_id)
        one = received.to.api_version < LEAVE_TOGETHER
        leaving = (MemberIdentity(member_id=request.member_id),) if one else request.members
        consumers = self.in_consumer.group(request.group_id)
        if consumers is not None:
            return self.in_consumer.leave(*consumers, leaving, received, now)
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
        effects += self.shards.persist_if_emptied(shard, group, now)
        assert len(results) == len(leaving)
        top = results[0].error_code if one else ErrorCode.NONE
        return [Reply(received.to, LeaveGroupResponse(error_code=top, members=tuple(results))), *effects]

    def leave_one(self, group: Group, identity: MemberIdentity, now: Instant) -> tuple[ErrorCode, list[Effect]]:
        assert group.state is not State.DEAD
        member_id = identity.member_id
        if identity.group_instance_id is not None:
            current = group.static.get(identity.group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID, []
            if member_id and member_id != current:
                return ErrorCode.FENCED_INSTANCE_ID, []
            member_id = current
        if group.withdraw(member_id):
            return ErrorCode.NONE, group.end_join_if_complete(now)
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, []
        return ErrorCode.NONE, group.remove(member, now, f"left: {identity.reason}" if identity.reason else "left")
