"""When the parts of a node have something to do, but for the quorum, which comes before them."""

from typing import Protocol

from strandline.base.time import NEVER, Instant
from strandline.broker.broker import Broker
from strandline.broker.forward import Forwarding
from strandline.controller.controller import Controller
from strandline.quorum.quorum import Quorum


class Part(Protocol):
    def deadline(self) -> Instant: ...


def deadline(forwarding: Forwarding, controller: Controller | None, broker: Broker | None) -> Instant:
    """Asked after each step, so it asks only those that may have a deadline."""
    first = NEVER if broker is None else broker.deadline()
    if forwarding.again:
        first = min(first, forwarding.deadline())
    return first if controller is None else min(first, controller.deadline())


def is_due(forwarding: Forwarding, controller: Controller | None, broker: Broker | None, now: Instant) -> bool:
    """Would `expire` of any of them do anything?"""
    if forwarding.deadline() <= now or (broker is not None and broker.is_due(now)):
        return True
    return controller is not None and controller.deadline() <= now


def names(
    quorum: Quorum, forwarding: Forwarding, controller: Controller | None, broker: Broker | None, now: Instant
) -> list[str]:
    """Whose deadline has come: what a measurement of `expire` calls its cause."""
    parts: dict[str, Part] = {"quorum": quorum, "forwarding": forwarding}
    if controller is not None:
        parts["controller"] = controller
    if broker is not None:
        parts |= {"groups": broker.groups, "transactions": broker.transactions, "lifecycle": broker.lifecycle}
    found = [name for name, part in parts.items() if part.deadline() <= now]
    return found + (broker.replicas.due(now) if broker is not None else [])
