"""What one fetch gets from each of its partitions: records, a refusal, a divergence, or the name of a closer replica.

Rules:
  - a follower reads the leader's log up to its end; a consumer reads any replica's up to that one's high watermark, or
    its last stable offset if it is read_committed. Then it also gets the aborted transactions of what it reads (KIP-98)
  - before anything is read, the asker's leader epoch is compared with ours (KIP-320), and the end of the last epoch
    that it has fetched with that epoch's end here
  - limits: the first partition that has records yields at least one batch, whatever they say
  - a throttled follower out of sync gets no records while the quota is exceeded; it gets everything else
  - the less memory is free for answers, the less a consumer gets, down to nothing (`left` is -1 then); followers get
    what they ask for, since there are few of them, and the high watermark waits for them
"""

from typing import NamedTuple

from msgspec.structs import replace

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, NodeId
from strandline.base.ports import Cold, DiskError
from strandline.base.time import Instant
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.replica.cold import ColdReads
from strandline.replica.hosting.follower import Follower
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted, leader_epoch_error
from strandline.replica.hosting.leader import Leader
from strandline.replica.quota import Quota
from strandline.replica.serving.contexts import NO_SESSION, Interest, ParkedFetch
from strandline.replica.serving.hints import LeaderHints
from strandline.replica.serving.selection import SELECTORS, preferred_read_replica
from strandline.replica.tokens import ColdRead
from strandline.wire.batch import batches
from strandline.wire.messages.records.fetch import AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, PartitionData
from strandline.wire.schema import RecordsValue

EMPTY = b""  # not null, which librdkafka takes for a malformed answer


class Collected(NamedTuple):
    parts: list[tuple[Interest, PartitionData]]
    size: int
    is_urgent: bool
    unread: list[Interest]  # they have records, but the limits or the quota were reached, or they are not cached


class Reading:
    def __init__(self, host: Host, hints: LeaderHints, quota: Quota, cold: ColdReads) -> None:
        self.host = host
        self.hints = hints
        self.quota = quota
        self.answers = host.answers
        self.cold = cold
        self.select = SELECTORS[host.config.replica_selector]

    def resolve(self, interest: Interest) -> Hosted | None:
        hosted = interest.hosted
        if hosted is not None and not hosted.gone:
            return hosted
        if interest.context.by_id:
            group = self.host.partitions.by_id.get(interest.topic_id)
        else:
            group = self.host.partitions.by_name.get(interest.topic)
        found = None if group is None else group.get(interest.index)
        if found is not None and interest.context.session_id != NO_SESSION:
            interest.watch(found)
        else:
            interest.hosted = found
        return found

    def collect(self, parked: ParkedFetch, now: Instant) -> Collected:
        """Read what there is within the limits. Changes nothing but `dirty`, from which it takes what has no news."""
        context = parked.context
        incremental, is_follower = context.is_incremental, context.replica >= 0
        rack = not is_follower and self.select is not None and parked.rack
        has_quota, committed = is_follower and self.quota.throttled, parked.read_committed
        parts: list[tuple[Interest, PartitionData]] = []
        unread: list[Interest] = []
        size, left, is_urgent = 0, parked.max_bytes, False
        if left > self.answers.answer_max and not is_follower:
            left = parked.cut_to(self.answers.answer_max)
        for interest in list(context.dirty) if incremental else context.interests.values():
            hosted = self.resolve(interest)
            role = None if hosted is None else hosted.role
            if hosted is None or role is None or (type(role) is not Leader and not parked.reads_followers):
                refused: PartitionData | None = self.not_here(interest)
            else:
                refused = self.why_not_read(interest, role)
                if refused is None and rack and type(role) is Leader:
                    refused = self.closer(interest, role, parked)
            if refused is not None:
                parts.append((interest, refused))
                is_urgent = True
                continue
            assert hosted is not None and role is not None  # for the type checker
            log, high_watermark, stable_end = role.log, role.high_watermark, role.last_stable_offset
            upto = log.log_end_offset if is_follower else stable_end if committed else high_watermark  # guard: visible
            if interest.offset < upto:
                read = None
                if (left > 0 or size == left) and not (has_quota and self.is_held_back(hosted, context.replica, now)):
                    limit = interest.max_bytes if interest.max_bytes < left else left
                    read = self.read(hosted, interest.offset, limit, upto, parked, now, min_one=size == 0)
                if isinstance(read, Refused):
                    parts.append((interest, self.refusal(interest, read.error)))
                    is_urgent = True
                    continue
                if read is not None and read.size:
                    size += read.size
                    left = left - read.size if read.size < left else 0
                    gaps_end = min(log.gaps_end, high_watermark) if is_follower and log.has_gaps else -1
                    row = served(interest, role, stable_end, None, read.buffers, gaps_end)
                    parts.append((interest, self.decided(interest, row, role, read, now) if committed else row))
                    continue
                unread.append(interest)
                if incremental:
                    continue
            if not incremental or is_news(interest, high_watermark, log.log_start_offset):
                parts.append((interest, served(interest, role, stable_end, () if committed else None, EMPTY)))
            else:
                context.dirty.pop(interest, None)
        return Collected(parts, size, is_urgent, unread)

    def decided(
        self, interest: Interest, row: PartitionData, role: Leader | Follower, read: Read, now: Instant
    ) -> PartitionData:
        """With the aborted transactions that have records in what was read, by their first offsets."""
        try:
            found = role.log.aborted(interest.offset, row.last_stable_offset, now)
        except DiskError as error:
            assert interest.hosted is not None
            self.host.fail(interest.hosted.directory, error)
            return self.refusal(interest, ErrorCode.KAFKA_STORAGE_ERROR)
        rows: set[tuple[int, int]] = set()
        if found:
            *_, last = batches(read.buffers[-1])
            rows = {(one.first_offset, one.producer_id) for one in found if one.first_offset < last.next_offset}
        # guard: aborted-are-not-named
        aborted = tuple(AbortedTransaction(producer_id=one, first_offset=first) for first, one in sorted(rows))
        return replace(row, aborted_transactions=aborted)

    def read(
        self,
        hosted: Hosted,
        offset: int,
        max_bytes: int,
        upto: int,
        parked: ParkedFetch,
        now: Instant,
        *,
        min_one: bool,
    ) -> Read | Refused | None:
        """None: it is not cached, and `parked` is looked at again when it is."""
        may_wait = self.cold.may_wait(hosted.at, offset) if self.cold.warmed else False
        try:
            read = hosted.log.read_if_cached(
                offset, max_bytes, upto, min_one=min_one, is_checked=True, may_wait=may_wait
            )
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, "")
        if may_wait:
            self.cold.found(ColdRead(hosted.at, offset))
        if isinstance(read, Cold):
            self.cold.wait(ColdRead(hosted.at, offset), read, parked, now)
            parked.is_cold = True
            return None
        if type(read) is Refused and read.error is ErrorCode.CORRUPT_MESSAGE:
            self.host.suspects.add(hosted, offset, now)
        return read

    # --- instead of records

    def why_not_read(self, interest: Interest, role: Leader | Follower) -> PartitionData | None:
        """The answer for a partition that cannot be read where it was asked for. None if it can."""
        error = leader_epoch_error(role, interest.leader_epoch)
        if error is not None:
            return self.refusal(interest, error)
        replica = interest.context.replica
        if replica >= 0 and not (type(role) is Leader and replica in role.followers):
            # With an epoch, it is our image that may lack the replica: a reassignment has just begun.
            is_old = interest.leader_epoch < 0
            return self.refusal(
                interest, ErrorCode.NOT_LEADER_OR_FOLLOWER if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        if type(role) is Leader and replica >= 0 and role.is_left_behind(replica, interest.context.broker_epoch):
            return self.refusal(interest, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = role.log
        offset, last_epoch = interest.offset, interest.last_fetched_epoch
        if last_epoch >= 0 and (last_epoch != log.latest_epoch or offset > log.log_end_offset):
            epoch, end = log.end_offset_for_epoch(LeaderEpoch(last_epoch))
            if epoch < 0 or offset < log.log_start_offset:
                return out_of_range(interest, role)
            if epoch < last_epoch or end < offset:  # guard: divergent-epoch-unnoticed
                return PartitionData(
                    partition_index=interest.index,
                    high_watermark=role.high_watermark,
                    last_stable_offset=role.last_stable_offset,
                    log_start_offset=log.log_start_offset,
                    diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end),
                    records=EMPTY,
                )
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return out_of_range(interest, role)
        return None

    def not_here(self, interest: Interest) -> PartitionData:
        topic_id = interest.topic_id if interest.context.by_id else None
        error = self.host.why_not_leader(interest.topic, topic_id, interest.index, interest.leader_epoch)
        return self.refusal(interest, error)

    def refusal(self, interest: Interest, error: ErrorCode) -> PartitionData:
        assert error is not ErrorCode.NONE
        hint = self.hints.leader_of(interest.topic_id, interest.topic, interest.index)
        return PartitionData(
            partition_index=interest.index,
            error_code=error,
            high_watermark=-1,
            records=EMPTY,
            current_leader=LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1]),
        )

    def closer(self, interest: Interest, leader: Leader, parked: ParkedFetch) -> PartitionData | None:
        """The answer that names a closer replica, if there is one: it has no records."""
        if self.select is None:
            return None
        node = preferred_read_replica(
            self.select,
            leader,
            self.host.image.brokers,
            offset=interest.offset,
            rack=parked.rack,
            listener=parked.listener,
        )
        if node is None:
            return None
        assert node != leader.cluster.me
        return PartitionData(
            partition_index=interest.index,
            high_watermark=leader.high_watermark,
            last_stable_offset=leader.last_stable_offset,
            log_start_offset=leader.log.log_start_offset,
            preferred_read_replica=node,
            records=EMPTY,
        )

    def is_held_back(self, hosted: Hosted, replica: NodeId, now: Instant) -> bool:
        """Is this follower throttled, and the quota exceeded? Never one in the ISR, or it would fall out of it."""
        assert type(hosted.role) is Leader
        return (  # guard: quota-holds-back-who-is-in-sync
            replica not in hosted.role.isr.isr and self.quota.is_throttled(*hosted.name) and self.quota.is_exceeded(now)
        )


def is_news(interest: Interest, high_watermark: int, log_start_offset: int) -> bool:
    return high_watermark != interest.known_high_watermark or log_start_offset != interest.known_log_start_offset


def served(
    interest: Interest,
    role: Leader | Follower,
    stable_end: int,
    aborted: tuple[AbortedTransaction, ...] | None,
    records: RecordsValue,
    gaps_end: int = -1,
) -> PartitionData:
    return PartitionData(
        partition_index=interest.index,
        high_watermark=role.high_watermark,
        last_stable_offset=stable_end,
        log_start_offset=role.log.log_start_offset,
        gaps_end=gaps_end if gaps_end > interest.offset else -1,
        aborted_transactions=aborted,
        records=records,
    )


def out_of_range(interest: Interest, role: Leader | Follower) -> PartitionData:
    """With the log start, so that a follower knows at once where to begin anew."""
    return PartitionData(
        partition_index=interest.index,
        error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=role.high_watermark,
        last_stable_offset=role.last_stable_offset,
        log_start_offset=role.log.log_start_offset,
        records=EMPTY,
    )
