"""One node: a broker, a controller, or both, as one pure machine.

`step` takes one event, lets the machine concerned handle it, and then carries its consequences to the others in a fixed
order until nothing moves any more: quorum → committed metadata → controller, replicas, groups, lifecycle. What comes
out is a list of effects for the driver.

Three internal shortcuts never reach the driver:
  - `ToController` becomes a `Send`, or is handed straight to this node's own active controller;
  - an answer of that controller to this node itself becomes `Answered`;
  - records that the controller writes go to the quorum's log.

Invariants: the controller is active only while this node leads the quorum and has applied everything up to its own
leader epoch; the image never runs ahead of the quorum's high watermark.
"""

from collections.abc import Sequence
from typing import Any, cast

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
    Send,
    Synced,
    ToController,
)
from strandline.base.ids import NOBODY, NodeId
from strandline.base.time import NEVER, Instant
from strandline.broker import forward, lifecycle, producer_ids
from strandline.broker.committed import Committed
from strandline.broker.parts import Parts, auto_topic
from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES
from strandline.controller.controller import Controller
from strandline.log.clean_shutdown import write_clean_shutdown
from strandline.metadata.framing import encode_record
from strandline.metadata.image import Image
from strandline.wire.schema import Message

MYSELF = -1  # the connection of requests that this node sends to its own controller


class Node:
    def __init__(self, parts: Parts) -> None:
        self.me = parts.config.node_id
        self.config = parts.config
        self.cluster_id = parts.cluster_id
        self.voters = parts.voters
        self.supported_features = parts.supported_features
        self.disk = parts.disk
        self.quorum = parts.quorum
        self.committed = Committed(parts.metadata_log, parts.config.metadata_snapshot_bytes)
        self.controller = parts.controller
        self.replicas = parts.replicas
        self.groups = parts.groups
        self.lifecycle = lifecycle.Lifecycle(parts.identity, parts.lifecycle_config)
        self.forwarding = forward.Forwarding()
        self.producer_ids = producer_ids.ProducerIds(self.me)
        self.clean_start = parts.clean_start
        self.known_controller: tuple[NodeId, int] = (NOBODY, -1)
        self.own_requests: dict[int, tuple[Any, ...]] = {}
        self.own_count = 0
        self.own_caller = Caller("strandline", "127.0.0.1", parts.config.controller_listener_names[0])
        self.written: list[Effect] = []  # what the quorum wants done for records that the controller just wrote
        self.halted = False
        if parts.controller is not None:
            parts.controller.writer = self

    # --- what the driver calls

    def start(self, now: Instant) -> list[Effect]:
        effects = self.replicas.load(now, self.clean_start) if self.replicas else []
        self.committed.advance(self.quorum.high_watermark, now)
        effects += self.quorum.start(now)
        return self.settle(effects, now)

    def step(self, event: Event, now: Instant) -> list[Effect]:
        match event:
            case Received():
                return self.settle(self.received(event, now), now)
            case Disconnected():
                return self.settle(self.disconnected(event, now), now)
            case _:
                return self.settle(self.answered(event, now), now)

    def deadline(self) -> Instant:
        if self.halted:
            return NEVER
        return min(
            self.quorum.deadline(),
            self.controller.deadline() if self.controller else NEVER,
            self.replicas.deadline() if self.replicas else NEVER,
            self.groups.deadline() if self.groups else NEVER,
            self.lifecycle.deadline() if self.replicas else NEVER,
            self.forwarding.deadline(),
            self.producer_ids.deadline(),
        )

    def expire(self, now: Instant) -> list[Effect]:
        effects = self.quorum.expire(now)
        if self.controller is not None:
            effects += self.controller.expire(now)
        if self.replicas is not None:
            effects += self.replicas.expire(now)
            effects += self.lifecycle.expire(now)
        if self.groups is not None:
            effects += self.groups.expire(now)
        effects += self.forwarding.expire(now)
        effects += self.producer_ids.expire(self.lifecycle.epoch, now)
        return self.settle(effects, now)

    def shutdown(self, now: Instant) -> list[Effect]:
        """Begin a controlled shutdown; it ends with `Halt`."""
        if self.replicas is None:
            return self.settle(self.stop(clean=True, now=now), now)
        self.lifecycle.leave(now)
        return self.settle([], now)

    def check(self) -> None:
        self.image.check()
        self.quorum.check()
        for machine in (self.controller, self.replicas, self.groups):
            if machine is not None:
                machine.check()
        assert self.committed.end <= max(self.quorum.high_watermark, self.committed.end)

    # --- what handlers ask

    @property
    def image(self) -> Image:
        return self.committed.image

    @property
    def applied_end(self) -> int:
        return self.committed.end

    def is_controller_listener(self, listener: str) -> bool:
        return listener in self.config.controller_listener_names

    def create_missing_topics(self, names: Sequence[str], now: Instant) -> list[Effect]:
        """Ask the controller for topics that a client named; nobody waits for the answer, clients ask again."""
        if not self.config.auto_create_topics_enable:
            return []
        request = auto_topic(names, self.config)
        return self.forwarding.forward(None, request, 7, 5000, now)

    # --- events

    def received(self, event: Received, now: Instant) -> list[Effect]:
        routes = CONTROLLER_ROUTES if self.is_controller_listener(event.caller.listener) else BROKER_ROUTES
        route = routes.get(type(event.message))
        if route is None:
            return [Close(event.to.connection, f"api {event.to.api_key} is not served on {event.caller.listener}")]
        return route(self, event, now)

    def disconnected(self, event: Disconnected, now: Instant) -> list[Effect]:
        return self.controller.step(event, now) if self.controller is not None else []

    def answered(self, event: Answered | Failed | Synced | Probed, now: Instant) -> list[Effect]:
        match event.token[0]:
            case "replica":
                assert self.replicas is not None and not isinstance(event, Probed)
                return self.replicas.step(event, now)
            case "quorum":
                assert not isinstance(event, Probed)
                return self.quorum.step(event, now)
            case "controller":
                assert self.controller is not None
                return self.controller.step(event, now)
            case lifecycle.NAME:
                assert isinstance(event, Answered | Failed)
                return self.lifecycle.step(event, now)
            case forward.NAME:
                assert isinstance(event, Answered | Failed)
                return self.forwarding.step(event, now)
            case producer_ids.NAME:
                assert isinstance(event, Answered | Failed)
                return self.producer_ids.step(event, now)
            case name:
                raise AssertionError(f"an answer for nobody: {name}")

    # --- consequences

    def settle(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """Carry what just happened to every machine it concerns, until nothing moves; return what the driver must do."""
        done: list[Effect] = []
        while True:
            more: list[Effect] = []
            for effect in effects:
                kind = type(effect)
                if kind is ToController:
                    more += self.to_controller(cast(ToController, effect), now)
                elif kind is Reply and cast(Reply, effect).to.connection == MYSELF:
                    more += self.own_request_answered(cast(Reply, effect), now)
                else:
                    done.append(effect)
            more += self.consequences(now)
            if not more:
                return done
            effects = more

    def consequences(self, now: Instant) -> list[Effect]:
        effects, self.written = self.written, []
        quorum = self.quorum
        if quorum.high_watermark > self.committed.end:
            effects += self.apply_committed(now)
        leader = (quorum.leader_id, quorum.leader_epoch)
        if leader != self.known_controller:
            effects += self.leader_changed(leader, now)
        if self.controller is not None and quorum.is_leader != self.controller.is_active:
            effects += self.change_controller(self.controller, now)
        if type(self.lifecycle.role) is lifecycle.Left and not self.halted:
            effects += self.stop(clean=self.lifecycle.role.clean, now=now)
        return effects

    def apply_committed(self, now: Instant) -> list[Effect]:
        effects = self.committed.advance(self.quorum.high_watermark, now)
        delta = self.image.take_delta()
        if delta and self.replicas is not None:
            effects += self.replicas.apply(self.image, delta, now)
            if self.groups is not None:
                effects += self.groups.apply(self.image, delta, now)
        self.lifecycle.metadata_moved(self.committed.end, now)
        if self.controller is not None and self.controller.is_active:
            effects += self.controller.committed(self.quorum.high_watermark, now)
        return effects

    def leader_changed(self, leader: tuple[NodeId, int], now: Instant) -> list[Effect]:
        self.known_controller = leader
        if leader[0] == NOBODY:
            return []
        self.lifecycle.controller_changed(now)
        return [Report("info", f"the active controller is node {leader[0]} (epoch {leader[1]})")]

    def change_controller(self, controller: Controller, now: Instant) -> list[Effect]:
        """Standby to active waits until every record of earlier leaders is applied: then the two images agree."""
        if controller.is_active:
            return controller.deactivate(now)
        if self.committed.end <= self.quorum.epoch_start_offset:
            return []
        return controller.activate(self.image.copy(), self.quorum.leader_epoch, now)

    def stop(self, *, clean: bool, now: Instant) -> list[Effect]:
        self.halted = True
        effects: list[Effect] = []
        if self.replicas is not None:
            effects += self.replicas.shutdown(now)
            write_clean_shutdown(self.disk, self.config.log_dirs, self.lifecycle.last_epoch)
        effects += self.quorum.resign(now)
        why = "controlled shutdown is complete" if clean else "stopped without a controlled shutdown"
        return [*effects, Halt(why, 0)]

    # --- talking to the active controller

    def to_controller(self, effect: ToController, now: Instant) -> list[Effect]:
        leader = self.quorum.leader_id
        if leader == self.me:
            self.own_count += 1
            self.own_requests[self.own_count] = effect.token
            to = ReplyTo(MYSELF, self.own_count, 0, type(effect.message).key, effect.version)
            return self.received(Received(to, self.own_caller, effect.message), now)
        if leader not in self.voters:
            return self.answered(Failed(effect.token, Failure.CLOSED), now)
        return [
            Send(self.voters[leader], "controller", effect.message, effect.version, effect.timeout_ms, effect.token)
        ]

    def own_request_answered(self, reply: Reply, now: Instant) -> list[Effect]:
        return self.answered(Answered(self.own_requests.pop(reply.to.sequence), reply.message), now)

    # --- MetadataWriter, for the controller

    @property
    def next_offset(self) -> int:
        return self.quorum.log.log_end_offset

    def append(self, records: list[Message], now: Instant) -> int:
        """Write records to the metadata log; returns the offset of the last. They are not committed yet."""
        last, effects = self.quorum.append([encode_record(record) for record in records], now)
        self.written += effects
        return last
