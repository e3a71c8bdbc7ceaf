"""A node with an authorizer. One without is a plain `Node`, and never asks whether there is a gate."""

from strandline.base.effects import Disconnected, Effect, Event, Received
from strandline.base.time import Instant
from strandline.broker.authorizing.gate import Gate
from strandline.broker.node import Node
from strandline.broker.parts import Parts
from strandline.security.acls.authorizer import Authorizer


class GuardedNode(Node):
    def __init__(self, parts: Parts, now: Instant) -> None:
        super().__init__(parts, now)
        config = parts.config
        self.gate = Gate(
            Authorizer(
                config.super_users,
                allows_if_no_acl=config.allows_everyone,
            )
        )

    def step(self, event: Event, now: Instant) -> list[Effect]:
        if type(event) is Disconnected:
            self.gate.disconnected(event.connection)
        return super().step(event, now)

    def received(self, event: Received, now: Instant) -> list[Effect]:
        """What comes before this broker has joined is judged when it is let in: until then no ACL may be known here."""
        is_controller = self.is_controller_listener(event.caller.listener)
        if event.caller.is_node or (self.early is not None and not is_controller):
            return super().received(event, now)
        admitted = self.gate.admit(self, event, is_controller=is_controller)
        return super().received(admitted, now) if type(admitted) is Received else admitted  # type: ignore[return-value]  # effects

    def propagate(self, effects: list[Effect], now: Instant) -> list[Effect]:
        """As a node's own. All `effects` of every step come through here."""
        done = super().propagate(effects, now)
        return self.gate.finish(done) if self.gate.pending else done

    def check(self) -> None:
        super().check()
        self.gate.check()


def node_of(parts: Parts, now: Instant) -> Node:
    return GuardedNode(parts, now) if parts.config.has_authorizer else Node(parts, now)
