"""Members that speak the classic protocol in a group of the consumer protocol: JoinGroup, SyncGroup, Heartbeat and
LeaveGroup (KIP-848).

Invariant: what a member learns of its epoch and of its partitions is committed.
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid, uuid_text
from strandline.base.ports import Rng
from strandline.base.time import Instant, after
from strandline.coordination.partitioning import is_too_long
from strandline.group.classic.joining import MEMBER_ID_FIRST, why_too_large
from strandline.group.config import GroupConfig
from strandline.group.consumer.draft import Draft
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import Member, MemberState, pairs
from strandline.group.consumer.planning import Topics
from strandline.group.consumer.timers import JOIN, SYNC
from strandline.group.migration.downgrading import protocols_of
from strandline.group.migration.embedded import embedded_assignment
from strandline.group.migration.joining import Joined, must_rejoin, plan_join, why_not_join
from strandline.group.serving.answers import left, membership_error
from strandline.group.serving.consumer_heartbeat import ConsumerHeartbeats
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards
from strandline.wire.messages.groups.consumer_protocol import PROTOCOL_TYPE, version_of
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.wire.messages.groups.leave_group import LeaveGroupResponse, MemberIdentity
from strandline.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

LEAVE_TOGETHER = 3  # the LeaveGroup version from which several members leave with one request (KIP-345)


class ClassicInConsumer:
    def __init__(
        self, config: GroupConfig, shards: GroupShards, topics: Topics, heartbeats: ConsumerHeartbeats, rng: Rng
    ) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics
        self.heartbeats = heartbeats
        self.rng = rng

    def group(self, group_id: str) -> tuple[Shard, ConsumerGroup] | None:
        """The group, if it has members and speaks the consumer protocol."""
        shard = self.shards.of(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
        group = None if isinstance(shard, ErrorCode) else shard.consumer(group_id)
        return None if isinstance(shard, ErrorCode) or group is None or not group.members else (shard, group)

    # --- JoinGroup

    def join(self, shard: Shard, group: ConsumerGroup, received: Received, now: Instant) -> list[Effect]:
        request: JoinGroupRequest = received.message
        member_id = request.member_id or uuid_text(Uuid(self.rng.randbytes(16)))
        why = self.why_not_join(shard, group, received, member_id)
        if why is not None:
            return refusal(received, why)
        is_anonymous = not request.member_id and request.group_instance_id is None
        if is_anonymous and received.to.api_version >= MEMBER_ID_FIRST:
            answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            return [Reply(received.to, answer)]
        plan = plan_join(group, request, member_id, received.caller, self.config, self.topics.image, now)
        if isinstance(plan, ErrorCode):
            return refusal(received, plan)
        if plan.takes_over is not None:
            return self.take_over(shard, group, plan, received, now)
        joined = JoinGroupResponse(
            generation_id=plan.member.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        )
        error, effects = self.heartbeats.promise(
            shard, group, plan.records, lambda error: answered(received, joined, error), now
        )
        if error is ErrorCode.NONE:
            group.is_stale = group.is_stale and not plan.has_looked
            self.heard(shard, group.group_id, plan.member, now)
            shard.timers.stop(JOIN, group.group_id, member_id)  # guard: member-removed-after-it-joined
            shard.timers.stop(SYNC, group.group_id, member_id)
            shard.timers.begin_if_absent(SYNC, group.group_id, plan.member, now)
        return effects

    def why_not_join(self, shard: Shard, group: ConsumerGroup, received: Received, member_id: str) -> ErrorCode | None:
        request: JoinGroupRequest = received.message
        if not self.config.min_session_timeout_ms <= request.session_timeout_ms <= self.config.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self.heartbeats.is_proven(shard):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if is_too_long(member_id):
            return ErrorCode.INVALID_REQUEST
        return why_not_join(group, request, member_id, self.config) or why_too_large(request, received.caller.client_id)

    def take_over(
        self, shard: Shard, group: ConsumerGroup, plan: Joined, received: Received, now: Instant
    ) -> list[Effect]:
        """The group becomes a classic one. Its new member is told what the place has that it takes, or joins with all
        the others."""
        assert plan.takes_over is not None
        answer: JoinGroupResponse | None = None
        ended: list[ErrorCode] = []  # a log may commit at once, before there is an answer

        def then(error: ErrorCode) -> list[Effect]:
            if answer is not None:
                return answered(received, answer, error)
            ended.append(error)
            return []

        error, effects = self.heartbeats.write(shard, group.group_id, plan.records, then, now)
        if error is not ErrorCode.NONE:
            return effects + refusal(received, membership_error(error))
        classic = shard.classic(group.group_id)
        assert classic is not None, "it is one now"
        new = classic.members[plan.member.member_id]
        classic.change_protocols(new, protocols_of(plan.member))
        if not plan.is_quiet:
            return effects + classic.join_replaced(new, received.to, now)
        answer = classic.swap_answer(new, plan.takes_over, received.to.api_version)
        return effects + (answered(received, answer, ended[0]) if ended else [])

    def heard(self, shard: Shard, group_id: str, member: Member, now: Instant) -> None:
        assert member.classic is not None
        shard.timers.heard(group_id, member.member_id, after(now, member.classic.session_timeout_ms))

    # --- SyncGroup and Heartbeat

    def sync(self, shard: Shard, group: ConsumerGroup, received: Received, now: Instant) -> list[Effect]:
        request: SyncGroupRequest = received.message
        member = self.sender(group, request.member_id, request.group_instance_id, request.generation_id)
        why = member if isinstance(member, ErrorCode) else self.why_not_sync(shard, group, member, request, now)
        if why is not None or isinstance(member, ErrorCode):
            return [Reply(received.to, SyncGroupResponse(error_code=why or ErrorCode.NONE))]
        assert member.classic is not None
        subscription = member.classic.supported_protocols[0]
        response = SyncGroupResponse(
            protocol_type=PROTOCOL_TYPE,
            protocol_name=subscription.name,
            assignment=embedded_assignment(
                pairs(member.assigned), self.topics.image, version_of(subscription.metadata)
            ),
        )

        def answer(error: ErrorCode) -> list[Effect]:
            failed = SyncGroupResponse(error_code=membership_error(error))
            return [Reply(received.to, response if error is ErrorCode.NONE else failed)]

        # guard: sync-answered-before-its-group-is-committed
        error, effects = self.heartbeats.promise(shard, group, (), answer, now)
        if error is ErrorCode.NONE:
            shard.timers.stop(SYNC, group.group_id, member.member_id)
            self.heard(shard, group.group_id, member, now)
        return effects

    def why_not_sync(
        self, shard: Shard, group: ConsumerGroup, member: Member, request: SyncGroupRequest, now: Instant
    ) -> ErrorCode | None:
        """A member that gives partitions back has joined already: it learns here which ones."""
        if not self.heartbeats.is_proven(shard):
            return ErrorCode.REBALANCE_IN_PROGRESS  # it joins again, and then waits
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            shard.timers.begin_if_absent(JOIN, group.group_id, member, now)
            return ErrorCode.REBALANCE_IN_PROGRESS
        if request.protocol_type not in (None, PROTOCOL_TYPE):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in (None, next(iter(protocols_of(member)))):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def heartbeat(self, shard: Shard, group: ConsumerGroup, received: Received, now: Instant) -> list[Effect]:
        request: HeartbeatRequest = received.message
        member = self.sender(group, request.member_id, request.group_instance_id, request.generation_id)
        if isinstance(member, ErrorCode):
            return [Reply(received.to, HeartbeatResponse(error_code=member))]
        self.heard(shard, group.group_id, member, now)  # guard: classic-heartbeat-begins-no-session
        effects = self.look(shard, group, now)
        error = ErrorCode.NONE
        if must_rejoin(group, member):
            error = ErrorCode.REBALANCE_IN_PROGRESS
            shard.timers.begin_if_absent(JOIN, group.group_id, member, now)
        return [*effects, Reply(received.to, HeartbeatResponse(error_code=error))]

    def look(self, shard: Shard, group: ConsumerGroup, now: Instant) -> list[Effect]:
        """Have the subscribed topics changed? Kafka looks with heartbeats of the consumer protocol and when somebody
        joins; but perhaps nobody speaks that protocol, since the policy keeps the group from going back."""
        if not group.is_stale or group.regexes or not self.heartbeats.is_proven(shard):
            return []
        assert group.members, "one of them is heard"
        draft = Draft(group, self.config, self.topics.image)
        draft.renew(must=False)
        if draft.records:
            error, effects = self.heartbeats.write(shard, group.group_id, draft.records, lambda _: [], now)
            group.is_stale = error is not ErrorCode.NONE
            return effects
        group.is_stale = False
        return []

    def sender(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> Member | ErrorCode:
        member = named(group, member_id, instance_id)
        if isinstance(member, ErrorCode):
            return member
        if member.classic is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if generation == member.epoch else ErrorCode.ILLEGAL_GENERATION

    # --- LeaveGroup

    def leave(
        self, shard: Shard, group: ConsumerGroup, leaving: tuple[MemberIdentity, ...], received: Received, now: Instant
    ) -> list[Effect]:
        """Members of the consumer protocol can be sent away, too: administrators do that."""
        is_one = received.to.api_version < LEAVE_TOGETHER
        assert not is_one or len(leaving) == 1, "an older request names one member"
        found = [leaver(group, identity) for identity in leaving]
        rows = tuple(
            left(identity, who if isinstance(who, ErrorCode) else ErrorCode.NONE)
            for identity, who in zip(leaving, found, strict=True)
        )
        gone = list(dict.fromkeys(who.member_id for who in found if isinstance(who, Member)))

        def answer(error: ErrorCode) -> list[Effect]:
            if error is not ErrorCode.NONE:
                return [Reply(received.to, LeaveGroupResponse(error_code=membership_error(error)))]
            top = rows[0].error_code if is_one else ErrorCode.NONE
            return [Reply(received.to, LeaveGroupResponse(error_code=top, members=rows))]

        if not gone:
            return answer(ErrorCode.NONE)
        records = self.heartbeats.without(group, gone, now)
        results = zip(leaving, found, strict=True)
        reasons = {who.member_id: why_left(identity) for identity, who in results if isinstance(who, Member)}
        error, effects = self.heartbeats.write(shard, group.group_id, records, answer, now, reasons)
        return effects if error is ErrorCode.NONE else effects + answer(error)


def named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member | ErrorCode:
    if instance_id is None:
        return group.members.get(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    holder = group.static.get(instance_id)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    assert group.members[holder].instance_id == instance_id
    return group.members[holder] if holder == member_id else ErrorCode.FENCED_INSTANCE_ID


def leaver(group: ConsumerGroup, identity: MemberIdentity) -> Member | ErrorCode:
    """An administrator names the instance alone."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None and not member_id:
        member_id = group.static.get(instance_id, "")
    return named(group, member_id, instance_id)


def why_left(identity: MemberIdentity) -> str:
    """It continues a sentence about the member."""
    return f"left: {identity.reason}" if identity.reason else "left"


def refusal(received: Received, why: ErrorCode) -> list[Effect]:
    assert why is not ErrorCode.NONE
    return [Reply(received.to, JoinGroupResponse(error_code=why, member_id=received.message.member_id))]


def answered(received: Received, answer: JoinGroupResponse, error: ErrorCode) -> list[Effect]:
    if error is not ErrorCode.NONE:
        return refusal(received, membership_error(error))
    return [Reply(received.to, answer)]
