"""When the parts of a node have something to do, but for the quorum, which comes before them."""

from strandline.base.time import NEVER, Instant
from strandline.broker.broker import Broker
from strandline.broker.forward import Forwarding
from strandline.controller.controller import Controller


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
