"""Where this broker stands with the active controller: registering, running, or leaving.

Roles, in order, each a type with only what it knows:
  - `Registering`: no broker epoch yet; asks until a controller answers.
  - `Registered`: has an epoch; heartbeats. It is fenced until its metadata has caught up with its own registration.
  - `ShuttingDown`: asked for a controlled shutdown; heartbeats with WantShutDown until the controller has moved
    leadership away (or patience ends, because nobody is left who could answer).
  - `ShutDown`: may stop.

Invariants: at most one request is in flight; a broker epoch is never reused by another incarnation.
"""

from collections.abc import Mapping

from msgspec import field

from strandline.base.effects import Answered, Effect, Endpoint, Failed, Halt, Report, ToController
from strandline.base.errors import ErrorCode, error_of
from strandline.base.ids import ZERO_UUID, NodeId, TopicIdPartition, Uuid
from strandline.base.time import NEVER, Instant, after
from strandline.base.value import Value
from strandline.metadata.features import ranges
from strandline.replica.hosting.withdrawals import Withdrawn
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from strandline.wire.messages.brokers.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Listener,
    LostPartition,
    LostTopic,
)

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 2
RETRY_MS = 100
LEAVING_RETRY_MS = 50


class LifecycleSent(Value, frozen=True):
    """The token of a registration or a heartbeat."""

    number: int


class Identity(Value, frozen=True):
    """Who this process is. A new process is a new incarnation."""

    node_id: NodeId
    cluster_id: str
    incarnation_id: Uuid
    log_dirs: tuple[Uuid, ...]
    listeners: dict[str, Endpoint]  # as advertised
    rack: str | None
    previous_broker_epoch: int  # from the clean-shutdown file; -1 if the last stop was not clean
    features: dict[str, tuple[int, int]]
    whole_after: Uuid = ZERO_UUID  # the incarnation whose files said which logs are whole
    protocols: dict[str, int] = field(default_factory=dict)  # numbers by listener name; 0 if not here


class LifecycleConfig(Value, frozen=True):
    heartbeat_interval_ms: int = 2000
    session_timeout_ms: int = 9000
    directory_failure_timeout_ms: int = 30_000  # log.dir.failure.timeout.ms
    registration_timeout_ms: int = 60_000  # initial.broker.registration.timeout.ms
    leave_patience_ms: int = 2000  # how long no controller may answer before we leave without its consent

    def __post_init__(self) -> None:
        assert 2 * self.heartbeat_interval_ms <= self.session_timeout_ms, "or one that is late ends the session"
        assert self.registration_timeout_ms > 0 and self.directory_failure_timeout_ms > 0


class Registering(Value, frozen=True):
    pass


class Registered(Value, frozen=True):
    epoch: int
    fenced: bool


class ShuttingDown(Value, frozen=True):
    epoch: int
    until: Instant


class ShutDown(Value, frozen=True):
    clean: bool  # the controller agreed


Role = Registering | Registered | ShuttingDown | ShutDown


class Lifecycle:
    def __init__(self, identity: Identity, config: LifecycleConfig) -> None:
        self.identity = identity
        self.config = config
        self.role: Role = Registering()
        self.next_send: Instant = Instant(0)
        self.in_flight = 0  # the number of the request that is out, 0 if none
        self.sent = 0
        self.last_epoch = -1  # the epoch of the latest registration, also after leaving
        self.offline: tuple[Uuid, ...] = ()  # log directories that have failed
        self.asked_offline: tuple[Uuid, ...] = ()  # of them, what the request on its way reports to the controller
        self.lost: dict[TopicIdPartition, Withdrawn] = {}  # replicas that lost records, and no controller knows yet
        self.asked_lost: dict[TopicIdPartition, Withdrawn] = {}  # of them, what the request on its way reports
        self.cordoned: tuple[Uuid, ...] = ()  # log directories that get no new replicas
        self.report_until = NEVER  # when this node ends if the controller has not got all reports
        self.register_until: Instant | None = None  # when this node ends if no controller takes it; None: not begun
        self.metadata_end = 0  # exclusive end of the metadata that this node has applied

    @property
    def epoch(self) -> int:
        match self.role:
            case Registered(epoch=epoch) | ShuttingDown(epoch=epoch):
                return epoch
            case _:
                return -1

    @property
    def is_unfenced(self) -> bool:
        return isinstance(self.role, Registered) and not self.role.fenced

    def deadline(self) -> Instant:
        """Leaving ends when patience does, even while a heartbeat is out that nobody will answer."""
        role = self.role
        if type(role) is ShuttingDown:
            return role.until if self.in_flight else min(self.next_send, role.until)
        if type(role) is ShutDown:
            return NEVER
        ends = self.report_until
        if self.register_until and self.register_until < ends:
            ends = self.register_until
        return ends if self.in_flight or ends < self.next_send else self.next_send

    def expire(self, now: Instant) -> list[Effect]:
        if now < self.deadline():
            return []
        if self.report_until <= now:
            self.report_until = NEVER
            return [Halt("this broker could not report an offline log directory to the controller in time", 1)]
        if self.register_until is None:
            self.register_until = after(now, self.config.registration_timeout_ms)
        if self.register_until <= now:
            self.register_until = NEVER
            return [Halt("no controller accepted the registration of this broker in time", 1)]
        match self.role:
            case Registering():
                return self.ask(self.registration(), REGISTRATION_VERSION)
            case Registered(epoch=epoch):
                return self.ask(self.heartbeat(epoch, leaving=False), HEARTBEAT_VERSION)
            case ShuttingDown(epoch=epoch, until=until):
                if now >= until:
                    self.role = ShutDown(clean=False)
                    return [Report("warning", "stopping without the controller's consent: it did not answer in time")]
                return self.ask(self.heartbeat(epoch, leaving=True), HEARTBEAT_VERSION)
            case ShutDown():
                return []

    def step(self, event: Answered | Failed, now: Instant) -> list[Effect]:
        asked: LifecycleSent = event.token
        if asked.number != self.in_flight:
            return []  # an answer to a question that a newer one replaced
        self.in_flight = 0
        match event:
            case Failed():
                self.next_send = after(now, RETRY_MS)
                return []
            case Answered(message=BrokerRegistrationResponse() as answer):
                return self.registered(answer, now)
            case Answered(message=BrokerHeartbeatResponse() as answer):
                return self.heartbeat_answered(answer, now)
            case _:
                raise AssertionError(f"not an answer of ours: {event}")

    def metadata_moved(self, end: int, now: Instant) -> None:
        """Committed metadata below `end` is applied: a fenced broker that has caught up asks to be let in at once."""
        assert end >= self.metadata_end, "metadata is applied in order"
        caught_up_before = self.metadata_end > self.epoch
        self.metadata_end = end
        match self.role:
            case Registered(epoch=epoch, fenced=True) if end > epoch and not caught_up_before:
                self.next_send = now

    def controller_changed(self, now: Instant) -> None:
        """A new controller does not know our session yet: send a heartbeat at once, even if a request is on its way."""
        self.in_flight = 0
        if not isinstance(self.role, ShutDown):
            self.next_send = now

    def directories_failed(self, offline: tuple[Uuid, ...], now: Instant) -> None:
        """Who leads from there must lead no longer: the controller is told at once, whatever is still out, or in time;
        else this node ends, and its session with it."""
        if offline == self.offline:
            return
        assert set(offline) > set(self.offline), "what is offline stays so until the next start"
        self.offline = offline
        if self.report_until == NEVER:
            self.report_until = after(now, self.config.directory_failure_timeout_ms)
        self.controller_changed(now)

    def replicas_lost(self, found: Mapping[TopicIdPartition, Withdrawn], now: Instant) -> None:
        """None of them may be elected: the controller is told at once, whatever is still out, before it lets this
        broker in, and until it has answered."""
        if found:
            self.lost |= found
            self.controller_changed(now)

    def directories_cordoned(self, cordoned: tuple[Uuid, ...], now: Instant) -> None:
        """The controller is told at once, so that who asks it next to place replicas is answered by that."""
        if cordoned != self.cordoned:
            self.cordoned = cordoned
            self.controller_changed(now)

    def leave(self, now: Instant) -> None:
        """Begin a controlled shutdown."""
        match self.role:
            case Registered(epoch=epoch):
                self.role = ShuttingDown(epoch, after(now, self.config.leave_patience_ms))
                assert not self.is_unfenced
                self.in_flight = 0
                self.next_send = now
            case Registering():
                self.leave_unasked()

    def leave_unasked(self) -> None:
        """Stop without a controlled shutdown."""
        self.role = ShutDown(clean=False)

    # --- questions to the controller

    def ask(self, message: BrokerRegistrationRequest | BrokerHeartbeatRequest, version: int) -> list[Effect]:
        assert self.in_flight == 0, "one request at a time"
        assert type(self.role) is not ShutDown
        self.sent += 1
        self.in_flight = self.sent
        self.asked_offline = self.offline
        self.asked_lost = dict(self.lost)
        patience = self.config.session_timeout_ms // 2
        return [ToController(message, version, patience, LifecycleSent(self.sent))]

    def registration(self) -> BrokerRegistrationRequest:
        assert self.epoch == -1, "who is registered does not ask for it"
        me = self.identity
        return BrokerRegistrationRequest(
            broker_id=me.node_id,
            cluster_id=me.cluster_id,
            incarnation_id=me.incarnation_id,
            listeners=tuple(
                Listener(name=name, host=at.host, port=at.port, security_protocol=me.protocols.get(name, 0))
                for name, at in me.listeners.items()
            ),
            features=ranges(me.features),
            rack=me.rack,
            log_dirs=tuple(directory for directory in me.log_dirs if directory not in self.offline),
            previous_broker_epoch=me.previous_broker_epoch,
            lost_replicas=lost_replicas(self.lost),
            whole_after=me.whole_after,
        )

    def heartbeat(self, epoch: int, *, leaving: bool) -> BrokerHeartbeatRequest:
        assert epoch == self.last_epoch >= 0
        return BrokerHeartbeatRequest(
            broker_id=self.identity.node_id,
            broker_epoch=epoch,
            current_metadata_offset=self.metadata_end - 1,
            want_fence=False,
            want_shut_down=leaving,
            offline_log_dirs=self.offline,  # guard: lost-directory-untold
            cordoned_log_dirs=self.cordoned if self.metadata_end > epoch else None,
            lost_replicas=lost_replicas(self.lost),
        )

    # --- its answers

    def accepted(self) -> None:
        """The controller has taken what was asked. From a registration it takes nothing of who is in neither ISR nor
        ELR."""
        if self.asked_offline == self.offline:
            self.report_until = NEVER
        is_registration = type(self.role) is Registering
        for at, lost in self.asked_lost.items():
            if self.lost.get(at) is lost and not (is_registration and lost.was_taking_part):
                del self.lost[at]

    def registered(self, answer: BrokerRegistrationResponse, now: Instant) -> list[Effect]:
        assert self.in_flight == 0
        error = error_of(answer.error_code)
        if error is ErrorCode.NONE and answer.broker_epoch < 0:
            error = ErrorCode.UNKNOWN_SERVER_ERROR  # an epoch is the offset of a record
        if error is ErrorCode.NONE:
            self.accepted()
            self.role = Registered(answer.broker_epoch, fenced=True)
            self.last_epoch = answer.broker_epoch
            assert self.epoch == self.last_epoch >= 0
            self.register_until = NEVER  # of the first time alone: a controller that lost us can be asked for ever
            self.next_send = now if self.metadata_end > answer.broker_epoch else after(now, RETRY_MS)
            return [Report("info", f"registered with broker epoch {answer.broker_epoch}")]
        self.next_send = after(now, RETRY_MS)
        if error is ErrorCode.NOT_CONTROLLER:
            return []
        if error is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return [Report("info", "an earlier incarnation of this broker still has a session; waiting for its end")]
        return [Report("error", f"the controller refused our registration: {error.name}")]

    def heartbeat_answered(self, answer: BrokerHeartbeatResponse, now: Instant) -> list[Effect]:
        assert self.in_flight == 0
        match error_of(answer.error_code), self.role:
            case ErrorCode.NONE, Registered(epoch=epoch):
                self.accepted()
                self.role = Registered(epoch, answer.is_fenced)
                pause = RETRY_MS if answer.is_fenced else self.config.heartbeat_interval_ms
                self.next_send = after(now, pause)
            case ErrorCode.NONE, ShuttingDown():
                self.accepted()
                if answer.should_shut_down:
                    self.role = ShutDown(clean=True)
                else:
                    self.role = ShuttingDown(self.role.epoch, after(now, self.config.leave_patience_ms))
                    self.next_send = after(now, LEAVING_RETRY_MS)
            case ((ErrorCode.STALE_BROKER_EPOCH | ErrorCode.BROKER_ID_NOT_REGISTERED), Registered()):
                self.role = Registering()
                self.next_send = now
                return [Report("warning", "the controller no longer knows this registration; registering again")]
            case _:
                self.next_send = after(now, RETRY_MS)
        return []

    def check(self) -> None:
        assert self.in_flight in (0, self.sent), "at most the last request is out"
        assert self.offline or self.report_until == NEVER, "there is nothing to report"
        assert self.epoch in (-1, self.last_epoch), "it speaks as its latest registration"
        assert set(self.offline).issuperset(self.asked_offline)


def lost_replicas(lost: Mapping[TopicIdPartition, Withdrawn]) -> tuple[LostTopic, ...]:
    topics: dict[Uuid, list[LostPartition]] = {}
    for at, one in lost.items():
        row = LostPartition(
            partition_index=at.partition, start=one.start, end=one.end, cause=one.cause, time_ms=one.time_ms
        )
        topics.setdefault(at.topic_id, []).append(row)
    assert sum(map(len, topics.values())) == len(lost)
    return tuple(LostTopic(topic_id=topic, partitions=tuple(rows)) for topic, rows in topics.items())
