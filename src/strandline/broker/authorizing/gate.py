"""The gate of a node with an authorizer: what is not permitted goes no further, and answers hide what may not be seen.

It stands before the routes, and behind them where an answer must be completed. What a request causes inside the node is
not judged again. Nodes pass, and so do super users.

Invariant: each entry of `pending` is about a request that is not answered yet, of a connection that is open.
"""

from typing import cast

from msgspec.structs import replace

from strandline.base.effects import Close, Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.broker.authorizing.fetching import FetchSessions
from strandline.broker.authorizing.table import broker_rows, controller_rows
from strandline.broker.authorizing.verdict import Split, refuse
from strandline.broker.handlers.port import NodePort
from strandline.security.acls.authorizer import Authorizer


class Gate:
    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self.sessions = FetchSessions()
        self.for_brokers = broker_rows(self.sessions)
        self.for_controllers = controller_rows()
        self.pending: dict[int, dict[int, Split]] = {}  # by connection and sequence

    def admit(self, node: NodePort, received: Received, *, is_controller: bool) -> Received | list[Effect]:
        """What of a request the node is to do; or the answer, if that is nothing."""
        caller, image = received.caller, node.image
        authorizer = self.authorizer
        if image.acls_version != authorizer.version:
            authorizer.follow(image.acls, image.acls_version)
        if caller.principal in authorizer.super_users:
            return received
        judge = (self.for_controllers if is_controller else self.for_brokers).get(received.to.api_key)
        if judge is None:
            return refuse(received, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        verdict = judge(node, received, authorizer.rights(caller.principal, caller.host))
        if type(verdict) is Split:
            self.pending.setdefault(received.to.connection, {})[received.to.sequence] = verdict
            return verdict.received
        return cast("Received | list[Effect]", verdict)

    def finish(self, effects: list[Effect]) -> list[Effect]:
        """Complete those of the answers that are to requests of which a part was taken away. `effects`: all that the
        node wants done."""
        assert self.pending, "nothing is to be done else"
        done: list[Effect] = []
        for effect in effects:
            waiting = self.pending.get(effect.to.connection) if type(effect) is Reply else None
            if waiting is None or type(effect) is not Reply or (split := waiting.pop(effect.to.sequence, None)) is None:
                done.append(effect)
                continue
            if not waiting:
                del self.pending[effect.to.connection]
            done.append(effect if effect.message is None else replace(effect, message=split.merge(effect.message)))
            if split.closes:
                done.append(Close(effect.to.connection, split.closes))
        return done

    def disconnected(self, connection: int) -> None:
        self.pending.pop(connection, None)

    def check(self) -> None:
        assert all(self.pending.values()), "a connection without a request that waits is not there"
        self.authorizer.index.check()
