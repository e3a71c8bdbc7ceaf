"""Serving Fetch, to followers and to consumers: what is read, what waits, and who is woken.

Rules:
  - a follower reads up to the log end and so says what it has; a consumer reads up to the high watermark
  - a divergence or any error is answered at once; otherwise a fetch waits for `min_bytes`, at most `max_wait_ms`
  - the high watermark travels with the next records; a follower that has nothing else to be told learns it within
    `high_watermark_delay_ms`
  - the first partition that has records yields at least one batch, whatever the limits say
"""

from typing import NamedTuple

from strandline.base.effects import Caller, Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, NodeId
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.log.log import Log
from strandline.log.refusals import Refused
from strandline.replica.alterations import Alterations
from strandline.replica.hints import LeaderHints
from strandline.replica.hosted import Host, Hosted, leader_epoch_error
from strandline.replica.leader import Leader
from strandline.replica.sessions import NO_SESSION, Context, Interest, Sessions
from strandline.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from strandline.wire.schema import RecordsValue

TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
READ_COMMITTED = 1
NONE = int(ErrorCode.NONE)
EMPTY = b""  # not null, which librdkafka takes for a malformed answer


class ParkedFetch:
    """A Fetch that waits for records, for its time, or for a change of role."""

    __slots__ = (
        "context",
        "done",
        "fetching",
        "is_hastened",
        "listener",
        "max_bytes",
        "min_bytes",
        "read_committed",
        "size",
        "to",
    )

    def __init__(
        self, fetching: "Fetching", to: ReplyTo, caller: Caller, request: FetchRequest, context: Context
    ) -> None:
        self.fetching = fetching
        self.to = to
        self.listener = caller.listener
        self.context = context
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, fetching.host.config.answer_bytes_max)
        self.read_committed = request.isolation_level == READ_COMMITTED
        self.size = 0  # what was there, and what has been appended since: the answer may have less
        self.is_hastened = False
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        return self.fetching.answer(self)


class Collected(NamedTuple):
    parts: list[tuple[Interest, PartitionData]]
    size: int
    is_urgent: bool
    unread: list[Interest]  # they have records, but the limits were reached


class Fetching:
    def __init__(self, host: Host, alterations: Alterations, hints: LeaderHints, rng: Rng) -> None:
        self.host = host
        self.alterations = alterations
        self.hints = hints
        self.sessions = Sessions(host.config, rng)
        # Followers whose fetch waits here: a new leadership may be news to them.
        self.parked_followers: dict[NodeId, dict[Context, None]] = {}
        # Where a follower is not in the ISR. Any fetch of its is a reason to look, also one that does not name the
        # partition because nothing has changed there: another change of the ISR is over, the broker is unfenced.
        self.outsiders: dict[NodeId, dict[Hosted, None]] = {}

    # --- a request

    def fetch(self, to: ReplyTo, caller: Caller, request: FetchRequest, now: Instant) -> list[Effect]:
        if to.api_version >= REPLICA_STATE_SINCE:
            replica, broker_epoch = NodeId(request.replica_state.replica_id), request.replica_state.replica_epoch
        else:
            replica, broker_epoch = NodeId(request.replica_id), -1
        effects: list[Effect] = []
        earlier = self.sessions.sessions.get(request.session_id)
        if earlier is not None and earlier.parked is not None:
            effects += self.answer(earlier.parked)  # its client has given up waiting
        context = self.sessions.open(request, replica, to.api_version >= TOPIC_IDS_SINCE, now)
        if isinstance(context, ErrorCode):
            effects.append(Reply(to, FetchResponse(error_code=context)))
            return effects
        named = context.take(request)
        if replica >= 0:
            context.broker_epoch = broker_epoch
            self.record(context, named, effects, now)
        parked = ParkedFetch(self, to, caller, request, context)
        collected = self.collect(parked)
        if (
            collected.is_urgent
            or collected.size >= parked.min_bytes
            or request.max_wait_ms <= 0
            or not context.interests
        ):
            effects.append(self.reply(parked, collected))
        else:
            self.park(parked, collected, request.max_wait_ms, now)
        return effects

    def record(self, context: Context, named: list[Interest], effects: list[Effect], now: Instant) -> None:
        """A follower asks: so it has what lies before. That may move the high watermark and let it into the ISR."""
        replica = context.replica
        self.host.cluster.fetched_at[replica] = now
        for interest in named:
            hosted = self.resolve(interest)
            leader = None if hosted is None else hosted.role
            if hosted is None or type(leader) is not Leader or self.why_not_read(interest, leader) is not None:
                continue
            before = leader.followers[replica]
            if (
                leader.fetched(replica, interest.offset, interest.log_start_offset, context.broker_epoch, now)
                is not None
            ):
                continue
            if replica not in leader.isr.maximal:
                self.outsiders.setdefault(replica, {})[hosted] = None
            if before.log_end_offset != interest.offset and leader.advance(now):
                self.high_watermark_moved(hosted, leader, effects, now)
            if hosted.deletions and before.log_start_offset != interest.log_start_offset:
                effects += complete_deletions(hosted, leader)

        if self.outsiders.get(replica):
            self.expand(replica, now)

    def expand(self, replica: NodeId, now: Instant) -> None:
        """Propose the follower for every ISR that it may enter."""
        outside = self.outsiders[replica]
        for hosted in list(outside):
            leader = hosted.role
            if (
                hosted.gone
                or type(leader) is not Leader
                or replica not in leader.followers
                or replica in leader.isr.isr
            ):
                del outside[hosted]
            elif leader.propose_expansion(replica, now) is not None:
                self.alterations.propose(hosted)

    def note_outsiders(self, hosted: Hosted, leader: Leader) -> None:
        """After any change of the ISR or of the replicas."""
        for node in leader.followers:
            if node not in leader.isr.isr:
                self.outsiders.setdefault(node, {})[hosted] = None

    def park(self, parked: ParkedFetch, collected: Collected, max_wait_ms: int, now: Instant) -> None:
        context = parked.context
        parked.size = collected.size
        context.parked = parked
        wait = max_wait_ms
        if context.session_id == NO_SESSION:
            for interest in context.interests.values():
                hosted = self.resolve(interest)
                if hosted is not None:
                    interest.watch(hosted)
        if context.replica >= 0:
            self.parked_followers.setdefault(context.replica, {})[context] = None
            if any(is_news(i, data.high_watermark, data.log_start_offset) for i, data in collected.parts):
                parked.is_hastened = True
                wait = min(wait, self.host.config.high_watermark_delay_ms)
        self.host.timers.push(now + wait, parked)

    # --- reading

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
            return self.refusal(interest, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = leader.log
        offset, last_epoch = interest.offset, interest.last_fetched_epoch
        if last_epoch >= 0 and (last_epoch != log.latest_epoch or offset > log.log_end_offset):
            epoch, end = log.end_offset_for_epoch(LeaderEpoch(last_epoch))
            if epoch < 0:
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
                    interest.topic, interest.topic_id if context.by_id else None, interest.index
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

    # --- answers

    def answer(self, parked: ParkedFetch) -> list[Effect]:
        """Answer a parked fetch with what there is now."""
        return [self.reply(parked, self.collect(parked))]

    def reply(self, parked: ParkedFetch, collected: Collected) -> Effect:
        context = parked.context
        parked.done = True
        if context.parked is parked:
            self.unpark(context)
        dirty = context.dirty
        topics: list[FetchableTopicResponse] = []
        run: list[PartitionData] = []
        last: Interest | None = None
        moved: dict[int, None] = {}
        for interest, data in collected.parts:
            if last is not None and (last.topic_id != interest.topic_id or last.topic != interest.topic):
                topics.append(FetchableTopicResponse(topic=last.topic, topic_id=last.topic_id, partitions=tuple(run)))
                run = []
            last = interest
            run.append(data)
            if data.error_code != NONE:
                if data.current_leader.leader_id >= 0:
                    moved[data.current_leader.leader_id] = None
                continue  # stays dirty: it is an error until the client changes something
            interest.known_high_watermark = data.high_watermark
            interest.known_log_start_offset = data.log_start_offset
            dirty.pop(interest, None)
            if data.records:
                dirty[interest] = None  # last, so that the others get their turn first
        if last is not None:
            topics.append(FetchableTopicResponse(topic=last.topic, topic_id=last.topic_id, partitions=tuple(run)))
        for interest in collected.unread:
            dirty[interest] = None
        endpoints: tuple[NodeEndpoint, ...] = ()
        if moved:
            endpoints = tuple(
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in self.hints.endpoints(moved, parked.listener)
            )
        return Reply(
            parked.to,
            FetchResponse(session_id=context.session_id, responses=tuple(topics), node_endpoints=endpoints),
        )

    def unpark(self, context: Context) -> None:
        context.parked = None
        self.host.timers.settled()
        if context.replica >= 0:
            self.parked_followers[context.replica].pop(context, None)
        if context.session_id == NO_SESSION:
            context.close()

    # --- what happened to a partition

    def appended(self, hosted: Hosted, leader: Leader, size: int, effects: list[Effect], now: Instant) -> None:
        """The leader has appended: its followers' fetches are answered at once."""
        ready: list[ParkedFetch] = []
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            context = interest.context
            context.dirty[interest] = None
            parked = context.parked
            if parked is not None:
                parked.size += size
                if context.replica >= 0 and parked.size >= parked.min_bytes:
                    ready.append(parked)
        for parked in ready:
            if not parked.done:
                effects.append(self.reply(parked, self.collect(parked)))
        if leader.advance(now):
            self.high_watermark_moved(hosted, leader, effects, now)

    def high_watermark_moved(self, hosted: Hosted, leader: Leader, effects: list[Effect], now: Instant) -> None:
        if hosted.waiting:
            effects += hosted.complete_waiting(leader)
        ready: list[ParkedFetch] = []
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            context = interest.context
            context.dirty[interest] = None
            parked = context.parked
            if parked is None:
                continue
            if context.replica >= 0:
                self.hasten(parked, now)
            elif parked.size >= parked.min_bytes:
                ready.append(parked)
        for parked in ready:
            if not parked.done:
                collected = self.collect(parked)
                if collected.is_urgent or collected.size >= parked.min_bytes:
                    effects.append(self.reply(parked, collected))

    def hasten(self, parked: ParkedFetch, now: Instant) -> None:
        if not parked.is_hastened:
            parked.is_hastened = True
            self.host.timers.push(now + self.host.config.high_watermark_delay_ms, parked)

    def log_start_moved(self, hosted: Hosted, now: Instant) -> None:
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            interest.context.dirty[interest] = None
            if interest.context.parked is not None and interest.context.replica >= 0:
                self.hasten(interest.context.parked, now)

    def role_changed(self, hosted: Hosted, effects: list[Effect]) -> None:
        """Whoever waits here learns at once that the leadership is another, or that the partition is gone."""
        for key in list(hosted.watchers):
            assert isinstance(key, Interest)
            key.context.dirty[key] = None
            parked = key.context.parked
            if parked is not None and not parked.done:
                effects += self.answer(parked)
        if hosted.gone:
            hosted.watchers.clear()

    def leads_anew(self, leader: Leader, now: Instant) -> None:
        """Followers whose fetch waits here for other partitions should soon ask for this one too."""
        for node in leader.followers:
            for context in self.parked_followers.get(node, ()):
                if context.parked is not None:
                    self.hasten(context.parked, now)


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


def complete_deletions(hosted: Hosted, leader: Leader) -> list[Effect]:
    """DeleteRecords is done where all live replicas' logs start at its offset or later."""
    effects: list[Effect] = []
    low = leader.low_watermark()
    for waiter in [w for w in hosted.deletions if w.required <= low]:
        hosted.deletions.remove(waiter)
        if not waiter.done:
            effects += waiter.complete(ErrorCode.NONE)
    return effects
