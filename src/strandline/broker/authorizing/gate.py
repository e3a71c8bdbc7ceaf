"""The gate of a node with an authorizer: what is not permitted goes no further, and answers hide what may not be seen.

It stands before each route, and behind the node where an answer must be completed. What a request causes inside the
node is not judged again. Nodes pass, and so do super users.

Invariant: each entry of `pending` is about a request that is not answered yet, of a connection that is open.
"""

from msgspec.structs import replace

from strandline.base.effects import Close, Effect, Received, Reply, ReplyTo
from strandline.base.time import Instant
from strandline.broker.authorizing.fetching import FetchSessions
from strandline.broker.authorizing.table import broker_rows, controller_rows
from strandline.broker.authorizing.verdict import Judge, Split
from strandline.broker.route import BROKER_ROUTES, CONTROLLER_ROUTES, Machines, Route
from strandline.security.acls.authorizer import Authorizer
from strandline.wire.api import api_of


class Gate:
    def __init__(self, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self.sessions = FetchSessions()
        self.pending: dict[int, dict[int, Split]] = {}  # by connection and sequence
        self.for_brokers = self.guarded(BROKER_ROUTES, broker_rows(self.sessions))
        self.for_controllers = self.guarded(CONTROLLER_ROUTES, controller_rows())

    def guarded(self, routes: dict[type, Route], rows: dict[int, Judge]) -> dict[type, Route]:
        """The same routes, each behind its row. One without a row is an error at the start, not a way around."""
        return {request: self.behind(rows[api_of(request).key], route) for request, route in routes.items()}

    def behind(self, judge: Judge, route: Route) -> Route:
        authorizer = self.authorizer
        known = authorizer.known

        def judged(node: Machines, received: Received, now: Instant) -> list[Effect]:
            caller = received.caller
            if caller.is_node:
                return route(node, received, now)
            rights = known.get((caller.principal, caller.host))  # as `Authorizer.rights`: this is the hot path
            if rights is None:
                rights = authorizer.rights(caller.principal, caller.host)
            if rights.is_super:
                return route(node, received, now)
            verdict = judge(node, received, rights)
            if verdict is received:  # nearly always
                return route(node, received, now)
            if isinstance(verdict, Received):
                return route(node, verdict, now)
            if not isinstance(verdict, Split):
                return verdict
            self.pending.setdefault(received.to.connection, {})[received.to.sequence] = verdict
            node.completes_answers = True
            return route(node, verdict.received, now)  # guard: split-goes-through-whole

        return judged

    def finish(self, effects: list[Effect]) -> list[Effect]:
        """Complete those of the answers that are to requests of which a part was taken away. `effects`: all that the
        node wants done."""
        assert self.pending, "nothing is to be done else"
        done: list[Effect] = []
        for effect in effects:
            split = self.forget(effect.to) if type(effect) is Reply else None
            if split is None or type(effect) is not Reply:
                done.append(effect)
                continue
            done.append(effect if effect.message is None else replace(effect, message=split.merge(effect.message)))
            if split.closes:
                done.append(Close(effect.to.connection, split.closes))
        return done

    def forget(self, to: ReplyTo) -> Split | None:
        """What was to be done with the answer: nothing if the request raised. All of it fails, refused parts too."""
        waiting = self.pending.get(to.connection)
        split = None if waiting is None else waiting.pop(to.sequence, None)
        if waiting is not None and not waiting:
            del self.pending[to.connection]
        return split

    def disconnected(self, connection: int) -> None:
        self.pending.pop(connection, None)

    def check(self) -> None:
        assert all(self.pending.values()), "a connection without a request that waits is not there"
        self.authorizer.index.check()
