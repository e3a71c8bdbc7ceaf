"""ConsumerGroupHeartbeat, and the timers of consumer groups: what is planned is written, and then it is so (KIP-848).

Rules:
  - records that the log refuses change nothing
  - records that are in the log change the group at once: the memory says what the leader's log says
  - an answer leaves when all that it depends on is committed, which is every earlier record of the group
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode, message_of
from strandline.base.ids import OFFSETS_TOPIC, Uuid, uuid_text
from strandline.base.ports import Rng
from strandline.base.time import Instant, after
from strandline.coordination.partitioning import is_too_long
from strandline.group.classic.group import State
from strandline.group.config import GroupConfig
from strandline.group.consumer.catalog import touched
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.consumer.member import AWAY, LEFT
from strandline.group.consumer.planning import Plan, Planner, Refused, Topics, proof_record
from strandline.group.consumer.settings import consumer_config, is_consumer_protocol_finalized
from strandline.group.consumer.timers import Key, why_removed
from strandline.group.migration.downgrading import downgraded, protocols_of
from strandline.group.migration.upgrading import creation_records, upgraded
from strandline.group.serving.answers import membership_error
from strandline.group.shards.proving import Proof, Then
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards, Records
from strandline.metadata.image import Delta, Image
from strandline.wire.messages.consumer_groups import records as r
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from strandline.wire.messages.groups.group_records import (
    GroupKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupValue,
    OffsetCommitKey,
)

CLIENT_MADE_ID_SINCE = 1  # from this version on, the client makes the member's id
FENCE_AGAIN_MS = 1_000
NOBODY: Mapping[str, str] = {}
DUE_MAX = 200  # deadlines of members that are looked at in one step


class ConsumerHeartbeats:
    def __init__(self, config: GroupConfig, shards: GroupShards, topics: Topics, rng: Rng) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics
        self.rng = rng
        self.planner = Planner(config, topics)
        self.left = DUE_MAX  # in this step
        shards.session_ms = self.session_ms
        shards.consumers_due = self.due

    def session_ms(self, group_id: str) -> int:
        return consumer_config(self.topics.image, group_id, self.config)[0]  # guard: session-without-end

    def heartbeat(self, received: Received, now: Instant) -> list[Effect]:
        request: ConsumerGroupHeartbeatRequest = received.message
        why = self.why_off() or why_invalid(request, received.to.api_version, self.config)
        if why is not None:
            return refusal(received, why)
        shard = self.shards.of(request.group_id)
        if not isinstance(shard, ErrorCode) and not self.is_proven(shard):
            shard = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if isinstance(shard, ErrorCode):
            return refusal(received, Refused(shard, message_of(shard)))
        if not request.member_id:
            request = replace(request, member_id=uuid_text(Uuid(self.rng.randbytes(16))))
        group = self.group_for(shard, request)
        if isinstance(group, Refused):
            return refusal(received, group)
        plan = self.plan(group, request, received, now)
        if isinstance(plan, Refused):
            return refusal(received, plan)
        return self.carry_out(shard, group, plan, received, now)

    def group_for(self, shard: Shard, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup | Refused:
        """The group, or a new one if the member joins and there is none. A classic group becomes one."""
        group_id, joins = request.group_id, request.member_epoch == 0
        known = shard.groups.get(group_id)
        if isinstance(known, ConsumerGroup):
            return known
        if known is None:
            missing = Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            return ConsumerGroup(group_id) if joins else missing
        if not joins:
            return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if known.state is State.EMPTY:
            return ConsumerGroup(group_id)
        return upgraded(known, self.config, self.topics.image)

    def why_off(self) -> Refused | None:
        """The protocol is on if the cluster's `group.version` and the broker's file say so."""
        if self.config.is_consumer_protocol_enabled and is_consumer_protocol_finalized(self.topics.image):
            return None
        error = ErrorCode.UNSUPPORTED_VERSION
        return Refused(error, message_of(error))

    def plan(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, received: Received, now: Instant
    ) -> Plan | Refused:
        if request.member_epoch in (LEFT, AWAY):
            plan = self.planner.leave(group, request)
            if request.member_epoch == LEFT and isinstance(plan, Plan):
                plan = replace(plan, records=self.without(group, [request.member_id], now))
            return plan
        return self.planner.heartbeat(group, request, received.caller, now)

    def carry_out(
        self, shard: Shard, group: ConsumerGroup, plan: Plan, received: Received, now: Instant
    ) -> list[Effect]:
        def answer(error: ErrorCode) -> list[Effect]:
            if error is not ErrorCode.NONE:
                code = membership_error(error)
                return refusal(received, Refused(code, message_of(code)))
            return [Reply(received.to, plan.answer)]

        records = (*was_classic(shard, group), *plan.records)
        leaves = {received.message.member_id: "left"} if received.message.member_epoch == LEFT else {}
        error, effects = self.promise(shard, group, records, answer, now, leaves)
        if error is ErrorCode.NONE:
            self.heard(shard, group.group_id, plan, now)
        return effects

    def promise(
        self,
        shard: Shard,
        group: ConsumerGroup,
        records: Records,
        answer: Then,
        now: Instant,
        leaves: Mapping[str, str] = NOBODY,
    ) -> tuple[ErrorCode, list[Effect]]:
        """Write the records, if there are any, and answer when they and all earlier ones of the group are committed. An
        error: nothing has changed, and that is the answer."""
        proof = shard.proofs.get(group.group_id)
        if not records and proof is not None and proof.is_in_doubt:
            records = (proof_record(group),)
        if records:
            # guard: heartbeat-answered-before-its-record-is-committed
            error, effects = self.write(shard, group.group_id, records, answer, now, leaves)
            return error, effects if error is ErrorCode.NONE else effects + answer(error)
        if proof is None:
            return ErrorCode.NONE, answer(ErrorCode.NONE)
        proof.wait(answer)  # guard: heartbeat-answered-before-its-group-is-committed
        return ErrorCode.NONE, []

    def heard(self, shard: Shard, group_id: str, plan: Plan, now: Instant) -> None:
        """A whole session begins. A static member that has said that it will be back has the rest of its last one."""
        group, member_id = shard.consumer(group_id), plan.answer.member_id or ""
        if group is None:
            return  # it is a classic one from now on, since this member has left
        group.is_stale = group.is_stale and not plan.has_looked
        member = group.members.get(member_id)
        if member is not None and member.epoch >= 0:  # guard: heartbeat-begins-no-session
            shard.timers.heard(group_id, member_id, after(now, self.session_ms(group_id)))

    # --- records

    def write(
        self,
        shard: Shard,
        group_id: str,
        records: Records,
        then: Then,
        now: Instant,
        leaves: Mapping[str, str] = NOBODY,
    ) -> tuple[ErrorCode, list[Effect]]:
        """An error: nothing has changed, and `then` is not called. `leaves`: whom this removes, and why."""
        assert group_id and records, "a write has records, of one group"
        proof = shard.proofs.setdefault(group_id, Proof())
        number = proof.begin()

        def ended(error: ErrorCode, now: Instant) -> list[Effect]:
            del now
            effects = then(error) + proof.end(number, error)
            self.forget_if_complete(shard, group_id, proof)
            return effects

        error, effects = self.shards.write_through(shard, records, now, ended)
        if error is ErrorCode.NONE:
            effects += self.follow(shard, group_id, records, now, leaves)
        else:
            proof.take_back(number)
            self.forget_if_complete(shard, group_id, proof)
        return error, effects

    def forget_if_complete(self, shard: Shard, group_id: str, proof: Proof) -> None:
        if proof.is_complete and shard.proofs.get(group_id) is proof:
            del shard.proofs[group_id]
            assert not proof.waiting, "each is answered before it is forgotten"

    def follow(
        self, shard: Shard, group_id: str, records: Records, now: Instant, leaves: Mapping[str, str]
    ) -> list[Effect]:
        """They are in the log."""
        effects: list[Effect] = []
        was = shard.consumer(group_id)
        gone = [(was.members[member_id], why) for member_id, why in leaves.items()] if was else []
        assert was is not None or not leaves, "members leave a group that there is"
        protocols = {} if was is None else {m.member_id: protocols_of(m) for m in was.members.values() if m.classic}
        changed: dict[str, None] = {}
        for key, value in records:
            assert not isinstance(key, OffsetCommitKey) and key.group == group_id, "of other writers"
            if isinstance(key, GroupMetadataKey):
                effects += self.follow_classic(shard, key, value, protocols, now)
                continue
            is_applied = shard.apply_consumer(key, value)
            assert is_applied, "what is written can be read"
            if isinstance(key, r.ConsumerGroupMemberMetadataKey | r.ConsumerGroupCurrentMemberAssignmentKey):
                changed[key.member_id] = None
        group = shard.consumer(group_id)
        for member_id in changed:
            if group is None:
                shard.timers.forget(group_id, member_id)
            else:
                shard.timers.follow(group, member_id, self.session_ms(group_id), now)
        if group is not None:
            for member, why in gone:
                group.history.departures.add(member, why, now)
            group.note(now)
        return effects

    def follow_classic(
        self,
        shard: Shard,
        key: GroupMetadataKey,
        value: GroupValue | None,
        protocols: dict[str, dict[str, bytes]],
        now: Instant,
    ) -> list[Effect]:
        """A classic group ends, and those of its members that wait join again. Or it begins: `protocols` has what its
        members support beyond the protocol that the record has."""
        if value is None:
            was = shard.classic(key.group)
            if was is None:
                return []
            del shard.groups[key.group]
            was.give_up()
            return was.dissolve(ErrorCode.REBALANCE_IN_PROGRESS)
        assert isinstance(value, GroupMetadataValue), "the key's value"
        group = shard.begin_classic(key.group, value, now)
        for member_id, member in group.members.items():
            group.change_protocols(member, protocols.get(member_id, member.protocols))
        return []

    def is_proven(self, shard: Shard) -> bool:
        """What was loaded may not be committed, and another leader may not have it."""
        if not shard.is_proven:
            # guard: loaded-group-taken-for-committed
            shard.is_proven = self.shards.log.is_committed(OFFSETS_TOPIC, shard.partition)
        return shard.is_proven

    # --- metadata, and time

    def apply(self, image: Image, delta: Delta) -> None:
        """Groups whose topics may have changed look at them with their next heartbeat."""
        names = touched(image, delta)
        if names is not None and not names:
            return
        has_other_names = bool(delta.topics)
        for _, group in self.shards.groups():
            if not isinstance(group, ConsumerGroup) or group.is_stale:
                continue
            follows = has_other_names and bool(group.regexes)
            # guard: group-not-told-of-topics
            group.is_stale = names is None or follows or any(map(group.is_subscribed_to, names))

    def begin_step(self) -> None:
        self.left = DUE_MAX

    def due(self, shard: Shard, now: Instant) -> list[Effect]:
        """The time of members in this shard is up, perhaps. Shards that are due in the same step share what may be
        done in it."""
        assert self.shards.loaded.get(shard.partition) is shard, "else it is given up"
        effects: list[Effect] = []
        found, looked = shard.timers.due(now, self.left)
        self.left -= looked
        for group_id, keys in found.items():
            effects += self.fence(shard, group_id, keys, now)
        return effects

    def without(
        self, group: ConsumerGroup, member_ids: list[str], now: Instant
    ) -> tuple[tuple[GroupKey, GroupValue | None], ...]:
        """What the log says when these members are out. If all others speak the classic protocol, so does the group."""
        found = downgraded(group, member_ids, self.config, self.topics.image, now)
        return self.planner.fence(group, member_ids) if found is None else found

    def fence(self, shard: Shard, group_id: str, keys: Sequence[Key], now: Instant) -> list[Effect]:
        """Members were silent too long, or have not given back what they should have. `keys`: which deadlines."""
        group = shard.consumer(group_id)
        assert group is not None, "a member that is gone has no deadline"
        member_ids = list(dict.fromkeys(member_id for _, _, member_id in keys))
        assert member_ids and group.members.keys() >= set(member_ids), "a member that is gone has no deadline"
        records = self.without(group, member_ids, now)
        leaves = {key[2]: why_removed(group.members[key[2]], key[0], self.session_ms(group_id)) for key in keys}
        error, effects = self.write(shard, group_id, records, lambda _: [], now, leaves)
        if error is not ErrorCode.NONE:
            for key in keys:
                shard.timers.set(key, after(now, FENCE_AGAIN_MS))
        return effects


def was_classic(shard: Shard, group: ConsumerGroup) -> Records:
    """The end of the classic group in whose place this one comes, and what this one has of it."""
    if shard.classic(group.group_id) is None:
        return []
    # guard: classic-group-outlives-its-upgrade
    return [(GroupMetadataKey(group=group.group_id), None), *creation_records(group)]


def why_invalid(request: ConsumerGroupHeartbeatRequest, version: int, config: GroupConfig) -> Refused | None:
    """In Kafka's order, with Kafka's messages."""
    epoch = request.member_epoch
    must_have_id = version >= CLIENT_MADE_ID_SINCE or epoch > 0 or epoch == LEFT
    first = (request.subscribed_topic_names, request.subscribed_topic_regex) == (None, None)
    joins = epoch == 0
    rules = (
        (must_have_id and not request.member_id, "MemberId can't be empty."),
        (not request.group_id, "GroupId can't be empty."),
        (request.instance_id == "", "InstanceId can't be empty."),
        (request.rack_id == "", "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (joins and request.topic_partitions != (), "TopicPartitions must be empty when (re-)joining."),
        (
            joins and first,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (epoch == AWAY and request.instance_id is None, "InstanceId can't be null."),
        (epoch < AWAY, "MemberEpoch is invalid."),
        # No record could have such a key. Of a value, Kafka could not read it.
        (is_too_long(request.member_id), "MemberId is too long."),
        (is_too_long(request.instance_id or ""), "InstanceId is too long."),
        (is_too_long(request.rack_id or ""), "RackId is too long."),
        (
            any(map(is_too_long, request.subscribed_topic_names or ())),
            "SubscribedTopicNames has a name that is too long.",
        ),
        (is_too_long(request.subscribed_topic_regex or ""), "SubscribedTopicRegex is too long."),
    )
    for is_broken, message in rules:
        if is_broken:
            return Refused(ErrorCode.INVALID_REQUEST, message)
    assignor, known = request.server_assignor, config.consumer_assignors
    if assignor is not None and assignor not in known:
        why = f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(known)}."
        return Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, why)
    return None


def refusal(received: Received, why: Refused) -> list[Effect]:
    return [Reply(received.to, ConsumerGroupHeartbeatResponse(error_code=why.error, error_message=why.message))]
