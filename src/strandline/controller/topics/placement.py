"""Where the replicas of new partitions go.

Brokers stand in one ring in which racks alternate. The first replica of consecutive partitions walks round the ring,
so that leaders are spread evenly; the others follow at a shift that changes with every round, so that one broker's
followers are spread over all others. Racks come first: a partition is on as many racks as it can be.

Invariants (property-tested):
  - the replicas of a partition are distinct, and the first one is active;
  - an inactive broker is used only when there are too few active ones;
  - over one call without racks, the numbers of leaders per active broker differ by at most one.
"""

from collections.abc import Iterator

from strandline.base.ids import NodeId
from strandline.base.ports import Rng
from strandline.base.value import Value

Replicas = tuple[NodeId, ...]


class Place(Value, frozen=True):
    """A broker on which a replica may be placed."""

    node: NodeId
    rack: str | None
    is_active: bool


def why_not_placed(factor: int, places: list[Place]) -> str | None:
    """Why can no partition have `factor` replicas? None means it can. In Kafka's words, which operators search for."""
    if factor > len(places):
        reason = (
            f"The target replication factor of {factor} cannot be reached because only "
            f"{len(places)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    elif not any(place.is_active for place in places):
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
    else:
        return None
    return f"Unable to replicate the partition {factor} time(s): {reason}"


def place(count: int, factor: int, places: list[Place], rng: Rng) -> list[Replicas]:
    """`count` replica lists of `factor` brokers each, for which `why_not_placed` must have said None."""
    assert why_not_placed(factor, places) is None
    assert count > 0
    active = ring([p for p in places if p.is_active], rng)
    spare = ring([p for p in places if not p.is_active], rng)
    start, shift = rng.randrange(0, len(active)), rng.randrange(0, len(active))
    return [one(partition, factor, active, spare, start, shift) for partition in range(count)]


def one(partition: int, factor: int, active: list[Place], spare: list[Place], start: int, shift: int) -> Replicas:
    size = len(active)
    first = (start + partition) % size
    chosen = [active[first]]
    rounds = shift + partition // size
    others = [active[(first + 1 + (rounds + k) % (size - 1)) % size] for k in range(size - 1)]
    backup = [spare[(start + partition + k) % len(spare)] for k in range(len(spare))]
    for candidates in (others, backup):
        chosen += spread(candidates, factor - len(chosen), chosen)
    return tuple(p.node for p in chosen)


def spread(candidates: list[Place], wanted: int, chosen: list[Place]) -> list[Place]:
    """`wanted` of the candidates in their order, those on the least used racks first."""
    used: dict[str | None, int] = {}
    for place in chosen:
        used[place.rack] = used.get(place.rack, 0) + 1
    left = list(candidates)
    taken: list[Place] = []
    while left and len(taken) < wanted:
        best = min(range(len(left)), key=lambda i: used.get(left[i].rack, 0))
        place = left.pop(best)
        used[place.rack] = used.get(place.rack, 0) + 1
        taken.append(place)
    return taken


def ring(places: list[Place], rng: Rng) -> list[Place]:
    """The places in an order in which racks alternate; within a rack and between racks the order is drawn."""
    racks: dict[str | None, list[Place]] = {}
    for place in shuffled(sorted(places, key=lambda p: p.node), rng):
        racks.setdefault(place.rack, []).append(place)
    return list(alternate(list(racks.values())))


def alternate(groups: list[list[Place]]) -> Iterator[Place]:
    for depth in range(max((len(g) for g in groups), default=0)):
        for group in groups:
            if depth < len(group):
                yield group[depth]


def shuffled(places: list[Place], rng: Rng) -> list[Place]:
    left = list(places)
    for i in range(len(left) - 1, 0, -1):
        j = rng.randrange(0, i + 1)
        left[i], left[j] = left[j], left[i]
    return left
