"""What a Fetch reads: from which partitions, how far, and what a partition answers that cannot be read where asked.

Rules:
  - a follower reads up to the log end and so says what it has; a consumer reads up to the high watermark
  - an asker whose last epoch is not ours up to its offset is told where it diverges, and is given no records
  - the first partition that has records yields at least one batch, whatever the limits say
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch
from strandline.log.log import Log
from strandline.log.refusals import Refused
from strandline.replica.hints import LeaderHints
from strandline.replica.hosted import Host, Hosted, leader_epoch_error
from strandline.replica.leader import Leader
from strandline.replica.sessions import NO_SESSION, Interest
from strandline.wire.messages.fetch import EpochEndOffset, LeaderIdAndEpoch, PartitionData
from strandline.wire.schema import RecordsValue

if TYPE_CHECKING:
    from strandline.replica.fetching import ParkedFetch

EMPTY = b""  # not null, which librdkafka takes for a malformed answer


class Collected(NamedTuple):
    parts: list[tuple[Interest, PartitionData]]
    size: int
    is_urgent: bool
    unread: list[Interest]  # they have records, but the limits were reached


class Reading:
    def __init__(self, host: Host, hints: LeaderHints) -> None:
        self.host = host
        self.hints = hints

    def resolve(self, interest: Interest) -> Hosted | None:
        hosted = interest.hosted
        if hosted is not None and not hosted.gone:
            return hosted
        if interest.context.by_id:
            group = self.host.by_id.get(interest.topic_id)
        else:
            group = self.host.by_name.get(interest.topic)
        found = None if group is None else group.get(interest.index)
        if found is not None and interest.context.session_id != NO_SESSION:
            interest.watch(found)
        else:
            interest.hosted = found
        return found

    def why_not_read(self, interest: Interest, leader: Leader) -> PartitionData | None:
        """The answer for a partition that cannot be read where it was asked for. None if it can."""
        error = leader_epoch_error(leader, interest.leader_epoch)
        if error is not None:
            return self.refusal(interest, error)
        if interest.context.replica >= 0 and interest.context.replica not in leader.followers:
            # With an epoch, it is our image that may lack the replica: a reassignment has just begun.
            is_old = interest.leader_epoch < 0
            return self.refusal(
                interest, ErrorCode.NOT_LEADER_OR_FOLLOWER if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        log = leader.log
        offset, last_epoch = interest.offset, interest.last_fetched_epoch
        if last_epoch >= 0 and (last_epoch != log.latest_epoch or offset > log.log_end_offset):
            epoch, end = log.end_offset_for_epoch(LeaderEpoch(last_epoch))
            if epoch < 0 or offset < log.log_start_offset:
                return out_of_range(interest, leader)
            if epoch < last_epoch or end < offset:
                return PartitionData(
                    partition_index=interest.index,
                    high_watermark=leader.high_watermark,
                    last_stable_offset=leader.high_watermark,
                    log_start_offset=log.log_start_offset,
                    diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end),
                    records=EMPTY,
                )
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return out_of_range(interest, leader)
        return None

    def refusal(self, interest: Interest, error: ErrorCode) -> PartitionData:
        hint = self.hints.leader_of(interest.topic_id, interest.topic, interest.index)
        return PartitionData(
            partition_index=interest.index,
            error_code=error,
            high_watermark=-1,
            records=EMPTY,
            current_leader=LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1]),
        )

    def collect(self, parked: ParkedFetch) -> Collected:
        """Read what there is within the limits. Changes nothing but `dirty`, from which it takes what has no news."""
        context = parked.context
        incremental = context.is_incremental
        is_follower = context.replica >= 0
        parts: list[tuple[Interest, PartitionData]] = []
        unread: list[Interest] = []
        size, left, is_urgent = 0, parked.max_bytes, False
        for interest in list(context.dirty) if incremental else context.interests.values():
            hosted = self.resolve(interest)
            leader = None if hosted is None else hosted.role
            if type(leader) is not Leader:
                error = self.host.why_not_leader(
                    interest.topic, interest.topic_id if context.by_id else None, interest.index, interest.leader_epoch
                )
                parts.append((interest, self.refusal(interest, error)))
                is_urgent = True
                continue
            refused = self.why_not_read(interest, leader)
            if refused is not None:
                parts.append((interest, refused))
                is_urgent = True
                continue
            log: Log = leader.log
            high_watermark = leader.high_watermark
            upto = log.log_end_offset if is_follower else high_watermark
            if interest.offset < upto:
                limit = min(interest.max_bytes, left)
                read = log.read(interest.offset, limit, upto=upto, min_one=size == 0) if left > 0 or size == 0 else None
                if isinstance(read, Refused):
                    parts.append((interest, self.refusal(interest, read.error)))
                    is_urgent = True
                    continue
                if read is not None and read.size:
                    size += read.size
                    left = max(0, left - read.size)
                    parts.append((interest, served(interest, leader, parked.read_committed, read.buffers)))
                    continue
                unread.append(interest)
                if incremental:
                    continue
            if not incremental or is_news(interest, high_watermark, log.log_start_offset):
                parts.append((interest, served(interest, leader, parked.read_committed, EMPTY)))
            else:
                context.dirty.pop(interest, None)
        return Collected(parts, size, is_urgent, unread)


def is_news(interest: Interest, high_watermark: int, log_start_offset: int) -> bool:
    return high_watermark != interest.known_high_watermark or log_start_offset != interest.known_log_start_offset


def served(interest: Interest, leader: Leader, read_committed: bool, records: RecordsValue) -> PartitionData:
    high_watermark = leader.high_watermark
    return PartitionData(
        partition_index=interest.index,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=leader.log.log_start_offset,
        aborted_transactions=() if read_committed else None,
        records=records,
    )


def out_of_range(interest: Interest, leader: Leader) -> PartitionData:
    """With the log start, so that a follower knows at once where to begin anew."""
    return PartitionData(
        partition_index=interest.index,
        error_code=ErrorCode.OFFSET_OUT_OF_RANGE,
        high_watermark=leader.high_watermark,
        last_stable_offset=leader.high_watermark,
        log_start_offset=leader.log.log_start_offset,
        records=EMPTY,
    )
