"""A node with an authorizer: its routes lie behind the gate. One without is a plain `Node`, which never asks whether
there is a gate.

What comes before a broker has joined is judged when it is let in: until then its metadata may lack ACLs.
"""

from collections.abc import Iterable

from strandline.base.effects import Caller, Disconnected, Effect, Received
from strandline.base.time import Instant
from strandline.broker.authorizing.gate import Gate
from strandline.broker.authorizing.verdict import may_topic
from strandline.broker.node import Node
from strandline.broker.parts import Parts
from strandline.broker.route import Route
from strandline.metadata.security.acls import AclOperation
from strandline.security.acls.authorizer import Authorizer


class GuardedNode(Node):
    def __init__(self, parts: Parts, now: Instant) -> None:
        config = parts.config
        self.gate = Gate(Authorizer(config.super_users, allows_if_no_acl=config.allows_everyone))
        super().__init__(parts, now)
        if self.broker is not None:
            self.broker.groups.heartbeats.planner.describable = self.describable

    def describable(self, caller: Caller, names: Iterable[str]) -> Iterable[str]:
        """Which of these topics may the caller describe? A subscription by an expression reaches no others."""
        rights = self.gate.authorizer.rights(caller.principal, caller.host)
        if caller.is_node or rights.is_super:
            return names
        return [name for name in names if may_topic(rights, AclOperation.DESCRIBE, name)]

    def open_routes(self) -> tuple[dict[type, Route], dict[type, Route]]:
        return self.gate.for_brokers, self.gate.for_controllers

    def disconnected(self, event: Disconnected, now: Instant) -> list[Effect]:
        self.gate.disconnected(event.connection)
        return super().disconnected(event, now)

    def raised(self, event: Received, error: Exception, now: Instant) -> list[Effect]:
        self.gate.forget(event.to)
        return super().raised(event, error, now)

    def apply_committed(self, now: Instant) -> list[Effect]:
        effects = super().apply_committed(now)
        self.gate.authorizer.follow(self.image.acls, self.image.acls_version)
        return effects

    def complete(self, done: list[Effect], now: Instant) -> list[Effect]:
        """And with what was refused of a request that is answered in part."""
        done = super().complete(done, now)
        if self.gate.pending:
            done = self.gate.finish(done)
            self.completes_answers |= bool(self.gate.pending)
        return done

    def check(self, *, image: bool = True) -> None:
        super().check(image=image)
        self.gate.check()
        assert self.completes_answers or not self.gate.pending, "an answer would lack what was refused"
        assert self.gate.authorizer.version in (-1, self.image.acls_version)


def node_of(parts: Parts, now: Instant) -> Node:
    return GuardedNode(parts, now) if parts.config.has_authorizer else Node(parts, now)
