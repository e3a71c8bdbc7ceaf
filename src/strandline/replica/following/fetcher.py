"""Copying from one leader broker: all partitions that it leads and this broker follows.

One Fetch is in flight at most, in an incremental session (KIP-227): a request names only partitions whose position is
not the one that the session has. What was asked is kept per partition, and an answer is taken only together with it.

Invariants (executed by `check`):
  - what has something to ask is `dirty`; what must wait is in `delayed` and out of the session after the next request
  - the session's positions are exactly those that the leader has
"""

from strandline.base.effects import Effect, Failure, Report, Send
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.replica.hosting.follower import Follower, Next, Position, Served, buffers_of
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.losses.losing import note_together
from strandline.replica.quota import Quota
from strandline.replica.tokens import FetchSent
from strandline.wire.messages.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from strandline.wire.messages.records.fetch import ReplicaState as AskingReplica

VERSION = 18
NO_SESSION = 0
EPOCH_MAX = 0x7FFF_FFFF
NONE = int(ErrorCode.NONE)


class Wake:
    """A timer: the fetcher, or one of its partitions, may ask again."""

    __slots__ = ("at", "done", "fetcher", "is_throttle")

    def __init__(self, fetcher: "Fetcher", at: TopicIdPartition | None) -> None:
        self.fetcher = fetcher
        self.at = at
        self.is_throttle = False
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        self.done = True
        return self.fetcher.wake_up(self, now)


class Fetcher:
    def __init__(self, host: Host, leader: NodeId, quota: Quota) -> None:
        self.host = host
        self.leader = leader
        self.quota = quota
        self.partitions: dict[TopicIdPartition, Hosted] = {}
        self.dirty: dict[TopicIdPartition, None] = {}
        self.delayed: dict[TopicIdPartition, Wake] = {}
        self.asked: dict[TopicIdPartition, Position] = {}  # what the session has
        self.forgotten: dict[TopicIdPartition, None] = {}  # in the session, but no longer to be answered
        self.session_id = NO_SESSION
        self.session_epoch = 0
        self.moved: list[Hosted] = []  # consumers wait for them, and something changed
        self.has_cut = False  # a log was truncated, or may have gaps from now on: checkpoints must say so at once
        self.cutting: list[tuple[Hosted, Position, Served]] = []  # answers by which logs are to be cut
        self.session_broker_epoch = -1  # the incarnation in which the session began
        self.sequence = 0
        self.is_in_flight = False
        self.pause: Wake | None = None

    # --- what is followed

    def follow(self, hosted: Hosted) -> None:
        assert isinstance(hosted.role, Follower)
        assert hosted.role.leader == self.leader, hosted.name
        self.partitions[hosted.at] = hosted
        self.calm(hosted.at)
        assert hosted.at not in self.delayed, hosted.name
        self.dirty[hosted.at] = None

    def leave(self, at: TopicIdPartition) -> None:
        self.partitions.pop(at, None)
        self.dirty.pop(at, None)
        self.calm(at)
        if at in self.asked:
            self.forgotten[at] = None

    def calm(self, at: TopicIdPartition) -> None:
        wake = self.delayed.pop(at, None)
        if wake is not None:
            wake.done = True
            self.host.timers.entry_done()

    def follower(self, at: TopicIdPartition) -> Follower | None:
        hosted = self.partitions.get(at)
        role = None if hosted is None else hosted.role
        return role if type(role) is Follower else None

    # --- asking

    def flush(self, now: Instant) -> list[Effect]:
        """The next Fetch, if none is in flight and there is something to ask about."""
        if self.is_in_flight or self.pause is not None:
            return []
        if not self.partitions or (len(self.delayed) == len(self.partitions) and not self.asked):
            return []
        broker = self.host.image.brokers.get(self.leader)
        endpoint = None if broker is None else broker.endpoints.get(self.host.config.inter_broker_listener)
        if endpoint is None:
            self.wait(self.host.config.fetch_backoff_ms, now)
            return []
        if self.session_broker_epoch != self.host.cluster.broker_epoch:
            # Registered anew: idle partitions are named again too, or they count as another incarnation for good.
            self.session_broker_epoch = self.host.cluster.broker_epoch
            self.new_session()
        if self.quota.throttled:
            self.hold_back(now)
        topics = self.changes()
        if self.session_epoch == 0 and not topics:
            return []
        config = self.host.config
        request = FetchRequest(
            replica_state=AskingReplica(replica_id=self.host.me, replica_epoch=self.host.cluster.broker_epoch),
            max_wait_ms=config.fetch_wait_max_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_response_max_bytes,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=topics,
            forgotten_topics_data=self.forget(),
        )
        assert len(self.asked) <= len(self.partitions)
        assert not self.forgotten
        self.is_in_flight = True
        self.sequence += 1
        token = FetchSent(self.leader, self.sequence)
        return [Send(endpoint, "fetch", request, VERSION, config.fetch_timeout_ms, token, self.leader)]

    def changes(self) -> tuple[FetchTopic, ...]:
        """The partitions whose position the session does not have, which from now on it has."""
        topics: dict[Uuid, list[FetchPartition]] = {}
        size = self.host.config.fetch_max_bytes
        for at in self.dirty:
            follower = self.follower(at)
            if follower is None or at in self.delayed:
                continue
            position = follower.position()
            self.asked[at] = position
            self.forgotten.pop(at, None)
            row = FetchPartition(
                partition=at.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=size,
                high_watermark=follower.high_watermark,
            )
            rows = topics.get(at.topic_id)
            if rows is None:
                topics[at.topic_id] = [row]
            else:
                rows.append(row)
        self.dirty = {}
        return tuple([FetchTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in topics.items()])

    def hold_back(self, now: Instant) -> None:
        """While the quota is exceeded, throttled partitions wait; not where we are in sync, or we would not be long."""
        if not self.quota.is_exceeded(now):
            return
        for at in [at for at in self.partitions if at not in self.delayed]:
            follower = self.follower(at)
            is_in_sync = follower is None or self.host.me in follower.isr
            if not is_in_sync and self.quota.is_throttled(*self.partitions[at].name):
                self.delay(at, self.host.config.quota_window_ms, now)
                self.delayed[at].is_throttle = True

    def quota_changed(self, now: Instant) -> None:
        """A rate that was raised lets go at once whom it held back."""
        held = [at for at, wake in self.delayed.items() if wake.is_throttle]
        if held and not self.quota.is_exceeded(now):
            for at in held:
                self.calm(at)
                self.dirty[at] = None

    def forget(self) -> tuple[ForgottenTopic, ...]:
        if not self.forgotten:
            return ()
        topics: dict[Uuid, list[int]] = {}
        for at in self.forgotten:
            del self.asked[at]
            topics.setdefault(at.topic_id, []).append(at.partition)
        self.forgotten = {}
        if self.session_epoch == 0:
            return ()  # a new session has nothing to forget
        return tuple(ForgottenTopic(topic_id=topic_id, partitions=tuple(rows)) for topic_id, rows in topics.items())

    # --- answers

    def failed(self, why: Failure, now: Instant) -> list[Effect]:
        assert self.is_in_flight
        self.is_in_flight = False
        self.new_session()
        config = self.host.config
        retry_soon = why in (Failure.REFUSED, Failure.CLOSED)
        self.wait(config.fetch_retry_ms if retry_soon else config.fetch_backoff_ms, now)
        return []

    def new_session(self) -> None:
        self.session_id, self.session_epoch = NO_SESSION, 0
        self.asked = {}
        self.forgotten = {}
        self.dirty = dict.fromkeys(at for at in self.partitions if at not in self.delayed)

    def answered(self, response: FetchResponse, now: Instant) -> list[Effect]:
        assert self.is_in_flight
        assert not self.cutting
        self.is_in_flight = False
        if response.error_code != NONE:
            was_full = self.session_epoch == 0
            self.new_session()
            if was_full:
                self.wait(self.host.config.fetch_backoff_ms, now)
            return []
        effects: list[Effect] = []
        for topic in response.responses:
            for row in topic.partitions:
                self.take(TopicIdPartition(topic.topic_id, row.partition_index), row, effects, now)
        if self.cutting:
            self.cut(effects, now)
        if response.session_id == NO_SESSION:
            self.new_session()
        else:
            self.session_id = response.session_id
            self.session_epoch = 1 if self.session_epoch == EPOCH_MAX else self.session_epoch + 1
        return effects

    def take(self, at: TopicIdPartition, row: PartitionData, effects: list[Effect], now: Instant) -> None:
        """One partition of the answer. `effects` is a parameter, as below, since this is the hot path."""
        asked = self.asked.get(at)
        hosted = self.partitions.get(at)
        role = None if hosted is None else hosted.role
        if asked is None or hosted is None or type(role) is not Follower or at in self.delayed:
            return
        if row.records:
            size = sum(map(len, buffers_of(row.records)))
            self.host.replicated_in += size
            if self.quota.throttled and self.quota.is_throttled(*hosted.name):
                self.quota.record(size, now)
        answer = Served(
            error_of(row.error_code) if row.error_code else ErrorCode.NONE,
            row.high_watermark,
            row.log_start_offset,
            row.diverging_epoch.epoch,
            row.diverging_epoch.end_offset,
            row.records,
            row.gaps_end,
        )
        if answer.diverging_epoch >= 0 or answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.cutting.append((hosted, asked, answer))
        else:
            self.serve(hosted, role, asked, answer, effects, now)

    def cut(self, effects: list[Effect], now: Instant) -> None:
        """What many logs lose is noted with one wait for the disk, before any of them is cut. `effects`: see `take`."""
        cutting, self.cutting = self.cutting, []
        assert cutting
        losing = []
        for hosted, asked, answer in cutting:
            role = hosted.role
            try:
                if type(role) is Follower:
                    losing.append((hosted, role.expected_losses(asked, answer, now)))
            except DiskError as error:
                self.host.fail(hosted.directory, error)
        note_together(self.host, [(hosted, events) for hosted, events in losing if events])
        for hosted, asked, answer in cutting:
            role = hosted.role
            if type(role) is Follower and hosted.at not in self.delayed:
                self.serve(hosted, role, asked, answer, effects, now)

    def serve(
        self, hosted: Hosted, role: Follower, asked: Position, answer: Served, effects: list[Effect], now: Instant
    ) -> None:
        """`effects`: see `take`."""
        at = hosted.at
        # Consumers that read from here look when any of these changes.
        before = (role.high_watermark, role.log.log_start_offset, role.cuts) if hosted.watchers else None
        had_gaps, cuts = role.log.has_gaps, role.log.cuts
        try:
            went = role.served(asked, answer, now)
        except DiskError as error:
            self.host.fail(hosted.directory, error)
            return
        if before is not None and before != (role.high_watermark, role.log.log_start_offset, role.cuts):
            self.moved.append(hosted)
        if role.log.cuts != cuts or role.log.has_gaps != had_gaps:
            self.has_cut = True
        if role.losses:
            effects += [Report("error", text) for text in role.take_losses()]
        if went is Next.RETRY_SOON or went is Next.BACK_OFF:
            config = self.host.config
            self.delay(at, config.fetch_retry_ms if went is Next.RETRY_SOON else config.fetch_backoff_ms, now)
        elif (
            went is Next.STALE
            or role.log.log_end_offset != asked.offset  # guard: log-end-moved-since-asked
            or role.log.log_start_offset != asked.log_start_offset
            or answer.diverging_epoch >= 0
        ):
            self.dirty[at] = None

    def take_moved(self) -> list[Hosted]:
        moved, self.moved = self.moved, []
        return moved

    def take_cut(self) -> bool:
        has_cut, self.has_cut = self.has_cut, False
        return has_cut

    # --- waiting

    def delay(self, at: TopicIdPartition, span_ms: int, now: Instant) -> None:
        """One partition waits; meanwhile the session does not have it."""
        assert at not in self.delayed
        assert at in self.partitions
        self.delayed[at] = wake = Wake(self, at)
        self.dirty.pop(at, None)
        if at in self.asked:
            self.forgotten[at] = None
        self.host.timers.push(now + span_ms, wake)

    def wait(self, span_ms: int, now: Instant) -> None:
        """All wait: the leader broker does not answer."""
        if self.pause is None:
            self.pause = Wake(self, None)
            self.host.timers.push(now + span_ms, self.pause)

    def wake_up(self, wake: Wake, now: Instant) -> list[Effect]:
        if wake.at is None:
            self.pause = None
        else:
            del self.delayed[wake.at]
            self.dirty[wake.at] = None
        return []  # `Replicas` flushes after every step

    def leader_is_back(self) -> None:
        """Its registration changed: try at once."""
        if self.pause is not None:
            self.pause.done = True
            self.pause = None
            self.host.timers.entry_done()

    def check(self) -> None:
        assert set(self.dirty) <= set(self.partitions) | set(self.forgotten)
        assert set(self.delayed) <= set(self.partitions)
        assert not set(self.delayed) & set(self.dirty)
        assert set(self.forgotten) <= set(self.asked)
        assert not self.cutting
        assert not self.moved, "they are taken with each answer"
        assert self.pause is None or not self.pause.done
        assert self.session_epoch > 0 or self.session_id == NO_SESSION
        assert all(at in self.partitions or at in self.forgotten for at in self.asked), "the session forgets it"
