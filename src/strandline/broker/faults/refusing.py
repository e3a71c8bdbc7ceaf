"""Routes that compare the requests of some APIs with the quarantine first."""

from collections.abc import Callable
from typing import Any

from strandline.base.effects import Close, Effect, Received, Reply
from strandline.base.time import Instant
from strandline.broker.faults.containing import answer_to, name_of
from strandline.broker.faults.quarantine import Quarantine

Route = Callable[[Any, Received, Instant], list[Effect]]


def refusing(quarantine: Quarantine, routes: dict[type, Route]) -> dict[type, Route]:
    named = {one.api_key for one in quarantine.found}
    if not named:
        return routes
    return {
        cls: compared(quarantine, route) if getattr(cls, "api_key", None) in named else route
        for cls, route in routes.items()
    }


def compared(quarantine: Quarantine, route: Route) -> Route:
    def judged(node: Any, received: Received, now: Instant) -> list[Effect]:
        to = received.to
        if not quarantine.holds(to.api_key, to.api_version, received.message):
            return route(node, received, now)
        answer = answer_to(received.message)
        why = f"{name_of(received)} has stopped a node of this cluster: {quarantine.path} lists it"
        return [*([] if answer is None else [Reply(to, answer)]), Close(to.connection, why)]

    return judged
