"""OffsetCommit and OffsetFetch: which offsets are taken, and which are shown.

Invariant: an offset is shown, and its commit answered, when its record is committed (acks=all), never before.
"""

from collections import Counter
from typing import Any

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import Uuid
from strandline.base.time import Instant
from strandline.group.classic.group import Group, State
from strandline.group.config import GroupConfig
from strandline.group.consumer import speaking
from strandline.group.consumer.group import ConsumerGroup
from strandline.group.offsets.offsets import CommittedOffset, offset_record, recorded
from strandline.group.offsets.topics import Topics
from strandline.group.serving import answers
from strandline.group.serving.answers import coordinator_error
from strandline.group.shards.shard import Shard
from strandline.group.shards.shards import GroupShards
from strandline.wire.messages.groups.offset_commit import OffsetCommitRequest
from strandline.wire.messages.groups.offset_fetch import OffsetFetchRequest
from strandline.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest

MISSING_GROUP_NAMED = 9  # the OffsetCommit version from which a missing group has an error of its own


class Committing:
    def __init__(self, config: GroupConfig, shards: GroupShards, topics: Topics) -> None:
        self.config = config
        self.shards = shards
        self.topics = topics

    def commit_offsets(self, received: Received, now: Instant) -> list[Effect]:
        request, version = received.message, received.to.api_version
        if version >= answers.TOPIC_IDS_SINCE:
            request = self.topics.named(request)
        shard = self.shards.of(request.group_id)  # also of the empty id, as in Kafka: old clients commit with it
        known = self.topics.known(request)
        why = shard if isinstance(shard, ErrorCode) else self.why_not_commit(shard, request, version, known, now)
        if why is not None or isinstance(shard, ErrorCode):
            return [Reply(received.to, answers.committed(request, why or ErrorCode.NONE, self.config, known, version))]
        accepted = acceptable(request, known, self.config.offset_metadata_max_bytes, now)
        if not accepted:
            return [Reply(received.to, answers.committed(request, ErrorCode.NONE, self.config, known, version))]
        keys = [(request.group_id, topic, index) for topic, index, _ in accepted]
        shard.committing.update(keys)

        def done(error: ErrorCode, base_offset: int, now: Instant) -> list[Effect]:
            assert all(shard.committing[key] > 0 for key in keys), "it was under way"
            assert error is not ErrorCode.NONE or base_offset >= 0, "what is committed is in the log"
            shard.committing -= Counter(keys)
            if error is ErrorCode.NONE:
                note_commit(shard, request, now)
                offsets = shard.offsets.setdefault(request.group_id, {})
                for at, (topic, index, committed) in enumerate(accepted):
                    offsets[topic, index] = recorded(committed, base_offset + at)
            answer = answers.committed(request, coordinator_error(error), self.config, known, version)
            return [Reply(received.to, answer)]

        return self.shards.write(shard, [offset_record(request.group_id, *entry) for entry in accepted], now, done)

    def why_not_commit(
        self,
        shard: Shard,
        request: OffsetCommitRequest,
        version: int,
        known: dict[tuple[str, int], Uuid],
        now: Instant,
    ) -> ErrorCode | None:
        group = shard.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if isinstance(group, ConsumerGroup):
            at = [(topic_id, partition) for (_, partition), topic_id in known.items()]
            return speaking.why_not_commit(group, request.member_id, epoch, version, at)
        alone = epoch < 0
        if alone and (group is None or not group.members):
            return None  # a consumer that assigns partitions itself commits without being a member
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND if version >= MISSING_GROUP_NAMED else ErrorCode.ILLEGAL_GENERATION
        why = group.why_not(request.member_id, request.group_instance_id, epoch)
        if why is None:
            group.members[request.member_id].heard(now)
            if group.state is State.COMPLETING_REBALANCE:
                why = ErrorCode.REBALANCE_IN_PROGRESS
        return why

    def fetch_offsets(self, received: Received, now: Instant) -> list[Effect]:
        del now
        request: OffsetFetchRequest = received.message
        members = {row.group_id: (row.member_id, row.member_epoch) for row in request.groups}

        def offsets_of(group_id: str) -> Any:
            shard = self.shards.of(group_id)
            if isinstance(shard, ErrorCode):
                return shard
            group = shard.consumer(group_id)
            why = None if group is None else speaking.why_not_fetch(group, *members.get(group_id, (None, -1)))
            if why is not None:
                return why
            offsets = self.topics.current(shard.offsets.get(group_id, {}))
            return offsets, shard.pending if request.require_stable else None  # guard: pending-offset-shown-as-stable

        return [Reply(received.to, answers.fetched(request, received.to.api_version, offsets_of, self.topics))]


def note_commit(shard: Shard, request: OffsetCommitRequest | TxnOffsetCommitRequest, now: Instant) -> None:
    """An operator asks when a member that has gone committed for the last time."""
    group = shard.groups.get(request.group_id)
    if group is not None:
        departures = group.departures if isinstance(group, Group) else group.history.departures
        departures.committed(request.member_id, group.members, now)


def acceptable(
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    known: dict[tuple[str, int], Uuid],
    metadata_max_bytes: int,
    now: Instant,
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
        if (topic.name, p.partition_index) in known and len(p.committed_metadata or "") <= metadata_max_bytes
    ]
