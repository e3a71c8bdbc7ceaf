"""The group coordinator of one broker: all groups whose `__consumer_offsets` partition this broker leads.

It has six parts: which groups are its own (`shards`), who belongs to them (`membership`), what they have committed
(`committing`) and will have with a transaction (`transactional`), and when that is forgotten (`retention`) or deleted
(`offset_deletion`). Here a request finds its part, and groups are described, listed and deleted.
"""

from collections.abc import Callable

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, TopicPartition
from strandline.base.operations import ON_GROUP, UNKNOWN_OPERATIONS
from strandline.base.ports import Rng
from strandline.base.time import NEVER, Instant
from strandline.base.timers import Timers
from strandline.coordination.internal_log import InternalLog
from strandline.group.classic.group import Group
from strandline.group.config import GroupConfig
from strandline.group.consumer.describing import described
from strandline.group.offsets.topics import Topics
from strandline.group.serving import answers
from strandline.group.serving.answers import membership_error
from strandline.group.serving.classic_in_consumer import ClassicInConsumer
from strandline.group.serving.committing import Committing
from strandline.group.serving.consumer_heartbeat import ConsumerHeartbeats
from strandline.group.serving.membership import Membership
from strandline.group.serving.offset_deletion import OffsetDeletion
from strandline.group.serving.progress import consumer_progress_of, progress_of
from strandline.group.serving.retention import Retention
from strandline.group.serving.transactional import Transactional
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards
from strandline.metadata.image import Delta, Image
from strandline.wire.messages.consumer_groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from strandline.wire.messages.consumer_groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from strandline.wire.messages.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from strandline.wire.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from strandline.wire.messages.groups.heartbeat import HeartbeatRequest
from strandline.wire.messages.groups.join_group import JoinGroupRequest
from strandline.wire.messages.groups.leave_group import (
    LeaveGroupRequest,
)
from strandline.wire.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest
from strandline.wire.messages.groups.offset_delete import OffsetDeleteRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest
from strandline.wire.messages.groups.sync_group import SyncGroupRequest
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

TIMERS_MAX = 150  # of groups and their members, that are looked at in one step: each may answer a whole group


class Groups:
    def __init__(self, config: GroupConfig, log: InternalLog, rng: Rng) -> None:
        self.config = config
        self.topics = Topics()
        self.shards = GroupShards(config, log)
        self.heartbeats = ConsumerHeartbeats(config, self.shards, self.topics, rng)
        in_consumer = ClassicInConsumer(config, self.shards, self.topics, self.heartbeats, rng)
        self.membership = Membership(config, self.shards, rng, in_consumer)
        self.committing = Committing(config, self.shards, self.topics)
        self.transactional = Transactional(config, self.shards, self.topics)
        self.retention = Retention(config, self.shards, self.topics)
        self.offset_deletion = OffsetDeletion(self.shards, self.topics, self.retention)
        self.routes: dict[type, Callable[[Received, Instant], list[Effect]]] = {
            JoinGroupRequest: self.membership.join,
            SyncGroupRequest: self.membership.sync,
            HeartbeatRequest: self.membership.heartbeat,
            LeaveGroupRequest: self.membership.leave,
            OffsetCommitRequest: self.committing.commit_offsets,
            OffsetFetchRequest: self.committing.fetch_offsets,
            OffsetDeleteRequest: self.offset_deletion.delete_offsets,
            TxnOffsetCommitRequest: self.transactional.commit_offsets,
            ConsumerGroupHeartbeatRequest: self.heartbeats.heartbeat,
            ConsumerGroupDescribeRequest: self.describe_consumers,
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
        self.heartbeats.apply(image, delta)
        effects = self.follow_leadership(now) if self.shards.is_touched(image, delta) else []
        if delta.reloaded or any(was is not None for was in delta.topics.values()):
            for shard in self.shards.loaded.values():
                self.retention.sweep(shard)
            effects += self.retention.go_on(now)
        return effects

    def follow_leadership(self, now: Instant) -> list[Effect]:
        gone, new = self.shards.follow_leadership(now)
        return self.shards.give_up(gone, now) + self.begin(new, now)

    def begin(self, new: list[Shard], now: Instant) -> list[Effect]:
        """These are loaded."""
        assert all(self.shards.loaded.get(shard.partition) is shard for shard in new)
        self.shards.begin_sessions(new, now)
        for shard in new:
            self.retention.sweep(shard)  # nobody did when a topic was deleted, perhaps
        if self.shards.loaded:
            self.retention.begin(now)
        return self.retention.go_on(now) if new else []

    def transaction_ended(
        self, at: TopicPartition, producer_id: int, commits: bool, offset: int, now: Instant
    ) -> list[Effect]:
        """A marker at `offset` is committed."""
        del now
        assert producer_id >= 0 and offset >= 0, "each marker is of a producer, and lies in the log"
        if at.topic == OFFSETS_TOPIC:
            self.shards.transaction_ended(at.partition, producer_id, offset, commits=commits)
        return []

    # --- administration

    def describe(self, received: Received, now: Instant) -> list[Effect]:
        request: DescribeGroupsRequest = received.message
        described = []
        for group_id in request.groups:
            shard = self.shards.of(group_id)
            group = None if isinstance(shard, ErrorCode) else shard.groups.get(group_id)
            error = shard if isinstance(shard, ErrorCode) else ErrorCode.NONE
            if group is None and not isinstance(shard, ErrorCode) and shard.knows(group_id):
                group = Group(group_id, self.config, Instant(0), Timers())  # it only ever committed offsets
            row = answers.described(
                group_id, group, error, received.to.api_version, request.include_authorized_operations
            )
            if request.with_progress and isinstance(group, Group) and not isinstance(shard, ErrorCode):
                is_kept = group_id in shard.groups  # else nothing is known but what it has committed
                row = replace(row, progress=progress_of(group, now) if is_kept else None)
            described.append(row)
        assert len(described) == len(request.groups)
        return [Reply(received.to, DescribeGroupsResponse(groups=tuple(described)))]

    def describe_consumers(self, received: Received, now: Instant) -> list[Effect]:
        request: ConsumerGroupDescribeRequest = received.message
        rows = tuple(self.described_consumers(group_id, request, now) for group_id in request.group_ids)
        return [Reply(received.to, ConsumerGroupDescribeResponse(groups=rows))]

    def described_consumers(self, group_id: str, request: ConsumerGroupDescribeRequest, now: Instant) -> DescribedGroup:
        """As in Kafka, an error comes with a message only if the group is not there."""
        shard = self.shards.of(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        group = shard.consumer(group_id)
        if group is None:
            why = "is not a consumer group" if shard.knows(group_id) else "not found"
            error = ErrorCode.GROUP_ID_NOT_FOUND
            return DescribedGroup(group_id=group_id, error_code=error, error_message=f"Group {group_id} {why}.")
        operations = ON_GROUP if request.include_authorized_operations else UNKNOWN_OPERATIONS
        row = described(group, self.config, self.topics.image, operations)
        return replace(row, progress=consumer_progress_of(group, shard.timers, now)) if request.with_progress else row

    def list_groups(self, received: Received, now: Instant) -> list[Effect]:
        del now
        request: ListGroupsRequest = received.message
        groups = [group for _, group in self.shards.groups()]
        simple_groups = [group_id for shard in self.shards.loaded.values() for group_id in shard.simple_groups()]
        assert not {group.group_id for group in groups} & set(simple_groups), "each group is listed once"
        listed = answers.listed(groups, simple_groups, request)
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.shards.loading else ErrorCode.NONE
        return [Reply(received.to, ListGroupsResponse(error_code=error, groups=listed))]

    def delete(self, received: Received, now: Instant) -> list[Effect]:
        """Answered when the last of the deletions is written: a deletion that was reported never comes back."""
        request: DeleteGroupsRequest = received.message
        names = list(dict.fromkeys(request.groups_names))
        errors: dict[str, ErrorCode] = {}

        def reported(group_id: str, error: ErrorCode) -> list[Effect]:
            assert group_id not in errors, "reported once"
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
            effects += reported(group_id, why) if why is not None else self.delete_one(group_id, reported, now)
        return effects

    def delete_one(
        self, group_id: str, reported: Callable[[str, ErrorCode], list[Effect]], now: Instant
    ) -> list[Effect]:
        shard = self.shards.of(group_id)
        assert isinstance(shard, Shard), "else the deletion is refused"
        pending = [(topic, partition) for _, topic, partition in shard.pending.keys_of(group_id)]
        offsets = list(dict.fromkeys([*shard.offsets.get(group_id, {}), *pending]))
        assert offsets or group_id in shard.groups, "there is something to delete"
        tombstones = self.retention.tombstones(shard, group_id, offsets, with_group=True)
        return self.retention.forget(shard, tombstones, now, lambda error: reported(group_id, membership_error(error)))

    def why_not_delete(self, group_id: str) -> ErrorCode | None:
        shard = self.shards.of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        if group is None:
            return None if shard.knows(group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else None

    # --- time

    def deadline(self) -> Instant:
        retention, shards = self.retention, self.shards
        return min(retention.next_check, retention.next_step, shards.next_load, shards.timers.deadline())

    def expire(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if self.shards.next_load <= now:
            effects += self.begin(self.shards.go_on(now), now)
            effects += self.shards.give_up((), now)
        self.heartbeats.begin_step()
        effects += self.shards.timers.expire(now, TIMERS_MAX)
        effects += self.retention.expire(now)
        return effects

    def check(self) -> None:
        self.shards.check()
        assert not self.shards.loaded or self.retention.next_check != NEVER
