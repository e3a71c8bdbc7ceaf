"""One node: a broker, a controller, or both, as one pure machine.

`step` takes one event, lets the machine concerned handle it, and carries its consequences to the others in their order
until nothing moves any more: quorum → committed metadata → controller, replicas, groups, lifecycle. Effects come out.

Four internal shortcuts never reach the driver:
  - `ToController` becomes a `Send`, or is handed straight to this node's own active controller;
  - `ToBroker` becomes a `Send`, or is handed straight to this node's own broker;
  - an answer of these two to this node itself becomes `Answered`;
  - records that the controller writes go to the quorum's log.

Invariants: the controller is active only while this node leads the quorum and has applied everything up to its own
leader epoch; the image never runs ahead of the quorum's high watermark.
"""

from collections.abc import Sequence

from strandline.base.effects import (
    Answered,
    Caller,
    Close,
    Disconnected,
    Effect,
    Event,
    Failed,
    Failure,
    Halt,
    Probed,
    Received,
    Reply,
    ReplyTo,
    Report,
    Synced,
    SyncFailed,
    ToBroker,
    ToController,
    Token,
    Warmed,
)
from strandline.base.ids import NOBODY, NodeId
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.broker import due
from strandline.broker.addressing import hold, others, sent_to_broker, sent_to_controller
from strandline.broker.authenticating import authenticating_of
from strandline.broker.broker import Broker
from strandline.broker.committed import Committed
from strandline.broker.faults.containing import Containment, HalfDone
from strandline.broker.faults.interruptible import half_done_in
from strandline.broker.faults.quarantine import Quarantine, Quarantined
from strandline.broker.faults.refusing import refusing
from strandline.broker.forward import Forwarded, Forwarding
from strandline.broker.handlers import metadata
from strandline.broker.lifecycle import ShutDown
from strandline.broker.parts import Parts, missing_topics
from strandline.broker.quotas.throttling import ClientQuotas
from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES, Route
from strandline.controller.controller import Controller
from strandline.controller.tokens import ControllerToken
from strandline.metadata.framing import encode_record
from strandline.metadata.image import Image
from strandline.quorum.quorum import Quorum
from strandline.quorum.tokens import QuorumToken
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.schema import Message

UNFIT_METADATA = 65  # EX_DATAERR: the exit status of a node that cannot apply what is committed
MYSELF = -1  # the connection of requests that this node sends to its own controller or broker


class Node:  # at most 29 attributes, and one in `GuardedNode`: with more Python is slower, 0.8 % of a Produce
    def __init__(self, parts: Parts, now: Instant) -> None:
        config = parts.config
        self.config = config
        self.me = config.node_id
        self.controller_listeners = config.controller_listener_names
        self.cluster_id = parts.identity.cluster_id
        self.voters = parts.voters
        self.committed = Committed(parts.metadata_log, config.metadata_snapshot_bytes, config.metadata_snapshot_ms)
        self.quorum = Quorum(
            self.me,
            parts.metadata_directory_id,
            self.cluster_id,
            parts.voters,
            parts.metadata_log,
            parts.quorum_config,
            parts.rng,
            now,
            self.committed.found,
        )
        self.metadata_log = parts.metadata_log
        self.controller: Controller | None = None
        if config.is_controller:
            self.controller = Controller(self.me, parts.controller_config, config.explicit, parts.rng, self)
        self.broker: Broker | None = Broker(parts) if config.is_broker else None
        self.authenticating = authenticating_of(config, parts.secret, parts.rng, lambda: self.image.scram)
        self.forwarding = Forwarding(config.integer("request.timeout.ms"))
        self.quotas = ClientQuotas(parts.quota_config, parts.stopwatch)
        self.has_quotas = False  # else clients' quotas are in nobody's way
        self.completes_answers = False  # before they go out: with waits for quotas, or with what a gate took away
        self.known_leader: tuple[NodeId, int] = (NOBODY, -1)
        self.own_requests: dict[int, Token] = {}
        self.own_count = 0
        self.written: list[Effect] = []  # what the quorum wants done for records that the controller just wrote
        self.halted = False
        self.is_parting = False  # it has resigned as the quorum's leader, and stops next
        self.is_idle = False  # the last time that was due, nothing was to be done
        self.is_closing = False  # there is no broker, and it stops
        self.fault = ""  # why it stops, if nobody asked it to
        self.early: list[Received] | None = []  # clients' requests from before this broker was let in; None since then
        self.containment = Containment(Quarantine(parts.disk, config.metadata_log_dir))
        self.refuse_quarantined()

    # --- what the driver calls

    def start(self, now: Instant) -> list[Effect]:
        effects = self.broker.load(now) if self.broker is not None else []
        return self.propagate(effects + self.quorum.start(now), now)

    def step(self, event: Event, now: Instant) -> list[Effect]:
        try:
            match event:
                case Received():
                    return self.propagate(self.received(event, now), now)
                case Disconnected():
                    return self.propagate(self.disconnected(event, now), now)
                case _:
                    return self.propagate(self.answered(event, now), now)
        except DiskError:
            raise
        except Exception as error:
            return self.half_done(event, error, now)

    def deadline(self) -> Instant:
        if self.halted:
            return self.containment.stops_at
        if self.is_parting or self.committed.has_more:
            return Instant(0)
        return min(self.quorum.deadline(), due.deadline(self.forwarding, self.controller, self.broker))

    def expire(self, now: Instant) -> list[Effect]:
        if self.containment.is_stopping:
            return self.containment.expire(now)
        try:
            return self.on_time(now)
        except HalfDone as error:
            return self.half_done(error.event, error, now)

    def on_time(self, now: Instant) -> list[Effect]:
        is_first_due = self.is_parting or self.committed.has_more or self.quorum.deadline() <= now
        self.is_parting = False
        # What a lost leadership means comes first: a node that stood still may find both timers due, and a controller
        # that is none any more must not write.
        done = self.quorum.expire(now)
        if done or is_first_due:  # else nothing has moved since the last step
            done = self.propagate(done, now)
        if self.halted:
            return done
        self.is_idle = not (done or is_first_due or due.is_due(self.forwarding, self.controller, self.broker, now))
        if self.is_idle:
            return []
        effects = self.apply_committed(now) if self.committed.has_more else []
        effects += self.forwarding.expire(now)
        if self.controller is not None:
            effects += self.controller.expire(now)
        if self.broker is not None:
            effects += self.broker.expire(now)
            effects += self.answer_metadata(self.broker, now, moved=False)
        return done + self.propagate(effects, now)

    def shutdown(self, now: Instant) -> list[Effect]:
        """Begin to stop, with the controller's consent if so configured; it ends with `Halt`."""
        if self.containment.is_stopping:
            return []
        if self.broker is None:
            self.is_closing = True
            return self.propagate([], now)
        if self.config.boolean("controlled.shutdown.enable"):
            self.broker.lifecycle.leave(now)
        else:
            self.broker.lifecycle.leave_unasked()
        return self.propagate([], now)

    def check(self, *, image: bool = True) -> None:
        """`image`: that too, which changes only with what is committed."""
        if self.containment.is_stopping:
            return
        for machine in (self.image if image else None, self.quorum, self.controller, self.broker):
            if machine is not None:
                machine.check()
        assert self.committed.end <= self.quorum.high_watermark
        assert self.controller is None or not self.controller.is_active or self.quorum.is_leader
        assert not self.written, "what was written is carried out"
        self.forwarding.check()
        self.quotas.check()
        assert max(self.own_requests, default=0) <= self.own_count
        if self.controller is not None and self.controller.is_active:
            assert self.controller.epoch == self.quorum.leader_epoch, "it writes for this leadership"
        if self.broker is not None and not self.halted:
            assert self.early is None or not self.broker.lifecycle.is_unfenced, "clients are let in"
            assert not self.broker.has_news, "what failed or was lost is passed on in the same step"

    # --- what handlers ask

    @property
    def image(self) -> Image:
        return self.committed.image

    @property
    def applied_end(self) -> int:
        return self.committed.end

    @property
    def active_controller(self) -> NodeId:
        return self.quorum.leader_id

    def is_controller_listener(self, listener: str) -> bool:
        return listener in self.controller_listeners

    def create_missing_topics(self, names: Sequence[str], now: Instant, asked: Received | None = None) -> list[Effect]:
        """Ask the controller for topics that a client named; nobody waits for the answer, clients ask again."""
        assert self.broker is not None, "clients name topics to brokers"
        request = missing_topics(names, self.config)
        if request is not None and asked is not None and self.has_quotas:
            request = self.quotas.creatable(asked, request, self.image, now)
        return [] if not (request and request.topics) else self.forwarding.forward(None, request, 7, 5000, now)

    # --- events

    def received(self, event: Received, now: Instant) -> list[Effect]:
        try:
            is_controllers = event.caller.listener in self.controller_listeners
            routes = self.controller_routes if is_controllers else self.broker_routes
            if self.early is not None and not is_controllers and type(event.message) is not ApiVersionsRequest:
                return hold(self.early, event)
            route = routes.get(type(event.message))
            if route is None:
                return [Close(event.to.connection, f"api {event.to.api_key} is not served on {event.caller.listener}")]
            if self.has_quotas:
                event = self.quotas.take(event, now)
            return route(self, event, now)
        except DiskError:
            raise
        except Exception as error:
            return self.raised(event, error, now)

    # --- exceptions

    def raised(self, event: Received, error: Exception, now: Instant) -> list[Effect]:
        """Out of a handler. It costs the connection if nothing is half done."""
        if isinstance(error.__cause__, DiskError):
            raise error.__cause__
        if not self.containment.is_on:
            raise error
        where = half_done_in(error)
        if where is not None or isinstance(error, HalfDone):
            raise self.containment.half_done(event, error, where or "") from error
        effects = self.containment.cost(event, error, now)
        if event.to.connection == MYSELF and not any(isinstance(effect, Reply) for effect in effects):
            effects += self.answered(Failed(self.own_requests.pop(event.to.sequence), Failure.TIMED_OUT), now)
        return effects

    def half_done(self, event: Event, error: Exception, now: Instant) -> list[Effect]:
        """Nothing of this node's state is used again. An exception that no request led to comes out of the node."""
        if not isinstance(event, Received) and isinstance(error, HalfDone):
            event = error.event  # it was held, or this node's own
        if not (self.containment.is_on and isinstance(event, Received)):
            raise error
        found = self.containment.half_done(event, error, "what follows from a request")
        effects = self.containment.stop(event, error, found, others(self, self.config.inter_broker_listener_name), now)
        self.halted = True
        self.step = self.containment.step  # type: ignore[method-assign]  # requests need not ask each time
        return effects

    def quarantine_requests(self, requests: tuple[Quarantined, ...]) -> None:
        """Another node is about to stop because of them."""
        if self.containment.quarantine.add(requests):
            self.refuse_quarantined()

    def refuse_quarantined(self) -> None:
        """Requests of other APIs need not be compared."""
        for_brokers, for_controllers = self.open_routes()
        self.broker_routes = refusing(self.containment.quarantine, for_brokers)
        self.controller_routes = refusing(self.containment.quarantine, for_controllers)

    def open_routes(self) -> tuple[dict[type, Route], dict[type, Route]]:
        """Those of a broker's listeners and of a controller's, without quarantine."""
        return BROKER_ROUTES, CONTROLLER_ROUTES

    # --- requests that came early

    def let_clients_in(self, now: Instant) -> list[Effect]:
        assert self.early is not None, "once"
        held, self.early = self.early or [], None
        return [effect for event in held for effect in self.received(event, now)]

    def disconnected(self, event: Disconnected, now: Instant) -> list[Effect]:
        self.authenticating.forget(event.connection)
        if self.early:  # or a client that comes and goes would take the places of all others
            self.early = [held for held in self.early if held.to.connection != event.connection]
        self.quotas.forget(event.connection)
        effects = self.broker.disconnected(event) if self.broker is not None else []
        return effects + (self.controller.step(event, now) if self.controller is not None else [])

    def answer_metadata(self, broker: Broker, now: Instant, *, moved: bool) -> list[Effect]:
        due = broker.suspects.due(now, moved=moved)
        effects: list[Effect] = []
        for event in due:
            if self.has_quotas:
                self.quotas.go_on(event.to, now)
            effects += metadata.answer(self, event, now)
        return effects

    def answered(self, event: Answered | Failed | Synced | SyncFailed | Warmed | Probed, now: Instant) -> list[Effect]:
        token = event.token
        if isinstance(token, ControllerToken):
            assert self.controller is not None
            return self.controller.step(event, now)
        assert not isinstance(event, Probed), "only the controller probes"
        if isinstance(token, QuorumToken):
            assert not isinstance(event, SyncFailed | Warmed), "a node without its metadata directory ends"
            return self.quorum.step(event, now)
        if type(token) is Forwarded:
            assert not isinstance(event, Synced | SyncFailed | Warmed), "nothing that is passed on is written"
            return self.forwarding.step(event, now)
        assert self.broker is not None
        return self.broker.answered(event, now)

    # --- consequences

    def propagate(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Carry `effects` to every machine that they concern, until nothing moves; the rest is the driver's."""
        done: list[Effect] = []
        while True:
            more: list[Effect] = []
            for effect in effects:
                if type(effect) is Reply and effect.to.connection != MYSELF:
                    done.append(effect)
                elif type(effect) is Reply:
                    more += self.own_request_answered(effect, now)
                elif type(effect) is ToController:
                    more += self.to_controller(effect, now)
                elif type(effect) is ToBroker:
                    more += self.to_broker(effect, now)
                else:
                    done.append(effect)
            more += self.consequences(now)
            if not more:
                return self.complete(done, now) if self.completes_answers else done
            effects = more

    def complete(self, done: list[Effect], now: Instant) -> list[Effect]:
        """What a step wants done, with waits for clients that have used up their quotas."""
        done = self.quotas.throttle(done, now) if self.has_quotas else done
        self.completes_answers = self.has_quotas = self.quotas.is_needed
        return done

    def consequences(self, now: Instant) -> list[Effect]:
        effects, self.written = self.written, []
        quorum, committed = self.quorum.state, self.committed
        if quorum.high_watermark > committed.end and committed.unfit is None and not committed.has_more:
            effects += self.apply_committed(now)
        if not self.fault and (quorum.verdict or committed.unfit is not None):
            self.give_up()
        leader = (quorum.leader_id, quorum.epoch)
        if leader != self.known_leader:
            effects += self.leader_changed(leader, now)
        if self.controller is not None:
            effects += self.follow_leadership(self.controller, now)
        broker = self.broker
        if broker is not None:
            if self.early is not None and broker.lifecycle.is_unfenced:
                effects += self.let_clients_in(now)
            if broker.has_news:
                effects += broker.notice(now)
            role = broker.lifecycle.role
            if type(role) is ShutDown and not self.halted:
                effects += self.part(clean=role.clean, now=now)
        if self.is_closing and not self.halted:
            effects += self.part(clean=True, now=now)
        return effects

    def apply_committed(self, now: Instant) -> list[Effect]:
        effects = self.committed.advance(self.quorum.high_watermark, now)
        delta = self.image.take_delta()
        self.quotas.follow(self.image)
        self.has_quotas = self.quotas.is_needed
        self.completes_answers |= self.has_quotas
        if self.broker is not None:
            effects += self.broker.apply(self.image, delta, self.committed.end, now)
            effects += self.answer_metadata(self.broker, now, moved=True)
        if self.controller is not None and self.controller.is_active:
            effects += self.controller.committed(self.committed.end, now)
        return effects

    def give_up(self) -> None:
        """There is metadata that cannot be applied. Nothing may be left out, so this node goes no further: it stops in
        order, without the controller's consent, which it could not learn to have."""
        assert not self.fault, "once"
        unfit = self.committed.unfit
        self.fault = self.quorum.state.verdict
        if unfit is not None:
            self.fault = f"{unfit.text}. It is committed; the next start compares it with the leader's"
        if self.broker is None:
            self.is_closing = True
        else:
            self.broker.lifecycle.leave_unasked()

    def leader_changed(self, leader: tuple[NodeId, int], now: Instant) -> list[Effect]:
        assert leader != self.known_leader
        self.known_leader = leader
        if leader[0] == NOBODY:
            return []
        self.forwarding.controllers += 1
        if self.broker is not None:
            self.broker.lifecycle.controller_changed(now)
        return [Report("info", f"the active controller is node {leader[0]} (epoch {leader[1]})")]

    def follow_leadership(self, controller: Controller, now: Instant) -> list[Effect]:
        """Active while this node leads the quorum. A new leader first waits until every record of earlier leaders is
        applied: then its own image and the committed one agree."""
        leads = self.quorum.is_leader
        if controller.is_active:
            return [] if leads and controller.epoch == self.quorum.leader_epoch else controller.deactivate(now)
        # guard: acts-before-it-knows
        if leads and self.committed.end > self.quorum.epoch_start_offset:
            return controller.activate(self.image.copy(), self.quorum.leader_epoch, now)
        return []

    def part(self, *, clean: bool, now: Instant) -> list[Effect]:
        """The others elect a leader of the quorum while this node makes its logs durable: that may take seconds, and
        what a step does is performed after it. A flush under way is waited for: should it fail, the kernel would call
        the next one done, and the logs would be said to be whole. So is the file that says how far metadata is
        committed here."""
        assert not self.halted
        if self.quorum.is_leader:
            self.is_parting = True
            effects = self.quorum.resign(now)
            if self.controller is not None:
                effects += self.follow_leadership(self.controller, now)  # it must write no more
            return effects
        is_flushing = self.broker is not None and bool(self.broker.replicas.storage.flushing.in_flight)
        if self.is_parting or is_flushing:
            return []
        effects = self.quorum.close(now)
        return effects if not self.quorum.is_closed else [*effects, *self.stop(clean=clean, now=now)]

    def stop(self, *, clean: bool, now: Instant) -> list[Effect]:
        assert not self.halted, "once"
        self.halted = True
        assert self.quorum.is_closed
        effects = self.broker.stop(now) if self.broker is not None else []
        effects += self.quorum.resign(now)
        why = "controlled shutdown is complete" if clean else "stopped without a controlled shutdown"
        return [*effects, Halt(self.fault or why, UNFIT_METADATA if self.fault else 0)]

    # --- talking to the active controller, and to other brokers

    def to_controller(self, effect: ToController, now: Instant) -> list[Effect]:
        leader = self.quorum.leader_id
        if leader == self.me:
            assert self.controller is not None, "who leads the quorum is a controller"
            return self.ask_myself(effect, self.controller_listeners[0], now)
        send = sent_to_controller(effect, leader, self.voters.get(leader))
        return self.answered(Failed(effect.token, Failure.CLOSED), now) if send is None else [send]

    def to_broker(self, effect: ToBroker, now: Instant) -> list[Effect]:
        listener = self.config.inter_broker_listener_name
        if effect.node == self.me:
            return self.ask_myself(effect, listener, now)
        send = sent_to_broker(effect, self.image.brokers.get(effect.node), listener)
        return self.answered(Failed(effect.token, Failure.CLOSED), now) if send is None else [send]

    def ask_myself(self, effect: ToController | ToBroker, listener: str, now: Instant) -> list[Effect]:
        self.own_count += 1
        self.own_requests[self.own_count] = effect.token
        to = ReplyTo(MYSELF, self.own_count, 0, type(effect.message).api_key, effect.version)
        caller = Caller("strandline", "127.0.0.1", listener, is_node=True)
        return self.received(Received(to, caller, effect.message), now)

    def own_request_answered(self, reply: Reply, now: Instant) -> list[Effect]:
        assert reply.message is not None, "this node asks for nothing that has no answer"
        return self.answered(Answered(self.own_requests.pop(reply.to.sequence), reply.message), now)

    # --- MetadataWriter, for the controller

    @property
    def next_offset(self) -> int:
        return self.metadata_log.log_end_offset

    def append(self, records: list[Message], now: Instant) -> int:
        """Write records to the metadata log; returns the offset of the last. They are not committed yet."""
        assert records, "a batch has records"
        assert self.quorum.is_leader, "only the leader writes"
        last, effects = self.quorum.append([encode_record(record) for record in records], now)
        self.written += effects
        return last
