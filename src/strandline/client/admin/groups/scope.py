"""Which partitions are meant: TOPIC, or TOPIC:0,1 for these partitions of it."""

from collections.abc import Iterable

from strandline.client.admin.partitions import PartitionState, Place, describe_partitions
from strandline.client.ask import Servers
from strandline.client.errors import BadOption, StrandlineError

Scope = dict[str, tuple[int, ...] | None]  # partitions by topic; None: all of them


def scope_of(topics: Iterable[str]) -> Scope:
    """Raises BadOption."""
    found: Scope = {}
    for text in topics:
        topic, colon, indexes = text.partition(":")
        numbers = indexes.split(",") if colon else []
        if not topic or not all(number.isdecimal() for number in numbers) or (colon and not indexes):
            raise BadOption(f"'{text}' is neither TOPIC nor TOPIC:0,1")
        if topic in found:
            raise BadOption(f"topic '{topic}' is named twice")
        found[topic] = tuple(map(int, numbers)) if colon else None
    return found


def places_in(bootstrap: Servers, scope: Scope) -> dict[Place, PartitionState]:
    """Raises StrandlineError if there is no such topic or partition."""
    states = {state.at: state for state in describe_partitions(bootstrap, scope)} if scope else {}
    wanted = [Place(topic, index) for topic, indexes in scope.items() for index in indexes or ()]
    missing = [str(at) for at in wanted if at not in states]
    if missing:
        problem = f"partition {', '.join(missing)} does not exist"
        raise StrandlineError(problem, "`strandline topics describe` shows the partitions")
    return {at: state for at, state in states.items() if is_in(at, scope)}


def is_in(at: Place, scope: Scope) -> bool:
    if at.topic not in scope:
        return False
    indexes = scope[at.topic]
    return indexes is None or at.partition in indexes
