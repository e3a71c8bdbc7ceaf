"""Serving Fetch, to followers and to consumers: what a follower's fetch proves, what waits, and what is answered when.

Rules:
  - a divergence or any error is answered at once; otherwise a fetch waits for `min_bytes`, at most `max_wait_ms`
  - the high watermark travels with the next records; a follower for which nothing else is new gets it within
    `high_watermark_delay_ms`
  - what is read, and what cannot be, is `Reading`'s
"""

from strandline.base.effects import Caller, Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.interrupted import Interrupted
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.replica.cold import ColdReads
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader
from strandline.replica.quota import quota_of
from strandline.replica.serving.alterations import Alterations
from strandline.replica.serving.contexts import NO_SESSION, Context, Interest, ParkedFetch
from strandline.replica.serving.hints import LeaderHints
from strandline.replica.serving.reading import Collected, Reading, is_news
from strandline.replica.serving.sessions import Sessions
from strandline.wire.messages.records.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from strandline.wire.schema import RecordsValue

TOPIC_IDS_SINCE = 13
COLD_WAIT_MS = 5_000  # for what a slow medium does not give
REPLICA_STATE_SINCE = 15
UNKNOWN = -1
NONE = int(ErrorCode.NONE)
OUR_FAULT = frozenset(map(int, (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)))


class Fetching:
    def __init__(self, host: Host, alterations: Alterations, hints: LeaderHints, rng: Rng, cold: ColdReads) -> None:
        self.host = host
        self.alterations = alterations
        self.hints = hints
        config = host.config
        self.quota = quota_of(host.me, "leader", config)
        self.answers = host.answers
        self.answer_bytes_max = config.answer_bytes_max
        self.reading = Reading(host, hints, self.quota, cold)
        self.sessions = Sessions(config, rng)
        self.waiting = 0  # Fetches
        # Followers whose fetch waits here: a new leadership may be news to them.
        self.parked_followers: dict[NodeId, dict[Context, None]] = {}
        # Where a follower is not in the ISR. Any fetch of its is a reason to look, also one that does not name the
        # partition because nothing has changed there: another change of the ISR is over, the broker is unfenced.
        self.out_of_sync: dict[NodeId, dict[Hosted, None]] = {}

    # --- a request

    def fetch(self, to: ReplyTo, caller: Caller, request: FetchRequest, now: Instant) -> list[Effect]:
        if to.api_version >= REPLICA_STATE_SINCE:
            replica, broker_epoch = NodeId(request.replica_state.replica_id), request.replica_state.replica_epoch
        else:
            replica, broker_epoch = NodeId(request.replica_id), -1
        # By a replica's position the high watermark rises.
        if replica >= 0 and not caller.is_node:  # guard: any-client-is-a-replica
            return [Reply(to, FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))]
        effects: list[Effect] = []
        earlier = self.sessions.sessions.get(request.session_id)
        if earlier is not None and earlier.parked is not None:
            effects += self.answer(earlier.parked, now)  # its client has given up waiting
        context = self.sessions.open(request, replica, to.api_version >= TOPIC_IDS_SINCE, now)
        if isinstance(context, ErrorCode):
            effects.append(Reply(to, FetchResponse(error_code=context)))
            return effects
        named = context.take(request)
        if not context.interests:
            self.sessions.end(context)
        if replica >= 0:
            context.broker_epoch = broker_epoch
            self.record(context, named, effects, now)
        try:
            parked = ParkedFetch(to, caller, request, context, self.answer_bytes_max, self.answer)
            collected = self.reading.collect(parked, now)
        except Exception as error:
            raise Interrupted(effects) from error
        if (
            collected.is_urgent
            or collected.size >= parked.min_bytes
            or (request.max_wait_ms <= 0 and not parked.is_cold)
            or not context.interests
        ):
            effects.append(self.reply(parked, collected, now))
        else:
            # Records that are there are waited for, whatever the client says about those that are to come.
            wait = max(request.max_wait_ms, COLD_WAIT_MS) if parked.is_cold else request.max_wait_ms
            self.park(parked, collected, wait, now)
        return effects

    def record(self, context: Context, named: list[Interest], effects: list[Effect], now: Instant) -> None:
        """A follower asks: so it has what lies before. That may move the high watermark and let it into the ISR.
        `effects` is a parameter, here and below, since this is the hot path."""
        replica = context.replica
        assert replica >= 0
        self.host.cluster.heard_of(replica, context.broker_epoch, now)
        for interest in named:
            hosted = self.reading.resolve(interest)
            leader = None if hosted is None else hosted.role
            if hosted is None or type(leader) is not Leader or self.reading.why_not_read(interest, leader) is not None:
                continue
            before = leader.followers[replica]
            if (
                leader.fetched(replica, interest.offset, interest.log_start_offset, context.broker_epoch, now)
                is not None
            ):
                continue
            if replica not in leader.isr.maximal:
                self.out_of_sync.setdefault(replica, {})[hosted] = None
            if before.log_end_offset != interest.offset and leader.advance(now):
                self.high_watermark_moved(hosted, leader, effects, now)
            if hosted.deletions and hosted.role is leader:
                effects += hosted.complete_deletions(leader, now)
        if self.out_of_sync.get(replica):
            self.expand(replica, now)

    def expand(self, replica: NodeId, now: Instant) -> None:
        """Propose the follower for every ISR that it may enter."""
        candidates = self.out_of_sync[replica]
        for hosted in list(candidates):
            leader = hosted.role
            if (
                hosted.gone
                or type(leader) is not Leader
                or replica not in leader.followers
                or replica in leader.isr.isr
            ):
                del candidates[hosted]
            elif leader.propose_expansion(replica, now) is not None:
                self.alterations.propose(hosted)

    def note_out_of_sync(self, hosted: Hosted, leader: Leader) -> None:
        """After any change of the ISR or of the replicas."""
        assert hosted.role is leader, hosted.name
        for node in leader.followers:
            if node not in leader.isr.isr:
                self.out_of_sync.setdefault(node, {})[hosted] = None

    def park(self, parked: ParkedFetch, collected: Collected, max_wait_ms: int, now: Instant) -> None:
        context = parked.context
        assert context.parked is None
        assert not parked.done
        assert max_wait_ms > 0
        parked.size = collected.size
        context.parked = parked
        self.waiting += 1
        wait = max_wait_ms
        if context.session_id == NO_SESSION:
            for interest in context.interests.values():
                hosted = self.reading.resolve(interest)
                if hosted is not None:
                    interest.watch(hosted)
        if context.replica >= 0:
            self.parked_followers.setdefault(context.replica, {})[context] = None
            if any(is_news(i, data.high_watermark, data.log_start_offset) for i, data in collected.parts):
                parked.is_answered_soon = True
                wait = min(wait, self.host.config.high_watermark_delay_ms)
        self.host.timers.push(now + wait, parked)

    # --- answers

    def answer(self, parked: ParkedFetch, now: Instant) -> list[Effect]:
        """Answer a parked fetch with what there is now."""
        return [self.reply(parked, self.reading.collect(parked, now), now)]

    def reply(self, parked: ParkedFetch, collected: Collected, now: Instant) -> Effect:
        assert not parked.done
        context = parked.context
        parts, size, _, unread = collected
        is_consumer = context.replica < 0
        if not is_consumer:
            self.count_replicated(collected, now)
        if size >= self.answers.counted_from:
            self.answers.gave(size, now)
        parked.done = True
        if context.parked is parked:
            self.unpark(context)
        dirty = context.dirty
        topics: list[FetchableTopicResponse] = []
        run: list[PartitionData] = []
        last: Interest | None = None
        moved: dict[int, None] = {}
        fed: list[Interest] = []
        for interest, data in parts:
            if last is not None and (last.topic_id != interest.topic_id or last.topic != interest.topic):
                topics.append(FetchableTopicResponse(topic=last.topic, topic_id=last.topic_id, partitions=tuple(run)))
                run = []
            last = interest
            run.append(data)
            if data.error_code != NONE:
                # It is an error until the client changes something, and it is news when it no longer is.
                interest.known_high_watermark = UNKNOWN
                if data.error_code in OUR_FAULT and interest.hosted is not None:
                    interest.hosted.counters.failed_fetches += 1
                if data.current_leader.leader_id >= 0:
                    moved[data.current_leader.leader_id] = None
                continue
            interest.known_high_watermark = data.high_watermark
            interest.known_log_start_offset = data.log_start_offset
            if data.records:
                fed.append(interest)
                if is_consumer and interest.hosted is not None:
                    interest.hosted.counters.bytes_out += size_of(data.records)
            elif data.diverging_epoch.epoch < 0 and data.preferred_read_replica < 0:
                dirty.pop(interest, None)
        if last is not None:
            topics.append(FetchableTopicResponse(topic=last.topic, topic_id=last.topic_id, partitions=tuple(run)))
        for interest in unread:
            dirty[interest] = None
        for interest in fed:  # last, so that the others get their turn first
            dirty.pop(interest, None)
            dirty[interest] = None
        endpoints = self.endpoints(moved, parked.listener) if moved else ()
        answer = FetchResponse(session_id=context.session_id, responses=tuple(topics), node_endpoints=endpoints)
        return Reply(parked.to, answer)

    def endpoints(self, nodes: dict[int, None], listener: str) -> tuple[NodeEndpoint, ...]:
        return tuple(
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in self.hints.endpoints(nodes, listener)
        )

    def count_replicated(self, collected: Collected, now: Instant) -> None:
        """What throttled replicas are sent counts for the quota, also where they are in sync."""
        self.host.replicated_out += collected.size
        if not self.quota.throttled:
            return
        size = 0
        for interest, data in collected.parts:
            if data.records and interest.hosted is not None and self.quota.is_throttled(*interest.hosted.name):
                size += size_of(data.records)
        if size:
            self.quota.record(size, now)

    def unpark(self, context: Context) -> None:
        assert self.waiting > 0
        context.parked = None
        self.waiting -= 1
        self.host.timers.entry_done()
        if context.replica >= 0:
            self.parked_followers[context.replica].pop(context, None)
        if context.session_id == NO_SESSION:
            context.close()

    # --- what happened to a partition

    def appended(self, hosted: Hosted, leader: Leader, size: int, effects: list[Effect], now: Instant) -> None:
        """The leader has appended: its followers' fetches are answered at once. `effects`: see `record`."""
        assert size > 0
        leader.unseen_bytes += size
        ready: list[ParkedFetch] = []
        is_throttled = bool(self.quota.throttled) and self.quota.is_throttled(*hosted.name)
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            context = interest.context
            context.dirty[interest] = None
            parked = context.parked
            if parked is not None:
                if is_throttled and context.replica >= 0 and self.reading.is_held_back(hosted, context.replica, now):
                    continue
                parked.size += size
                if context.replica >= 0 and parked.size >= parked.min_bytes:
                    ready.append(parked)
        for parked in ready:
            if not parked.done:
                effects.append(self.reply(parked, self.reading.collect(parked, now), now))
        if hosted.role is leader and leader.advance(now):  # else a read has failed, and its directory with it
            self.high_watermark_moved(hosted, leader, effects, now)

    def high_watermark_moved(self, hosted: Hosted, leader: Leader, effects: list[Effect], now: Instant) -> None:
        """What waited for it is answered. `effects`: see `record`."""
        assert hosted.role is leader, hosted.name
        if hosted.waiting:
            effects += hosted.complete_waiting(leader, now)
        ready: list[ParkedFetch] = []
        is_throttled = bool(self.quota.throttled) and self.quota.is_throttled(*hosted.name)
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            context = interest.context
            context.dirty[interest] = None
            parked = context.parked
            if parked is None:
                continue
            if context.replica >= 0:
                if not is_throttled or not self.reading.is_held_back(hosted, context.replica, now):
                    self.answer_soon(parked, now)
            elif parked.size + leader.unseen_bytes >= parked.min_bytes or (
                parked.read_committed and leader.log.transactions.are_used
            ):
                # What it may see now may have been appended before it came: a marker may have ended a long transaction.
                ready.append(parked)
        if leader.high_watermark == leader.log.log_end_offset:
            leader.unseen_bytes = 0
        for parked in ready:
            if not parked.done:
                collected = self.reading.collect(parked, now)
                if collected.is_urgent or collected.size >= parked.min_bytes:
                    effects.append(self.reply(parked, collected, now))

    def warmed(self, parked: ParkedFetch, now: Instant) -> list[Effect]:
        """What a slow medium had is cached: what waits for it is looked at anew."""
        parked.is_cold = False
        collected = self.reading.collect(parked, now)
        if collected.is_urgent or collected.size >= parked.min_bytes or not parked.is_cold:
            return [self.reply(parked, collected, now)]
        return []

    def copied(self, hosted: Hosted, effects: list[Effect], now: Instant) -> None:
        """A follower's log or high watermark has moved: consumers that read it here may have something to read.
        `effects`: see `record`."""
        ready: dict[ParkedFetch, None] = {}
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            interest.context.dirty[interest] = None
            if interest.context.parked is not None:
                ready[interest.context.parked] = None
        for parked in ready:
            collected = self.reading.collect(parked, now)
            if collected.is_urgent or collected.size >= parked.min_bytes:
                effects.append(self.reply(parked, collected, now))

    def answer_soon(self, parked: ParkedFetch, now: Instant) -> None:
        assert not parked.done
        if not parked.is_answered_soon:
            parked.is_answered_soon = True
            self.host.timers.push(now + self.host.config.high_watermark_delay_ms, parked)

    def log_start_moved(self, hosted: Hosted, now: Instant) -> None:
        for interest in hosted.watchers:
            assert isinstance(interest, Interest)
            interest.context.dirty[interest] = None
            if interest.context.parked is not None and interest.context.replica >= 0:
                self.answer_soon(interest.context.parked, now)

    def role_changed(self, hosted: Hosted, now: Instant) -> list[Effect]:
        """Fetches that wait here are answered at once: the leadership is another, or the partition is gone."""
        effects: list[Effect] = []
        for key in list(hosted.watchers):
            assert isinstance(key, Interest)
            key.context.dirty[key] = None
            parked = key.context.parked
            if parked is not None and not parked.done:
                effects += self.answer(parked, now)
        if type(hosted.role) is not Leader or hosted.gone:
            for candidates in self.out_of_sync.values():
                candidates.pop(hosted, None)  # a follower that is dead does not ask any more
        if hosted.gone:
            hosted.unwatch_all()
        return effects

    def leads_anew(self, leader: Leader, now: Instant) -> None:
        """Followers whose fetch waits here for other partitions should soon ask for this one too."""
        for node in leader.followers:
            for context in self.parked_followers.get(node, ()):
                if context.parked is not None:
                    self.answer_soon(context.parked, now)

    def check(self) -> None:
        self.sessions.check()
        assert sum(session.parked is not None for session in self.sessions.sessions.values()) <= self.waiting
        for node, contexts in self.parked_followers.items():
            assert all(context.parked is not None and context.replica == node for context in contexts)
        assert not any(hosted.gone for waiting in self.out_of_sync.values() for hosted in waiting), (
            "it is kept for ever"
        )


def size_of(records: RecordsValue) -> int:
    if isinstance(records, tuple):
        return sum(map(len, records))
    return 0 if records is None else len(records)
