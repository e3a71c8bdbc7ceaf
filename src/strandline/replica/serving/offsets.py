"""Questions about offsets (ListOffsets, OffsetForLeaderEpoch), and DeleteRecords, which moves the log's start."""

from collections import Counter

from strandline.base.effects import Caller, Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS, LeaderEpoch
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.timestamps import Damaged
from strandline.replica.cold import ColdReads
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted, leader_epoch_error
from strandline.replica.hosting.leader import Leader
from strandline.replica.serving.fetching import Fetching
from strandline.replica.tokens import ColdStep
from strandline.wire.messages.records.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from strandline.wire.messages.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.records.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
CONSUMER, DEBUGGING = -1, -2  # replica ids of no broker: the second sees each replica's log to its end
TO_HIGH_WATERMARK = -1
# The versions in which these became known.
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
OFFSET_NOT_AVAILABLE_SINCE = 5
READ_COMMITTED = 1


class Deletion:
    """A DeleteRecords request, until all live replicas have done it."""

    def __init__(self, offsets: "Offsets", to: ReplyTo) -> None:
        self.offsets = offsets
        self.to = to
        self.topics: list[tuple[str, list[DeletionPart]]] = []
        self.open = 0
        self.done = False

    def part_done(self) -> list[Effect]:
        assert self.open > 0
        self.open -= 1
        if self.open > 0 or self.done:
            return []
        self.offsets.host.timers.entry_done()
        return self.reply()

    def reply(self) -> list[Effect]:
        assert not self.done
        assert all(part.done for _, parts in self.topics for part in parts)
        self.done = True
        results = tuple(
            DeleteRecordsTopicResult(
                name=name,
                partitions=tuple(
                    DeleteRecordsPartitionResult(
                        partition_index=p.index, low_watermark=p.low_watermark, error_code=p.error
                    )
                    for p in parts
                ),
            )
            for name, parts in self.topics
        )
        return [Reply(self.to, DeleteRecordsResponse(topics=results))]

    def expire(self, now: Instant) -> list[Effect]:
        assert self.open > 0, "it is answered with its last part"
        for _, parts in self.topics:
            for part in parts:
                if not part.done:
                    part.done = True
                    part.error = ErrorCode.REQUEST_TIMED_OUT
        return self.reply()


class DeletionPart:
    def __init__(self, deletion: Deletion, index: int) -> None:
        self.deletion = deletion
        self.index = index
        self.required = -1
        self.reached = -1  # the log's start when the leader took the request: never below what was asked
        self.low_watermark = -1
        self.error = ErrorCode.NONE
        self.done = False

    def complete(self, error: ErrorCode, now: Instant) -> list[Effect]:
        assert not self.done
        self.done = True
        self.error = error
        if error is ErrorCode.NONE:
            self.low_watermark = self.reached
        return self.deletion.part_done()


class ParkedListing:
    """A ListOffsets that waits for what its searches begin to read."""

    def __init__(self, to: ReplyTo, request: ListOffsetsRequest) -> None:
        self.to = to
        self.request = request
        self.open = 0  # reads that are under way
        self.done = False


class Offsets:
    def __init__(self, host: Host, fetching: Fetching, cold: ColdReads) -> None:
        self.host = host
        self.fetching = fetching
        self.cold = cold

    # --- ListOffsets

    def list_offsets(self, to: ReplyTo, caller: Caller, request: ListOffsetsRequest, now: Instant) -> list[Effect]:
        parked = ParkedListing(to, request)
        for topic in request.topics:
            for asked in topic.partitions:
                if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
                    self.wait_for(topic.name, asked, parked, now)
        return [] if parked.open else [self.answer(to, request, now)]

    def wait_for(self, topic: str, asked: ListOffsetsPartition, parked: ParkedListing, now: Instant) -> None:
        """If the search is not to hold up the node, since what it reads is not cached."""
        hosted = self.host.partitions.named(topic, asked.partition_index)
        if hosted is None or hosted.role is None:
            return
        try:
            cold = hosted.log.cold_for_timestamp(None if asked.timestamp == MAX_TIMESTAMP else asked.timestamp)
        except DiskError:
            return  # the search will report it
        if cold is not None:
            parked.open += self.cold.wait(ColdStep(cold.path, cold.position), cold, parked, now)

    def warmed(self, parked: ParkedListing, now: Instant) -> list[Effect]:
        """With the last of what it waits for it is answered. What has left the cache since is read all the same."""
        assert parked.open > 0 and not parked.done
        parked.open -= 1
        if parked.open:
            return []
        parked.done = True
        return [self.answer(parked.to, parked.request, now)]

    def answer(self, to: ReplyTo, request: ListOffsetsRequest, now: Instant) -> Effect:
        named = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
        topics = tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    self.offset_of(topic.name, asked, request, to.api_version, now)
                    if named[topic.name, asked.partition_index] == 1  # or a few bytes ask for a search of a whole batch
                    else ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index, error_code=ErrorCode.INVALID_REQUEST
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return Reply(to, ListOffsetsResponse(topics=topics))

    def offset_of(
        self, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, version: int, now: Instant
    ) -> ListOffsetsPartitionResponse:
        index = asked.partition_index
        is_debugging = request.replica_id == DEBUGGING
        role = self.role_of(topic, index, asked.current_leader_epoch, may_follow=is_debugging)
        if isinstance(role, ErrorCode):
            return ListOffsetsPartitionResponse(partition_index=index, error_code=role)
        log = role.log
        if version < SINCE.get(asked.timestamp, 0):
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
        of_client = request.replica_id == CONSUMER
        end = readable_end(role, request.isolation_level) if of_client else log.log_end_offset
        is_end_unknown = of_client and type(role) is Leader and role.is_end_unknown
        if asked.timestamp == LATEST:
            if is_end_unknown:
                return not_available(index, version)
            return ListOffsetsPartitionResponse(partition_index=index, offset=end, leader_epoch=role.epoch)
        if asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            return ListOffsetsPartitionResponse(
                partition_index=index,
                offset=log.log_start_offset,
                leader_epoch=log.epoch_at(log.log_start_offset),
            )
        if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return ListOffsetsPartitionResponse(partition_index=index)
        if asked.timestamp != MAX_TIMESTAMP and asked.timestamp < 0:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
        try:
            is_max = asked.timestamp == MAX_TIMESTAMP
            found = log.offset_of_max_timestamp() if is_max else log.offset_for_timestamp(asked.timestamp)
        except DiskError as error:
            self.failed(topic, index, error)
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        if isinstance(found, Damaged):
            self.host.suspects.add(self.hosted(topic, index), max(found.offset, log.log_start_offset), now)
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.CORRUPT_MESSAGE)
        if found is None:
            return ListOffsetsPartitionResponse(partition_index=index)
        if found.offset >= end:
            # Committed or not is known when the high watermark has passed the start of this epoch: "none" would send a
            # consumer to the end, past a record that an earlier leader may have committed.
            if is_end_unknown:
                return not_available(index, version)
            return ListOffsetsPartitionResponse(partition_index=index)
        return ListOffsetsPartitionResponse(
            partition_index=index, timestamp=found.timestamp, offset=found.offset, leader_epoch=found.leader_epoch
        )

    def failed(self, topic: str, index: int, error: DiskError) -> None:
        self.host.fail(self.hosted(topic, index).directory, error)

    def hosted(self, topic: str, index: int) -> Hosted:
        hosted = self.host.partitions.named(topic, index)
        assert hosted is not None
        return hosted

    def role_of(
        self, topic: str, index: int, current_leader_epoch: int, *, may_follow: bool
    ) -> Leader | Follower | ErrorCode:
        hosted = self.host.partitions.named(topic, index)
        role = None if hosted is None else hosted.role
        if role is None or not (may_follow or type(role) is Leader):
            return self.host.why_not_leader(topic, None, index, current_leader_epoch)
        return leader_epoch_error(role, current_leader_epoch) or role

    def leader_of(self, topic: str, index: int, current_leader_epoch: int) -> Leader | ErrorCode:
        leader = self.role_of(topic, index, current_leader_epoch, may_follow=False)
        assert not isinstance(leader, Follower)
        return leader

    # --- OffsetForLeaderEpoch

    def offsets_for_leader_epoch(
        self, to: ReplyTo, caller: Caller, request: OffsetForLeaderEpochRequest, now: Instant
    ) -> list[Effect]:
        topics = tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=tuple(self.end_of(topic.topic, asked) for asked in topic.partitions)
            )
            for topic in request.topics
        )
        return [Reply(to, OffsetForLeaderEpochResponse(topics=topics))]

    def end_of(self, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        leader = self.leader_of(topic, asked.partition, asked.current_leader_epoch)
        if isinstance(leader, ErrorCode):
            return EpochEndOffset(partition=asked.partition, error_code=leader)
        epoch, end = leader.log.end_offset_for_epoch(LeaderEpoch(asked.leader_epoch))
        assert end <= leader.log.log_end_offset, "a client would believe in records that nobody has"
        return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end)

    # --- DeleteRecords

    def delete_records(self, to: ReplyTo, caller: Caller, request: DeleteRecordsRequest, now: Instant) -> list[Effect]:
        deletion = Deletion(self, to)
        waits: list[tuple[Hosted, Leader]] = []
        for topic in request.topics:
            parts: list[DeletionPart] = []
            deletion.topics.append((topic.name, parts))
            for asked in topic.partitions:
                part = DeletionPart(deletion, asked.partition_index)
                parts.append(part)
                hosted = self.begin(topic.name, asked, part, now)
                if hosted is not None:
                    assert type(hosted.role) is Leader
                    hosted.wait_for_deletion(part)
                    deletion.open += 1
                    waits.append((hosted, hosted.role))
        assert deletion.open == len(waits)
        if not waits:
            return deletion.reply()
        self.host.timers.push(now + max(request.timeout_ms, 0), deletion)
        effects: list[Effect] = []
        for hosted, leader in waits:
            if hosted.role is leader:  # else the directory has failed over a later partition
                effects += hosted.complete_deletions(leader, now)
        return effects

    def begin(self, topic: str, asked: DeleteRecordsPartition, part: DeletionPart, now: Instant) -> Hosted | None:
        """Move the leader's log start. The partition if its followers are to be waited for."""
        leader = self.leader_of(topic, asked.partition_index, -1)
        if isinstance(leader, ErrorCode):
            part.done, part.error = True, leader
            return None
        if topic in INTERNAL_TOPICS:
            part.done, part.error = True, ErrorCode.INVALID_TOPIC_EXCEPTION
            return None
        if leader.log.config.cleanup_policy == ("compact",):
            part.done, part.error = True, ErrorCode.POLICY_VIOLATION
            return None
        offset = leader.high_watermark if asked.offset == TO_HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= leader.high_watermark:
            part.done, part.error = True, ErrorCode.OFFSET_OUT_OF_RANGE
            return None
        hosted = self.host.partitions.named(topic, asked.partition_index)
        assert hosted is not None
        if offset > leader.log.log_start_offset:
            try:
                leader.log.advance_log_start(offset)
            except DiskError as error:
                self.failed(topic, asked.partition_index, error)
                part.done, part.error = True, ErrorCode.KAFKA_STORAGE_ERROR
                return None
            self.fetching.log_start_moved(hosted, now)
        part.required = offset
        part.reached = leader.log.log_start_offset
        assert part.required <= part.reached <= leader.high_watermark, hosted.name
        return hosted


def readable_end(role: Leader | Follower, isolation_level: int) -> int:
    assert role.last_stable_offset <= role.high_watermark
    return role.last_stable_offset if isolation_level == READ_COMMITTED else role.high_watermark


def not_available(index: int, version: int) -> ListOffsetsPartitionResponse:
    """Ask again soon."""
    is_known = version >= OFFSET_NOT_AVAILABLE_SINCE
    error = ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
