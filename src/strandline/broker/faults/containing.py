"""What a request costs that made this node raise.

If nothing is half done, it costs the client's connection, and the operator gets a line. If something may be half done,
this node stops as after a kill: nothing in memory is used again, and the disk has what a crash leaves. Before that it
adds the request to its quarantine and tells the other nodes, so the next node refuses what has stopped this one.
"""

import traceback
from collections.abc import Mapping
from typing import Any

from strandline.base.effects import Close, Effect, Endpoint, Halt, Received, Reply, Report, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.interrupted import Interrupted
from strandline.base.time import NEVER, Instant, after
from strandline.base.traces import SECRET_APIS, said, trace_of
from strandline.base.value import Value
from strandline.broker.faults.quarantine import Quarantine, Quarantined, fingerprint
from strandline.broker.refusals import refusal_of
from strandline.wire.api import API_BY_KEY
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest
from strandline.wire.messages.own.quarantine import QuarantinedRequest, QuarantineRequest

CRASHED = 70  # EX_SOFTWARE
NOTIFY_MS = 1_000  # how long a node that must stop waits until the others know why
REPORT_PAUSE_MS = 10_000  # between two lines about the same kind of exception
KINDS_MAX = 1_000
CHANNEL = "quarantine"


class QuarantineSent(Value, frozen=True):
    """The token of what a node says before it stops."""

    node: NodeId


class HalfDone(Exception):
    """State may be half changed. `requests`: those that led to it, the innermost first; `event`: the outermost."""

    def __init__(self, event: Received, requests: tuple[Quarantined, ...], where: str) -> None:
        super().__init__(f"{where} may be half done")
        self.event = event
        self.requests = requests
        self.where = where


class Containment:
    def __init__(self, quarantine: Quarantine) -> None:
        self.quarantine = quarantine
        self.is_on = True  # off: exceptions come out of the node, for simulations that look for bugs
        self.contained = 0
        self.silent: dict[
            tuple[int, str], tuple[Instant, int]
        ] = {}  # by kind: until when, and how many were not reported
        self.unanswered: set[QuarantineSent] = set()
        self.stops_at: Instant = NEVER
        self.why = ""

    # --- nothing is half done

    def cost(self, event: Received, error: BaseException, now: Instant) -> list[Effect]:
        self.contained += 1
        name = name_of(event)
        answer = answer_to(event.message)
        effects: list[Effect] = [*self.report(event, error, now)]
        if isinstance(error, Interrupted):
            effects += error.effects
        if answer is not None:
            effects.append(Reply(event.to, answer))
            if event.caller.is_node:
                return effects  # requests of others share its connection
        return [*effects, Close(event.to.connection, f"{name} made this node raise {type(root_of(error)).__name__}")]

    def report(self, event: Received, error: BaseException, now: Instant) -> list[Report]:
        """A trace for the first of its kind; then a line now and then, with a count."""
        kind = (event.to.api_key, place_of(error))
        until, count = self.silent.get(kind, (Instant(-1), 0))
        if now < until:
            self.silent[kind] = (until, count + 1)
            return []
        is_new = kind not in self.silent
        if len(self.silent) >= KINDS_MAX:
            self.silent.clear()
        self.silent[kind] = (after(now, REPORT_PAUSE_MS), 0)
        assert len(self.silent) <= KINDS_MAX
        text = f"{name_of(event)} from {event.caller.named} on {event.caller.listener} raised; nothing was changed"
        if is_new:
            text += f"\n{trace_of(error, hides=event.to.api_key in SECRET_APIS)}"
        elif count:
            text += f" ({count} more like it were not reported): {type(root_of(error)).__name__} in {kind[1]}"
        return [Report("error", text)]

    # --- something may be half done

    def half_done(self, event: Received, error: BaseException, where: str) -> HalfDone:
        """Also around another one: this node asked itself."""
        if isinstance(event.message, SaslAuthenticateRequest):
            # A digest of a password may be guessed from. It costs its connection, where nothing else is known of it.
            return error if isinstance(error, HalfDone) else HalfDone(event, (), where)
        found = fingerprint(event.to.api_key, event.to.api_version, event.message)
        if not isinstance(error, HalfDone):
            return HalfDone(event, (found,), where)
        return error if found in error.requests else HalfDone(event, (*error.requests, found), error.where)

    def stop(
        self, event: Received, error: BaseException, found: HalfDone, others: Mapping[NodeId, Endpoint], now: Instant
    ) -> list[Effect]:
        assert not self.is_stopping, "once"
        self.quarantine.add(found.requests)
        self.stops_at = after(now, NOTIFY_MS)
        name, cause = name_of(event), root_of(error)
        hides = event.to.api_key in SECRET_APIS or any(one.api_key in SECRET_APIS for one in found.requests)
        self.why = f"crashed on {name} from {event.caller.named}: {said(cause, hides=hides)}"
        text = f"{name} from {event.caller.named} on {event.caller.listener} raised, and {found.where} may be half done"
        effects: list[Effect] = [
            Report("error", f"{text}. This node stops, and no node takes it again\n{trace_of(error, hides=hides)}")
        ]
        rows = tuple(QuarantinedRequest(one.api_key, one.version, one.digest) for one in found.requests)
        for node, endpoint in others.items():
            self.unanswered.add(QuarantineSent(node))
            effects.append(Send(endpoint, CHANNEL, QuarantineRequest(rows), 0, NOTIFY_MS, QuarantineSent(node), node))
        if not self.unanswered:
            self.stops_at = now
        return effects

    @property
    def is_stopping(self) -> bool:
        return self.stops_at != NEVER

    def step(self, event: Any, now: Instant) -> list[Effect]:
        """In place of the node's, while it stops: all but the others' answers is ignored."""
        assert self.is_stopping
        self.unanswered.discard(getattr(event, "token", None))
        if not self.unanswered:
            self.stops_at = min(self.stops_at, now)
        return []

    def expire(self, now: Instant) -> list[Effect]:
        assert self.is_stopping
        return [Halt(self.why, CRASHED)] if self.stops_at <= now else []


def name_of(event: Received) -> str:
    api = API_BY_KEY.get(event.to.api_key)
    name = type(event.message).__name__.removesuffix("Request") if api is None else api.name
    return f"{name} v{event.to.api_version}"


def answer_to(message: Any) -> Any:
    """None: this API has no answer in which everything fails."""
    try:
        return refusal_of(message, ErrorCode.UNKNOWN_SERVER_ERROR)
    except Exception:
        return None


def root_of(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def place_of(error: BaseException) -> str:
    last = traceback.extract_tb(root_of(error).__traceback__, limit=-1)
    return f"{last[0].name}:{last[0].lineno}" if last else type(error).__name__
